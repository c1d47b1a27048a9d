import numpy as np
import pytest
import torch

from ciplearn.penalties.rows import RowSample

N = 500
RIGHT = torch.arange(N, dtype=torch.float64)[:, None]
GIVEN = -RIGHT


def sampled(cuts, size=40, seed=0):
    state = RowSample(size, seed)
    for start, stop in zip([0, *cuts], [*cuts, N], strict=True):
        state.update(RIGHT[start:stop], GIVEN[start:stop])
    return state.finalise()


@pytest.mark.parametrize("cuts", [[1], [30, 35, 400], list(range(7, N, 7))], ids=["two", "few", "many"])
def test_sample_does_not_depend_on_how_rows_are_cut(cuts):
    whole, cut = sampled([]), sampled(cuts)
    assert torch.equal(whole.right, cut.right)
    assert torch.equal(whole.given, cut.given)
    assert torch.equal(whole.drawn, cut.drawn)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_samples_of_parts_merge_into_the_sample_of_the_whole(order):
    ends = [(0, 120), (120, 390), (390, N)]
    parts = []
    for start, stop in ends:
        part = RowSample(40, start=start)
        part.update(RIGHT[start:stop], GIVEN[start:stop])
        parts.append(part)
    total = parts[order[0]]
    for place in order[1:]:
        total.merge(parts[place])
    assert total.next == N
    found = total.finalise()
    assert torch.equal(found.right, sampled([]).right)
    assert torch.equal(found.drawn, sampled([]).drawn)


def test_rows_keep_their_order_and_their_partners():
    found = sampled([100])
    assert (found.right.diff(dim=0) > 0).all()
    assert torch.equal(found.given, -found.right)
    assert len(found.right) == 40


def test_fewer_rows_than_asked_for_are_all_there_as_they_were():
    assert torch.equal(sampled([], size=N + 1).right, RIGHT)


def test_every_row_is_drawn_equally_often():
    counts = np.zeros(N)
    for seed in range(400):
        counts[sampled([], seed=seed).right[:, 0].long().numpy()] += 1
    # Binomial(400, 0.08): mean 32, standard deviation 5.4; the five hundred rows stay within five of them.
    assert counts.mean() == pytest.approx(32)
    assert abs(counts - 32).max() < 5 * 5.4
    assert counts.std() == pytest.approx(5.4, rel=0.15)


def test_first_and_last_are_apart_and_the_first_of_more_hold_the_first_of_fewer():
    found = sampled([])
    first, last = (set(part[0][:, 0].tolist()) for part in (found.first(15), found.last(20)))
    assert len(first) == 15
    assert len(last) == 20
    assert not first & last
    assert first <= set(found.first(30)[0][:, 0].tolist())
