"""An epoch of the image network with a prepared penalty against one without, batch 512, on one CPU thread.

Run: python -m benchmarks.image_epoch
"""

import torch

from ciplearn.experiments.speed import interleaved
from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
from ciplearn.penalties import ResidualHSCIC
from reproduction import sprites as dsprites
from reproduction.dsprites_trainings import BY_VARIABLE, ImageCase, penalty_of
from reproduction.image_network import ImageNetwork
from reproduction.methods import PAPER

RIGHT, GIVEN = ["color", "orientation", "scale", "x_pos"], ["shape", "y_pos"]


def columns(table, names):
    """Columns scaled to [0, 1]."""
    values = torch.tensor(table[names].to_numpy(dtype="float32"))
    low, high = values.aminmax(dim=0)
    return (values - low) / (high - low).clamp_min(1)


def main(n=2048, batch=512):
    """Print one line per penalty; preparing it, once per training, is not counted."""
    torch.set_num_threads(1)
    case = ImageCase.draw(n * 5 // 4, seed=0)
    table, pictures = columns(case.train, list(dsprites.FACTORS)), torch.from_numpy(case.train_pictures)
    target = columns(case.train, ["Y"])
    rows = TrainingRows((table, pictures), target, columns(case.train, RIGHT), columns(case.train, GIVEN))

    def epoch(operator):
        network = ImageNetwork(table.shape[1])
        settings = TrainingSettings(gamma=0.0 if operator is None else 1.0, epochs=1, batch_size=batch)
        return lambda: train(network, rows, SquaredError(), settings, operator)

    penalties = {"default": ResidualHSCIC().for_outcome(target)}
    penalties |= {name: penalty_of(name) for name in (BY_VARIABLE, PAPER)}
    operators = [penalty.prepare(rows.right, rows.given) for penalty in penalties.values()]
    without, *others = interleaved(epoch(None), *map(epoch, operators), rounds=5, repeats=1)
    for name, seconds in zip(penalties, others, strict=True):
        print(
            f"{name}: epoch of {n} pictures, batch {batch}: {seconds:.2f} s with, {without:.2f} s without, "
            f"{seconds / without:.3f} ×",
            flush=True,
        )


if __name__ == "__main__":
    main()
