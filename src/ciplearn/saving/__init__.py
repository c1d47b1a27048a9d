"""A fitted model as a folder that nothing in is ever run from, or as an ONNX file."""

# Public under `ciplearn`, where a repaired model can be saved, too.
from ciplearn.saving.folder import load_model as load_model
from ciplearn.saving.folder import save_model as save_model
from ciplearn.saving.onnx import export_onnx

__all__ = ["export_onnx"]
