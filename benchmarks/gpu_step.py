"""The fused step on a CUDA device as a share of its copy bandwidth, and the linear-time step beside it.

Run: python benchmarks/gpu_step.py
"""

import torch

from ciplearn.kernels import Gaussian
from ciplearn.penalties.inner_product import inner_product
from ciplearn.penalties.storage import DenseMatrix, Factor


def milliseconds(call, repeats=50):
    """Mean device time of one call."""
    for _ in range(3):
        call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeats


def recorded(call):
    """Return a call that replays the device work alone, without Python's launching of it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def main(b=16_384, columns=256):
    """Print one line per measurement."""
    if not torch.cuda.is_available():
        print("No CUDA device: nothing to measure.")
        return
    matrix = torch.rand(b, b, device="cuda")
    bytes_of_q = matrix.numel() * matrix.element_size()
    bandwidth = 2 * bytes_of_q / milliseconds(matrix.clone)  # a copy reads and writes
    print(f"{torch.cuda.get_device_name()}: copy moves {bandwidth / 1e9:.2f} TB/s")
    factor = Factor(torch.rand(b, columns, device="cuda"))
    stored = {"matrix": DenseMatrix(matrix), f"factor of {columns} columns": factor}
    for outputs, held in ((1, "matrix"), (3, "matrix"), (1, f"factor of {columns} columns")):
        y_hat = torch.rand(b, outputs, device="cuda", requires_grad=True)

        def step(y_hat=y_hat, storage=stored[held]):
            value = inner_product(Gaussian(0.1), y_hat, storage, None, 1.0, 1.0, (0.0, 1.0))
            torch.autograd.grad(value, y_hat)

        line = f"b = {b}, {outputs} output(s), {held}: value and gradient {milliseconds(step):.3f} ms"
        if held == "matrix":
            device = milliseconds(recorded(step))
            share = bytes_of_q / device / bandwidth
            line += f", {device:.3f} ms on the device: Q read at {share:.0%} of the copy bandwidth"
        print(line)


if __name__ == "__main__":
    main()
