import pytest

from ciplearn.cli.app import run
from tests.cli.people import GRAPH, people

QUICK = ["--route=independence", "--preset=quick", "--epochs=2", "--batch-size=64", "--learning-rate=0.02"]


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
