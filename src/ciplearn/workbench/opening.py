"""From the words of a command line to a desk."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ciplearn._core.errors import InputError
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.document import Document
from ciplearn.workbench.examples import example
from ciplearn.workbench.store import Store

if TYPE_CHECKING:
    from ciplearn.causal import CausalGraph


def opened(
    store: Store,
    *,
    table: Path | None = None,
    graph: CausalGraph | None = None,
    model: Path | None = None,
    demo: bool = False,
) -> Desk:
    """Return the desk of a store; what was saved there comes before what is passed to begin with.

    Parameters
    ----------
    store : Store
    table, graph
        To begin with.
    model : Path, optional
        A model folder: its graph and roles are drawn, and with a table its gammas are measured.
    demo : bool
        Begin with the demo's graph and table.
    """
    if table is not None and not table.is_file():
        raise InputError(f"There is no table {str(table)!r}; check the path.")
    document = None if graph is None else Document(graph)
    models: list[dict[str, object]] = []
    if model is not None:
        document, models = _of_model(model)
    elif demo:
        document = example("demo").document()
    desk = Desk(store, document)
    if table is not None:
        # Read when the page asks about it: the server is there at once, however large the table is.
        desk.take_table(table.resolve(), table.name, read=False)
    elif demo and not desk.has_table:
        threading.Thread(target=desk.take_demo_table, daemon=True).start()
    if models and table is not None and not desk.runs.known:
        desk.measure(models)
    return desk


def _of_model(folder: Path) -> tuple[Document, list[dict[str, object]]]:
    """Return the drawing of a model folder, and its models: the one it holds, and those that were tried."""
    from ciplearn.cli.model_folder import ModelFolder
    from ciplearn.saving import load_model

    saved = load_model(folder)
    if saved.graph is None or saved.verdict_ is None:
        raise InputError(f"{folder} was trained without a graph; the workbench has nothing to draw.")
    verdict = saved.verdict_
    graph = replace(saved.graph, exposures=verdict.protected, outcomes=(verdict.outcome,), adjusted=verdict.adjustment)
    others = tuple(name for name in graph.observed if name != verdict.outcome)
    document = Document(
        graph,
        None if verdict.context == others else verdict.context,
        None if verdict.inputs == others else verdict.inputs,
    )
    tried = ModelFolder.read(folder).training["trials"] if (folder / "training.json").exists() else []
    places = [(trial["gamma"], (folder / trial["folder"]).resolve()) for trial in tried]
    own = folder.resolve()
    # A line has a gamma of 0, as the predictor without a penalty has: folders tell models apart, gammas do not.
    if own not in [place for _, place in places]:
        places.append((saved.gamma_, own))
    models: list[dict[str, object]] = [
        {"gamma": gamma, "folder": str(place), "held": place == own} for gamma, place in places
    ]
    return document, sorted(models, key=lambda entry: float(str(entry["gamma"])))
