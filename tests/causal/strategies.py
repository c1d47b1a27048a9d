"""Hypothesis strategies for graphs with awkward names and every kind of edge, role and position."""

from hypothesis import strategies as st

from ciplearn.causal import CausalGraph

_CHARACTERS = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\ufffe\uffff")
_AWKWARD = st.sampled_from(
    ["A", "x10", "x2", "hours-per-week", 'say "hi"', "back\\slash", "a, b", "A -> B", "dag", "node", "Ŷ", "年齢",
     "é", "{x}", "a;b", "# no", "// no", "&amp;", "<b>", "'", "a:b", "x\\", '"', "1", "_"]
)  # fmt: skip
names = st.one_of(_AWKWARD, st.text(_CHARACTERS, min_size=1, max_size=6).filter(str.strip))
_number = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def graphs(draw, with_undirected=True):
    order = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    edges = {"directed": [], "bidirected": [], "undirected": []}
    for place, b in enumerate(order):
        for a in order[:place]:
            kinds = draw(st.sampled_from(["", "", "d", "b", "db", "u" if with_undirected else "d"]))
            if "d" in kinds:
                edges["directed"].append((a, b))
            if "b" in kinds:
                edges["bidirected"].append((b, a))
            if "u" in kinds:
                edges["undirected"].append((a, b))
    subset = st.lists(st.sampled_from(order), unique=True)
    return CausalGraph(
        nodes=tuple(order),
        **{kind: tuple(pairs) for kind, pairs in edges.items()},
        latent=frozenset(draw(subset)),
        exposures=tuple(draw(subset)),
        outcomes=tuple(draw(subset)),
        adjusted=tuple(draw(subset)),
        positions={name: (draw(_number), draw(_number)) for name in draw(subset)},
    )
