import numpy as np
import pytest
from sklearn.utils import check_random_state

from ciplearn._core.errors import InputTypeError
from ciplearn._core.rows import as_generator, as_seed

KINDS = {
    "int": lambda: 7,
    "numpy int": lambda: np.int64(7),
    "large int": lambda: 2**40,
    "Generator": lambda: np.random.default_rng(7),
    "RandomState": lambda: np.random.RandomState(7),
}


@pytest.mark.parametrize("kind", KINDS)
def test_equal_states_give_equal_numbers(kind):
    first, second = (as_generator(KINDS[kind]()).random(5) for _ in range(2))
    assert (first == second).all()
    assert as_seed(KINDS[kind]()) == as_seed(KINDS[kind]())
    assert 0 <= as_seed(KINDS[kind]()) < 2**31


@pytest.mark.parametrize("kind", ["Generator", "RandomState"])
def test_a_state_that_is_drawn_from_gives_other_numbers_the_next_time(kind):
    state = KINDS[kind]()
    assert as_generator(state).random() != as_generator(state).random()
    assert as_seed(state) != as_seed(state)


def test_none_is_fresh_each_time():
    assert as_generator(None).random() != as_generator(None).random()
    assert as_seed(None) != as_seed(None)


def test_numpys_global_state_is_neither_read_nor_changed():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the state that must stay
    for make in (*KINDS.values(), lambda: None):
        as_generator(make()).random()
        as_seed(make())
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_whole_numbers_seed_as_numpy_and_scikit_learn_do():
    assert as_generator(3).random() == np.random.default_rng(3).random()
    assert as_seed(3) == check_random_state(3).randint(2**31 - 1)


def test_a_generator_is_used_itself():
    state = np.random.default_rng(7)
    assert as_generator(state) is state


@pytest.mark.parametrize("bad", [-1, True, "a", 0.5])
@pytest.mark.parametrize("reader", [as_generator, as_seed])
def test_anything_else_is_refused_in_one_sentence(reader, bad):
    with pytest.raises(InputTypeError, match=r"^random_state must be None, a whole number .* got .*; pass"):
        reader(bad)
