"""How quick the workbench is: start of the server, verdicts, and frames while dragging, at 50 nodes and 120 edges.

    python -m benchmarks.workbench

Needs chromium with its driver, and the built page (``python workbench/build.py``).
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path

from ciplearn import CausalGraph
from ciplearn.workbench import BUNDLE
from ciplearn.workbench.document import Document, judged
from tests.workbench.browser import browsing, served

NODES, EDGES = 50, 120

# Counts frames in the page for as long as a drag lasts.
_COUNT = """
window.frames_ = []; window.counting_ = true; let last = performance.now();
const step = (now) => {
  window.frames_.push(now - last);
  last = now;
  if (window.counting_) requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


def large_graph(seed: int = 0) -> CausalGraph:
    """A random graph of the size that the page must stay fluid at."""
    chance = random.Random(seed)
    names = [f"v{place}" for place in range(NODES)]
    edges: set[tuple[str, str]] = set()
    while len(edges) < EDGES:
        a, b = sorted(chance.sample(range(NODES), 2))
        edges.add((names[a], names[b]))
    return CausalGraph(directed=tuple(edges), exposures=("v3",), outcomes=("v49",))


def main() -> None:
    """Measure and print."""
    graph = large_graph()
    times = []
    for _ in range(30):
        start = time.perf_counter()
        judged(Document(graph))
        times.append(time.perf_counter() - start)
    print(f"verdict in Python: median {1000 * statistics.median(times):.1f} ms, worst {1000 * max(times):.1f} ms")
    size = sum(path.stat().st_size for path in BUNDLE.iterdir())
    print(f"page: {size / 1000:.0f} kB")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with served(Path(folder) / "work", "--graph", graph.to_json()) as (_, address):
            print(f"start of the server until it prints its address: {time.perf_counter() - start:.2f} s")
            with browsing(Path(folder)) as page:
                page.open(address)
                page.wait(".statement")
                measure_page(page)


def measure_page(page: object) -> None:
    """Print how long verdicts take on the page, and the frames while a node is dragged about."""
    waits = []
    for name in ("v7", "v8", "v9", "v10", "v11"):
        page.run("document.querySelector('.cw').workbench.verdictMilliseconds = null")
        page.run("const app = document.querySelector('.cw').workbench; app.canvas.select(arguments[0]);"
                 "app.selection.toggle('exposures')", name)  # fmt: skip
        page.until(lambda: page.doc("verdictMilliseconds") is not None)
        waits.append(page.doc("verdictMilliseconds"))
    print(f"verdict on the page, from change to answer: {', '.join(f'{wait:.0f}' for wait in waits)} ms")
    middle = page.place("v20")
    page.run(_COUNT)
    start = time.perf_counter()
    for turn in range(6):
        page.drag(page.place("v20"), (middle[0] + (120 if turn % 2 else -120), middle[1] + 80 - 30 * turn), steps=25)
    seconds = time.perf_counter() - start
    page.run("window.counting_ = false")
    frames = sorted(page.run("return window.frames_"))
    print(
        f"dragging: {len(frames) / seconds:.0f} frames per second, median {statistics.median(frames):.1f} ms, "
        f"95 % under {frames[int(0.95 * len(frames))]:.1f} ms"
    )


if __name__ == "__main__":
    main()
