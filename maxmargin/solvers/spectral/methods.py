"""Leading eigenvectors: all of them by LAPACK, or a few by a block Lanczos method.

A block of random columns Q, and its products with the matrix, span a Krylov space

    span(Q, Kc Q, Kc^2 Q, ...)

in which the Ritz vectors are the best approximations of eigenvectors; every pass over the matrix
adds a block. A block is what makes few passes enough, and a matrix that is computed anew in every
pass costs passes only. Where the space has grown too large, the best of it begins anew.

References: Golub and Underwood, 1977; Musco and Musco, NIPS 28, 2015 (how few passes); Halko,
Martinsson and Tropp, SIAM Review 53, 2011 (random starts).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, eigh, qr

from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.memory import megabytes
from maxmargin.solution import Status
from maxmargin.solvers.driver import Measure, Method, Run, Watch
from maxmargin.solvers.products import GramProducts
from maxmargin.solvers.spectral.problem import SpectralProblem, SpectralSolution

_MORE = 10  # Ritz vectors beyond those that are wanted; columns, too, where passes are dear
_SHARE = 0.5  # of the memory, for the Krylov space and its image
_LEAST = 3  # blocks that the space has room for in any case
_AHEAD = 0.5  # times tol: residual at which a run ends
_RESOLVED = 1e-13  # part of a block's size that is rounding
_STALLED = 12  # passes without a better residual after which digits are at their end
_MATRICES = 3  # that LAPACK's way takes: the Gram matrix, its copy and the eigenvectors


def leading_eigenvectors(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of a symmetric matrix and their eigenvectors, by LAPACK.

    Where eigenvalues are clustered, as of a kernel matrix near a multiple of the identity, the
    driver for some of them (``evr``) may raise "Internal Error." or return fewer than it was asked
    for. Divide and conquer (``evd``), which is for all of them, solves these matrices, too.

    Parameters
    ----------
    matrix : float array (n, n)
    count : int

    Returns
    -------
    values : float array (count,)
        In ascending order.
    vectors : float array (n, count)
    """
    n = len(matrix)
    if count < n:
        with suppress(LinAlgError):
            values, vectors = eigh(matrix, subset_by_index=(n - count, n - 1))
            if len(values) == count:
                return values, vectors
    driver = "evd" if n > 1 else "evr"  # SciPy 1.13 fails on one row with evd
    values, vectors = eigh(matrix, driver=driver)
    return values[n - count :], vectors[:, n - count :]


@dataclass(frozen=True)
class DenseEigen(Method[SpectralProblem, SpectralSolution]):
    """LAPACK's eigenvectors of the whole matrix, in ``8 n^2`` bytes three times.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.spectral.problem import SpectralProblem
    >>> gram = Gram.of(np.array([[1.0], [2.0], [3.0]]), Linear())
    >>> DenseEigen().solve(SpectralProblem(gram, count=1)).values.round(6)
    array([2.])
    """

    def accepts(self, problem: SpectralProblem) -> str | None:
        """None where the matrices have room; else a sentence."""
        wanted = _MATRICES * 8 * problem.n**2
        if wanted <= problem.gram.memory:
            return None
        return (
            f"All eigenvectors of {problem.n} rows take {megabytes(wanted)}, and "
            f"{megabytes(problem.gram.memory)} are allowed: raise cache_size, or take fewer "
            "components by eigen_solver='lanczos', which does without the matrix."
        )

    def begin(self, problem: SpectralProblem, watch: Watch) -> Run:
        """Begin with the matrix."""
        return DenseEigenRun(problem, watch)


class SpectralRun(Run):
    """What both methods end with."""

    words = "residual {violation:.2g}"
    products: GramProducts
    complete = False  # whether eigenvalues are all there, by the method

    def __init__(self, problem: SpectralProblem, watch: Watch) -> None:
        self.problem, self.watch = problem, watch
        self.workers = Workers(watch.workers.count, watch.stopped)
        self.values, self.vectors = np.zeros(0), np.zeros((problem.n, 0))
        self.beyond = np.zeros(0)  # eigenvalues, or Ritz values, after those that were asked for
        self.residual = np.inf

    @property
    def variables(self) -> np.ndarray | None:
        """The eigenvalues, once there are as many as were asked for."""
        return self.values if len(self.values) == self.problem.count else None

    def measure(self) -> Measure:
        """Relative residual."""
        return Measure(self.residual)

    @property
    def described(self) -> str:
        """The method, in words."""
        return "dense"

    def solution(self, status: Status) -> SpectralSolution:
        """Return what is there, judged by a product with the matrix."""
        if not len(self.values):
            raise ValueError(
                f"The fit was stopped ({status}) before the first pass over the Gram matrix: there "
                "are no components yet. Raise time_limit."
            )
        self.products.workers = self.watch.workers
        values, vectors = self.values, self.vectors
        judged = self.problem.certificate(
            values,
            vectors,
            self.products,
            self.described,
            status,
            self.watch.tol,
            self.beyond,
            self.complete,
        )
        return SpectralSolution(values, vectors, self.products.means, self.n_iter, judged)


class DenseEigenRun(SpectralRun):
    """LAPACK at work, which nothing can stop."""

    complete = True

    def steps(self) -> Generator[None, None, None]:
        """Make the matrix, then call LAPACK."""
        try:
            self.products = self.problem.products(self.workers)
        except StoppedError:
            yield  # to the driver, which knows why
        n, count = self.problem.n, self.problem.count
        assert self.products.K is not None
        values, vectors = leading_eigenvectors(self.products.K, min(count + 1, n))
        self.beyond = values[::-1][count:]
        self.values = values[::-1][:count].copy()
        self.vectors = np.ascontiguousarray(vectors[:, ::-1][:, :count])
        self.n_iter, self.residual = 1, float(np.finfo(np.float64).eps)  # LAPACK's, about


@dataclass(frozen=True)
class BlockLanczos(Method[SpectralProblem, SpectralSolution]):
    """Block Lanczos; a step is a pass over the matrix.

    Parameters
    ----------
    passes : int, optional
        End after so many, however exact the components are then.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Gram
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.solvers.spectral.problem import SpectralProblem
    >>> gram = Gram.of(np.array([[1.0], [2.0], [3.0]]), Linear())
    >>> BlockLanczos().solve(SpectralProblem(gram, count=1)).values.round(6)
    array([2.])
    """

    passes: int | None = None

    def accepts(self, problem: SpectralProblem) -> str | None:
        """Take all."""
        return None

    def begin(self, problem: SpectralProblem, watch: Watch) -> Run:
        """Begin with random columns."""
        return BlockLanczosRun(problem, watch, self.passes)


class BlockLanczosRun(SpectralRun):
    """Block Lanczos at work on a basis Q (n, d) and its image ``Kc Q``."""

    def __init__(self, problem: SpectralProblem, watch: Watch, passes: int | None) -> None:
        super().__init__(problem, watch)
        self.passes = passes
        self.width = self.columns = min(problem.count + _MORE, problem.n)
        room = int(_SHARE * problem.gram.memory / (16 * problem.n))
        self.most = min(max(room, _LEAST * self.width), problem.n)

    @property
    def described(self) -> str:
        """The method, in words."""
        return f"block Lanczos, {self.n_iter} passes, blocks of {self.columns}"

    def steps(self) -> Generator[None, None, None]:
        """Add block after block until the Ritz vectors' residuals are small."""
        try:
            self.products = self.problem.products(self.workers)
            yield
            random = np.random.default_rng(self.watch.seed)
            Q = np.empty((self.problem.n, 0))
            image, T, self.size = Q, np.empty((0, 0)), 0.0
            if self.products.K is not None and self.passes is None:
                self.columns = self.problem.count
            block = self._orthonormal(random.normal(size=(self.problem.n, self.columns)), Q)
            best, waited = np.inf, 0
            while block.shape[1]:
                new = self.products @ block
                self.size = max(self.size, float(np.linalg.norm(new, axis=0).max()))
                across = Q.T @ new
                T = np.block([[T, across], [across.T, block.T @ new]])
                Q, image = np.hstack([Q, block]), np.hstack([image, new])
                R = self._ritz(Q, image, T)
                self.n_iter += 1
                if self.residual <= _AHEAD * self.watch.tol:
                    return
                waited = 0 if self.residual < best else waited + 1
                best = min(best, self.residual)
                if waited >= _STALLED:
                    self.status = Status.STALLED
                    return
                yield
                if self.passes is not None and self.n_iter >= self.passes:
                    self.status = Status.MAX_ITER
                    return
                if Q.shape[1] + self.width > self.most:  # begin anew with the best
                    Q, image, T = self._restarted(Q, image)
                block = self._orthonormal(R, Q)
        except StoppedError:
            yield  # to the driver, which knows why

    def _ritz(self, Q: np.ndarray, image: np.ndarray, T: np.ndarray) -> np.ndarray:
        """Take the Ritz vectors of the basis; returns their residuals, which are new directions."""
        values, S = leading_eigenvectors((T + T.T) / 2, len(T))
        values, self.best = values[::-1], np.ascontiguousarray(S[:, ::-1][:, : self.width])
        vectors, some = Q @ self.best, values[: self.width]
        R = image @ self.best - vectors * some
        count = min(self.problem.count, len(some))
        self.theta, self.values, self.vectors = some, values[:count], vectors[:, :count]
        self.beyond = values[count:]
        self.residual = float(np.linalg.norm(R[:, :count])) / (float(np.abs(values).max()) or 1.0)
        return R

    def _restarted(self, Q: np.ndarray, image: np.ndarray) -> tuple:
        """Return a basis of the best Ritz vectors alone, its image and its matrix."""
        return Q @ self.best, image @ self.best, np.diag(self.theta)

    def _orthonormal(self, block: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """Columns of a block that are new to the basis, orthonormal to it and to each other."""
        lengths = np.linalg.norm(block, axis=0)
        block = block[:, lengths > _RESOLVED * self.size]
        block = block / np.linalg.norm(block, axis=0)
        for _ in range(2):  # twice is enough
            block = block - Q @ (Q.T @ block)
            block, R, _ = qr(block, mode="economic", pivoting=True, check_finite=False)
            sizes = np.abs(R.diagonal())
            block = block[:, sizes > 1e-8] if len(sizes) else block
        room = self.problem.n - Q.shape[1]
        return block[:, : max(room, 0)]
