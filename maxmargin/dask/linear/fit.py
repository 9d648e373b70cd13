"""Fits of the machines of regularised risks on collections: posed in partitions, solved as ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.backends.cpu.linear import Design
from maxmargin.dask.collections import partitions_of
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.gathered import fit_gathered, has_room
from maxmargin.dask.linear.passes import Passes, Pose
from maxmargin.dask.linear.risk import PartitionedRisk, PartitionedSoftmax
from maxmargin.dask.linear.sample import Few, Sample
from maxmargin.dask.rows import Block, Partitions, encoded
from maxmargin.estimators.data import is_table, refuse_extreme_weights
from maxmargin.linear.risk_machine import RiskClassifier, RiskMachine
from maxmargin.multiclass import read_class_weights
from maxmargin.risk import SoftmaxRisk

_LITTLE = 1 << 25  # bytes of rows that come to one place sooner than a few rounds are over


class Told(NamedTuple):
    """What a block says of itself, beside its summary."""

    entries: int
    weighed: np.ndarray | int  # rows that have a weight: in all, or of each label if not all have
    extremes: tuple[float, float]  # of the weights that are not zero
    few: Block | None


class Look:
    """Looks at a block; ``few`` draws some of its rows, where they are of use."""

    def __init__(self, classes: bool, few: Few | None) -> None:
        self.classes, self.few = classes, few

    def __call__(self, block: Block) -> Told:
        """Return what there is to say."""
        has = block.weight > 0
        weighed: Any = int(np.count_nonzero(has))
        if self.classes and weighed < block.n:
            index = np.unique(block.y, return_inverse=True)[1].ravel()
            weighed = np.bincount(index, weights=has).astype(np.int64)
        some = block.weight[has]
        extremes = (float(some.min()), float(some.max())) if len(some) else (1.0, 1.0)
        entries = block.X.nnz if sp.issparse(block.X) else block.X.size
        return Told(int(entries), weighed, extremes, self.few(block) if self.few else None)


@fit_partitions.register(RiskMachine)
def fit_risk(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a machine of a regularised risk where the rows lie."""
    machine._refuse_contradictions()
    if getattr(machine, "_hard", False):  # its method visits rows one by one
        return fit_gathered(machine, X, y, sample_weight)
    few = Few(len(partitions_of(X))) if _by_part(machine) else None
    classes = isinstance(machine, RiskClassifier)
    options: dict[str, Any] = {} if classes else {"y_numeric": True}
    if not classes and hasattr(y, "shape") and is_table(y):
        options["multi_output"] = True
    rows = Partitions.of(
        machine, X, y, sample_weight, classes=classes, extra=Look(classes, few), **options
    )
    machine._n_rows = rows.n
    if classes:
        machine.classes_ = rows.classes
        machine.scheme_ = machine._scheme_for(len(machine.classes_))
    if (classes and machine.scheme_.direct) or _better_here(rows):
        return fit_gathered(machine, X, y, sample_weight)
    problems = _of_classes(machine, rows) if classes else _of_numbers(machine, rows)
    for risk in problems:
        machine._choice(risk)  # refuses what cannot be, before anything is done
    machine._minimise(problems)
    machine._answers = [replace(a, s=np.empty(0), f=None) for a in machine._answers]
    machine.distribution_ = rows.cluster.distribution
    machine._warn_unfinished()
    return machine


def _better_here(rows: Partitions) -> bool:
    """Whether one place is better than many, which can only go over all rows, again and again.

    So it is for few rows; and for fewer rows than columns, whose problems are small in the dual
    and large in the weights, if they have room.
    """
    return rows.nbytes <= _LITTLE or (rows.n < rows.n_features and has_room(rows.nbytes))


def _by_part(machine: Any) -> bool:
    """Whether Newton's method will want a part of the rows."""
    loss = machine._loss
    return loss.smooth and loss.shape is not None and not machine._penalty.l1


def _of_classes(machine: Any, rows: Partitions) -> list:
    """Problems of the classes, at C = 1."""
    told = [summary.extra for summary in rows.summaries]
    assert rows.classes is not None
    weighed = np.zeros(len(rows.classes))
    for summary, own in zip(rows.summaries, told, strict=True):
        labels: Any = summary.labels
        counts: Any = summary.counts if np.ndim(own.weighed) == 0 else own.weighed
        np.add.at(weighed, np.searchsorted(rows.classes, labels), counts)
    index = np.arange(len(rows.classes))
    factors = read_class_weights(machine.class_weight, machine.classes_, index, rows.class_weights)
    _refuse_extremes(told, factors)
    template = _template(machine, rows)
    if getattr(machine, "_softmax", False):
        none, empty = np.empty(0, dtype=np.intp), np.empty(0)
        like = SoftmaxRisk(template.design, none, len(index), empty, template.penalty)
        return _posed(machine, rows, [(Pose(like, factors), weighed)], PartitionedSoftmax)
    weights = machine._weights_of_machines(index, rows.class_weights, factors)
    poses = []
    for codes, own in zip(machine._signs(index), weights, strict=True):
        of_classes = np.divide(
            own, rows.class_weights, out=np.zeros(len(index)), where=rows.class_weights > 0
        )
        poses.append((Pose(template, of_classes, codes), np.where(of_classes > 0, weighed, 0)))
    return _posed(machine, rows, poses, PartitionedRisk)


def _of_numbers(machine: Any, rows: Partitions) -> list:
    """Problems of the outputs, at C = 1."""
    told = [summary.extra for summary in rows.summaries]
    _refuse_extremes(told, np.ones(1))
    outputs = rows.summaries[0].outputs
    template, weighed = _template(machine, rows), np.array([sum(own.weighed for own in told)])
    poses = [(Pose(template, column=k), weighed) for k in range(outputs[0] if outputs else 1)]
    return _posed(machine, rows, poses, PartitionedRisk)


def _template(machine: Any, rows: Partitions) -> Any:
    """Return a problem like those of the machine, of no rows."""
    constant = machine._design(np.empty((0, rows.n_features))).constant
    empty = np.empty(0)
    dtype = np.float32 if rows.summaries[0].dtype == "float32" else np.float64
    like = Design(np.empty((0, rows.n_features), dtype=dtype), constant)
    return machine._risk(like, empty, empty)


def _posed(machine: Any, rows: Partitions, poses: list, kind: type) -> list:
    """Return a risk for every pose, over the same groups of blocks."""
    told = [summary.extra for summary in rows.summaries]
    entries, workers = sum(own.entries for own in told), machine._design(np.empty((0, 1))).workers
    passes, risks = Passes(rows.cluster, rows.groups()), []
    few = [own.few for own in told if own.few is not None]
    if few and rows.classes is not None:
        few = [encoded(block, rows.classes) for block in few]
    for pose, weighed in poses:
        n = int(weighed.sum())
        if pose.factors is None:
            total = sum(summary.weight for summary in rows.summaries)
        else:
            total = float(pose.factors @ rows.class_weights)
        sample = Sample(few, rows.n, workers) if few else None
        size = n, entries * n // rows.n, total, rows.summaries[0].sparse
        risks.append(kind(passes, pose, *size, sample))
    return risks


def _refuse_extremes(told: list[Told], factors: np.ndarray) -> None:
    """Refuse weights that are beyond float64 when they are multiplied."""
    ends = np.array([end * factor for own in told for end in own.extremes for factor in factors])
    refuse_extreme_weights(ends, "sample_weight times class_weight")
