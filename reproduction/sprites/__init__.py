"""dSprites, rendered instead of downloaded [matthey2017], and the image experiment's causal model."""

from reproduction.sprites.archive import Archive
from reproduction.sprites.causal_model import image_latents, matched_latents, pictures
from reproduction.sprites.latents import (
    FACTORS,
    N_IMAGES,
    SHAPES,
    SIZES,
    factor_values,
    index_of,
    latent_values,
    latents_of,
)
from reproduction.sprites.predictor import PicturePredictor
from reproduction.sprites.rendering import SIDE, render

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
