"""A predictor that sees pictures, asked about rows of the causal model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from ciplearn.scm.kinds import Array
from reproduction.sprites.causal_model import matched_latents
from reproduction.sprites.latents import FACTORS, index_of
from reproduction.sprites.rendering import render


@dataclass(frozen=True)
class PicturePredictor:
    """Shows each distinct picture to a model once, however many rows share it.

    Counterfactuals repeat themselves: whatever the number of interventions, a row has one counterfactual for each of
    the 32 horizontal positions. So `variance_of_counterfactuals` with this predictor costs what its distinct pictures
    cost.

    Attributes
    ----------
    model
        Has ``predict(table, tensors=(images,))``, as `CIPRegressor` does: a frame of the latent columns, and pictures
        of 0 and 1 with shape (n, 64, 64).
    images : callable (latents) -> pictures
        `render`, or the ``images`` method of an `Archive`.
    pictures_at_once : int
        How many pictures the model is shown at a time.

    Examples
    --------
    >>> from reproduction import sprites
    >>> rows = sprites.image_latents().sample(3, random_state=0)
    >>> class Area:
    ...     feature_names_in_ = list(rows.columns)
    ...     def predict(self, frame, tensors):
    ...         return tensors[0].reshape(len(frame), -1).sum(1)
    >>> sprites.PicturePredictor(Area()).predict(rows).shape
    (3,)
    """

    model: Any
    images: Callable[[Array], Array] = render
    pictures_at_once: int = 1024

    @property
    def feature_names_in_(self) -> Array:
        """The columns that are read."""
        return np.array(FACTORS, dtype=object)

    def predict(self, rows: pd.DataFrame) -> Array:  # (n,) or (n, q)
        """Predict for rows of the model; columns other than the latent ones are ignored."""
        latents = matched_latents(rows)
        _, first, places = np.unique(index_of(latents), return_index=True, return_inverse=True)
        pieces = np.array_split(first, max(1, -(-len(first) // self.pictures_at_once)))
        # disable=None: quiet where nobody watches.
        answers = [
            self.model.predict(rows.iloc[piece][list(FACTORS)], tensors=(self.images(latents[piece]),))
            for piece in tqdm(pieces, desc="pictures", disable=None, leave=False)
        ]
        return np.concatenate(answers)[places]
