"""A structural causal model from a user's file: formulas in YAML, TOML or JSON, or Python where that was allowed.

equations: {Z: u, A: sin(Z) + u, Y: A ** 2 + u}
noise: {Z: "normal(0, 1)", A: "normal(0, 1)", Y: "normal(0, 0.1)"}
categories: {}      # node -> labels
inverses: {}        # node -> formula of `value`, where an equation is not linear in u
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.mapping_files import read_mapping
from ciplearn.causal import CausalGraph
from ciplearn.scm.formulas import Formula, read_law
from ciplearn.scm.kinds import Categories
from ciplearn.scm.model import StructuralCausalModel

_TRIED_ROWS = 100
_SECTIONS = ("equations", "noise", "categories", "inverses")


def read_scm(path: Path, graph: CausalGraph, *, run_code: bool) -> StructuralCausalModel:
    """Return the model that a file describes: formulas of the graph's parents, or Python that sets ``scm``."""
    if not path.is_file():
        missing = f"{str(path)!r} is a folder or a device" if path.exists() else f"There is no file {str(path)!r}"
        raise InputError(f"{missing}; check the path.")
    if path.suffix.lower() != ".py":
        return _from_formulas(path, graph)
    if not run_code:
        raise InputError(
            f"{path} is Python, and reading it would run it; pass --run-code if you trust it, or write formulas "
            "in YAML."
        )
    return _from_python(path, graph)


def _from_formulas(path: Path, graph: CausalGraph) -> StructuralCausalModel:
    content = read_mapping(path)
    unknown = [key for key in content if key not in _SECTIONS]
    if unknown:
        raise InputError(f"{path} has the unknown entry {unknown[0]!r}; known are {', '.join(_SECTIONS)}.")
    parts = {section: _section(path, content.get(section) or {}, section, graph) for section in _SECTIONS}
    equations = {node: _equation(path, graph, node, text) for node, text in parts["equations"].items()}
    absent = [node for node in graph.nodes if node not in equations]
    if absent:
        raise InputError(f"{path} has no equation for {absent[0]!r}; write one for every node, latent ones too.")
    model = StructuralCausalModel(
        graph,
        equations=equations,
        noise={node: read_law(text, f"The noise of {node} in {path}") for node, text in parts["noise"].items()},
        inverses={node: _inverse(path, graph, node, text) for node, text in parts["inverses"].items()},
        kinds={node: Categories(_labels(path, node, levels)) for node, levels in parts["categories"].items()},
    )
    # A node that nobody asks for is computed here or never: what it cannot say must not pass unseen.
    model.sample(_TRIED_ROWS, random_state=0)
    return model


def _labels(path: Path, node: str, levels: Any) -> list[Any]:
    if not isinstance(levels, list) or not all(isinstance(level, str | int | float) for level in levels):
        raise InputError(f"The categories of {node} in {path} must be a list of labels, got {levels!r}; write [a, b].")
    return levels


def _section(path: Path, entries: Any, section: str, graph: CausalGraph) -> dict[str, Any]:
    if not isinstance(entries, dict):
        raise InputError(f"{section} in {path} must map nodes to text, got {entries!r}; write lines such as 'A: u'.")
    graph.known(entries, section)
    return entries


def _equation(path: Path, graph: CausalGraph, node: str, text: Any) -> Any:
    formula = _formula(graph, node, text, "u", f"The equation of {node} in {path}")
    return lambda p, u: formula({**p, "u": u})


def _inverse(path: Path, graph: CausalGraph, node: str, text: Any) -> Any:
    formula = _formula(graph, node, text, "value", f"The inverse of {node} in {path}")
    return lambda p, value: formula({**p, "value": value})


def _formula(graph: CausalGraph, node: str, text: Any, argument: str, where: str) -> Formula:
    """Read a formula of the parents and of something of the node's argument."""
    parents = graph.parents(node)
    if argument in parents:
        what = "the noise" if argument == "u" else "the value of the node"
        raise InputError(f"{where} calls {what} {argument!r}, got a parent of that name; rename the parent.")
    return Formula.read(text, (*parents, argument), where)


def _from_python(path: Path, graph: CausalGraph) -> StructuralCausalModel:
    try:
        names = runpy.run_path(str(path))
    except CiplearnError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path} failed with {type(error).__name__}: {error}; correct the file.") from error
    scm = names.get("scm")
    if not isinstance(scm, StructuralCausalModel):
        raise InputError(f"{path} must set scm to a StructuralCausalModel, got {type(scm).__name__}; assign it.")
    lost = [node for node in graph.observed if node not in scm.graph.nodes]
    if lost:
        raise InputError(f"The causal model of {path} lacks the node {lost[0]!r} of the predictor's graph; add it.")
    return scm
