import pytest
import torch

from ciplearn.kernels.ridge import LeftOut


@pytest.mark.parametrize("targets", [1, 11])
def test_errors_are_those_of_regressions_without_the_row(targets):
    draw = torch.Generator().manual_seed(0)
    phi = torch.randn(25, 4, generator=draw, dtype=torch.float64)
    f = torch.randn(25, targets, generator=draw, dtype=torch.float64)
    values, vectors = torch.linalg.eigh(phi.T @ phi)
    scores, loadings = phi @ vectors, torch.tensor([0.1, 3.0], dtype=torch.float64)
    left_out = LeftOut(scores, values, loadings)
    cross = scores.T @ f
    for place, loading in enumerate(loadings):
        naive = []
        for row in range(25):
            others = torch.arange(25) != row
            system = phi[others].T @ phi[others] + loading * torch.eye(4, dtype=torch.float64)
            naive.append(f[row] - phi[row] @ torch.linalg.solve(system, phi[others].T @ f[others]))
        expected = torch.stack(naive)
        torch.testing.assert_close(left_out.residuals(f, cross, place), expected)
        torch.testing.assert_close(left_out.errors(f, cross)[place], expected.square().mean(dim=0))
