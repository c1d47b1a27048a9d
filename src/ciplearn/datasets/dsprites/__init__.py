"""dSprites, rendered instead of downloaded [matthey2017], and the image experiment's causal model."""

from ciplearn.datasets.dsprites.archive import Archive
from ciplearn.datasets.dsprites.causal_model import image_latents, matched_latents, pictures
from ciplearn.datasets.dsprites.latents import (
    FACTORS,
    N_IMAGES,
    SHAPES,
    SIZES,
    factor_values,
    index_of,
    latent_values,
    latents_of,
)
from ciplearn.datasets.dsprites.predictor import PicturePredictor
from ciplearn.datasets.dsprites.rendering import SIDE, render

__all__ = [
    "FACTORS",
    "N_IMAGES",
    "SHAPES",
    "SIDE",
    "SIZES",
    "Archive",
    "PicturePredictor",
    "factor_values",
    "image_latents",
    "index_of",
    "latent_values",
    "latents_of",
    "matched_latents",
    "pictures",
    "render",
]
