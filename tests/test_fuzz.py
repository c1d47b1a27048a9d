"""Public calls with arguments that nobody would pass: an answer, or one sentence of ours, and never anything else.

Each call has arguments that work. An example puts hostile ones in the place of some of them.
"""

import contextlib
import io
import os
import signal
import warnings

import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import ciplearn
from ciplearn import scm
from ciplearn._core.errors import CiplearnError
from tests.hostile import COLUMNS, NAMES, NUMBERS, OBJECTS, anything, columns, spoilt, tables
from tests.public_calls import (
    AS_COLUMNS,
    AS_TABLES,
    CALLS,
    GRAPH,
    METHODS,
    NEEDED,
    READING,
    SETTINGS,
    TABLE,
    TRAINING,
    N,
    X,
    Y,
    model,
)

pytestmark = pytest.mark.slow

# Hypothesis draws as many examples per call as CIPLEARN_FUZZ says; 150 of each take some ten minutes.
EXAMPLES = int(os.environ.get("CIPLEARN_FUZZ", "20"))
MANY = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))

# A call hangs after so many seconds of work, or of waiting: a busy machine makes nothing hang.
LONGEST = {signal.ITIMER_PROF: (signal.SIGPROF, 60), signal.ITIMER_REAL: (signal.SIGALRM, 600)}


@pytest.fixture(scope="module")
def good():
    """Models that some calls need."""
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimated = scm.fit_scm(GRAPH, TABLE)
        fitted = ciplearn.CIPRegressor(**TRAINING).fit(X, Y)
        points = ciplearn.frontier(fitted, X, Y, gammas=[0.0, 1.0])
        audited = ciplearn.audit(model, estimated, TABLE, "Y", ["A"], inputs=["S", "A", "L"], **SETTINGS)
    return {"scm": estimated, "fitted": fitted, "frontier": points, "audit": audited, "units": estimated.abduct(TABLE)}


def changeable(name):
    """The places of a call's arguments that may hold something else."""
    return sorted(set(CALLS[name][1]) - ({"scm", "graph"} if name in METHODS else set()))


def as_table(value, place):
    return value if isinstance(value, pd.DataFrame) else AS_TABLES[place]


@st.composite
def arguments(draw, name):
    """Hostile arguments in the place of one, two or three of a call's."""
    works = CALLS[name][1]
    for place in draw(st.lists(st.sampled_from(changeable(name)), min_size=1, max_size=3, unique=True)):
        if place in AS_TABLES:
            value = draw(tables(as_table(works[place], place)))
        elif place in AS_COLUMNS and draw(st.booleans()):
            value = draw(columns(draw(st.sampled_from([N, 10, 3, 0]))))
        else:
            value = draw(anything)
        works = {**works, place: value}
    return works


class HangsError(Exception):
    """A call that does not end."""


@contextlib.contextmanager
def bounded():
    def stop(number, _):
        raise HangsError(f"no answer when {signal.Signals(number).name} came")

    before = {}
    for timer, (number, seconds) in LONGEST.items():
        before[number] = signal.signal(number, stop)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, (number, _) in LONGEST.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def is_own(error):
    """Whether an error comes out of a function of the user: here, of one among the calls."""
    frames, step = [], error.__traceback__
    while step is not None:
        frames.append(step.tb_frame.f_code)
        step = step.tb_next
    inside = next((place for place, code in enumerate(frames) if "/ciplearn/" in code.co_filename), len(frames))
    return any("public_calls" in code.co_filename for code in frames[inside:])


def filled_in(name, given, good):
    """The arguments, with models that were made once where the call works with such a one."""
    works = CALLS[name][1]
    return {key: good[key] if key in NEEDED and value is works[key] is None else value for key, value in given.items()}


def refusal_of(name, given, good):
    """Call; return what was said in refusal, nothing where there is an answer, and raise what is neither."""
    with warnings.catch_warnings(), bounded(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            CALLS[name][0](**filled_in(name, given, good))
        except CiplearnError as refusal:
            return str(refusal)
        except NotFittedError as refusal:
            return str(refusal)
        except Exception as error:
            if not is_own(error):
                raise
    return ""


def in_places(name):
    """Iterate over a call's places with everything that does not belong there, and over what that is."""
    works = CALLS[name][1]
    for place in changeable(name):
        for value in (*NUMBERS, *OBJECTS, *NAMES):
            yield place, repr(value), value
        if place in AS_TABLES:
            for what, table in spoilt(as_table(works[place], place)):
                yield place, what, table
        elif place in AS_COLUMNS:
            for what, fill in COLUMNS.items():
                yield place, what, fill(N)


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_of_a_call_by_everything_that_does_not_belong_there(name, good):
    wrong = []
    for place, what, value in in_places(name):
        try:
            said = refusal_of(name, {**CALLS[name][1], place: value}, good)
        except Exception as error:  # noqa: BLE001
            said = f"{type(error).__name__}\n"
        if "\n" in said:
            wrong.append(f"{place}={what:.60}: {said!r:.200}")
    assert not wrong


@pytest.mark.parametrize("name", [name for name in CALLS if name not in READING])
def test_calls_work_with_good_arguments(name, good):
    function, works = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = function(**filled_in(name, works, good))
    assert answer is not None


@pytest.mark.parametrize("name", CALLS)
@MANY
@given(data=st.data())
def test_public_call(name, data, good):
    said = refusal_of(name, data.draw(arguments(name)), good)
    assert "\n" not in said, "one sentence"
