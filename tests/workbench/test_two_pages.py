"""Two pages at once, a reload in the middle of training, a server killed and started again."""

import signal
import time

import pytest

from tests.workbench.browser import browsing, needs_browser, served

pytestmark = [needs_browser, pytest.mark.usefixtures("page")]

ADD = "const app = document.querySelector('.cw').workbench; app.canvas.connect('directed', ...arguments)"


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
        web.until(lambda: len(web.doc("editor.doc.nodes")) == 4)
        web.run("document.querySelector('.cw').workbench.rename.add()")
        web.keys("N1", "\ue007")
        web.until(lambda: web.text(".status") == "Saved")
        web.driver.switch_to.window(first)
        web.until(lambda: "N1" in web.doc("editor.doc.nodes"))
        assert "Another page" in web.text(".notices")
        # A change on each page before either is saved.
        web.run("document.querySelector('.cw').workbench.transport.ask = () => new Promise(() => {})")
        web.run(ADD, "N1", "Y")
        web.driver.switch_to.window(second)
        web.run(ADD, "N1", "L")
        web.until(lambda: web.text(".status") == "Saved")
        web.driver.switch_to.window(first)
        web.until(lambda: "Another page has changed this drawing" in web.text(".notices"))
        next(one for one in web.find(".notice button") if one.text == "Take theirs").click()
        web.until(lambda: ["N1", "L"] in web.doc("editor.doc.directed"))
        assert web.complaints() == []


@pytest.mark.slow
def test_reload_in_the_middle_of_training_and_a_killed_server(tmp_path):
    folder = tmp_path / "work"
    with browsing(tmp_path / "browser") as web:
        with served(folder, "--demo") as (server, address):
            web.open(address)
            web.wait(".headline.good")
            web.click("#cw-tab-train")
            web.click("[data-key=train]")
            web.wait("progress")
            web.driver.refresh()
            web.open(address)
            web.click("#cw-tab-train")
            web.wait("progress")
            web.until(lambda: len(web.find("[data-stop]")) >= 2, 90, "two stops")
            server.send_signal(signal.SIGKILL)
            server.wait()
            web.until(lambda: "does not answer" in web.text(".notices"))
            # Drawn while there is no server: not lost.
            web.run("document.querySelector('.cw').workbench.rename.add()")
            web.keys("later", "\ue007")
        with served(folder, "--demo") as (_, again):
            assert again == address
            web.until(lambda: "started again" in web.text(".notices"), 30)
            assert "interrupted" in web.text(".notices")
            web.until(lambda: web.text(".status") == "Saved")
            web.until(lambda: "interrupted" in web.text("#cw-panel-train"))
            assert len(web.find("[data-stop]")) >= 2
            time.sleep(0.5)
            web.open(address)
            web.until(lambda: "later" in web.doc("editor.doc.nodes"))
