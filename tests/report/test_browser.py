"""The page in a real browser, at desk and phone width, light and dark."""

import re
import shutil
import subprocess

import pytest

from tests.report.conftest import HOSTILE

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


def opened(folder, page, *, width=1280, dark=False):
    """Return the page's tree as the browser has it, and what the console said."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    frame = folder / "frame.html"
    scheme = "dark" if dark else "light"
    # A frame, because a window of a headless browser has a least width.
    frame.write_text(
        f'<html style="color-scheme:{scheme}"><iframe id="f" style="width:{width}px;height:900px" src="page.html">'
        "</iframe><script>"
        "const broken=(d)=>[...d.querySelectorAll('section:not(.appendix) :is(th,.note)')].flatMap((cell)=>{"
        "const walk=d.createTreeWalker(cell,4),found=[];while(walk.nextNode()){const one=walk.currentNode;"
        "for(const word of one.data.matchAll(/[^\\s\u00a0]+/g)){const range=d.createRange();"
        "range.setStart(one,word.index);range.setEnd(one,word.index+word[0].length);"
        "if(range.getClientRects().length>1)found.push(word[0])}}return found});"
        "addEventListener('load',()=>{const d=document.getElementById('f').contentDocument;"
        "const seen=d.body.innerText;const o=document.createElement('pre');const e=d.documentElement;"
        "o.textContent=JSON.stringify({wide:e.scrollWidth,front:(d.querySelector('.sign')||e).getBoundingClientRect().bottom,back:getComputedStyle(d.body).backgroundColor,"
        "scroll:[...d.querySelectorAll('main > section:not(.appendix) .wide')].filter("
        "(w)=>w.scrollWidth>w.clientWidth).length,broken:broken(d)});"
        "document.body.appendChild(o);const t=document.createElement('div');t.id='text';t.textContent=seen;"
        "document.body.appendChild(t)})</script></html>"
    )
    flags = ["--no-sandbox", "--headless", "--disable-gpu", "--allow-file-access-from-files", "--enable-logging=stderr"]
    done = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_front_part_is_printed_on_one_page_of_paper(decisions, make_report, tmp_path):
    """A4 less its margins, with the style of print."""
    for report in (decisions, make_report()):
        page = report.to_html()
        margins = re.search(r"@media print\{@page\{margin:([0-9]+)mm ([0-9]+)mm\}", page)
        width, height = (
            (side - 2 * int(margin)) / 25.4 * 96
            for side, margin in zip((210, 297), margins.groups()[::-1], strict=True)
        )
        tree, _ = opened(tmp_path, page.replace(margins[0], "@media all{"), width=int(width))
        assert 400 < float(re.search(r'"front":([0-9.]+)', tree)[1]) <= height


@pytest.mark.parametrize("profile", ["bias-audit", "model-card"])
def test_profiles_fit_on_a_phone(decisions, tmp_path, profile):
    tree, console = opened(tmp_path, decisions.to_html(profile), width=390)
    assert console == []
    assert int(re.search(r'"wide":(\d+)', tree)[1]) <= 390


def test_page_opens_without_a_complaint_at_desk_and_phone_width_light_and_dark(make_report, tmp_path):
    page = make_report().to_html()
    backs = set()
    for width, dark in ((1280, False), (390, True)):
        tree, console = opened(tmp_path, page, width=width, dark=dark)
        assert console == []
        assert int(re.search(r'"wide":(\d+)', tree)[1]) <= width, "nothing sticks out sideways"
        assert '"scroll":0' in tree, "no table of the page to sign is moved sideways"
        backs.add(re.search(r'"back":"([^"]*)"', tree)[1])
        for heading in ("What it costs, and how wrong it may be", "Single rows", "To repeat it"):
            assert heading in tree
    assert len(backs) == 2, "dark is another colour"


def test_no_name_breaks_inside_a_word_on_a_phone(make_report, tmp_path):
    page = make_report("insurance_of_patient").to_html()
    for width in (390, 1280):
        tree, _ = opened(tmp_path, page, width=width)
        assert '"broken":[]' in tree
        assert '"scroll":0' in tree


def test_hostile_names_are_shown_as_text_and_run_nothing(make_report, tmp_path):
    tree, console = opened(tmp_path, make_report(HOSTILE).to_html())
    assert console == []
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in tree
