"""`Desk`: takes a message of the page, returns the answer. Server and notebook hand messages through unchanged.

A message is an object with a key ``do``; an answer is an object, with a key ``error`` where something was wrong. What
happens without being asked, a training that goes on or a second page that saves, is told to whoever subscribes.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ciplearn
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.files import checksum
from ciplearn.causal import CausalGraph
from ciplearn.workbench.document import EXAMPLES, Document, advised, example, judged
from ciplearn.workbench.protocol import LARGEST_TEXT, NOTATIONS, SAVED, check_message
from ciplearn.workbench.recipes import Recipe
from ciplearn.workbench.store import Store, write_json

if TYPE_CHECKING:
    from ciplearn.workbench.runs import Runs
    from ciplearn.workbench.stops import Imagination
    from ciplearn.workbench.tables import Table

Message = Mapping[str, Any]
Answer = dict[str, Any]
Listener = Callable[[Answer], object]


class Desk:
    """One piece of work: a drawing (``document``, where the store has none), perhaps a table, and what was trained."""

    def __init__(self, store: Store, document: Document | None = None) -> None:
        self.store = store
        self.instance = secrets.token_hex(4)  # differs after a restart, so that a page can say that there was one
        self._lock = threading.RLock()
        self._listeners: list[Listener] = []
        self._saved = store.read("document.json", SAVED)
        self.found_saved = bool(self._saved)
        if not self._saved:
            self._saved = {"version": 0, "document": (document or Document()).to_dict()}
        self._table: Table | None = None
        self._runs: Runs | None = None
        self._imagination: tuple[tuple[str, str], Imagination] | None = None
        self._imagining = threading.Lock()
        self._actions: dict[str, Callable[[Message], Answer]] = {
            "hello": self._hello,
            "judge": self._judge,
            "advise": lambda message: advised(_document(message)),
            # A drawing of a link: the page shows it once it is known to be one.
            "open": lambda message: {"document": message["document"]},
            "read": lambda message: {"document": Document(CausalGraph.from_text(message["text"])).to_dict()},
            "write": self._write,
            "save": self._save,
            "example": self._example,
            "table": self._upload,
            "demo-table": lambda message: {"table": self.take_demo_table()},
            "describe": lambda message: self.table.describe(_document(message)),
            "falsify": lambda message: self.table.falsified(_document(message)),
            "usual": lambda message: self.table.usual_limit(_document(message)),
            "train": lambda message: {"run": self.runs.start(_document(message), self.table, Recipe.read(message))},
            "cancel": lambda message: {"cancelled": self.runs.cancel(message["run"])},
            "forget": lambda message: {"forgotten": self.runs.forget(message["run"])},
            "show": self._show,
            "keep": lambda message: {"run": self.runs.keep(message["run"], message["stop"])},
            "download": lambda message: self.runs.download(message["run"], message["stop"], message["what"]),
            "rows": lambda message: self._imagine(message).choices(),
            "imagine": lambda message: self._imagine(message).imagine(message["row"], message["values"]),
        }

    def answer(self, message: Any) -> Answer:
        """Answer one message; a mistake in it is an answer too, one sentence under ``error``."""
        try:
            check_message(message)
        except InputError as problem:
            return {"error": str(problem)}
        return self.answer_checked(message)

    def answer_checked(self, message: Message) -> Answer:
        """Answer a message that `check_message` has let through."""
        try:
            return self._actions[message["do"]](message)
        except CiplearnError as problem:
            return {"error": str(problem)}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` what happens; returns how to stop that."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return stop

    def tell(self, event: Answer) -> None:
        """Tell everybody who listens."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(event)

    @property
    def document(self) -> Document:
        """The drawing as it was last saved."""
        return Document.read(self._saved["document"])

    def close(self) -> None:
        """End what is at work and let others have the folder; what was saved stays."""
        self.runs.close()
        self.store.close()

    def _hello(self, message: Message) -> Answer:
        from ciplearn.workbench.runs import public

        with self._lock:
            return {
                "instance": self.instance,
                "work": checksum(str(self.store.folder).encode())[:16],
                "version": self._saved["version"],
                "document": self._saved["document"],
                "found_saved": self.found_saved,
                "examples": [entry.to_dict() for entry in EXAMPLES],
                "ciplearn": ciplearn.__version__,
                "table": {"name": self._saved["table"]["name"]} if self.has_table else None,
                "runs": [public(run) for run in self.runs.known.values()],
                "interrupted": self.runs.interrupted,
                # After the runs, which may be among it.
                "set_aside": " ".join(self.store.set_aside),
            }

    def _judge(self, message: Message) -> Answer:
        """The verdict, and the fingerprint by which the page tells runs of this drawing from those of another."""
        document = _document(message)
        answer = judged(document)
        if answer["state"] == "judged" and self.has_table:
            # A table that is gone has none; whoever trains on it is told.
            with suppress(InputError):
                answer["fingerprint"] = document.fingerprint(self.table.digest)
        return answer

    def _write(self, message: Message) -> Answer:
        notation, graph = message["format"], _document(message).graph
        return {"text": getattr(graph, f"to_{notation}")(), "name": f"graph.{NOTATIONS[notation]}"}

    def _example(self, message: Message) -> Answer:
        chosen = example(message["name"])
        return {"document": chosen.document().to_dict(), "title": chosen.title, "has_table": chosen.has_table}

    def _save(self, message: Message) -> Answer:
        """Keep the drawing, unless another page has saved since the sender last looked."""
        # One with a cycle is no graph yet, and its drawer's work all the same.
        content = message["document"]
        if len(json.dumps(content)) > LARGEST_TEXT:
            raise InputError("A drawing to save must have at most 2 MB; draw less.")
        with self._lock:
            if content == self._saved["document"]:
                return {"version": self._saved["version"]}
            if message.get("version") != self._saved["version"] and not message.get("anyway"):
                return {"conflict": True, **self._last_save()}
            version = self._saved["version"] + 1
            self._keep(version=version, document=dict(content), client=message.get("client"))
            saved = self._last_save()
        self.tell({"event": "document", **saved})
        return {"version": saved["version"]}

    def _last_save(self) -> Answer:
        """The drawing, its version, and who has saved it."""
        return {key: self._saved.get(key) for key in ("version", "document", "client")}

    def _keep(self, **changed: Any) -> None:
        self._saved = {**self._saved, **changed}
        write_json(self.store.folder / "document.json", self._saved)

    def take_table(self, path: Path, shown: str, stored: str | None = None, *, read: bool = True) -> Answer:
        """Let a file be the table: ``shown`` is its name for people, ``stored`` in the store; ``read``: at once."""
        table = None
        if read:
            from ciplearn.workbench.tables import Table

            table = Table(path, shown)
            if table.text.empty:
                raise InputError(f"{shown} has no rows; drop a table with some.")
        with self._lock:
            self._table = table
            self._keep(table={"name": shown, "stored": stored, "path": None if stored else str(path)})
        self.tell({"event": "table", "table": {"name": shown}})
        return {"name": shown}

    def take_demo_table(self) -> Answer:
        """Draw the demo's table, and let it be the table."""
        from ciplearn.datasets.synthetic import people_of_the_story

        stored = self.store.add_table("people.csv", people_of_the_story().to_csv(index=False).encode())
        return self.take_table(self.store.table_path(stored), "people.csv", stored)

    @property
    def has_table(self) -> bool:
        """Whether there is one."""
        return bool(self._saved.get("table"))

    @property
    def table(self) -> Table:
        """The table, read when first asked for."""
        from ciplearn.workbench.tables import Table

        with self._lock:
            if self._table is None:
                if not self.has_table:
                    raise InputError("There is no table yet; drop one on the page.")
                saved = self._saved["table"]
                path = self.store.table_path(saved["stored"]) if saved["stored"] else Path(saved["path"])
                self._table = Table(path, saved["name"])
            return self._table

    def _upload(self, message: Message) -> Answer:
        content, shown = message["content"], message["name"]
        if not shown.strip():
            raise InputError("A table comes as a file with a name; drop one on the page.")
        shown = Path(shown.replace("\\", "/")).name[:120]
        stored = self.store.add_table(shown, content)
        try:
            return {"table": self.take_table(self.store.table_path(stored), shown, stored)}
        except CiplearnError as problem:
            path = self.store.tables / stored
            path.unlink(missing_ok=True)
            raise InputError(str(problem).replace(str(path), shown)) from problem

    @property
    def runs(self) -> Runs:
        """The trainings."""
        with self._lock:
            if self._runs is None:
                from ciplearn.workbench.runs import Runs

                self._runs = Runs(self.store, self.tell)
            return self._runs

    def _show(self, message: Message) -> Answer:
        """Let the table of a run be the table again, and return its drawing."""
        run = self.runs.run(message["run"])
        path = Path(run["table"]["path"])
        stored = path.name if path.parent == self.store.tables else None
        return {"document": run["document"], "table": self.take_table(path, run["table"]["name"], stored)}

    def _imagine(self, message: Message) -> Imagination:
        """Return what a stop imagines with; the last one is kept, for the next slider."""
        from ciplearn.workbench.stops import Imagination

        run, folder, stop = self.runs.with_model(message["run"], message["stop"])
        with self._imagining:
            wanted = (run["name"], stop["key"])
            if self._imagination is None or self._imagination[0] != wanted:
                self._imagination = None
                self._imagination = (wanted, Imagination.of(run, folder, stop))
            return self._imagination[1]


def _document(message: Message) -> Document:
    return Document.read(message["document"])


def opened(
    folder: Path,
    *,
    table: Path | None = None,
    graph: CausalGraph | None = None,
    model: Path | None = None,
    demo: bool = False,
) -> Desk:
    """Return the desk of a folder; what was saved there comes before what is passed to begin with."""
    if table is not None and not table.is_file():
        raise InputError(f"There is no table {str(table)!r}; check the path.")
    if model is not None:
        document = _of_model(model)
    else:
        document = example("demo").document() if demo else Document(graph or CausalGraph())
    # Not before all that was passed is known to be right: a refused call leaves no folder.
    desk = Desk(Store(folder), document)
    if table is not None:
        # Read when the page asks about it: the server is there at once, however large the table is.
        desk.take_table(table.resolve(), table.name, read=False)
    elif demo and not desk.has_table:
        threading.Thread(target=desk.take_demo_table, daemon=True).start()
    if model is not None and table is not None and not desk.runs.known:
        # Its models are the stops of a run, which are only measured.
        desk.runs.start(desk.document, desk.table, Recipe(), model.resolve())
    return desk


def _of_model(folder: Path) -> Document:
    from ciplearn.repairing import load_model

    verdict = load_model(folder).verdict_
    if verdict is None:
        raise InputError(f"{folder} was trained without a graph; the workbench has nothing to draw.")
    graph = replace(
        verdict.graph, exposures=verdict.protected, outcomes=(verdict.outcome,), adjusted=verdict.adjustment
    )
    return Document(graph, verdict.context, verdict.inputs).with_defaults()
