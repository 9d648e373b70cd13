"""The Gram matrix as a function of the numbers in its kernel, with derivatives.

What does not depend on those numbers, products and distances of the points, is computed once and
kept where it has room. A matrix is then one pass over it, and so are all derivatives together: they
are made tile by tile, used and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin.backends import cpu
from maxmargin.backends.cpu.operand import factors_of
from maxmargin.backends.program import Program
from maxmargin.backends.threads import ALONE, Workers
from maxmargin.backends.views import Views
from maxmargin.kernels.parameters import Parameters

HEIGHT = 256  # rows of a stripe
_WIDTH = 512  # columns of a tile: it stays in the cache with its derivatives


class ParametricGram:
    """Gram matrices of one data set under one kernel, for any values of its numbers.

    Parameters
    ----------
    X : validated data, or Views of them
    parameters : Parameters
        Of the kernel.
    memory : int
        Bytes for products and distances that are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.gram.parametric import ParametricGram
    >>> from maxmargin.kernels import RBF
    >>> from maxmargin.kernels.parameters import KernelNumbers
    >>> numbers = KernelNumbers(RBF(gamma=1.0))
    >>> gram = ParametricGram(np.array([[0.0], [1.0]]), numbers, memory=1 << 20)
    >>> K = gram.at(np.log([2.0])).lower_triangle()
    >>> np.tril(K).round(3)
    array([[1.   , 0.   ],
           [0.135, 1.   ]])
    """

    def __init__(
        self,
        X: Any,
        parameters: Parameters,
        memory: int,
        workers: Any = ALONE,
    ) -> None:
        self.views, self.memory, self.parameters = Views.of(X), memory, parameters
        kernel = parameters.kernel_at(parameters.theta)
        self.n, self.pairwise = self.views.n, kernel.pairwise
        self.kept: dict[int, np.ndarray] = {}  # by primitive
        program = kernel.lower()
        self.calls_python = program.calls_python
        still = [k for k, primitive in enumerate(program.primitives) if not primitive.stretch]
        if 8 * self.n**2 * len(still) > memory:
            return
        points = cpu.Operand.prepare(program, self.views, shared=True)
        workers = ALONE if self.calls_python else workers
        for k in still:
            primitive = program.primitives[k]
            alone = Program()
            alone.push(primitive.kind, primitive.view, primitive.function)
            seen = cpu.Operand([points.primitives[k]], np.empty((0, self.n)), self.n)
            self.kept[k] = np.empty((self.n, self.n))
            cpu.kernel_square(alone, seen, None, self.kept[k], workers)

    def take(self, rows: np.ndarray) -> ParametricGram:
        """Matrices of some of the points."""
        taken = object.__new__(ParametricGram)
        taken.__dict__.update(self.__dict__)
        X, some = self.views.X, np.ix_(rows, rows)
        taken.views = Views(X[some] if self.pairwise else _safe_indexing(X, rows))
        taken.n, taken.kept = len(rows), {k: values[some] for k, values in self.kept.items()}
        return taken

    def at(self, theta: np.ndarray) -> GramAt:
        """The matrix at some values of the parameters, given by their logarithms."""
        return GramAt(self, *self.parameters.program_at(theta))


class GramAt:
    """The Gram matrix at one value of its parameters.

    ``slopes`` (p, numbers) are the derivatives of the programme's numbers by the parameters.
    """

    def __init__(self, gram: ParametricGram, program: Program, slopes: np.ndarray) -> None:
        self.gram, self.program, self.slopes = gram, program, slopes
        self.n = gram.n
        self.points: Any = None
        if len(gram.kept) < len(program.primitives):
            self.points = cpu.Operand.prepare(program, gram.views, shared=True)
        self.factors = factors_of(program, gram.views)

    def _primitives(self, rows: slice, columns: slice) -> np.ndarray:
        """Return products and distances (p, q, w) between some points and others."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        out = np.empty((len(self.program.primitives), *shape))
        for k, tile in enumerate(out):
            if k in self.gram.kept:
                tile[:] = self.gram.kept[k][rows, columns]
            else:
                seen = self.points.primitives[k]
                panel = seen.panel(np.arange(rows.start, rows.stop))
                seen.tile(panel, columns.start, columns.stop, tile)
        return out

    def lower_triangle(self, workers: Workers = ALONE) -> np.ndarray:
        """Values on and below the diagonal; above it, none or any."""
        K = np.zeros((self.n, self.n))

        def fill(rows: slice) -> None:
            for columns in _tiles(rows):
                left = self.factors[:, rows]
                values = np.empty((rows.stop - rows.start, columns.stop - columns.start))
                cpu.kernel_values(
                    self.program,
                    self._primitives(rows, columns),
                    left,
                    self.factors[:, columns],
                    values,
                )
                K[rows, columns] = values

        self._workers(workers).map(fill, reversed(stripes(self.n)))  # the longest first
        return K

    def contract(
        self,
        weights: Callable[[slice], np.ndarray],
        coefficients: np.ndarray,
        workers: Workers = ALONE,
    ) -> tuple[np.ndarray, np.ndarray]:
        """``sum_ij W_ij dK_ij`` (p,) and ``dK @ coefficients`` (p, n, m), by all parameters.

        ``weights`` returns the rows of a symmetric W, up to the end of their own square.
        """
        wanted = np.asarray(self.slopes.any(axis=0))
        by = cpu.Derivatives(self.program, wanted, self.gram.views, self.factors)
        count = int(wanted.sum())

        def add(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            sums, products = np.zeros(count), np.zeros((count, *coefficients.shape))
            W = weights(rows)
            for columns in _tiles(rows):
                tile = by.tile(self._primitives(rows, columns), rows, columns)
                own = W[:, columns].ravel()
                mirrored = columns.stop <= rows.start
                sums += (1 + mirrored) * (tile.reshape(count, -1) @ own)
                products[:, rows] += tile @ coefficients[columns]
                if mirrored:
                    products[:, columns] += tile.transpose(0, 2, 1) @ coefficients[rows]
            return sums, products

        if not count:
            p = len(self.slopes)  # none of them moves a value
            return np.zeros(p), np.zeros((p, *coefficients.shape))
        parts = self._workers(workers).map(add, reversed(stripes(self.n)))
        slopes = self.slopes[:, wanted]
        sums, products = (np.sum([part[k] for part in parts], axis=0) for k in (0, 1))
        return slopes @ sums, np.tensordot(slopes, products, 1)

    def _workers(self, workers: Workers) -> Workers:
        """Threads, but one where a tile may call a Python function."""
        alone = self.gram.calls_python and self.points is not None
        return Workers(1, workers.stopped) if alone else workers


def stripes(n: int) -> list[slice]:
    """Cut the rows of a matrix into stripes."""
    return [slice(first, min(first + HEIGHT, n)) for first in range(0, n, HEIGHT)]


def _tiles(rows: slice) -> list[slice]:
    """Columns of the tiles of a stripe, left of its own square and this itself."""
    edges = [*range(0, rows.start, _WIDTH), rows.start, rows.stop]
    return [slice(first, last) for first, last in pairwise(edges) if first < last]
