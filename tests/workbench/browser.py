"""A real browser on a real server: Debian's chromium, driven by its own driver."""

import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests import warm

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="there is no chromium with its driver on this machine"
)

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


# A process that starts as people start it, and ends as one when it is killed.
COLD = (sys.executable, "-c", "from ciplearn.cli import main; main()")


@contextmanager
def served(folder, *words, command=None, **streams):
    """Start ``ciplearn workbench`` on a folder; yields the process and the address."""
    call = [*(command or [warm.command()]), "workbench", "--no-browser", "--folder", str(folder), *map(str, words)]
    server = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, **streams)
    try:
        yield server, next(found[0] for line in server.stdout if (found := re.search(r'http[^\s"]+', line)))
    finally:
        server.terminate()
        server.wait(timeout=20)
        server.stdout.close()


class Page:
    """What a person does with a page, and what they see."""

    def __init__(self, driver, downloads):
        self.driver = driver
        self.downloads = downloads

    def open(self, address):
        self.driver.get(address)
        self.wait("header h1")
        self.until(lambda: self.run("return document.querySelector('.cw')?.workbench?.hello"))

    def find(self, selector):
        return self.driver.find_elements("css selector", selector)

    def wait(self, selector, seconds=60):
        self.until(lambda: any(one.is_displayed() for one in self.find(selector)), seconds, selector)

    def until(self, true, seconds=60, what=""):
        from selenium.common.exceptions import StaleElementReferenceException

        end, pause = time.monotonic() + seconds, 0.03
        while time.monotonic() < end:
            try:
                if true():
                    return
            except StaleElementReferenceException:
                pass
            # What takes long is asked for less often: asking costs the browser as much as working.
            time.sleep(pause)
            pause = min(1.2 * pause, 0.3)
        raise AssertionError(f"waited {seconds} s in vain for {what or true}")

    def click(self, selector, seconds=60):
        """Click what is there once it can be clicked."""
        from selenium.common.exceptions import WebDriverException

        def clicked():
            try:
                next(one for one in self.find(selector) if one.is_displayed() and one.is_enabled()).click()
            except (StopIteration, WebDriverException):
                return False
            return True

        self.until(clicked, seconds, selector)

    def send(self, selector, *keys):
        """Give keys, or the path of a file, to a control, as often as it is drawn anew under the hand."""
        from selenium.common.exceptions import WebDriverException

        def sent():
            try:
                self.find(selector)[0].send_keys(*keys)
            except (IndexError, WebDriverException):
                return False
            return True

        self.until(sent, what=selector)

    def text(self, selector):
        return self.find(selector)[0].text

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def doc(self, what):
        return self.run(f"return document.querySelector('.cw').workbench.{what}")

    def keys(self, *pressed):
        """Press keys wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*pressed).perform()

    def chord(self, *pressed):
        from selenium.webdriver import ActionChains

        *held, last = pressed
        chain = ActionChains(self.driver)
        for key in held:
            chain = chain.key_down(key)
        chain = chain.send_keys(last)
        for key in held:
            chain = chain.key_up(key)
        chain.perform()

    def add_node(self, name):
        """Add a node by keys, whatever has the focus."""
        self.keys("n")
        self.wait(".rename input")
        self.keys(name, "\ue007")
        self.until(lambda: name in self.doc("editor.doc.nodes"))

    def place(self, name):
        """Where a node is, in pixels of the window."""
        return self.run(
            "const app = document.querySelector('.cw').workbench; const box = app.canvas.boxOf(arguments[0]);"
            "const at = app.canvas.holder.getBoundingClientRect();"
            "return [at.left + (box.x1 + box.x2) / 2, at.top + (box.y1 + box.y2) / 2]",
            name,
        )

    def drag(self, start, end, steps=4):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        ActionChains(self.driver).reset_actions()
        mouse = ActionBuilder(self.driver, duration=20)
        pointer = mouse.pointer_action
        pointer.move_to_location(*map(int, start)).pointer_down()
        for step in range(1, steps + 1):
            share = step / steps
            pointer.move_to_location(*(int(a + share * (b - a)) for a, b in zip(start, end, strict=True)))
        pointer.pointer_up()
        mouse.perform()

    def drop(self, selector, name, content):
        """Drop a file on something."""
        self.run(
            "const data = new DataTransfer(); data.items.add(new File([arguments[2]], arguments[1]));"
            "for (const kind of ['dragenter', 'dragover', 'drop'])"
            "  document.querySelector(arguments[0]).dispatchEvent("
            "    new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data }))",
            selector,
            name,
            content,
        )

    def tap(self, spot, times=1):
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        mouse = ActionBuilder(self.driver, duration=10)
        mouse.pointer_action.move_to_location(*map(int, spot))
        for _ in range(times):
            mouse.pointer_action.pointer_down().pointer_up()
        mouse.perform()

    def example(self, name="first"):
        """Open an example, and wait for its verdict."""
        self.click("[data-opens=examples]")
        self.click(f"[data-example={name}]")
        self.until(lambda: self.doc("editor.doc.nodes.length") > 0)
        self.wait(".statement")

    def edges(self):
        """Which directed edges are drawn."""
        return {tuple(edge) for edge in self.doc("editor.doc.directed")}

    def open_text(self, text):
        """Paste a graph."""
        self.click("[data-opens=paste]")
        self.wait("dialog textarea")
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})  # into whatever has the focus
        self.click("dialog [data-do=read]")

    def export(self, notation):
        """Return the graph as text."""
        self.click("[data-opens=export]")
        self.click(f"dialog [data-format={notation}]")
        self.until(lambda: self.find(f"dialog [data-format={notation}][aria-pressed=true]"))
        text = self.run("return document.querySelector('dialog textarea').value")
        self.click("dialog [aria-label=Close]")
        return text

    def downloaded(self, name, seconds=30):
        path = self.downloads / name
        self.until(lambda: path.exists() and path.stat().st_size > 0, seconds, name)
        content = path.read_bytes()
        path.unlink()
        return content

    def complaints(self):
        """What the console holds that is worse than a word."""
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def look(self, width, height, dark=False):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@contextmanager
def browsing(folder, width=1440, height=900):
    """Open a browser with a profile of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*_FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    downloads = folder / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        behaviour = {"behavior": "allow", "downloadPath": str(downloads)}
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        opened = Page(driver, downloads)
        opened.look(width, height)
        yield opened
    finally:
        driver.quit()
