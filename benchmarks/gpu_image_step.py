"""An epoch of the image network with a prepared penalty against one without, batch 512, by the public loop.

Run on a machine with a CUDA device: python -m benchmarks.gpu_image_step
"""

import statistics
import time

import torch

from ciplearn.kernels import Gaussian
from ciplearn.learning import SquaredError, TrainingRows, TrainingSettings, train
from ciplearn.penalties import ResidualHSCIC
from reproduction.image_network import ImageNetwork


def seconds(rows, operator, epochs, mixed):
    """Time one training."""
    torch.manual_seed(0)
    network = ImageNetwork(rows.inputs[0].shape[1], dropout=0.1).to(rows.device)
    gamma = 0.0 if operator is None else 1.0
    settings = TrainingSettings(gamma=gamma, epochs=epochs, batch_size=512, mixed_precision=mixed)
    torch.cuda.synchronize()
    start = time.perf_counter()
    train(network, rows, SquaredError(), settings, operator)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main(n=8192, short=20, long=80, rounds=5):
    """Print one line per precision; what a training costs once is subtracted."""
    if not torch.cuda.is_available():
        print("No CUDA device: nothing to measure.")
        return
    generator = torch.Generator().manual_seed(0)
    table, target = torch.rand(n, 6, generator=generator), torch.rand(n, 1, generator=generator)
    pictures = (torch.rand(n, 64, 64, generator=generator) > 0.5).to(torch.uint8)
    rows = TrainingRows((table, pictures), target, table[:, :4], table[:, 4:]).to(torch.device("cuda"))
    prepared = ResidualHSCIC(kernel=Gaussian(0.1)).prepare(rows.right, rows.given)
    for mixed in (False, True):
        taken = {"without": [], "with": []}
        for _ in range(rounds):
            for name, operator in (("without", None), ("with", prepared)):
                both = [seconds(rows, operator, epochs, mixed) for epochs in (short, long)]
                taken[name].append((both[1] - both[0]) / (long - short))
        without, with_penalty = (statistics.median(taken[name]) for name in ("without", "with"))
        print(
            f"{'bfloat16' if mixed else 'float32'}: an epoch of {n} pictures {with_penalty * 1e3:.2f} ms with, "
            f"{without * 1e3:.2f} ms without, {with_penalty / without:.3f} ×"
        )


if __name__ == "__main__":
    main()
