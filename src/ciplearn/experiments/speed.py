"""How much a penalty costs, as ratios of two times taken in the same run on one thread."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ciplearn.experiments.literal import literal_hscic
from ciplearn.experiments.timing import interleaved, seconds
from ciplearn.kernels import Gaussian
from ciplearn.penalties import HSCIC, Operator, Penalty, ResidualHSCIC

# For columns scaled to [0, 1].
_KERNEL = Gaussian(0.1)
_DEFAULT = ResidualHSCIC(_KERNEL, _KERNEL, _KERNEL, ridge=1e-4)

# Steps before times are taken: predictions that are still all alike have a shorter series.
_TRAINED = 300


@dataclass(frozen=True)
class Measurement:
    """One ratio."""

    name: str  # what was measured
    ratio: float
    goal: str  # what we hold ourselves to
    detail: str  # the times behind the ratio


def synthetic(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:  # (n, 3), (n, 2), (n, 1)
    """Inputs (Z, A, L), right-hand side (A, L) and condition Z of the first synthetic case, scaled to [0, 1]."""
    generator = torch.Generator().manual_seed(seed)

    def noise(scale: float) -> Tensor:
        return scale * torch.randn(n, 1, generator=generator)

    z = noise(1.0)
    a = z.square() + noise(1.0)
    mediator = torch.exp(-a.square() / 2) * torch.sin(2 * a) + 2 * z + 0.2 * noise(0.1)
    table = torch.cat([z, a, mediator], dim=1)
    low, high = table.min(dim=0).values, table.max(dim=0).values
    table = (table - low) / (high - low)
    return table, table[:, 1:], table[:, :1]


def paper_network(n_inputs: int = 3, n_layers: int = 8, width: int = 20) -> nn.Sequential:
    """The paper's predictor: eight hidden layers of twenty rectified units."""
    layers: list[nn.Module] = []
    for _ in range(n_layers):
        layers += [nn.Linear(n_inputs, width), nn.ReLU()]
        n_inputs = width
    return nn.Sequential(*layers, nn.Linear(width, 1))


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
    return Measurement(
        f"training step, {type(penalty).__name__}, batch {batch}, prepared on {n} rows ({kind})",
        with_penalty / without,
        goal,
        f"{with_penalty * 1e3:.2f} ms against {without * 1e3:.2f} ms",
    )


def rows_scaling(few: int = 100_000, many: int = 1_000_000) -> Measurement:
    """Seconds per row to prepare a low-rank operator on many rows against few."""
    per_row = []
    for n in (few, many):
        generator = torch.Generator().manual_seed(0)
        right, given = torch.rand(n, 3, generator=generator), torch.rand(n, 2, generator=generator)
        per_row.append(seconds(lambda right=right, given=given: ResidualHSCIC().prepare(right, given)) / n)  # type: ignore[misc]
    return Measurement(
        f"prepare ResidualHSCIC on {many} rows, per row",
        per_row[1] / per_row[0],
        f"≤ 1.3 × that on {few}",
        f"{per_row[1] * many:.1f} s against {per_row[0] * few:.1f} s, peak memory {_peak_gigabytes():.2f} GB",
    )


def measurements(*, large: bool) -> Iterator[Measurement]:
    """All measurements, one after the other; ``large`` adds the million rows."""
    yield from against_literal()
    for penalty in (_DEFAULT, HSCIC.paper()):
        for n in (1000, 8000):
            yield training_step(n, 256, penalty, goal="≤ 1.3 ×")
            yield training_step(n, 512, penalty, goal="≤ 1.5 ×")
    if large:
        yield rows_scaling()


def _peak_gigabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e9 if sys.platform == "darwin" else 1e6)  # bytes there, kilobytes elsewhere


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
