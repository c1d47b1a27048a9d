"""Draw docs/images/workbench.png: the workbench with the demo's data, trained, at a stop of the walk.

Run: PYTHONPATH=. python docs/images/make_workbench.py (needs chromium; a minute or two)
"""

import tempfile
from pathlib import Path

from PIL import Image

from tests.workbench.browser import browsing, served

PATIENCE = 1500  # seconds, on a busy machine


def main():
    """Train the demo, walk to the middle of the knob, photograph."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with served(place / "work", "--demo") as (_, address), browsing(place / "browser") as web:
            web.driver.set_window_size(1360, 1000)
            web.open(address)
            web.click("#cw-tab-train", PATIENCE)
            web.click("[data-key=train]", PATIENCE)
            web.wait("[data-key=forget]", PATIENCE)
            web.find("[data-key=walk]")[0].send_keys("\ue011" + "\ue014" * 8)  # Home, Right
            web.wait("#cw-panel-train .figures", PATIENCE)
            web.driver.save_screenshot(str(place / "shot.png"))
        image = Image.open(place / "shot.png").convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        image.save(Path(__file__).parent / "workbench.png", optimize=True)


if __name__ == "__main__":
    main()
