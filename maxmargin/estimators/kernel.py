"""What all estimators with a kernel share: kernel, Gram matrix, device, support vectors, values.

Nothing here knows what is learned: ``f(x) = sum_i coefficient_i k(x, x_i)``, wherever the
coefficients come from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples

from maxmargin import memory
from maxmargin.backends.device import DeviceError, Placement, place
from maxmargin.backends.threads import StoppedError, Workers, stopping
from maxmargin.backends.views import Views
from maxmargin.estimators.base import SHARED_FROM, Estimator
from maxmargin.estimators.expansion import KernelExpansion, expansion_of
from maxmargin.estimators.parameters import POSITIVE
from maxmargin.estimators.warn import warn
from maxmargin.gram import DeviceGram, Gram
from maxmargin.kernels import Kernel, as_kernel
from maxmargin.kernels.named import KERNEL_NAMES, as_pairwise_kernel

F = TypeVar("F", bound=Callable[..., Any])

_ROOM = 48  # bytes, times rows and rows or columns, that a fit has a use for at most
_PER_VALUE = 8  # entries that take as long to look at as a kernel value to compute


class PairwiseKernels:
    """Kernels as scikit-learn's ``KernelRidge``, ``KernelPCA`` and ``Nystroem`` take them.

    A mixin for :class:`KernelEstimator`: functions of two rows, with ``kernel_params``, and the
    defaults of ``pairwise_kernels`` for the names.
    """

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: dict[str, Any] | None = None

    _parameter_constraints: dict = {
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left"), None],
        "coef0": [Interval(Real, None, None, closed="neither"), None],
        "kernel_params": [dict, None],
    }
    _of_named: dict[str, Any] = {"gamma": None, "degree": 3, "coef0": 1}  # usual values

    def _validated_kernel(self) -> Kernel:
        """Return the kernel that the parameters mean, with scikit-learn's defaults for it."""
        given = {name: getattr(self, name) for name in self._of_named}
        if not isinstance(self.kernel, str):
            given = {name: v for name, v in given.items() if v != self._of_named[name]}
        return as_pairwise_kernel(self.kernel, **given, kernel_params=self.kernel_params)


class KernelEstimator(Estimator):
    """An estimator whose answer is an expansion in kernel values.

    The parameters are scikit-learn's. An estimator that leaves some of them out of its signature
    has the values below.
    """

    kernel: Any
    cache_size: Any
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    device: str = "cpu"
    time_limit: float | None = None
    support_: np.ndarray
    support_vectors_: Any

    _gpu_failed: str | None = None  # in this fit, and why

    _parameter_constraints: dict = {
        "kernel": [
            StrOptions(set(KERNEL_NAMES)),
            Kernel,
            callable,
        ],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), POSITIVE],
        "time_limit": [POSITIVE, None],
        "n_jobs": [Integral, None],
        "device": [str],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        pairwise = self.kernel == "precomputed" or getattr(self.kernel, "pairwise", False)
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        return tags

    # -- fitting -------------------------------------------------------------------------------

    def _validated_kernel(self) -> Kernel:
        """Return the kernel that the parameters mean."""
        return as_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)

    def _gram(self, X: Any, kernel: Kernel) -> Gram:
        """Return the Gram matrix of the training data; sets ``kernel_`` and ``device_``."""
        started, limit = time.monotonic(), self.time_limit
        try:
            with stopping(lambda: limit is not None and time.monotonic() - started > limit):
                gram = self._prepared_gram(X, kernel)
        except StoppedError:
            raise TimeoutError(
                f"time_limit={limit:g} s was over before {kernel!r} had its values between all "
                f"{_num_samples(X)} sequences, so there is no model: raise time_limit, take fewer "
                "or shorter sequences, or compute the matrix once, for kernel='precomputed'."
            ) from None
        gram.seconds = time.monotonic() - started
        return gram

    def _prepared_gram(self, X: Any, kernel: Kernel) -> Gram:
        """Resolve the kernel, choose the device, and prepare the matrix."""
        views, n = Views(X), _num_samples(X)
        kernel = kernel.resolve(views, vars(self).get("feature_names_in_"))
        self.device_ = self._placed(kernel, X, n)
        if self.device_.on_gpu:
            gram: Gram = DeviceGram.of(
                views, kernel, device=self.device_.device, cache_size=self.cache_size
            )
        else:
            wanted = _ROOM * n * (n + getattr(X, "size", n) // n)
            budget = memory.budget(self.cache_size, wanted)
            at_once = self.time_limit is None
            gram = Gram.of_resolved(
                views, kernel, memory=budget, at_once=at_once, workers=self._workers
            )
        gram.check()
        self.kernel_ = kernel
        return gram

    def _placed(self, kernel: Kernel, X: Any, against: int) -> Placement:
        """Decide where to compute the kernel between the rows of X and so many others."""
        if self.device == "cpu":
            return place("cpu", 0, 0)
        blocked = self._gpu_failed
        reason = kernel.lower().off_gpu
        if reason:
            blocked = f"The kernel {kernel!r} {reason}."
        n, width = _num_samples(X), _width(X)
        return place(self.device, int((n * float(against)) ** 0.5), width, blocked=blocked)

    def _keep_support_vectors(self, X: Any, support: np.ndarray) -> None:
        """Set the points of the expansion; a precomputed kernel needs only their places."""
        self.support_ = support.astype(np.int32)
        if self._kernel_of_values.pairwise:
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = _taken(X, support, self._workers(len(support) * _width(X)))

    def _warn_without_norm(self, squared_norms: Any) -> None:
        """Warn where |w|^2 is negative, which an indefinite kernel can make it."""
        if min(squared_norms) < 0:
            warn(
                f"The kernel {self.kernel_!r} is indefinite on these data, and |w|^2 is negative "
                "at the answer: there is no such hyperplane and no margin, and predictions may be "
                "the wrong way round. Use a valid kernel, such as RBF(), or a smaller C; "
                "maxmargin.kernels.check_valid(kernel, X) shows the eigenvalues.",
                UserWarning,
            )

    @property
    def _kernel_of_values(self) -> Kernel:
        """The kernel that is evaluated: ``kernel_``, or its translation into this package."""
        return self.kernel_

    # -- evaluating ----------------------------------------------------------------------------

    def _expansion_at(self, X: Any, coefficients: Any, **grouping: Any) -> np.ndarray:
        """Values of the expansions at new points; grouped as by `KernelExpansion.at`."""
        return self._expanded(
            self._validated_points(X, self._kernel_of_values), coefficients, **grouping
        )

    def _expanded(self, X: Any, coefficients: Any, **grouping: Any) -> np.ndarray:
        """Do so at points that were checked."""
        kernel = self._kernel_of_values
        parts = kernel, self.support_vectors_, self.support_, coefficients
        return expansion_of(self, *parts).at(
            X,
            workers=self._workers(_PER_VALUE * _num_samples(X) * len(self.support_)),
            device=self._device_for(kernel, X),
            cache_size=self.cache_size,
            **grouping,
        )

    def _asking(self, X: Any, machines: np.ndarray, bias: np.ndarray) -> tuple[Any, Any]:
        """Validated points, and what asks single machines at some of them; None on a GPU."""
        kernel = self._kernel_of_values
        X = self._validated_points(X, kernel)
        if self._device_for(kernel, X) != "cpu":
            return X, None
        expansion = KernelExpansion(kernel, self.support_vectors_, self.support_, machines)
        return X, expansion.asking(X, bias, self._workers(_PER_VALUE * _num_samples(X) * len(bias)))

    def _device_for(self, kernel: Kernel, X: Any) -> str:
        """Where to evaluate: a machine that was made on a GPU works without one, too."""
        try:
            return self._placed(kernel, X, max(len(self.support_), 1)).device
        except DeviceError as error:
            warn(f"Evaluating on the CPU. {error}", UserWarning)
            return "cpu"


def fall_back_to_cpu(fit: F) -> F:
    """Let a fit begin again on the CPU where the GPU that ``device="auto"`` chose has failed."""

    @wraps(fit)
    def fitted(machine: KernelEstimator, *args: Any, **options: Any) -> Any:
        try:
            return fit(machine, *args, **options)
        except DeviceError as error:
            if machine.device != "auto":
                raise
            machine._gpu_failed = str(error)
        try:
            return fit(machine, *args, **options)
        finally:
            del machine._gpu_failed

    return fitted  # type: ignore[return-value]


def _width(X: Any) -> int:
    """Features of the points; one where they are objects."""
    return X.shape[1] if hasattr(X, "shape") and len(X.shape) > 1 else 1


def _taken(X: Any, rows: np.ndarray, workers: Workers) -> Any:
    """Rows of X; many of an array with all threads, since new memory is slow to write to."""
    if not isinstance(X, np.ndarray):
        return _safe_indexing(X, rows)
    if X.ndim == 1 or len(rows) * _width(X) < SHARED_FROM:
        return X[rows]
    taken = np.empty((len(rows), X.shape[1]), dtype=X.dtype)

    def copy(part: np.ndarray) -> None:
        some = slice(part[0], part[-1] + 1)
        np.take(X, rows[some], axis=0, out=taken[some], mode="clip")  # unbuffered, unlike "raise"

    workers.map(copy, np.array_split(np.arange(len(rows)), workers.count))
    return taken
