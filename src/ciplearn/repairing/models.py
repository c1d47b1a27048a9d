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
    >>> from ciplearn import CIPRegressor, datasets, load_model, save_model
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], gamma=1, epochs=2, random_state=0)
    >>> model = model.fit(table.drop(columns="Y"), table["Y"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_model(model, f"{folder}/model")
    ...     again = load_model(f"{folder}/model")
    >>> bool((again.predict(table) == model.predict(table)).all())
    True
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
    >>> import numpy as np
    >>> from ciplearn import CIPRegressor, load_model, save_model
    >>> rows = np.eye(3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_model(CIPRegressor(epochs=2, random_state=0).fit(rows, [1.0, 2.0, 3.0]), f"{folder}/model")
    ...     print(load_model(f"{folder}/model").epochs)
    2
    """
    place = trained.as_path(folder)
    if os.path.exists(place / DESCRIPTION):
        return load_repaired(place, more.get("model"), scm=more.get("scm"))
    return trained.load_model(folder, module, device, **more)
