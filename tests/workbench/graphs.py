"""Twenty graphs that the page must hand back as they were: the paper's, well-known ones, and hostile names."""

from itertools import pairwise

from ciplearn import CausalGraph
from ciplearn.datasets import graphs

# DAGitty's own example "Shrier & Platt, 2008", and others of its menu, in its notation.
_SHRIER = """dag {
  "Coach" [pos="0.0,0.0"] "Contact Sport" [pos="0.9,1.2"] "Fitness Level" [pos="-1.0,0.4"] "Genetics" [pos="-1.6,-0.5"]
  "Injury" [outcome,pos="1.2,2.0"] "Intra-game Proprioception" [pos="0.1,1.4"] "Motivation, Aggression" [latent]
  "Neuromuscular Fatigue" "Connective Tissue Disorder" "Pre-Game Proprioception" "Previous Injury" "Team Motivation"
  "Tissue Weakness" "Warm-Up Exercises" [exposure]
  "Coach" -> {"Fitness Level" "Team Motivation"}
  "Connective Tissue Disorder" -> {"Neuromuscular Fatigue" "Tissue Weakness"}
  "Contact Sport" -> {"Injury" "Previous Injury"}
  "Fitness Level" -> {"Neuromuscular Fatigue" "Pre-Game Proprioception"}
  "Genetics" -> {"Connective Tissue Disorder" "Fitness Level" "Neuromuscular Fatigue"}
  "Intra-game Proprioception" -> "Injury"
  "Motivation, Aggression" -> "Injury"
  "Neuromuscular Fatigue" -> {"Injury" "Intra-game Proprioception"}
  "Pre-Game Proprioception" -> "Warm-Up Exercises"
  "Team Motivation" -> {"Previous Injury" "Warm-Up Exercises"}
  "Tissue Weakness" -> "Injury"
  "Warm-Up Exercises" -> "Intra-game Proprioception"
}"""
_SEBASTIANI = (
    "dag { EDN1 [exposure] Stroke [outcome] {ANXA2 SELP TGFBR3} -> EDN1 -> Stroke ANXA2 -> Stroke SELP -> Stroke }"
)
_POLZER = """dag {
  Age -> {Teeth Mortality Diabetes} Diabetes -> {Teeth Mortality} Teeth [exposure] Mortality [outcome] Sex <-> Age
}"""
_CONFOUNDING = "dag { X [exposure] Y [outcome] A -> {X Z} B -> {Y Z} Z -> {X Y} X -> Y }"
_M_BIAS = "dag { X [exposure] Y [outcome] U1 [latent] U2 [latent] U1 -> {X M} U2 -> {M Y} X -> Y }"
_NAPKIN = "dag { X [exposure] Y [outcome] W -> Z -> X -> Y W <-> X W <-> Y }"
_PARTIAL = "pdag { A [exposure] Y [outcome] A -- L L -> Y S -- A S -> Y }"

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "'; DROP TABLE nodes; --",
    "__proto__",
    "constructor",
    'a "quoted" name, with commas',
    "back\\slash and {braces}",
    "Ŷ",
    "$(touch /tmp/never)",
    "-> not an edge <->",
    "שלום עולם",
    "a" * 200,
)


def hostile_chain():
    edges = tuple(pairwise(HOSTILE))
    return CausalGraph(directed=edges, bidirected=((HOSTILE[0], HOSTILE[4]),), latent=frozenset({HOSTILE[3]}))


def hostile_roles():
    return CausalGraph(
        directed=((HOSTILE[0], HOSTILE[1]), (HOSTILE[2], HOSTILE[1])),
        exposures=(HOSTILE[0],),
        outcomes=(HOSTILE[1],),
        adjusted=(HOSTILE[2],),
        positions={HOSTILE[0]: (0.25, 1.5), HOSTILE[1]: (100.0, -3.0), HOSTILE[2]: (7.0, 7.0)},
    )


def twenty():
    read = CausalGraph.from_dagitty
    return {
        "figure a": graphs.figure_a(),
        "figure b": graphs.figure_b(),
        "figure c": graphs.figure_c(),
        "figure d": graphs.figure_d(),
        "figure e": graphs.figure_e(),
        "figure f": graphs.figure_f(),
        "image": graphs.image(),
        "adult": graphs.adult(),
        "adult columns": graphs.adult_columns(),
        "Shrier": read(_SHRIER),
        "Sebastiani": read(_SEBASTIANI),
        "Polzer": read(_POLZER),
        "confounding": read(_CONFOUNDING),
        "M-bias": read(_M_BIAS),
        "napkin": read(_NAPKIN),
        "partial": read(_PARTIAL),
        "hostile names": hostile_chain(),
        "hostile roles": hostile_roles(),
        "one node": CausalGraph(nodes=("alone",)),
        "several outcomes": CausalGraph(directed=(("A", "B"), ("A", "C")), outcomes=("B", "C"), exposures=("A",)),
    }
