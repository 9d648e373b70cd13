"""Kernel PCA: eigenvalues, components and what may be missing, beside LAPACK's of all of them.

The centred Gram matrix is computed in long double and rounded once; what LAPACK then finds is
exact to a few roundings of its largest eigenvalue.
"""

from __future__ import annotations

import numpy as np

from benchmarks.certify.data import (
    EPS,
    Data,
    eps_of,
    in_form,
    kernel_with_formula,
    points,
    some_rows,
)
from benchmarks.certify.judge import Claims, Problem
from maxmargin import KernelPCA


def problem(random: np.random.Generator) -> Problem:
    """Make a problem of some components or of all."""
    n = some_rows(random, 60)
    X, scale, about = points(random, n, tame=bool(random.random() < 0.5))
    X, form = in_form(random, X)
    kernel, formula = kernel_with_formula(random, X.shape[1], scale)
    model = KernelPCA(
        n_components=int(random.integers(1, n)) if random.random() < 0.9 else None,
        kernel=kernel,
        eigen_solver=str(random.choice(["auto", "dense", "lanczos", "randomized"])),
        tol=float(random.choice([0.0, 0.0, 1e-8, 1e-4])),
        random_state=0,
        n_jobs=1,
    )
    data = Data(X, np.zeros(n), None, formula)
    return Problem(
        f"{n}x{X.shape[1]} {form}, {about}, {model!r}",
        lambda: model.fit(X),
        lambda fitted, claims: _judge(data, fitted, claims),
    )


def _judge(data: Data, fitted: KernelPCA, claims: Claims) -> None:
    certificate, gram = fitted.certificate_, data.gram
    claims.converged = certificate.converged
    n = len(gram)
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1, keepdims=True) + gram.mean()
    true, vectors = np.linalg.eigh(centred.astype(np.float64))
    true, vectors = true[::-1], vectors[:, ::-1]
    values, own = fitted.eigenvalues_, fitted.eigenvectors_
    eps = max(EPS, eps_of(own), eps_of(values))  # answers are rounded to float32 where rows are
    values, own = values.astype(np.float64), own.astype(np.float64)
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    room = eps * 8 * n * float(np.abs(true).max(initial=0.0))
    # eigenvalues below 1e-12 of the largest are called zero
    allowed = certificate.error * largest + 1e-12 * largest
    nearest = np.abs(values[:, None] - true).min(axis=1, initial=np.inf)
    claims.at_most("an eigenvalue", nearest.max(initial=0.0), allowed, room)
    if certificate.definiteness in ("indefinite", "unknown"):
        return
    left = true.copy()
    for value in values:  # each takes the nearest: what is larger than `missing` may not be left
        left = np.delete(left, np.abs(left - value).argmin())
    claims.at_most("missing", left.max(initial=0.0), certificate.missing, room + allowed)
    square = np.abs(own.T @ own - np.eye(own.shape[1])).max(initial=0.0)
    claims.at_most("orthogonality", square, certificate.orthogonality, eps * 8 * n)
    trace = float(np.trace(centred))
    if trace > 1e3 * room and len(values) == len(certificate.angles):
        known = n * (room + allowed) / trace
        claims.equal("explained", min(values.sum() / trace, 1), certificate.explained, known)
    around = np.concatenate([[np.inf], values, [certificate.missing]])
    for k, sine in enumerate(certificate.angles[: len(values)]):
        # the bound is claimed if no eigenvalue is missing between both neighbours; the angle is to
        # the space of the true eigenvalue nearest, which is a simple one
        missing = (left > around[k + 2] + allowed) & (left < around[k] - allowed)
        if sine < 0.5 and not missing.any():
            quotient = float(own[:, k] @ centred @ own[:, k])  # values near zero are called zero
            j = int(np.abs(true - quotient).argmin())
            apart = np.delete(np.abs(true - true[j]), j).min(initial=np.inf)
            off = own[:, k] - vectors[:, j] * (vectors[:, j] @ own[:, k])
            known = 4 * room / apart if apart > 0 else 1.0
            claims.at_most("an angle", np.linalg.norm(off), sine + eps * n, known)
    if certificate.converged:
        R = centred @ own - own * values
        size = float(np.sqrt((R * R).sum())) / largest
        known = certificate.rounding + room / largest + 1e-12 * len(values)
        claims.to_tol("residual", size, certificate.tol, known)
