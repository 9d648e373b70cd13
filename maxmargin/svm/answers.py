"""Answers of many kernel machines at the same points, over one block of kernel values.

Machines that were fitted to replicates of one data set have most of their support vectors in
common. Their expansions are stacked over the union of these, so that every kernel value is made
once, and a product of matrices does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _num_samples

from maxmargin.backends.threads import Workers
from maxmargin.estimators.expansion import KernelExpansion

_ENTRIES = 1 << 24  # values of all machines that are held at a time


class Common:
    """What machines that were fitted over one Gram matrix have in common: rows and kernel."""


class _Stacked:
    """Expansions of some machines over the union of their support vectors.

    Machines with a layout by classes have the union grouped by class, each class's stretch once.
    """

    def __init__(self, machines: Sequence[Any]) -> None:
        self.machines = list(machines)
        first = machines[0]
        self.scheme = getattr(first, "scheme_", None)
        by_class = self.scheme is not None and self.scheme.by_class
        n = first.shape_fit_[0]
        owner = np.full(n, -1)
        for machine in machines:
            own = np.repeat(np.arange(len(machine.n_support_)), machine.n_support_)
            owner[machine.support_] = own if by_class else 0
        union = np.flatnonzero(owner >= 0)
        union = union[np.argsort(owner[union], kind="stable")]
        self.counts: list[int] | None = None
        if by_class:
            self.counts = np.bincount(owner[union], minlength=len(first.n_support_)).tolist()
        place = np.empty(n, dtype=np.int64)
        place[union] = np.arange(len(union))
        height = first.dual_coef_.shape[0]
        coefficients = np.zeros((len(machines) * height, len(union)))
        for b, machine in enumerate(machines):
            block = coefficients[b * height : (b + 1) * height]
            block[:, place[machine.support_]] = machine._dense_dual_coef()
        vectors = _vectors(machines, union, place)
        self.expansion = KernelExpansion(first.kernel_, vectors, union, coefficients)
        self.bias = np.array([machine.intercept_ for machine in machines])
        self.height = height

    def at(self, X: Any, workers: Workers) -> np.ndarray:
        """Values of all machines, (n, machines, values of each)."""
        count, height = len(self.machines), self.height

        def finish(sums: np.ndarray) -> np.ndarray:
            sums = sums.reshape(*sums.shape[:2], count, height)
            if self.scheme is None:
                return sums[:, 0]
            return np.stack([self.scheme.combine(sums[:, :, b]) for b in range(count)], axis=1)

        return self.expansion.at(X, self.counts, finish, workers) + self.bias


def _vectors(machines: Sequence[Any], union: np.ndarray, place: np.ndarray) -> Any:
    """Support vectors of the union, taken from the machines that have them."""
    first = machines[0].support_vectors_
    if machines[0].kernel_.pairwise:
        return first
    if sp.issparse(first):
        rows = np.concatenate([place[machine.support_] for machine in machines])
        stacked = sp.vstack([machine.support_vectors_ for machine in machines], format="csr")
        return stacked[np.unique(rows, return_index=True)[1]]
    vectors = np.empty((len(union), first.shape[1]), dtype=first.dtype)
    for machine in machines:
        vectors[place[machine.support_]] = machine.support_vectors_
    return vectors


# Beside the machines and not in them: files hold none of it.
_of_common: WeakKeyDictionary[Common, _Stacked] = WeakKeyDictionary()


def _stacked(machines: Sequence[Any]) -> _Stacked:
    common = machines[0]._common
    known = _of_common.get(common)
    same = known is not None and len(known.machines) == len(machines)
    if not same or any(a is not b for a, b in zip(known.machines, machines, strict=True)):  # type: ignore[union-attr]
        known = _of_common[common] = _Stacked(machines)
    return known  # type: ignore[return-value]


def answers_of_all(
    machines: Sequence[Any], method: str, X: Any, workers: Workers
) -> list[np.ndarray] | None:
    """Answers of each machine to a method; None where they have too little in common.

    Those that have not seen every class answer for themselves.
    """
    groups: dict[tuple, list[int]] = {}
    for k, machine in enumerate(machines):
        classes = len(getattr(machine, "classes_", ()))
        groups.setdefault((id(getattr(machine, "_common", None)), classes), []).append(k)
    answers: dict[int, np.ndarray] = {}
    for (_, _), part in groups.items():
        some = [machines[k] for k in part]
        if len(some) == 1 or not _can_be_stacked(some[0]):
            answers.update((k, getattr(machines[k], method)(X)) for k in part)
            continue
        points = some[0]._validated_points(X, some[0].kernel_)
        found = _answers(_stacked(some), method, points, workers)
        answers.update(zip(part, found, strict=True))
    return [answers[k] for k in range(len(machines))]


def _can_be_stacked(machine: Any) -> bool:
    """Whether a machine knows what it has in common, and has points that can be put together."""
    points = getattr(machine, "support_vectors_", None)
    stacks = sp.issparse(points) or (isinstance(points, np.ndarray) and points.ndim == 2)
    return hasattr(machine, "_common") and stacks


def _answers(stacked: _Stacked, method: str, X: Any, workers: Workers) -> list[np.ndarray]:
    machines, n = stacked.machines, _num_samples(X)
    size = max(stacked.bias.size, 1)
    step = max(_ENTRIES // size, 1)
    parts: list[list[np.ndarray]] = []
    for start in range(0, n, step):
        values = stacked.at(X if step >= n else X[start : start + step], workers)
        parts.append([_answer(m, method, values[:, b]) for b, m in enumerate(machines)])
    return [np.concatenate(own) for own in zip(*parts, strict=True)] if len(parts) > 1 else parts[0]


def _answer(machine: Any, method: str, values: np.ndarray) -> np.ndarray:
    """What a machine says, given its values."""
    if not hasattr(machine, "classes_"):
        return values[:, 0] if values.shape[1] == 1 else values
    if method == "predict":
        return machine.classes_[machine._decoded(values)]
    return (
        machine._decided(values)
        if method == "decision_function"
        else machine._probabilities(values)
    )
