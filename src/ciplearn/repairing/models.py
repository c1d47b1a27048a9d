"""Any predictor of this library as a folder: trained here, or repaired."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ciplearn.repairing.kept import DESCRIPTION, load_repaired, save_repaired
from ciplearn.repairing.repaired import Repaired
from ciplearn.saving import folder as trained


def save_model(model: Any, folder: str | os.PathLike[str], scores: dict[str, float] | None = None, **more: Any) -> Path:
    """Write a fitted model; the folder appears whole or not at all.

    Parameters
    ----------
    model : CIPRegressor, CIPClassifier or Repaired
    folder : path
        Of a folder that holds a saved model, only the files of that model are replaced; a folder that holds anything
        else is refused.
    scores : mapping of name to number, optional
        What to say about the model on its card.
    more
        ``overwrite=False`` refuses to replace a saved model; ``counterfactuals=False`` leaves out causal models that
        imagined training rows. One that cannot be written as data is named all the same.

    Examples
    --------
    >>> import tempfile
    >>> from ciplearn import CIPRegressor, load_model, save_model
    >>> model = CIPRegressor(epochs=2, random_state=0).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(model, f"{folder}/model")).predict([[2.0]]) == model.predict([[2.0]])
    array([ True])
    """
    if isinstance(model, Repaired):
        return save_repaired(model, trained.as_path(folder), overwrite=more.get("overwrite", True))
    return trained.save_model(model, folder, scores, **more)


def load_model(folder: str | os.PathLike[str], module: Any = None, device: str = "cpu", **more: Any) -> Any:
    """Read a model that `save_model` has written.

    Parameters
    ----------
    folder : path
    module : torch.nn.Module, or a function that returns one, optional
        A network of the same architecture, for a model that was trained with its own ``module``.
    device : str
    more
        ``counterfactuals=EstimatedModel.load`` reads the causal model that imagined training rows; ``model=`` and
        ``scm=`` pass the model of a repair and a known causal model, where the folder does not hold them.

    Examples
    --------
    >>> import tempfile
    >>> from ciplearn import CIPRegressor, load_model, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = save_model(CIPRegressor(epochs=2).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]), f"{folder}/model")
    ...     load_model(kept).epochs
    2
    """
    place = trained.as_path(folder)
    if os.path.exists(place / DESCRIPTION):
        return load_repaired(place, more.get("model"), scm=more.get("scm"))
    return trained.load_model(folder, module, device, **more)
