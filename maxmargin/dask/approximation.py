"""Kernel machines by features on Dask collections: ``SVC(approximation=...)`` and ``SVR``.

The map is fitted to all rows (:mod:`maxmargin.dask.feature_maps`); features are made where the rows
lie, and a linear machine is fitted to them there: only few come to the process that fits
(:mod:`maxmargin.dask.linear.fit`), and where they have no room they are made again in every pass.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import Delayed
from sklearn.exceptions import ConvergenceWarning

from maxmargin.backends.device import place
from maxmargin.certificate import RiskCertificate
from maxmargin.dask.answers import sent
from maxmargin.dask.classes import factors_of_classes
from maxmargin.dask.cluster import Distribution
from maxmargin.dask.feature_maps import fit_map
from maxmargin.dask.kernel_parameters import resolve_kernel
from maxmargin.dask.monitors import LEAST
from maxmargin.dask.out_of_fold import Left, calibrate
from maxmargin.dask.rows import Block, Partitions, naming_partition
from maxmargin.estimators.data import is_table
from maxmargin.feature_maps import FeatureMap
from maxmargin.kernels import Kernel
from maxmargin.linear import LinearSVC, LinearSVR
from maxmargin.multiclass import OneVsRest, as_scheme
from maxmargin.progress import Monitor
from maxmargin.svm import SVC, SVR
from maxmargin.svm.approximation import OF_DUAL, OF_EXPANSION, FeatureCertificate, Prepared

_SLACKS = 1 << 26  # numbers, of all rows and machines, up to which ``slack_`` is brought together


def fit_on_features(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a machine that has an ``approximation`` to collections."""
    kernel = machine._validated_kernel()
    if isinstance(machine, SVC):
        return _fit_classes(machine, kernel, X, y, sample_weight)
    assert isinstance(machine, SVR)
    return _fit_numbers(machine, kernel, X, y, sample_weight)


class SpreadFeatures:
    """Rows in partitions as features, where they lie."""

    def __init__(self, machine: Any, kernel: Kernel, rows: Partitions, linear: Any) -> None:
        self.machine, self.rows = machine, rows
        kernel = resolve_kernel(machine, kernel, rows)
        prepared = Prepared(machine, kernel, linear)
        self.linear, self.map = prepared.linear, prepared.map
        self.map.n_features_in_ = rows.n_features
        fit_map(self.map, kernel, rows)
        prepared.judge()
        self.error = prepared.error
        dtype = np.float32 if rows.summaries[0].dtype == "float32" else np.float64
        model = sent(rows.cluster, self.map)
        self.phi = rows.map(_features, model, dtype, name="features")
        for name in OF_EXPANSION + OF_DUAL:
            vars(machine).pop(name, None)
        machine.kernel_, machine.device_ = kernel, place("cpu", 0, 0)
        machine.shape_fit_ = (rows.n, rows.n_features)
        machine.feature_map_ = self.map
        self.linear.set_params(
            verbose=machine.verbose,
            callback=machine.callback,
            trace=machine.trace,
            warm_start=machine.warm_start,
            C=machine.C,
            lam=machine.lam,
        )

    def fit(self, targets: list[Delayed], weights: list[Delayed], known: Any = None) -> Any:
        """Fit the linear machine to the features; returns it."""
        linear = self.linear
        vars(linear).pop("_answers", None)
        if known:
            linear._answers = known
        return linear.fit(self.phi, targets, sample_weight=weights)

    def functions(self, fitted: LinearSVC) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases of a classifier, on the sides that the machine's scheme has."""
        code, turned = self.machine.scheme_.code, 1.0
        if len(self.machine.classes_) == 2 and (code[0] != OneVsRest(2).code[0]).any():
            turned = -1.0
        return turned * fitted.coef_, turned * fitted.intercept_

    def keep(self, fitted: list[Any], coef: np.ndarray, intercept: np.ndarray) -> None:
        """Set what the machine says of linear machines that were fitted, one after the other."""
        machine = self.machine
        found = [part for one in fitted for part in one.certificate_.parts or (one.certificate_,)]
        machine.certificate_ = FeatureCertificate.worst([self._certificate(one) for one in found])
        machine.fit_status_ = int(not machine.certificate_.converged)
        machine._answers = [answer for one in fitted for answer in one._answers]
        machine.n_iter_ = np.array([answer.n_iter for answer in machine._answers])
        machine.solver_, machine.solver_why_ = fitted[-1].solver_, fitted[-1].solver_why_
        machine.feature_coef_ = np.ascontiguousarray(coef)
        machine.intercept_ = intercept
        machine.distribution_ = _together(
            [self.rows.cluster.distribution, *(one.distribution_ for one in fitted)]
        )
        if hasattr(fitted[-1], "trace_"):
            machine.trace_ = fitted[-1].trace_

    def _certificate(self, found: RiskCertificate) -> FeatureCertificate:
        return FeatureCertificate(**vars(found), approximation_error=self.error)

    def margins(self) -> np.ndarray:
        """``1 / ||w||`` of each function; infinite for none."""
        norms = np.linalg.norm(self.machine.feature_coef_, axis=1)
        return np.divide(1.0, norms, out=np.full_like(norms, np.inf), where=norms > 0)

    def values(self) -> np.ndarray | None:
        """Values of all functions at all rows, (n, k); None where they are too many."""
        machine, rows = self.machine, self.rows
        if rows.n * len(machine.feature_coef_) > _SLACKS:
            machine.distribution_.notes.append(
                f"slack_ is left out: {rows.n:,} rows are too many to be brought together"
            )
            return None
        tasks = [
            rows.cluster.task(_values, phi, machine.feature_coef_, machine.intercept_)
            for phi in self.phi
        ]
        return np.concatenate(rows.cluster.run(tasks))


def _fit_classes(machine: SVC, kernel: Kernel, X: Any, y: Any, sample_weight: Any) -> SVC:
    """Fit a classifier."""
    monitor = Monitor(machine.time_limit)
    rows = Partitions.of(machine, X, y, sample_weight, kernel=kernel, classes=True)
    assert rows.classes is not None
    machine.classes_ = rows.classes
    machine.class_weight_ = factors_of_classes(machine.class_weight, rows)
    machine.scheme_ = scheme = as_scheme(machine.multiclass, len(rows.classes))
    linear = LinearSVC(loss="hinge", multiclass=scheme)
    space = SpreadFeatures(machine, kernel, rows, linear)
    known = getattr(machine, "_answers", None) if machine.warm_start else None
    labels = rows.map(_targets, name="labels")
    fitted = space.fit(labels, rows.map(_weights, machine.class_weight_, name="weights"), known)
    answers = [replace(answer, s=np.empty(0)) for answer in fitted._answers]  # of no single row
    ended = fitted.certificate_.status
    space.keep([fitted], *space.functions(fitted))
    margins = space.margins()
    machine.margin_ = float(margins[0]) if len(margins) == 1 else margins
    machine.__dict__.pop("_slack", None)
    values = space.values()
    if values is not None:
        index = np.concatenate(rows.gathered(_targets))
        machine._slack = machine._slacks(index, values)
    monitor.reason = ended if ended.stopped else None
    calibrate(machine, rows, monitor, partial(_without_fold, space, labels, answers))
    return machine


def _without_fold(
    space: SpreadFeatures,
    labels: list[Delayed],
    answers: list,
    rows: Partitions,
    mass: np.ndarray,
    tol: float,
    monitor: Monitor,
) -> Left:
    """Fit a classifier to the rows without a fold, begun from what all of them gave."""
    machine, linear = copy(space.machine), space.linear
    left = None if monitor.time_limit is None else monitor.time_limit - monitor.seconds
    linear.set_params(tol=tol, warm_start=True, callback=None, trace=False, verbose=False)
    linear.time_limit = None if left is None else max(left, LEAST)
    if machine.lam is not None:  # the cost that all rows gave
        linear.lam = machine.lam * space.rows.class_weights.sum() / mass.sum()
    weights = rows.map(_weights, machine.class_weight_, name="weights")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said once, of all folds
        fitted = space.fit(labels, weights, answers)
    machine.feature_coef_, machine.intercept_ = space.functions(fitted)
    whole = space.machine
    whole.distribution_ = _together([whole.distribution_, fitted.distribution_])
    certificate = fitted.certificate_
    return machine, certificate.status, certificate.relative_gap


def _fit_numbers(machine: SVR, kernel: Kernel, X: Any, y: Any, sample_weight: Any) -> SVR:
    """Fit a regression, of one output or several."""
    several: dict[str, Any] = {"multi_output": True} if is_table(y) else {}
    rows = Partitions.of(machine, X, y, sample_weight, kernel=kernel, y_numeric=True, **several)
    outputs = rows.summaries[0].outputs
    count, one = (outputs[0], False) if outputs else (1, True)
    space = SpreadFeatures(machine, kernel, rows, LinearSVR(epsilon=machine.epsilon))
    known = getattr(machine, "_answers", None) if machine.warm_start else None
    weights, fitted = rows.map(_weights, None, name="weights"), []
    for k in range(count):
        own = known[k : k + 1] if known else None
        fitted.append(_copied(space.fit(rows.map(_targets, k, name="target"), weights, own)))
    coef = np.vstack([found.coef_ for found in fitted])
    space.keep(fitted, coef, np.concatenate([np.ravel(found.intercept_) for found in fitted]))
    values, margins, tubes = space.values(), space.margins(), np.full(count, machine.epsilon)
    if values is None:
        machine.__dict__.pop("slack_", None)
        machine.margin_ = float(margins[0]) if one else margins
        machine.n_iter_ = int(machine.n_iter_[0]) if one else machine.n_iter_
    else:
        targets = np.concatenate(rows.gathered(_numbers)).T
        machine._keep_slack(targets, one, values.T, tubes, margins)
    return machine


def _copied(linear: Any) -> Any:
    """Return a fitted machine that the next fit leaves alone."""
    copy = object.__new__(type(linear))
    vars(copy).update(vars(linear))
    return copy


def _together(parts: list[Distribution]) -> Distribution:
    """Return what several fits took, one after the other."""
    names = ("rounds", "bytes_to_workers", "bytes_between", "bytes_to_client")
    sums = {name: sum(getattr(part, name) for part in parts) for name in names}
    notes = [note for part in parts for note in part.notes]
    return replace(parts[0], **sums, notes=notes, kept=all(part.kept for part in parts))


def _features(block: Block, model: FeatureMap, dtype: Any) -> np.ndarray:
    """Features of a partition's rows."""
    with naming_partition(block.number):
        return np.asarray(model._mapped(block.X), dtype=dtype)


def _targets(block: Block, column: int | None = None) -> np.ndarray:
    """Classes or targets of a partition's rows."""
    return np.asarray(block.y) if column is None else _numbers(block)[:, column]


def _numbers(block: Block) -> np.ndarray:
    y = np.asarray(block.y, dtype=np.float64)
    return y.reshape(len(y), -1)


def _weights(block: Block, factors: np.ndarray | None) -> np.ndarray:
    """Weights of a partition's rows, times those of their classes."""
    return block.weight if factors is None else block.weight * factors[block.y]


def _values(phi: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return phi @ coef.T + intercept
