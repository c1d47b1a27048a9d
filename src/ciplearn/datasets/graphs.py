"""The causal graphs of the paper [quinzan2024], and the third graph of Veitch et al. [veitch2021].

Each function returns a graph whose exposures and outcome are set, so that ``figure_a().criterion()`` is the paper's
question about it.
"""

from ciplearn.causal import CausalGraph


def figure_a() -> CausalGraph:
    """Example with a mediator L and its confounder S: Ŷ ⊥ {A, L} | {S}.

    >>> from ciplearn.datasets import graphs
    >>> graphs.figure_a().criterion().holds
    True
    """
    return CausalGraph.from_dagitty("dag { A [exposure]  Y [outcome]  A -> L -> Y  S -> {L Y}  A -> Y }")


def figure_b() -> CausalGraph:
    """Causal direction of Veitch et al. [veitch2021], with a hidden confounder of A and Y.

    X_A⊥ is the part of the features that A does not change, X_Y⊥ the part that does not change Y, X∧ the rest.

    >>> from ciplearn.datasets import graphs
    >>> graphs.figure_b().nodes
    ('A', 'X_A⊥', 'X_Y⊥', 'X∧', 'Y')
    """
    return CausalGraph.from_dagitty(
        "dag { A [exposure]  Y [outcome]  A -> X∧ -> Y  A -> X_Y⊥  X∧ -> X_Y⊥  X_A⊥ -> {X∧ Y}  A <-> Y }"
    )


def figure_c() -> CausalGraph:
    """Anti-causal direction of Veitch et al. [veitch2021], with a hidden confounder of A and Y.

    The figure swaps the labels X_A⊥ and X_Y⊥ against its own caption; here they mean what the caption says: A does not
    change X_A⊥, and X_Y⊥ has nothing to do with Y but through A.

    >>> from ciplearn.datasets import graphs
    >>> graphs.figure_c().nodes
    ('A', 'X_A⊥', 'X_Y⊥', 'X∧', 'Y')
    """
    return CausalGraph.from_dagitty("dag { A [exposure]  Y [outcome]  Y -> {X_A⊥ X∧}  A -> {X∧ X_Y⊥}  A <-> Y }")


def veitch_selection() -> CausalGraph:
    """Selection case of Veitch et al. [veitch2021]: A and Y are related because rows were picked by both.

    Causal direction without a hidden confounder; the association is purely spurious, that is, the features that A
    changes say nothing more about Y once A and X_A⊥ are known. Every row at hand has ``selected = 1``, so that the node
    belongs to every adjustment set and is no input. Given the outcome the criterion holds with an empty context,
    Ŷ ⊥ {A} | {Y, selected}: the penalty of Veitch et al., conditional on Y. Given ``selected`` alone it fails, because
    A → selected ← Y ← X_A⊥ is open.

    >>> from ciplearn.datasets import graphs
    >>> "selected" in graphs.veitch_selection().nodes
    True
    """
    return CausalGraph.from_dagitty(
        "dag { A [exposure]  Y [outcome]  A -> {X∧ X_Y⊥}  X_A⊥ -> {X∧ Y}  X∧ -> X_Y⊥  {A Y} -> selected }"
    )


def figure_d() -> CausalGraph:
    """Synthetic experiments: as figure (a), and S affects A too.

    >>> from ciplearn.datasets import graphs
    >>> graphs.figure_d().nodes
    ('A', 'L', 'S', 'Y')
    """
    return CausalGraph.from_dagitty("dag { A [exposure]  Y [outcome]  S -> {A L Y}  A -> L -> Y  A -> Y }")


def figure_e() -> CausalGraph:
    """Fairness experiment in three blocks: A protected, L mediators, C covariates that A does not change.

    >>> from ciplearn.datasets import graphs
    >>> graphs.figure_e().nodes
    ('A', 'C', 'L', 'Y')
    """
    return CausalGraph.from_dagitty("dag { A [exposure]  Y [outcome]  A -> L -> Y  C -> {L Y}  A -> Y }")


def figure_f() -> CausalGraph:
    """Image experiment in blocks: A horizontal position, U scale, C shape and height, L colour and orientation.

    >>> from ciplearn.datasets import graphs
    >>> graphs.figure_f().nodes
    ('A', 'C', 'L', 'U', 'Y')
    """
    return CausalGraph.from_dagitty("dag { A [exposure]  Y [outcome]  C -> {A U Y}  A -> U -> Y  A -> Y  L -> Y }")


def image() -> CausalGraph:
    """Image experiment, one node for each latent factor of the drawn shape, named as in `image_latents`.

    The paper draws colour and orientation as causes of Y; its equations, which `image_latents` has, leave them out.

    >>> from ciplearn.datasets import graphs
    >>> graphs.image().nodes
    ('Y', 'color', 'orientation', 'scale', 'shape', 'x_pos', 'y_pos')
    """
    return CausalGraph.from_dagitty(
        "dag { x_pos [exposure]  Y [outcome]  {shape y_pos} -> {x_pos scale Y}  x_pos -> scale"
        "  {x_pos scale color orientation} -> Y }"
    )


def adult() -> CausalGraph:
    """Adult data in blocks, with the unobserved causes of M, D and R.

    A age and sex, C race and native country, M marital status, D education, R work class, occupation, hours, Y income.

    >>> from ciplearn.datasets import graphs
    >>> graphs.adult().nodes
    ('A', 'C', 'D', 'H_d', 'H_m', 'H_r', 'M', 'R', 'Y')
    """
    return CausalGraph.from_dagitty(
        """dag {
          A [exposure]  Y [outcome]  H_m [latent]  H_d [latent]  H_r [latent]
          A -> {M D R Y}  M -> {D R Y}  D -> {R Y}  R -> Y  C -> {M D R Y}
          H_m -> M  H_d -> D  H_r -> R
        }"""
    )


def adult_columns() -> CausalGraph:
    """Adult data, one node for each column, named as in the data.

    Columns of one block of `adult` have the same causes and effects; H_r is what the three columns of R share, and race
    and native country share a cause that is not drawn.

    >>> from ciplearn.datasets import graphs
    >>> print(graphs.adult_columns().criterion().independence.given)
    ('native-country', 'race')
    """
    return CausalGraph.from_dagitty(
        """dag {
          age [exposure]  sex [exposure]  income [outcome]  H_m [latent]  H_d [latent]  H_r [latent]
          {age sex race "native-country"} -> {"marital-status" education workclass occupation "hours-per-week" income}
          "marital-status" -> {education workclass occupation "hours-per-week" income}
          education -> {workclass occupation "hours-per-week" income}
          {workclass occupation "hours-per-week"} -> income
          race <-> "native-country"
          H_m -> "marital-status"  H_d -> education  H_r -> {workclass occupation "hours-per-week"}
        }"""
    )
