"""A factor of low rank of a Gram matrix on a GPU, and systems with it.

The many numbers, columns F (n, r), are float32; what is small, (r, r), is solved in float64, whose
products are as fast there. With ``Z = F R^-1`` for ``R'R = F'F + alpha I``,

    (F F' + alpha I)^-1 v = (v - Z Z' v) / alpha.

Z is rounded to float32, so that ``I - Z Z'`` has no eigenvalue smaller than that: where alpha is
below a millionth of the largest eigenvalue of F F', a millionth of it takes alpha's place.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from maxmargin.backends.cuda.matrix import Matrix
from maxmargin.backends.cuda.work import device_context
from maxmargin.backends.device import explaining_memory, on_host

_CHUNK = 1 << 27  # entries of F that are float64 at a time: a gigabyte
_LEAST = 1e-6  # of the largest eigenvalue: what float32 can tell from zero


class Columns:
    """Columns of a factor of ``diag(root) K diag(root)``, a block of pivots at a time.

    Parameters
    ----------
    matrix : Matrix
        K, or the matrix that it is a part of.
    places : tensor, optional
        Which part.
    root : float tensor (n, 1)
    most : int
        Columns that there is room for.
    """

    block = 256  # pivots that are drawn at a time
    resolved = 1e-5  # part of its diagonal below which a pivot is rounding

    def __init__(
        self, matrix: Matrix, places: torch.Tensor | None, root: torch.Tensor, most: int
    ) -> None:
        self.matrix, self.places, self.root = matrix, places, root[:, 0].float()
        self._columns = torch.empty((len(root), most), device=root.device, dtype=torch.float32)
        self._pivots, self._rows = (torch.empty(0, device=root.device) for _ in range(2))
        self.rank, self.most = 0, most

    @property
    def F(self) -> torch.Tensor:
        """The columns so far, (n, rank)."""
        return self._columns[:, : self.rank]

    def residual(self, pivots: np.ndarray) -> np.ndarray:
        """What the columns lack of the matrix among some pivots, in float64 on the host."""
        with explaining_memory(), device_context(self.matrix.device):
            self._pivots = self.matrix.to_device(pivots)
            self._rows = self.matrix.float32_rows(self._pivots, self.places)
            self._rows *= self.root
            self._rows *= self.root[self._pivots][:, None]
            known = self.F[self._pivots].double()
            block = self._rows[:, self._pivots].double() - known @ known.T
        return on_host(0.5 * (block + block.T))

    def extend(self, kept: np.ndarray, triangle: np.ndarray) -> np.ndarray:
        """Add the columns of these of the pivots, whose residual is ``triangle triangle'``.

        Returns what they take from the diagonal.
        """
        to_device, last = self.matrix.to_device, self.rank + len(kept)
        with explaining_memory(), device_context(self.matrix.device):
            chosen = to_device(kept)
            known = self.F[self._pivots[chosen]]
            inverse = torch.linalg.inv(to_device(triangle)).float()
            new = torch.addmm(self._rows[chosen].T, self.F, known.T, alpha=-1.0) @ inverse.T
            self._columns[:, self.rank : last] = new
            self.rank = last
            return on_host(new.square().sum(1, dtype=torch.float64))

    def inverse(self, alpha: float) -> Inverse:
        """``(F F' + alpha I)^-1``; overwrites F."""
        self._rows = self._rows[:0].clone()  # their memory is wanted
        with explaining_memory(), device_context(self.matrix.device):
            return Inverse(self.F, alpha)


class Inverse:
    """``(F F' + alpha I)^-1``; overwrites F (n, r)."""

    def __init__(self, F: torch.Tensor, alpha: float) -> None:
        self.Z, self.alpha = F, alpha
        square = torch.zeros((F.shape[1],) * 2, dtype=torch.float64, device=F.device)
        for part in _parts(F):
            some = F[part].double()
            square.addmm_(some.T, some)
        self.alpha = max(alpha, _LEAST * float(square.square().sum().sqrt()))
        square.diagonal().add_(self.alpha)
        R = torch.linalg.cholesky(square, upper=True)
        for part in _parts(F):
            F[part] = torch.linalg.solve_triangular(R, F[part].double(), upper=True, left=False)

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        Z = self.Z
        with explaining_memory(), device_context(Z.device):
            out = torch.from_numpy(V).to(Z.device, copy=True)
            onto = torch.zeros((Z.shape[1], V.shape[1]), dtype=torch.float64, device=Z.device)
            for part in _parts(Z):
                onto.addmm_(Z[part].double().T, out[part])
            for part in _parts(Z):
                out[part].addmm_(Z[part].double(), onto, alpha=-1.0)
            return on_host(out.div_(self.alpha))


def _parts(F: torch.Tensor) -> Iterator[slice]:
    """Rows whose float64 copies have a bounded size."""
    step = max(_CHUNK // max(F.shape[1], 1), 1)
    for first in range(0, len(F), step):
        yield slice(first, min(first + step, len(F)))
