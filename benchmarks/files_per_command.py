"""How many files of the project a command runs code of: what a reader walks through who follows it.

A file counts if one of its functions is called. What runs while a module is imported does not count.

    python benchmarks/files_per_command.py          prints three counts, and the files of each room
    python benchmarks/files_per_command.py fit      names the files of one command
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import ciplearn
from ciplearn.cli.app import run
from ciplearn.datasets import applicants

LIBRARY = Path(ciplearn.__file__).parent
GOALS = {"fit": 50, "audit": 65, "predict": 25}
COMMANDS = {
    "fit": "fit people.csv --graph graph.txt --outcome income --protected sex --gamma 1 --out model",
    "audit": "audit model people.csv --no-gate",
    "predict": "predict model people.csv --out predictions.csv",
}


def files_called(call: Callable[[], Any]) -> set[str]:
    """Run something, and return the files of the project whose functions were called."""
    found: set[str] = set()
    imports = 0

    def see(frame: FrameType, event: str, _: Any) -> None:
        nonlocal imports
        code = frame.f_code
        if code.co_name == "<module>":
            imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not imports and code.co_flags & inspect.CO_OPTIMIZED:
            found.add(code.co_filename)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {str(Path(name).relative_to(LIBRARY)) for name in found if name.startswith(f"{LIBRARY}{os.sep}")}


def measured() -> dict[str, set[str]]:
    """The files of each command, on 200 made-up people."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        world = applicants()
        world.sample(200, random_state=0).to_csv("people.csv", index=False)
        Path("graph.txt").write_text(world.graph.to_dagitty(), encoding="utf-8")
        found = {name: files_called(lambda words=words: run(words.split())) for name, words in COMMANDS.items()}
        os.chdir("/")
    return found


if __name__ == "__main__":
    counted = measured()
    for name, files in counted.items():
        rooms = Counter(file.split(os.sep)[0] for file in files)
        print(f"{name}: {len(files)} files (goal {GOALS[name]})")
        print("  " + ", ".join(f"{room} {count}" for room, count in rooms.most_common()))
        if name in sys.argv[1:]:
            print("  " + "\n  ".join(sorted(files)))
