"""Fits of the five kernel machines on Dask collections, to the same certificate as in memory."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from maxmargin.certificate import DualCertificate
from maxmargin.dask.approximation import fit_on_features
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.kernel.candidates import Candidates
from maxmargin.dask.kernel.chunking import Chunking, Outcome
from maxmargin.dask.kernel.direct_form import DirectForm
from maxmargin.dask.kernel.dual_form import DualForm
from maxmargin.dask.kernel.forms import Form
from maxmargin.dask.kernel.machines import form_of, form_of_part
from maxmargin.dask.kernel.parts import Known
from maxmargin.dask.kernel.saved import SavedFit, dealt
from maxmargin.dask.kernel_parameters import refuse_pairs, resolve_kernel
from maxmargin.dask.out_of_fold import Left, calibrate
from maxmargin.dask.rows import Partitions, shell_of
from maxmargin.evaluation import Evaluation
from maxmargin.progress import Monitor
from maxmargin.svm.base import KernelMachine
from maxmargin.svm.classification import KernelClassifier
from maxmargin.svm.one_class import OneClassSVM
from maxmargin.svm.svr import KernelRegressor


@fit_partitions.register
def fit_kernel_machine(machine: KernelMachine, X: Any, y: Any, sample_weight: Any) -> Any:
    """Fit a kernel machine where its rows lie."""
    if machine.approximation is not None:  # a linear machine on features
        return fit_on_features(machine, X, y, sample_weight)
    kernel = machine._validated_kernel()
    _refuse(machine, kernel)
    with machine._watched() as monitor:
        rows = _looked_at(machine, X, y, sample_weight, kernel)
        shell = shell_of(machine)
        if rows.cluster.client is not None and shell.cache_size == "auto":
            shell.cache_size = rows.cluster.budget() / (1 << 21)
        machine.kernel_ = kernel = resolve_kernel(machine, kernel, rows)
        form = form_of(machine, shell, kernel, rows)
        saved = None if machine.checkpoint is None else SavedFit(machine, rows)
        known = _begun(machine, rows, form, saved)
        how = machine.max_iter, machine.n_jobs, monitor
        outcome = Chunking(rows, form, machine.tol, *how, known, saved).run()
        certificates = [certificate for certificate, _ in outcome.judged]
        monitor.chosen = outcome.chosen
        machine._keep_certificate(
            DualCertificate.worst(certificates), outcome.steps.tolist(), monitor
        )
    if saved is not None:
        if machine.certificate_.converged:
            saved.remove()
        else:
            saved.write(outcome.known)
    _keep(machine, rows, form, outcome)
    machine._warn_unfinished(machine.certificate_)
    machine._warn_without_norm(_squared_norms(form, outcome))
    if isinstance(machine, KernelClassifier):
        calibrate(machine, rows, monitor, partial(_without_fold, machine, form, outcome.known))
    return machine


def _without_fold(
    machine: Any,
    form: Form,
    known: Known,
    rows: Partitions,
    mass: np.ndarray,
    tol: float,
    monitor: Monitor,
) -> Left:
    """Fit a classifier to the rows without a fold, begun from what all of them gave."""
    form, fold = form_of_part(form, mass), copy(machine)
    how = tol, machine.max_iter, machine.n_jobs, monitor
    outcome = Chunking(rows, form, *how, dealt(known, rows)).run()
    _keep_expansions(fold, form, outcome)
    certificate = DualCertificate.worst([certificate for certificate, _ in outcome.judged])
    return fold, certificate.status, certificate.kkt_violation


def _begun(
    machine: Any, rows: Partitions, form: Form, saved: SavedFit | None
) -> list[Known] | None:
    """Rows and variables that a checkpoint or, with ``warm_start``, the last fit has left.

    The last fit's are taken where the rows are as many, and the sums of the variables the same.
    """
    known = None if saved is None else saved.read()
    last = getattr(machine, "_known_rows", None)
    if known is None and machine.warm_start and last is not None:
        n, sums, variables = last
        same = len(sums) == len(form.sums) and all(map(np.array_equal, sums, form.sums))
        known = Known(*variables) if n == rows.n and same else None
    return None if known is None else dealt(known, rows)


def _refuse(machine: Any, kernel: Any) -> None:
    """Refuse what needs all rows in one place."""
    name = type(machine).__name__
    refuse_pairs(kernel)
    if machine.norm_bound is not None:
        raise ValueError(
            f"{name}(norm_bound=...) is not fitted to Dask collections: use C or lam there, or "
            "LinearSVC, which has a bound for the features of Nystroem."
        )
    if machine.trace:
        raise ValueError(
            f"{name}(trace=...) records every step of a solver, and here these are on workers: use "
            "callback, which is called after every round."
        )
    if isinstance(machine, KernelRegressor) and np.isinf(machine.C):
        raise ValueError(
            f"{name}(C=inf), the hard tube, is found by raising C, which is not done on Dask "
            "collections: give a C so large that no row reaches it."
        )


def _looked_at(machine: Any, X: Any, y: Any, sample_weight: Any, kernel: Any) -> Partitions:
    """Check the collections where they lie."""
    options: dict[str, Any] = {"kernel": kernel}
    if isinstance(machine, KernelClassifier):
        return Partitions.of(machine, X, y, sample_weight, classes=True, **options)
    if isinstance(machine, KernelRegressor):
        return Partitions.of(
            machine, X, y, sample_weight, y_numeric=True, multi_output=True, **options
        )
    return Partitions.of(machine, X, None, sample_weight, **options)


# -- what is set -----------------------------------------------------------------------------------


def _keep(machine: Any, rows: Partitions, form: Form, outcome: Outcome) -> None:
    """Set what a fit in memory sets."""
    machine.device_ = outcome.summary.device
    for name in ("C_", "lam_", "_betas", "_slack", "_free_and_bounded", "_direct_start", "slack_"):
        vars(machine).pop(name, None)
    _keep_expansions(machine, form, outcome)
    support = outcome.support
    machine.support_ = support.place[machine.support_]
    if rows.n < 1 << 31:
        machine.support_ = machine.support_.astype(np.int32)
    machine.shape_fit_ = (rows.n, *getattr(support.X, "shape", (0,))[1:])
    machine._known_rows = rows.n, form.sums, tuple(outcome.known)  # arrays: loaded without Dask
    machine.distribution_ = rows.cluster.distribution


def _squared_norms(form: Form, outcome: Outcome) -> list[float]:
    """Return |w|^2 of each binary problem, or of each class of a direct form."""
    if isinstance(form, DirectForm):
        return list(outcome.judged[0][1])
    return [evaluation.squared_norm for _, (evaluation, _) in outcome.judged]


def _keep_expansions(machine: Any, form: Form, outcome: Outcome) -> None:
    """Set the expansions, over the support vectors, that an outcome has found."""
    support = outcome.support
    if isinstance(form, DirectForm):
        squared_norms = outcome.judged[0][1]
        machine._keep_functions(support.X, support.y, support.beta[0].T, squared_norms)
        return
    assert isinstance(form, DualForm)
    evaluations = _evaluations(form, support, outcome)
    if isinstance(machine, KernelClassifier):
        machine._keep_machines(support.X, support.y, evaluations)
    elif isinstance(machine, OneClassSVM):
        machine._keep_region(support.X, evaluations[0])
    else:
        machine._keep_expansions(support.X, evaluations)
        tubes = np.array([evaluation.levels.tube for evaluation in evaluations])
        margins = np.array([evaluation.margin for evaluation in evaluations])
        machine._keep_tubes(form.n_tasks == 1, tubes, margins)


def _evaluations(form: DualForm, support: Candidates, outcome: Outcome) -> list[Evaluation]:
    """Return the evaluation of each task on its support vectors."""
    found = []
    coef = form.coefficients(support.y, support.weight, support.beta)
    for k, rows in enumerate(form.own(support.y, support.n)):
        known, unit = outcome.judged[k][1]
        found.append(replace(known, rows=rows, coefficients=coef[k, rows] / unit))
    return found
