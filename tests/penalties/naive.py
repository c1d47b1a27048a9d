"""Every criterion written straight from its definition: slow, obvious, and the judge of the fast ones."""

import torch


def gaussian(x, lengthscale):
    squared = ((x[:, None, :] - x[None, :, :]) ** 2).mean(dim=2)
    return torch.exp(-squared / (2 * lengthscale**2))


def hscic(k_y, k_r, k_s, ridge):
    """Mean over rows of the squared norm of the conditional cross-covariance embedding, row by row."""
    n = k_y.shape[0]
    total = 0.0
    for i in range(n):
        w = torch.linalg.solve(k_s + n * ridge * torch.eye(n, dtype=k_s.dtype), k_s[:, i])
        joint = w @ (k_y * k_r) @ w
        mixed = w @ ((k_y @ w) * (k_r @ w))
        apart = (w @ k_y @ w) * (w @ k_r @ w)
        total = total + joint - 2 * mixed + apart
    return total / n


def _residuals(k_s, ridge):
    n = k_s.shape[0]
    hat = k_s @ torch.linalg.inv(k_s + n * ridge * torch.eye(n, dtype=k_s.dtype))
    return torch.eye(n, dtype=k_s.dtype) - hat


def residual_hscic(k_y, k_r, k_s, ridge):
    """Mean over rows i of ‖Σ_j w_ij φ(ŷ_j) ⊗ (φ(r_j) − μ̂_{R|s_j})‖²."""
    n = k_y.shape[0]
    residual = _residuals(k_s, ridge)
    k_res = residual @ k_r @ residual.T
    total = 0.0
    for i in range(n):
        w = torch.linalg.solve(k_s + n * ridge * torch.eye(n, dtype=k_s.dtype), k_s[:, i])
        total = total + w @ (k_y * k_res) @ w
    return total / n


def circe(k_y, k_r, k_s, ridge):
    n = k_y.shape[0]
    residual = _residuals(k_s, ridge)
    k_res = residual @ k_r @ residual.T
    return (k_y * k_s * k_res).sum() / n**2


def hsic(k_y, k_r):
    n = k_y.shape[0]
    centring = torch.eye(n, dtype=k_y.dtype) - torch.ones(n, n, dtype=k_y.dtype) / n
    return torch.trace(k_y @ centring @ k_r @ centring) / n**2


def mmd(k_y, groups, cells):
    """Σ_cells p(cell) · mean over pairs of groups of the squared distance between mean embeddings."""
    n = k_y.shape[0]
    total = 0.0
    for cell in sorted(set(cells)):
        inside = [i for i in range(n) if cells[i] == cell]
        levels = sorted({groups[i] for i in inside})
        pairs = [(g, h) for a, g in enumerate(levels) for h in levels[a + 1 :]]
        for g, h in pairs:
            left = [i for i in inside if groups[i] == g]
            right = [i for i in inside if groups[i] == h]
            distance = k_y[left][:, left].mean() + k_y[right][:, right].mean() - 2 * k_y[left][:, right].mean()
            total = total + len(inside) / n * distance / len(pairs)
    return total
