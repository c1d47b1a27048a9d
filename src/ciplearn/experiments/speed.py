"""How much a penalty costs, as ratios of two times taken in the same run on one thread."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ciplearn.datasets import MinMaxScaling, first_synthetic
from ciplearn.kernels import Gaussian
from ciplearn.kernels.ridge import loading
from ciplearn.penalties import HSCIC, Operator, Penalty, ResidualHSCIC

# For columns scaled to [0, 1].
_KERNEL = Gaussian(0.1)
_DEFAULT = ResidualHSCIC(_KERNEL, _KERNEL, _KERNEL, ridge=1e-4)

_TRAINED = 300  # steps before times are taken: predictions that are still all alike have a shorter series


@dataclass(frozen=True)
class Measurement:
    """One ratio."""

    name: str  # what was measured
    ratio: float
    goal: str  # what we hold ourselves to
    detail: str  # the times behind the ratio


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(*calls: Callable[[], object], rounds: int, repeats: int) -> list[float]:
    """Median seconds of each call, taken in turns: what slows the machine down slows all of them.

    ``rounds``: how often the calls take turns. ``repeats``: how often each is called in its turn; the turn's fastest
    call counts.
    """
    for call in calls:
        call()
    turns: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, turns, strict=True):
            times.append(min(seconds(call) for _ in range(repeats)))
    return [statistics.median(times) for times in turns]


def literal_hscic(
    y_hat: Tensor, right: Tensor, given: Tensor, *, lengthscale: float, ridge: float, rows: range | None = None
) -> Tensor:
    """Mean over rows of ‖μ̂_{Ŷ,R|s_i} − μ̂_{Ŷ|s_i} ⊗ μ̂_{R|s_i}‖², with the weights solved anew for each row.

    ``y_hat``, ``right``, ``given``: (n, d). ``lengthscale``: of all three Gaussian kernels. ``ridge``: λ. ``rows``:
    evaluate these rows only: each costs the same, so a few tell what all would.
    """
    kernel = Gaussian(lengthscale)
    n = y_hat.shape[0]
    k_y, k_r, k_s = (kernel.gram(part, part) for part in (y_hat, right, given))
    chosen = range(n) if rows is None else rows
    total = y_hat.new_zeros(())
    for i in chosen:
        loaded = k_s + loading(n, ridge) * torch.eye(n, dtype=k_s.dtype, device=k_s.device)
        w = torch.linalg.solve(loaded, k_s[:, i])
        joint = w @ (k_y * k_r) @ w
        mixed = w @ ((k_y @ w) * (k_r @ w))
        apart = (w @ k_y @ w) * (w @ k_r @ w)
        total = total + joint - 2 * mixed + apart
    return total / len(chosen)


def synthetic(n: int) -> tuple[Tensor, Tensor, Tensor]:  # (n, 3), (n, 2), (n, 1)
    """Inputs (Z, A, L), right-hand side (A, L) and condition Z of the first synthetic case, scaled to [0, 1]."""
    rows = first_synthetic().sample(n, random_state=0)[["Z", "A", "L"]]
    table = torch.from_numpy(MinMaxScaling.fit(rows).transform(rows).to_numpy(dtype="float32"))
    return table, table[:, 1:], table[:, :1]


def paper_network(n_inputs: int = 3) -> nn.Sequential:
    """The paper's predictor: eight hidden layers of twenty rectified units."""
    layers = [layer for width in (n_inputs, *[20] * 7) for layer in (nn.Linear(width, 20), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(20, 1))


def against_literal(n: int = 512, sampled_rows: int = 8) -> list[Measurement]:
    """HSCIC's value and gradient: literal, with `prepare`, and prepared."""
    _, right, given = (part.double() for part in synthetic(n))
    y_hat = torch.rand(n, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    penalty = HSCIC.paper()
    operator = penalty.prepare(right, given)

    def literal() -> None:
        literal_hscic(y_hat, right, given, lengthscale=0.1, ridge=0.01, rows=range(sampled_rows)).backward()

    def with_prepare() -> None:
        penalty(y_hat, right, given).backward()

    def prepared() -> None:
        operator(y_hat).backward()

    few, once, step = interleaved(literal, with_prepare, prepared, rounds=5, repeats=2)
    slow = few * n / sampled_rows
    times = f"literal {slow:.1f} s, from {sampled_rows} of {n} rows"
    return [
        Measurement(f"HSCIC with prepare, n = {n}", slow / once, "≥ 50 × faster", f"{times}; ours {once * 1e3:.0f} ms"),
        Measurement(f"HSCIC prepared, n = {n}", slow / step, "≥ 1000 × faster", f"{times}; ours {step * 1e3:.2f} ms"),
    ]


def training_step(
    n: int, batch: int, penalty: Penalty = _DEFAULT, goal: str = "", *, trained: int = _TRAINED
) -> Measurement:
    """One step of the paper's network with Adam, with a prepared penalty against without.

    The outcome has a deviation of 1, which is wide for a kernel of length scale 0.1.
    """
    inputs, right, given = synthetic(n)
    operator = penalty.prepare(right, given)
    plain, penalised = _stepper(inputs, batch, None), _stepper(inputs, batch, operator)
    for _ in range(trained):
        plain()
        penalised()
    without, with_penalty = interleaved(plain, penalised, rounds=60, repeats=5)
    kind = "exact" if operator.exact else "low-rank"
    name = f"training step, {type(penalty).__name__}, batch {batch}, prepared on {n} rows ({kind})"
    times = f"{with_penalty * 1e3:.2f} ms against {without * 1e3:.2f} ms"
    return Measurement(name, with_penalty / without, goal, times)


def rows_scaling(few: int = 100_000, many: int = 1_000_000) -> Measurement:
    """Seconds per row to prepare a low-rank operator on many rows against few."""
    per_row = []
    for n in (few, many):
        generator = torch.Generator().manual_seed(0)
        right, given = torch.rand(n, 3, generator=generator), torch.rand(n, 2, generator=generator)
        per_row.append(seconds(lambda right=right, given=given: ResidualHSCIC().prepare(right, given)) / n)  # type: ignore[misc]
    # In bytes on macOS, in kilobytes elsewhere.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
    name = f"prepare ResidualHSCIC on {many} rows, per row"
    times = f"{per_row[1] * many:.1f} s against {per_row[0] * few:.1f} s, peak memory {peak:.2f} GB"
    return Measurement(name, per_row[1] / per_row[0], f"≤ 1.3 × that on {few}", times)


def measurements(*, large: bool) -> Iterator[Measurement]:
    """All measurements, one after the other; ``large`` adds the million rows."""
    yield from against_literal()
    for penalty in (_DEFAULT, HSCIC.paper()):
        for n in (1000, 8000):
            yield training_step(n, 256, penalty, goal="≤ 1.3 ×")
            yield training_step(n, 512, penalty, goal="≤ 1.5 ×")
    if large:
        yield rows_scaling()


def _stepper(inputs: Tensor, batch: int, operator: Operator | None) -> Callable[[], None]:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    network = paper_network(inputs.shape[1])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    target = inputs.sum(dim=1, keepdim=True)
    target = (target - target.mean()) / target.std()

    def step() -> None:
        rows = torch.randperm(inputs.shape[0], generator=generator)[:batch]
        y_hat = network(inputs[rows])
        loss = nn.functional.mse_loss(y_hat, target[rows])
        if operator is not None:
            loss = loss + 0.5 * operator(y_hat, rows=rows)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step
