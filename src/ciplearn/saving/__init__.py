"""A fitted model as a folder that nothing in is ever run from, or as an ONNX file."""

from ciplearn.saving.folder import load_model, save_model
from ciplearn.saving.onnx import export_onnx

__all__ = ["export_onnx", "load_model", "save_model"]
