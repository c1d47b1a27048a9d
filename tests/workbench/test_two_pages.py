"""Two pages at once, a reload in the middle of training, a server killed and started again."""

import signal
import time

import pytest

from tests.workbench.browser import COLD, browsing, needs_browser, served

pytestmark = [needs_browser, pytest.mark.usefixtures("page")]

APP = "const app = document.querySelector('.cw').workbench;"
ADD = APP + "app.canvas.connect('directed', ...arguments)"
NODE = APP + (
    "const { doc } = app.editor; const name = arguments[0];"
    "app.editor.apply({ ...doc, nodes: [...doc.nodes, name], positions: new Map([...doc.positions, [name, [0, 0]]]) })"
)
# Nothing is saved for the while.
HOLD = APP + (
    "app.held = app.transport.ask; app.transport.ask = (message) => message.do === 'save'"
    " ? Promise.resolve({ error: 'held' }) : app.held(message)"
)
RELEASE = APP + "app.transport.ask = app.held"
SLOW = APP + (
    "const ask = app.transport.ask; app.transport.ask = async (message) => {"
    "  if (message.do === 'save') await new Promise((done) => setTimeout(done, 900));"
    "  return ask(message); };"
    "app.shown = []; app.notices.show = (name) => app.shown.push(name);"
)


def test_second_page_follows_and_a_clash_is_asked_about(tmp_path):
    with served(tmp_path / "work") as (_, address), browsing(tmp_path / "browser") as web:
        web.open(address)
        web.click(".empty .primary")
        web.wait(".headline.good")
        web.until(lambda: web.text(".status") == "Saved")
        first = web.driver.current_window_handle
        web.driver.switch_to.new_window("tab")
        second = web.driver.current_window_handle
        web.open(address)
        web.until(lambda: len(web.doc("editor.doc.nodes")) == 6)
        web.add_node("N1")
        web.until(lambda: web.text(".status") == "Saved")
        web.driver.switch_to.window(first)
        web.until(lambda: "N1" in web.doc("editor.doc.nodes"))
        assert "Another page" in web.text(".notices")
        for choice, mine, theirs in (("Take theirs", "income", "hours"), ("Keep mine", "sex", "age")):
            # A change on each page before the first is saved.
            web.run(HOLD)
            web.run(ADD, "N1", mine)
            web.driver.switch_to.window(second)
            web.run(ADD, "N1", theirs)
            web.until(lambda: web.text(".status") == "Saved")
            web.driver.switch_to.window(first)
            web.until(lambda: "has changed this drawing too" in web.text(".notices"))
            web.click(".notice:has([data-key='Keep mine']) [data-key=dismiss]")
            web.until(lambda: not web.find("[data-key='Keep mine']"))
            web.run(RELEASE)
            web.run(NODE, f"{mine} 2")  # the next change is no silent overwriting, and asks again
            web.click(f"[data-key='{choice}']")
            web.until(lambda: web.text(".status") == "Saved")
            kept, lost = (mine, theirs) if choice == "Keep mine" else (theirs, mine)
            for window in (first, second):
                web.driver.switch_to.window(window)
                web.until(lambda kept=kept: ["N1", kept] in web.doc("editor.doc.directed"))
                assert ["N1", lost] not in web.doc("editor.doc.directed")
            web.driver.switch_to.window(first)
        assert web.complaints() == []


def test_changes_that_come_faster_than_they_are_saved_are_no_clash(tmp_path):
    with served(tmp_path / "work") as (_, address), browsing(tmp_path / "browser") as web:
        web.open(address)
        web.run(SLOW)
        for name in ("A", "B", "C", "D"):
            web.run(NODE, name)
            time.sleep(0.4)  # longer than the page waits before it saves, shorter than a save takes
        web.until(lambda: web.text(".status") == "Saved")
        assert web.doc("shown") == []
        web.open(address)
        web.until(lambda: web.doc("editor.doc.nodes") == ["A", "B", "C", "D"])


@pytest.mark.slow
def test_reload_in_the_middle_of_training_and_a_killed_server(tmp_path):
    folder = tmp_path / "work"
    with browsing(tmp_path / "browser") as web:
        with served(folder, "--demo", command=COLD) as (server, address):
            web.open(address)
            web.wait(".headline.good")
            web.click("#cw-tab-train")
            web.click("[data-key=train]")
            web.wait("progress")
            web.driver.refresh()
            web.open(address)
            web.click("#cw-tab-train")
            web.wait("progress")
            server.send_signal(signal.SIGKILL)
            server.wait()
            web.until(lambda: "does not answer" in web.text(".notices"))
            # Drawn while there is no server: not lost.
            web.add_node("later")
        with served(folder, "--demo", command=COLD) as (_, again):
            root = address.partition("?")[0]
            assert again != address, "a new secret at every start"
            assert again.startswith(root), "at the same place, where the browser keeps what was not saved"
            web.until(lambda: "new at every start" in web.text(".notices"), 30)
            web.open(again)
            web.until(lambda: "later" in web.doc("editor.doc.nodes"))
            assert "not saved when the server stopped is back" in web.text(".notices")
            assert "interrupted" in web.text(".notices")
            web.until(lambda: web.text(".status") == "Saved")
            web.click("#cw-tab-train")
            web.wait("[data-key=train]:enabled")
            assert list((folder / "runs").iterdir()) == []
            web.open(again)
            web.until(lambda: "later" in web.doc("editor.doc.nodes"))
            assert "not saved" not in web.text(".notices")
