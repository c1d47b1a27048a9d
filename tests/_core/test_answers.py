"""Answers are known again by the digest of their question."""

import subprocess
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm
from torch import nn

from ciplearn import HSIC, CausalGraph, StructuralCausalModel
from ciplearn._core.answers import KeptAnswers, digest_of
from ciplearn._core.errors import InputError
from ciplearn.kernels import Gaussian
from tests import warm

TABLE = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})


def network(activation=nn.Tanh):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), activation(), nn.Linear(3, 1))


def holding(width):
    return lambda: width


def doubled(factor):
    graph = CausalGraph(directed=[("A", "Y")])
    equations = {"A": lambda p, u: u, "Y": lambda p, u: factor * p["A"] + u}
    return StructuralCausalModel(graph, equations, {"A": norm(), "Y": norm()})


SAME = {
    "function": (holding(1), holding(1)),
    "causal model": (doubled(1.0), doubled(1.0)),
    "list and tuple": ([1, 2], (1, 2)),
    "numpy number": (np.float64(0.5), 0.5),
    "order of names": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "index": (TABLE, TABLE.set_axis([5, 6])),
    "layout": (np.eye(3) + np.arange(3), np.asfortranarray(np.eye(3) + np.arange(3))),
    "network": (network(), network()),
    "graph drawn elsewhere": (
        CausalGraph(directed=[("A", "Y")]),
        CausalGraph(directed=[("A", "Y")], positions={"A": (1.0, 2.0)}),
    ),
}
DIFFERENT = {
    "entry": (TABLE, TABLE.assign(a=[1.0, 3.0])),
    "column": (TABLE, TABLE.rename(columns={"a": "c"})),
    "rows in order": (TABLE, TABLE[::-1]),
    "nesting": ([[1], [2]], [[1, 2]]),
    "type": (1, "1"),
    "array": (np.zeros(4), np.zeros((2, 2))),
    "objects": (np.array(["u", None], dtype=object), np.array(["v", None], dtype=object)),
    "array of a library's own": (pd.array([1, 2]), pd.array([1, 3])),
    "tensor": (torch.zeros(2), torch.ones(2)),
    "activation": (network(), network(nn.ReLU)),
    "weights": (network(), nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))),
    "function": (network, partial(network, nn.ReLU)),
    "bound argument": (partial(network, nn.Tanh), partial(network, nn.ReLU)),
    "kernel": (HSIC(), HSIC(kernel=Gaussian(0.1))),
    "graph": (CausalGraph(directed=[("A", "Y")]), CausalGraph(directed=[("Y", "A")])),
    "set": ({"a"}, {"b"}),
    "constant in a function": (lambda width: width + 1, lambda width: width + 2),
    "constant in a function within": (lambda: lambda: 1, lambda: lambda: 2),
    "default of a function": (lambda width=1: width, lambda width=2: width),
    "value that a function holds": (holding(1), holding(2)),
    "causal model": (doubled(1.0), doubled(2.0)),
}


@pytest.mark.parametrize("case", SAME)
def test_values_of_the_same_content_have_the_same_digest(case):
    one, other = SAME[case]
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize("case", DIFFERENT)
def test_values_of_different_content_have_different_digests(case):
    one, other = DIFFERENT[case]
    assert digest_of(one) != digest_of(other)


def test_digest_is_the_same_in_another_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import pandas as pd\n"
        "from ciplearn import HSIC\n"
        "from ciplearn._core.answers import digest_of\n"
        "print(digest_of(pd.DataFrame({'a': [1.0, 2.0], 'b': ['u', 'v']}), {'x', 'y', 'z'}, HSIC(), pd.unique))"
    )
    found = subprocess.run([warm.python(), program], capture_output=True, text=True, check=True).stdout
    assert found.strip() == digest_of(TABLE, {"x", "y", "z"}, HSIC(), pd.unique)


def test_answers_are_found_again_and_a_line_cut_short_is_forgotten(tmp_path):
    path = tmp_path / "answers"
    kept = KeptAnswers(path, "q")
    kept.add("a", {"vcf": 1.5, "holds": True})
    kept.add("b", {"vcf": float("nan"), "holds": False})
    path.write_bytes(path.read_bytes() + b'{"key": "c", "dig')
    again = KeptAnswers(path, "q")
    assert list(again.known) == ["a", "b"]
    assert again.known["a"] == {"vcf": 1.5, "holds": True}
    again.add("c", {"vcf": 2.0, "holds": True})
    assert list(KeptAnswers(path, "q").known) == ["a", "b", "c"]


def test_a_file_of_another_question_is_refused(tmp_path):
    path = tmp_path / "answers"
    KeptAnswers(path, "q").add("a", {"vcf": 1.5})
    with pytest.raises(InputError, match="another question"):
        KeptAnswers(path, "other")
    path.write_text("no json\n")
    with pytest.raises(InputError, match="no answers of this kind"):
        KeptAnswers(path, "q")
