import importlib.util
import subprocess
from pathlib import Path

import pytest

from ciplearn.workbench.desk import Desk
from ciplearn.workbench.store import Store
from tests import warm
from tests.workbench.browser import browsing, served

BUILD = Path(__file__).parents[2] / "workbench" / "build.py"


@pytest.fixture(scope="session", autouse=True)
def warm_workers():
    """Workers need not load torch; what they do and how they end is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ciplearn.workbench.runs.subprocess", warm.starting())
        yield


@pytest.fixture
def desk(tmp_path):
    made = Desk(Store(tmp_path / "work"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def page():
    """The built page; built once where it is missing or old, for all workers of a test run."""
    from filelock import FileLock

    from ciplearn.workbench import BUNDLE

    if not BUILD.exists():
        if not (BUNDLE / "index.html").exists():
            pytest.skip("the sources of the page are not beside the tests")
        return BUNDLE
    spec = importlib.util.spec_from_file_location("build_page", BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        with FileLock(BUILD.parent / ".building.lock", timeout=300):
            return module.build(timeout=150)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the page cannot be built here: {error}")


@pytest.fixture(scope="module")
def address(page, tmp_path_factory):
    with served(tmp_path_factory.mktemp("work")) as (_, found):
        yield found


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def blank_in_the_end(browser):
    """A page that a module leaves open would draw, and ask for its server, as long as the browser lives."""
    yield
    browser.driver.get("about:blank")


@pytest.fixture
def web(browser, blank_in_the_end, address):
    """The page with nothing on it, on a desk."""
    browser.look(1440, 900)
    browser.open(address.partition("#")[0])
    browser.run("document.querySelector('.cw').workbench.editor.apply(arguments[0] ?? "
                "(({...document.querySelector('.cw').workbench.editor.doc, nodes: [], directed: [], bidirected: [],"
                " undirected: [], latent: [], exposures: [], outcomes: [], adjusted: [], context: null, inputs: null,"
                " positions: new Map(), unit: 1})), 'emptied')")  # fmt: skip
    browser.complaints()
    yield browser
    assert browser.complaints() == []
