"""`Workbench` in real notebooks, where they are installed: what is drawn is read in Python, and the other way round."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from tests.workbench.browser import browsing, needs_browser

pytestmark = [needs_browser, pytest.mark.usefixtures("page"), pytest.mark.slow]

SHOW = """from ciplearn import CausalGraph, datasets
from ciplearn.workbench import Workbench
graph = CausalGraph.from_dagitty("dag { Z -> {A L Y} A [exposure] Y [outcome] A -> L -> Y A -> Y }")
w = Workbench(graph, datasets.first_synthetic().sample(300, random_state=0))
w"""
READ = "'READ', w.graph.bidirected, w.roles['protected'], w.verdict.holds"
DRAW = "w.graph = CausalGraph.from_dagitty('dag { A [exposure] Y [outcome] A -> Y Q -> Y }')"
SEEN = "('READ', (('Y', 'Z'),), ('A',), True)"

# A notebook may keep its widgets in shadow trees.
DEEP = """
const deep = (root, wanted) => {
  const below = [...root.querySelectorAll('*')].filter((one) => one.shadowRoot);
  return [...root.querySelectorAll(wanted), ...below.flatMap((one) => deep(one.shadowRoot, wanted))];
};
const [cw] = deep(document, '.cw');
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def notebook(folder, port, *words):
    """Start a notebook's server, and wait until it answers."""
    installed = os.path.join(sys.prefix, "share", "jupyter")
    environment = {"JUPYTER_PATH": installed, **os.environ, "HOME": str(folder)}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            end = time.monotonic() + 90
            while server.poll() is None and time.monotonic() < end:
                with suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                time.sleep(0.2)
            else:
                raise AssertionError((folder / "server.log").read_text())
            yield
        finally:
            # A group of its own, kernel included, which ends as one.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(timeout=30)


def assert_in_step(web, read, draw):
    """Draw on the page and `read` in Python, `draw` in Python and look at the page."""
    page = lambda script: web.run(f"{DEEP} return {script}")  # noqa: E731
    web.until(lambda: page("cw?.querySelector('.headline.good') != null"), 90, "a verdict")
    web.run(f"{DEEP} cw.workbench.canvas.connect('bidirected', 'Z', 'Y')")
    web.until(lambda: page("cw.querySelector('.status').textContent") == "Saved")
    read()
    web.until(
        lambda: SEEN in page("deep(document, 'pre, code, .markdown, body').map((one) => one.innerText).join()"), 60
    )
    draw()
    web.until(lambda: page("cw.workbench.editor.doc.nodes") == ["A", "Q", "Y"], 60)
    assert "Python has changed the drawing" in page("cw.querySelector('.notices').textContent")


def test_jupyterlab(tmp_path):
    pytest.importorskip("jupyterlab")
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
            "id": f"c{place}",
        }
        for place, source in enumerate((SHOW, READ, DRAW))
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "try.ipynb").write_text(json.dumps(content))
    port = free_port()
    words = ("jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token=t")
    with notebook(tmp_path, port, *words), browsing(tmp_path / "browser") as web:
        web.driver.get(f"http://127.0.0.1:{port}/lab/tree/try.ipynb?token=t")
        web.wait(".jp-Notebook .jp-CodeCell", 90)

        def run(place):
            def begun():
                # Keys that come before the notebook is ready are lost.
                web.click(f"{cell} .cm-content")
                web.chord("\ue009", "\ue007")
                time.sleep(1)
                return web.text(f"{cell} .jp-InputPrompt") != "[ ]:"

            cell = f".jp-CodeCell[data-windowed-list-index='{place}']"
            web.until(begun, 60)

        run(0)
        assert_in_step(web, lambda: run(1), lambda: run(2))


def test_marimo(tmp_path):
    pytest.importorskip("marimo")
    indented = SHOW.replace("\n", "\n    ")
    (tmp_path / "try.py").write_text(f"""import marimo
app = marimo.App()

@app.cell
def _():
    {indented}
    return CausalGraph, w

@app.cell
def _():
    import marimo as mo
    read, draw = mo.ui.run_button(label="read"), mo.ui.run_button(label="draw")
    mo.hstack([read, draw])
    return mo, read, draw

@app.cell
def _(mo, read, w):
    mo.plain_text(str(({READ}))) if read.value else None

@app.cell
def _(CausalGraph, draw, w):
    if draw.value:
        {DRAW}

if __name__ == "__main__":
    app.run()
""")
    port = free_port()
    words = ("marimo", "run", "try.py", "--headless", "--no-token", f"--port={port}")
    with notebook(tmp_path, port, *words), browsing(tmp_path / "browser") as web:
        web.driver.get(f"http://127.0.0.1:{port}/")

        def press(label):
            web.run(
                f"{DEEP} deep(document, 'button').find((one) => one.innerText.trim() === arguments[0]).click()", label
            )

        assert_in_step(web, lambda: press("read"), lambda: press("draw"))
