"""The fused Gaussian step on a CUDA device: Q is read once, K is never stored."""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

# A tile of 64 × 128 numbers stays in registers; wider predictions than this go through a matrix product instead.
_TILE_ROWS, _TILE_COLUMNS, _MAX_OUTPUTS = 64, 128, 16

if find_spec("triton") is not None and torch.cuda.is_available():
    import triton
    import triton.language as tl

    @triton.jit
    def _row_sums(s, q, mass, pull, b, stride, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
        i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        total = tl.zeros((ROWS,), tl.float32)
        for start in range(0, b, COLUMNS):
            j = start + tl.arange(0, COLUMNS)
            inside = (i < b)[:, None] & (j < b)[None, :]
            entries = tl.load(q + i[:, None].to(tl.int64) * stride + j[None, :], mask=inside, other=0.0)
            distance = tl.zeros((ROWS, COLUMNS), tl.float32)
            for d in tl.static_range(D):
                difference = (
                    tl.load(s + i * D + d, mask=i < b, other=0.0)[:, None]
                    - tl.load(s + j * D + d, mask=j < b, other=0.0)[None, :]
                )
                distance += difference * difference
            product = tl.exp(-distance) * entries
            total += tl.sum(product, 1)
            for d in tl.static_range(D):
                column = tl.load(s + j * D + d, mask=j < b, other=0.0)
                place = pull + i * D + d
                tl.store(place, tl.load(place, mask=i < b) + tl.sum(product * column[None, :], 1), mask=i < b)
        tl.store(mass + i, total, mask=i < b)


def takes(s: Tensor, block: Tensor) -> bool:
    """Whether the fused kernel serves these tensors."""
    return (
        s.is_cuda
        and s.dim() == 2
        and s.shape[1] <= _MAX_OUTPUTS
        and s.dtype == block.dtype == torch.float32
        and "_row_sums" in globals()
    )


def gaussian_sums(s: Tensor, block: Tensor) -> tuple[Tensor, Tensor]:  # (b, d), (b, b) -> (b,), (b, d)
    """Row sums of M = exp(−‖s_i − s_j‖²) ∘ Q, and M s."""
    b, d = s.shape
    mass, pull = s.new_empty(b), s.new_zeros(b, d)
    grid = (triton.cdiv(b, _TILE_ROWS),)
    _row_sums[grid](s.contiguous(), block, mass, pull, b, block.stride(0), D=d, ROWS=_TILE_ROWS, COLUMNS=_TILE_COLUMNS)
    return mass, pull
