"""The fused Gaussian step on a CUDA device: each entry of Q is read once, K is never stored.

Programs take a strip of rows and a share of the columns; their partial sums are added in a fixed order, so the same
input gives the same bits.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

# Shares of the columns: enough programs to fill the device at a few thousand rows.
_SHARES = 8

# Rows and columns of a tile, and warps, for one output and for a few: what reads Q fastest on a Hopper device.
_ONE_OUTPUT, _FEW_OUTPUTS = (64, 64, 8), (8, 128, 2)

# Beyond this, distances are cheaper as a matrix product.
_MOST_OUTPUTS = 4

_HAS_TRITON = torch.cuda.is_available() and find_spec("triton") is not None

if _HAS_TRITON:
    import triton
    import triton.language as tl

    @triton.jit
    def _one_output(s, q, mass, pull, b, stride, share, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
        """Σ_j M_ij and Σ_j M_ij s_j of a strip of rows over one share of the columns, s one number per row."""
        i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        part = tl.program_id(1)
        strip = q + i[:, None].to(tl.int64) * stride
        s_i = tl.load(s + i, mask=i < b, other=0.0)
        total = tl.zeros((ROWS,), tl.float32)
        weighted = tl.zeros((ROWS,), tl.float32)
        for start in range(part * share, min(part * share + share, b), COLUMNS):
            j = start + tl.arange(0, COLUMNS)
            entries = tl.load(strip + j[None, :], mask=(i < b)[:, None] & (j < b)[None, :], other=0.0)
            s_j = tl.load(s + j, mask=j < b, other=0.0)
            difference = s_i[:, None] - s_j[None, :]
            product = tl.exp(-difference * difference) * entries
            total += tl.sum(product, 1)
            weighted += tl.sum(product * s_j[None, :], 1)
        tl.store(mass + part * b + i, total, mask=i < b)
        tl.store(pull + part * b + i, weighted, mask=i < b)

    @triton.jit
    def _few_outputs(  # type: ignore[no-untyped-def]
        s,
        q,
        mass,
        pull,
        b,
        stride,
        share,
        D: tl.constexpr,
        WIDTH: tl.constexpr,
        ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
    ):
        """The same for s a short vector per row, padded from D to WIDTH."""
        i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        part = tl.program_id(1)
        d = tl.arange(0, WIDTH)
        strip = q + i[:, None].to(tl.int64) * stride
        s_i = tl.load(s + i[:, None] * D + d[None, :], mask=(i < b)[:, None] & (d < D)[None, :], other=0.0)
        total = tl.zeros((ROWS,), tl.float32)
        weighted = tl.zeros((ROWS, WIDTH), tl.float32)
        for start in range(part * share, min(part * share + share, b), COLUMNS):
            j = start + tl.arange(0, COLUMNS)
            entries = tl.load(strip + j[None, :], mask=(i < b)[:, None] & (j < b)[None, :], other=0.0)
            s_j = tl.load(s + j[:, None] * D + d[None, :], mask=(j < b)[:, None] & (d < D)[None, :], other=0.0)
            difference = s_i[:, None, :] - s_j[None, :, :]
            product = tl.exp(-tl.sum(difference * difference, 2)) * entries
            total += tl.sum(product, 1)
            weighted += tl.sum(product[:, :, None] * s_j[None, :, :], 1)
        tl.store(mass + part * b + i, total, mask=i < b)
        tl.store(pull + (part * b + i)[:, None] * D + d[None, :], weighted, mask=(i < b)[:, None] & (d < D)[None, :])


def takes(s: Tensor, block: Tensor) -> bool:
    """Whether the fused kernel serves these tensors, which are on a CUDA device."""
    flat = s.dim() == 2 and s.shape[1] <= _MOST_OUTPUTS
    return _HAS_TRITON and flat and s.dtype == block.dtype == torch.float32


def gaussian_sums(s: Tensor, block: Tensor) -> tuple[Tensor, Tensor]:  # (b, d), (b, b) -> (b,), (b, d)
    """Row sums of M = exp(−‖s_i − s_j‖²) ∘ Q, and M s."""
    b, d = s.shape
    s, block = s.contiguous(), block.contiguous()
    mass, pull = s.new_empty(_SHARES, b), s.new_empty(_SHARES, b, d)
    rows, columns, warps = _ONE_OUTPUT if d == 1 else _FEW_OUTPUTS
    grid = (triton.cdiv(b, rows), _SHARES)
    share = triton.cdiv(triton.cdiv(b, columns), _SHARES) * columns
    if d == 1:
        _one_output[grid](s, block, mass, pull, b, b, share, rows, columns, num_warps=warps)
    else:
        width = triton.next_power_of_2(d)
        _few_outputs[grid](s, block, mass, pull, b, b, share, d, width, rows, columns, num_warps=warps)
    return mass.sum(dim=0), pull.sum(dim=0)
