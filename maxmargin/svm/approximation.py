"""Kernel machines on features that stand in for their kernel, solved as linear machines.

    k(x, z) ~ phi(x) . phi(z),      f(x) = w . phi(x) + b

with as many weights as features, however many rows there are: the machine is exactly the linear one
on phi, and its certificate is that of the problem with ``phi(x) . phi(z)`` in place of the kernel.
How near the two are is measured on pairs of rows that the map was not made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples

from maxmargin.backends.device import place
from maxmargin.backends.views import Views
from maxmargin.certificate import RiskCertificate
from maxmargin.estimators.warn import warn
from maxmargin.feature_maps import FeatureMap, Nystroem, RandomFourier
from maxmargin.gram.spectrum import Definiteness
from maxmargin.kernels import Kernel, Validity
from maxmargin.linear import LinearSVC, LinearSVR
from maxmargin.linear.risk_machine import kept
from maxmargin.progress import Monitor, ProblemMonitor
from maxmargin.risk import DirectRisk, LinearSolution
from maxmargin.solution import Status
from maxmargin.svm.out_of_fold import FOLDS, Found, fold_tolerance

NAMED: dict[str, type[FeatureMap]] = {"nystroem": Nystroem, "random_fourier": RandomFourier}
APPROXIMATION = [StrOptions(set(NAMED)), FeatureMap, None]  # constraint on the parameter
OF_EXPANSION = ("dual_coef_", "support_", "support_vectors_", "n_support_")
OF_DUAL = ("_betas", "_free_and_bounded")
OF_FEATURES = ("feature_map_", "feature_coef_", "_answers")

_BLOCK = 1 << 22  # features made at a time: 32 MB
_LARGE = 0.5  # relative error of an approximation from which on the kernel is hardly the same


@dataclass(frozen=True, repr=False, kw_only=True)
class FeatureCertificate(RiskCertificate):
    """How exact a machine is on the features that stand in for its kernel.

    Attributes
    ----------
    approximation_error : float
        ``phi(x) . phi(z) - k(x, z)`` on held-out pairs, root mean square, over that of k.

    The others are those of :class:`~maxmargin.certificate.RiskCertificate`, of the problem with the
    approximated kernel.
    """

    approximation_error: float
    definiteness: ClassVar[Definiteness] = Definiteness.PROVEN  # products of features

    @property
    def claim(self) -> str:
        """What the numbers prove, and of which problem."""
        error = (
            f"whose values are off by {self.approximation_error:.2g} (relative, on held-out pairs)"
        )
        if np.isnan(self.approximation_error):
            error = "whose error no row was left to be measured on"
        return (
            f"{super().claim} for the approximated kernel, {error}; nothing is proved for the "
            "kernel itself"
        )

    def numbers(self) -> dict[str, str]:
        """Both objectives, their gap and the kernel's error."""
        error = f"{self.approximation_error:.3g} (relative)"
        if np.isnan(self.approximation_error):
            error = "not measured: no row was left"
        return {**super().numbers(), "kernel error": error}


class Posed(NamedTuple):
    """A problem over all rows: which of them take part, their targets, and what they cost."""

    rows: np.ndarray
    target: np.ndarray
    cost: np.ndarray


class Prepared:
    """A feature map with a machine's kernel, and the linear machine that goes with it.

    Parameters
    ----------
    machine : SVC or SVR
    kernel : Kernel
        With its parameters as numbers.
    linear : LinearSVC or LinearSVR
        Gets the machine's limits.
    """

    def __init__(self, machine: Any, kernel: Kernel, linear: LinearSVC | LinearSVR) -> None:
        _refuse(machine)
        self.kernel = kernel
        self.linear = linear.set_params(
            tol=machine.tol,
            max_iter=machine.max_iter,
            fit_intercept=machine.fit_intercept,
            time_limit=machine.time_limit,
            n_jobs=machine.n_jobs,
            random_state=0,
        )
        self.map = _map_for(machine, kernel)
        self.map._validate_params()  # which a fit inside of a fit leaves out

    @property
    def error(self) -> float:
        """Relative error of the map that was fitted, on held-out pairs."""
        return float(self.map.approximation_error_)

    def judge(self) -> None:
        """Warn of features that are far from the kernel."""
        if self.error > _LARGE:
            warn(
                f"The features stand in for another kernel than {self.kernel!r}: products of them "
                f"are off by {self.error:.0%} on held-out pairs. {_advice(self.kernel, self.map)}",
                UserWarning,
            )


class FeatureSpace:
    """Training rows as features, and the linear machine by whose methods they are learnt from.

    Parameters
    ----------
    machine : SVC or SVR
        Gets ``kernel_``, ``device_``, ``shape_fit_`` and ``feature_map_``.
    X : validated training data
    kernel : Kernel
    linear : LinearSVC or LinearSVR
    """

    def __init__(self, machine: Any, X: Any, kernel: Kernel, linear: LinearSVC | LinearSVR) -> None:
        kernel = kernel.resolve(Views(X), getattr(machine, "feature_names_in_", None))
        prepared = Prepared(machine, kernel, linear)
        self.machine, self.linear, self.map = machine, prepared.linear, prepared.map
        self.monitor: Monitor = machine._solver().monitor
        self.linear.scheme_ = getattr(machine, "scheme_", None)  # type: ignore[assignment]
        self.map.fit(X)
        prepared.judge()
        self.error = prepared.error
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        phi = np.empty((_num_samples(X), self.map._n_features_out), dtype)
        for some, block in _blocks(self.map, X):
            phi[some] = block
        self.design = self.linear._design(phi)
        for name in OF_EXPANSION + OF_DUAL:
            vars(machine).pop(name, None)
        machine.kernel_, machine.device_ = kernel, place("cpu", 0, 0)
        machine.shape_fit_ = tuple(X.shape) if hasattr(X, "shape") else (_num_samples(X),)
        machine.feature_map_ = self.map

    def fit(self, problems: list[Posed]) -> np.ndarray:
        """Solve and certify; sets what the machine says of it. Returns all values, (n, k)."""
        machine, monitor = self.machine, self.monitor
        monitor.problems = len(problems)
        known = getattr(machine, "_answers", None) if machine.warm_start else None
        with monitor.watching(machine.verbose):
            found = self._solved(problems, monitor, machine.tol, known)
            certificates = [self._certificate(solution.certificate) for solution in found]
            certificate = FeatureCertificate.worst(certificates)
            machine._keep_certificate(certificate, [solution.n_iter for solution in found], monitor)
        self.answers = [kept(solution, machine.warm_start) for solution in found]
        machine._answers = self.answers
        theta = np.vstack([solution.theta for solution in found])
        width, constant = self.design.features, self.design.constant
        machine.feature_coef_ = np.ascontiguousarray(theta[:, :width])
        machine.intercept_ = constant * theta[:, -1] if constant else np.zeros(len(theta))
        if not certificate.converged:
            self.linear.certificate_ = certificate
            warn(self.linear._unfinished())
        return self.design.values(theta)

    def margins(self) -> np.ndarray:
        """``1 / ||w||`` of each function; infinite for none."""
        norms = np.linalg.norm(self.machine.feature_coef_, axis=1)
        return np.divide(1.0, norms, out=np.full_like(norms, np.inf), where=norms > 0)

    def _certificate(self, found: RiskCertificate) -> FeatureCertificate:
        return FeatureCertificate(**vars(found), approximation_error=self.error)

    def _solved(
        self, problems: list[Posed], monitor: Monitor, tol: float, starts: Any = None
    ) -> list[LinearSolution]:
        """Solve one problem after the other; one without all rows has a copy of its own."""
        linear, found = self.linear, []
        linear.tol = tol
        if starts is not None:
            linear.warm_start, linear._answers = True, starts
        for k, problem in enumerate(problems):
            risk = self._risk(problem)
            found.append(linear._solved(risk, k, ProblemMonitor(monitor, k), None)[1])
            monitor.finished()
        return found

    def _risk(self, problem: Posed) -> Any:
        rows, target, cost = problem
        design = self.design if len(rows) == self.design.n else self.design.take(rows)
        scheme = self.linear.scheme_
        if scheme is not None and scheme.direct:
            return DirectRisk(design, target[rows], scheme.n_classes, cost[rows], scheme.summed)
        return self.linear._risk(design, target[rows], cost[rows])

    def folds(self, problems: list[Posed], number: np.ndarray) -> FeatureFolds:
        """Prepare values of rows that were held out; ``number`` is the fold of each, or -1."""
        return FeatureFolds(self, problems, number)


class FeatureFolds:
    """Out-of-fold values of problems on features, each fold begun from the whole answer.

    The features stay those of all rows: no label has a part in them.
    """

    def __init__(self, space: FeatureSpace, problems: list[Posed], number: np.ndarray) -> None:
        self.space, self.problems, self.number = space, problems, number
        self.certificates: list[RiskCertificate] = []
        self.tol = fold_tolerance(space.machine.tol)

    @property
    def status(self) -> Status:
        """How the folds have ended, the worst of them."""
        ended = [Status.CONVERGED, *(one.status for one in self.certificates)]
        return max(ended, key=lambda one: one.severity)

    @property
    def violation(self) -> float:
        """The largest relative gap."""
        return max((one.relative_gap for one in self.certificates), default=0.0)

    def values(self, everywhere: bool) -> list[Found]:
        """Rows and values of each function: on the rows that it sees or on all that take part."""
        space, n = self.space, len(self.number)
        functions = len(space.machine.feature_coef_)
        values, left = np.zeros((n, functions)), None
        if space.machine.time_limit is not None:
            left = space.machine.time_limit - space.monitor.seconds
        monitor = Monitor(left, problems=FOLDS * len(self.problems))
        monitor.reason = space.monitor.reason
        with monitor.catching_interrupts():
            for f in np.unique(self.number[self.number >= 0]).tolist():
                out = np.flatnonzero(self.number == f)
                theta, bias = self._without(f, monitor)
                values[out] = space.design.take(out).values(theta) + bias
        part = np.flatnonzero(self.number >= 0)
        seen = [problem.rows[self.number[problem.rows] >= 0] for problem in self.problems]
        if everywhere or len(seen) < functions:
            seen = [part] * functions
        return [(rows, values[rows, k]) for k, rows in enumerate(seen)]

    def _without(self, f: int, monitor: Monitor) -> tuple[np.ndarray, np.ndarray]:
        """Weights of all functions without a fold, and the side of those that have but one left."""
        space, number = self.space, self.number
        problems = [one._replace(rows=one.rows[number[one.rows] != f]) for one in self.problems]
        sides = [np.unique(one.target[one.rows]) for one in problems]
        good = [k for k, side in enumerate(sides) if len(side) > 1]
        starts = [replace(space.answers[k], s=np.empty(0)) for k in good]
        found = space._solved([problems[k] for k in good], monitor, self.tol, starts)
        self.certificates += [solution.certificate for solution in found]
        theta = [np.zeros_like(answer.theta) for answer in space.answers]
        for k, solution in zip(good, found, strict=True):
            theta[k] = solution.theta
        if space.linear.scheme_.direct:
            return theta[0], np.zeros(len(theta[0]))
        return np.vstack(theta), np.array([side.sum() * (len(side) == 1) for side in sides])


def values_at(machine: Any, X: Any) -> np.ndarray:
    """Values ``w . phi(x)`` of a machine's functions at validated points, block by block."""
    out = np.empty((_num_samples(X), len(machine.feature_coef_)))
    for some, phi in _blocks(machine.feature_map_, X):
        out[some] = phi @ machine.feature_coef_.T
    return out


def no_expansion(machine: Any, name: str) -> str:
    """Why a machine on features lacks an attribute."""
    return (
        f"{name} belongs to an expansion over training rows, and this {type(machine).__name__} was "
        f"fitted with approximation={machine.approximation!r}: it has weights of features, "
        "feature_coef_, and its map, feature_map_. Fit with approximation=None for the expansion."
    )


def _blocks(feature_map: FeatureMap, X: Any) -> Any:
    """Some rows after the other, as a slice and their features."""
    height = max(1, _BLOCK // feature_map._n_features_out)
    for first in range(0, _num_samples(X), height):
        some = slice(first, min(first + height, _num_samples(X)))
        yield some, feature_map.transform(_safe_indexing(X, some))


def _refuse(machine: Any) -> None:
    """Refuse parameters that a linear machine on features does not have."""
    asked = f"approximation={machine.approximation!r}"
    if machine.lam is None and np.isinf(machine.C):
        raise ValueError(
            f"C=inf allows no slack, and {asked} is for many rows with some: use a finite C, as "
            "large as you like."
        )
    if getattr(machine, "norm_bound", None) is not None:
        raise ValueError(f"{asked} states the problem by C or lam: leave norm_bound=None.")
    if machine.solver != "auto":
        raise ValueError(
            f"solver={machine.solver!r} solves the dual of the kernel itself; with {asked} a "
            'linear machine is solved, by solver="auto".'
        )
    if machine.checkpoint is not None:
        raise ValueError(f"{asked} keeps no checkpoint: use warm_start=True.")
    if machine.device not in ("cpu", "auto"):
        raise ValueError(
            f"{asked} is solved on the CPU: use device='cpu', or approximation=None with "
            f"device={machine.device!r}."
        )


def _advice(kernel: Kernel, used: FeatureMap) -> str:
    """What to do about features that are far from the kernel."""
    more = f"{type(used).__name__}(n_components={4 * used._n_features_out})"
    advice = f"Raise n_components, as in approximation={more}."
    if kernel.validity is Validity.VALID:
        return advice
    return f"{advice} If check_valid(kernel, X) finds the kernel indefinite, no features are it."


def _map_for(machine: Any, kernel: Kernel) -> FeatureMap:
    """Return the map that was asked for, with the machine's kernel."""
    asked = machine.approximation
    if isinstance(asked, str):
        made = NAMED[asked](random_state=getattr(machine, "random_state", 0))
        if isinstance(made, Nystroem):
            made.set_params(cache_size=machine.cache_size, n_jobs=machine.n_jobs)
        return made.set_params(kernel=kernel)
    _refuse_second_kernel(machine, asked)
    return clone(asked).set_params(kernel=kernel)


def _refuse_second_kernel(machine: Any, asked: FeatureMap) -> None:
    """Refuse a map with another kernel, or parameters of one, than the machine."""
    known: Sequence[str] = ("kernel", "gamma", "degree", "coef0")
    for name, parameter in signature(type(asked)).parameters.items():
        value = getattr(asked, name)
        if name in known and value not in (parameter.default, getattr(machine, name)):
            raise ValueError(
                f"{asked!r} has {name}={value!r} and {type(machine).__name__} "
                f"{name}={getattr(machine, name)!r}: the kernel is the machine's, so say there "
                "which it is, and leave that of the map at its default."
            )
