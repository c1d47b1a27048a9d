import numpy as np
import pytest

from ciplearn._core.answers import digest_of
from ciplearn.cli.app import run
from ciplearn.evaluation import bounds
from ciplearn.scm import fit
from tests.cli.people import GRAPH, people

QUICK = ["--route=independence", "--preset=quick", "--epochs=4", "--batch-size=200", "--learning-rate=0.03"]
ALONE = {"tests.cli.test_same_figure"}


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with a table of people and their graph."""
    folder = tmp_path_factory.mktemp("people")
    people().to_csv(folder / "people.csv", index=False)
    (folder / "graph.txt").write_text(GRAPH)
    return folder


@pytest.fixture(scope="session")
def model(place):
    """A model folder of a small training."""
    folder = place / "model"
    arguments = ["fit", str(place / "people.csv"), "--graph", str(place / "graph.txt"), "--out", str(folder), *QUICK]
    assert run([*arguments, "--tolerance", "0.3"]) == 0
    return folder


@pytest.fixture(scope="session")
def estimates():
    """What was estimated before, by what it was estimated from."""
    return {}


@pytest.fixture(autouse=True, scope="module")
def estimated_once(request, estimates):
    """The same mechanism from the same rows, and the same bounds on the same answers, are estimated once for a run.

    Where agreement of two commands is what is tested, each makes its own.
    """
    if request.module.__name__ in ALONE:
        yield
        return

    def node(sample, recipes, generator, make=fit.estimate_node):
        rows = {name: np.asarray(sample.values[name]) for name in (sample.node, *sample.parents)}
        kinds = {name: repr(sample.kinds[name]) for name in rows}
        key = digest_of("node", list(rows), rows, kinds, repr(recipes), repr(generator.bit_generator.state))
        if key not in estimates:
            estimates[key] = make(sample, recipes, generator)
        return estimates[key]

    def bound(answers, protected, given, generator, make=bounds._estimated):
        key = digest_of("bounds", answers, protected, given, repr(generator.bit_generator.state))
        if key not in estimates:
            estimates[key] = make(answers, protected, given, generator), generator.bit_generator.state
        found, generator.bit_generator.state = estimates[key]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "estimate_node", node)
        patch.setattr(bounds, "_estimated", bound)
        yield
