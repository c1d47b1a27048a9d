"""`Workbench`: the page in a notebook, in step with Python."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciplearn._core.arguments import of_kind
from ciplearn._core.errors import MissingDependencyError
from ciplearn._core.plain_data import as_data
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.workbench import bundle_file
from ciplearn.workbench.desk import Desk
from ciplearn.workbench.document import Document
from ciplearn.workbench.store import Store

if TYPE_CHECKING:
    import pandas as pd

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingDependencyError(
        f"The workbench in a notebook needs {error.name}; pip install 'ciplearn[workbench]'."
    ) from error


class Workbench(anywidget.AnyWidget):
    """Draw a causal graph in a notebook cell, see its verdict, train and look.

    Parameters
    ----------
    graph : CausalGraph, optional
    table : DataFrame, optional
        Rows to check the drawing against and to train on.
    folder : path, optional
        Where the work is kept; a folder that goes with the kernel by default.

    Attributes
    ----------
    graph : CausalGraph
        As it is drawn now; setting it draws another.
    roles : dict
        Outcome, protected, context, inputs and adjustment as the verdict has them; empty until there is a verdict.
    verdict : Verdict or None

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> from ciplearn.workbench import Workbench
    >>> w = Workbench(CausalGraph.from_edges("A -> Y"))  # doctest: +SKIP
    >>> w.graph.nodes  # doctest: +SKIP
    ('A', 'Y')
    """

    _esm = traitlets.Unicode("").tag(sync=True)
    _css = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self, graph: CausalGraph | None = None, table: pd.DataFrame | None = None, folder: str | Path | None = None
    ) -> None:
        drawn = Document() if graph is None else _drawing(graph)
        self._temporary = None if folder is not None else tempfile.TemporaryDirectory(prefix="ciplearn-workbench-")
        store = Store(Path(folder if folder is not None else self._temporary.name))  # type: ignore[union-attr]
        self.desk = Desk(store, drawn)
        if table is not None:
            stored = store.add_table("table.csv", table.to_csv(index=False).encode())
            self.desk.take_table(store.table_path(stored), "table.csv", stored)
        super().__init__(
            _esm=bundle_file("workbench.js").read_text(encoding="utf-8"),
            _css=bundle_file("workbench.css").read_text(encoding="utf-8"),
        )
        self.on_msg(self._received)
        self.desk.subscribe(lambda event: self.send(as_data(event)))

    def close(self) -> None:
        """Take the page away, end what is at work, and let others have the folder."""
        if hasattr(self, "desk"):
            self.desk.close()
        super().close()

    def _received(self, _: Any, content: Any, buffers: list[Any]) -> None:
        message = dict(content.get("message", {}))
        if message.get("do") == "table":
            message["content"] = bytes(buffers[0]) if buffers else b""
        self.send({"id": content.get("id"), "answer": as_data(self.desk.answer(message))})

    @property
    def graph(self) -> CausalGraph:
        """The graph as it is drawn now."""
        return self.desk.document.graph

    @graph.setter
    def graph(self, graph: CausalGraph) -> None:
        document = _drawing(graph).to_dict()
        self.desk.answer({"do": "save", "document": document, "anyway": True, "client": "python"})

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the drawing; None while a role is missing."""
        document = self.desk.document
        return None if document.missing_roles() else document.verdict()

    @property
    def roles(self) -> dict[str, Any]:
        """The roles that the verdict has judged."""
        verdict = self.verdict
        if verdict is None:
            return {}
        return {role: getattr(verdict, role) for role in ("outcome", "protected", "context", "inputs", "adjustment")}


def _drawing(graph: CausalGraph) -> Document:
    return Document(of_kind(graph, CausalGraph, "graph", "read it with from_text"))
