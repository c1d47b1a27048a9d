"""`prepare` on a CUDA device: rows are generated there in chunks, and never all in memory.

    python benchmarks/gpu_rows.py --rows 100000000 1000000000
    python benchmarks/gpu_rows.py --rows 1000000 2000000 --device cpu

Says seconds, nanoseconds per row, the most memory of the device (of the process, without one), and the penalty of one
batch, which tells how near the operator is to one from fewer rows.
"""

import argparse
import resource
import time
from dataclasses import dataclass

import torch

from ciplearn import Gaussian, ResidualHSCIC


@dataclass(frozen=True)
class DeviceRows:
    """Rows that a seed and their place give: the same in every pass. {A, L} given {S1, S2, S3}: six columns with Y."""

    n: int
    chunk: int
    device: str
    start: int = 0

    def pairs(self):
        """Right-hand side and conditioning variables."""
        for first in range(0, self.n, self.chunk):
            size = min(self.chunk, self.n - first)
            generator = torch.Generator(self.device).manual_seed(first)
            noise = torch.randn(size, 5, generator=generator, device=self.device)
            given = noise[:, :3]
            a = given @ torch.tensor([0.5, 0.3, 0.2], device=self.device) + noise[:, 3]
            level = torch.tanh(a) + given[:, 0] + 0.3 * noise[:, 4]
            yield torch.stack([a, level], dim=1), given


def measured(n, chunk, device):
    """The operator, seconds, and the most memory in GB."""
    on_device = torch.device(device).type == "cuda"
    if on_device:
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
    began = time.perf_counter()
    operator = ResidualHSCIC(kernel=Gaussian(0.5)).prepare_parts([DeviceRows(n, chunk, device)])
    if on_device:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return operator, seconds, (torch.cuda.max_memory_allocated() if on_device else process) / 2**30


def main():
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000, 100_000_000])
    parser.add_argument("--chunk", type=int, default=1 << 20)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    if arguments.device != "cpu" and not torch.cuda.is_available():
        raise SystemExit("There is no CUDA device here: give --device cpu.")
    measured(1 << 20, arguments.chunk, arguments.device)
    right, given = next(DeviceRows(4096, 4096, arguments.device).pairs())
    y_hat = (right[:, :1] + given[:, :1]).double()
    print("| rows | seconds | ns per row | peak GB | n · penalty of a batch |\n|---|---|---|---|---|")
    for n in arguments.rows:
        operator, seconds, peak = measured(n, arguments.chunk, arguments.device)
        value = float(operator(y_hat, right, given))
        print(f"| {n} | {seconds:.1f} | {seconds / n * 1e9:.1f} | {peak:.2f} | {value:.4e} |", flush=True)


if __name__ == "__main__":
    main()
