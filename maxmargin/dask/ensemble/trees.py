"""Decision trees over partitions, and forests of extremely randomised trees.

A tree whose rows in codes have room on one worker is grown there, by the loop that grows trees in
one place, from the same seed: it is the same tree. Others grow level by level
(:mod:`maxmargin.dask.ensemble.levels`): the best tests are the same, random ones are drawn from the
same distribution, but not the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed

from maxmargin.backends.threads import StoppedError
from maxmargin.dask.ensemble.columns import Coded, CodedRows
from maxmargin.dask.ensemble.levels import LevelGrowth
from maxmargin.dask.ensemble.nodes import Material
from maxmargin.dask.ensemble.reading import several_outputs
from maxmargin.dask.ensemble.sprouts import Goal
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.gathered import fit_gathered
from maxmargin.dask.reductions import summed
from maxmargin.dask.rows import Block, Partitions, shell_of
from maxmargin.ensemble.out_of_bag import warn_never_left_out
from maxmargin.ensemble.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)
from maxmargin.ensemble.trees.base import (
    CLASS_CRITERIA,
    VALUE_CRITERIA,
    ClassLearner,
    needs_all_rows,
    seeds,
)
from maxmargin.ensemble.trees.columns import BinnedColumns
from maxmargin.ensemble.trees.forest import bootstrap_counts, sample_size
from maxmargin.ensemble.trees.growth import Grower, Target, count_of_features, rules_of
from maxmargin.ensemble.trees.pruning import reduced
from maxmargin.ensemble.trees.tree import Tree
from maxmargin.estimators.warn import warn
from maxmargin.multiclass import class_weights
from maxmargin.solution import Status

WHOLE = 1 << 30  # bytes of all rows in codes that are brought together on every worker
_TOGETHER = 16  # trees that grow level by level at a time


def moments_of(block: Block) -> tuple[float, Any]:
    """Weight of the rows of a partition, and the sums of their targets."""
    return float(block.weight.sum()), block.weight @ np.asarray(block.y, dtype=np.float64)


class Read(NamedTuple):
    """Rows of a tree: partitions, what the weights of classes are multiplied by, and totals."""

    rows: Partitions
    factors: np.ndarray | None
    weight: float
    weighted: bool
    centre: np.ndarray | None


def read(machine: Any, X: Any, y: Any, sample_weight: Any) -> Read:
    """Check rows and targets, and set what a fit knows of them."""
    if isinstance(machine, ClassLearner):
        rows = Partitions.of(machine, X, y, sample_weight, classes=True)
        classes = rows.classes
        assert classes is not None
        machine._keep_classes([classes])
        sums, every = rows.class_weights, np.arange(len(classes))[None]
        weighed = machine._weighed(sums, [classes], every)
        with np.errstate(invalid="ignore"):
            factors = np.where(sums > 0, weighed / sums, 1.0)
        plain = bool((factors == 1.0).all())
        weighted = sample_weight is not None or not plain
        return Read(rows, None if plain else factors, float(weighed.sum()), weighted, None)
    options = {"y_numeric": True, "multi_output": several_outputs(y)}
    rows = Partitions.of(machine, X, y, sample_weight, extra=moments_of, **options)  # type: ignore
    weight = sum(s.extra[0] for s in rows.summaries)
    centre = np.atleast_1d(sum(s.extra[1] for s in rows.summaries) / weight)
    machine.n_outputs_ = len(centre)
    return Read(rows, None, weight, sample_weight is not None, centre)


def goal_of(machine: Any, tree: Any, n: int, n_features: int, weight: float) -> Goal:
    """What the trees of a machine learn; ``tree`` has their parameters."""
    rules = rules_of(tree, n, n_features, weight)
    if isinstance(machine, ClassLearner):
        criterion = CLASS_CRITERIA[machine.criterion]
        return Goal(criterion, machine.n_classes_, 1, n_features, rules)
    return Goal(VALUE_CRITERIA[machine.criterion], 0, machine.n_outputs_, n_features, rules)


def material(rows: Coded, factors: np.ndarray | None, weighted: bool) -> Material:
    """What one tree learns from the rows of a worker."""
    if not weighted:
        return Material(rows.y, [None])
    return Material(rows.y, [rows.weight if factors is None else rows.weight * factors[rows.y]])


# -- a tree --------------------------------------------------------------------------------------


@fit_partitions.register(DecisionTreeClassifier)
@fit_partitions.register(DecisionTreeRegressor)
def fit_tree(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Grow a tree over partitions, or from gathered rows where the criterion needs them all."""
    several = isinstance(machine, ClassLearner) and several_outputs(y)
    if several or needs_all_rows(machine):
        return fit_gathered(machine, X, y, sample_weight)
    with machine._watched() as monitor:
        data = read(machine, X, y, sample_weight)
        n, d = data.rows.n, data.rows.n_features
        goal = goal_of(machine, machine, n, d, data.weight)
        random = goal.rules.random
        coded = CodedRows.of(
            data.rows,
            machine.max_bins,
            tables=not random,
            lists=not random,
            numbers=not goal.n_classes,
        )
        materials = coded.cluster.keep(coded.map(material, data.factors, data.weighted))
        seed = seeds(machine.random_state, 1)
        growth = LevelGrowth(coded, goal, materials, seed, data.weighted, monitor.stopped)
        machine.status_ = Status.COMPLETED
        try:
            (tree,) = growth.grow(data.centre)
        except StoppedError:
            machine.status_ = monitor.stopped() or Status.INTERRUPTED
            (tree,) = growth.trees()
    keep_tree(machine, tree, goal)
    machine.distribution_ = coded.cluster.distribution
    if machine.status_.stopped:
        warn(machine.status_.advice_for("tree").format(time_limit=machine.time_limit or 0.0))
    return machine


def keep_tree(machine: Any, tree: Tree, goal: Goal) -> Any:
    """Set what growth sets of a tree."""
    machine.tree_, machine.n_features_in_ = reduced(tree, machine)[0], goal.n_features
    machine.max_features_ = goal.rules.max_features
    return machine


# -- forests -------------------------------------------------------------------------------------


class Draws(NamedTuple):
    """Which rows each tree sees: those of its bootstrap sample, and how heavily."""

    seeds: np.ndarray
    bootstrap: bool
    n_weighed: int
    size: int
    balanced: bool

    def counts(self, number: int, rows: Coded, stretches: list[tuple[int, int]]) -> np.ndarray:
        """How often a tree's sample has each row of a worker; its stretches are among all."""
        drawn = bootstrap_counts(int(self.seeds[number]), self.n_weighed, self.size)
        counts = np.zeros(rows.n)
        counts[rows.weight > 0] = np.concatenate([drawn[a:b] for a, b in stretches])
        return counts

    def weight(
        self, number: int, rows: Coded, stretches: list, base: np.ndarray | None
    ) -> np.ndarray | None:
        """Weights of the rows for a tree, before classes are balanced; None where all are one."""
        if not self.bootstrap:
            return base
        counts = self.counts(number, rows, stretches)
        return counts if base is None else counts * base


def whole_of(groups: list[Coded], lists: bool) -> Coded:
    """All rows, in their order, on one worker."""
    parts = []
    for group in groups:
        begin = 0
        for number, size in group.pieces:
            parts.append((number, group, np.arange(begin, begin + size)))
            begin += size
    parts.sort(key=lambda part: part[0])
    columns = BinnedColumns.stacked([g.columns for _, g, _ in parts], [r for *_, r in parts], lists)
    y = np.concatenate([g.y[..., r] for _, g, r in parts], axis=-1)
    weight = np.concatenate([g.weight[r] for _, g, r in parts])
    return Coded(columns, y, weight, tuple((number, len(r)) for number, _, r in parts))


def grown_whole(
    rows: Coded, goal: Goal, tree: Any, draws: Draws, factors: Any, weighted: bool, number: int
) -> Tree:
    """Grow a tree of a forest from all rows, as a forest in one place does."""
    base = material(rows, factors, weighted).weights[0]
    weight = draws.weight(number, rows, [(0, draws.n_weighed)], base)
    if draws.balanced:
        weight = np.ones(rows.n) if weight is None else weight
        every = np.arange(goal.n_classes)
        weight = weight * class_weights("balanced", every, rows.y, weight)[rows.y]
    total = float(rows.n if weight is None else weight.sum())
    rules = rules_of(tree, rows.n, goal.n_features, total)
    target = (
        Target.of_classes(rows.y, goal.n_classes, goal.criterion)
        if goal.n_classes
        else Target.of_values(rows.y, goal.criterion)
    )
    return Grower(rows.columns, target).grow(rules, weight, int(draws.seeds[number]))[0]


def sampled(
    rows: Coded,
    stretches: list[tuple[int, int]],
    draws: Draws,
    factors: np.ndarray | None,
    weighted: bool,
    numbers: list[int],
) -> Material:
    """What some trees of a forest learn from the rows of a worker."""
    base = material(rows, factors, weighted).weights[0]
    return Material(rows.y, [draws.weight(number, rows, stretches, base) for number in numbers])


def class_sums(rows: Coded, own: Material, n_classes: int) -> np.ndarray:
    """Weights of the classes, or of all rows, for each tree."""
    K = max(n_classes, 1)
    labels = own.y if n_classes else np.zeros(rows.n, np.int64)
    return np.array(
        [
            np.bincount(labels, weights=w, minlength=K)  # without weights, rows are counted
            for w in own.weights
        ],
        dtype=np.float64,
    )


def balanced(rows: Coded, own: Material, sums: np.ndarray) -> Material:
    """Make the classes of each tree's sample equally heavy."""
    weights: list[np.ndarray | None] = []
    every = np.arange(sums.shape[1])
    for weight, mass in zip(own.weights, sums, strict=True):
        factors = class_weights("balanced", every, every, mass)
        weights.append((np.ones(rows.n) if weight is None else weight) * factors[own.y])
    return Material(own.y, weights)


class Growing:
    """A forest at work over partitions."""

    def __init__(self, forest: Any, data: Read, monitor: Any, known: int) -> None:
        self.forest, self.data, self.monitor = forest, data, monitor
        rows, self.tree = data.rows, forest._tree()
        self.goal = goal_of(forest, self.tree, rows.n, rows.n_features, data.weight)
        self.coded = CodedRows.of(
            rows,
            forest.max_bins,
            tables=False,
            lists=False,
            numbers=not self.goal.n_classes,
        )
        self.cluster = self.coded.cluster
        self.draws = Draws(
            forest._tree_seeds(known),
            forest.bootstrap,
            self.coded.n_weighed,
            sample_size(forest.max_samples, rows.n),
            getattr(forest, "class_weight", None) == "balanced_subsample",
        )

    def trees(self, first: int) -> list[Any]:
        """Grow the trees from a number on, as many as there is time for, one at least."""
        grown: list[Any] = []
        wanted, whole = self.forest.n_estimators, self._whole()
        at_once = _TOGETHER if self.forest.time_limit is None else self.cluster.n_threads
        most = 4 * self.cluster.n_threads if whole is not None else _TOGETHER
        while (begin := first + len(grown)) < wanted and not (begin and self.monitor.stopped()):
            numbers = list(range(begin, min(begin + max(min(at_once, most), 1), wanted)))
            stopped = self.monitor.stopped if begin else lambda: None
            try:
                if whole is None:
                    grown += self._by_levels(numbers, stopped)
                else:
                    grown += self._apart(whole, numbers, stopped)
            except StoppedError:
                break
            self.monitor.report_parts("ExtraTrees", first + len(grown), wanted, "trees")
            at_once *= 2
        return [keep_tree(self.forest._tree(), tree, self.goal) for tree in grown]

    def _whole(self) -> Delayed | None:
        """All rows on one worker, and from there on others, if they have room."""
        nbytes = self.coded.n * self.coded.row_bytes
        if nbytes > min(WHOLE, self.cluster.budget() / 4):
            return None
        task = self.cluster.task(whole_of, list(self.coded.groups), False, name="whole")
        self.cluster.distribution.bytes_between += int(nbytes * self.cluster.n_workers)
        return self.cluster.keep([task])[0]

    def _apart(self, whole: Delayed, numbers: list[int], stopped: Any) -> list[Tree]:
        tree = shell_of(self.tree)
        how = self.goal, tree, self.draws, self.data.factors, self.data.weighted
        return self.cluster.run(
            [self.cluster.task(grown_whole, whole, *how, k, name="tree") for k in numbers], stopped
        )

    def _by_levels(self, numbers: list[int], stopped: Any) -> list[Tree]:
        cluster, coded, draws = self.cluster, self.coded, self.draws
        own = [(stretches,) for stretches in coded.stretches()]
        how = draws, self.data.factors, self.data.weighted, numbers
        materials = cluster.keep(coded.map(sampled, *how, each=own, name="sample"))
        weighted = self.data.weighted or draws.bootstrap or draws.balanced
        tree, goals = self.tree, [self.goal] * len(numbers)
        of_weight = tree.min_weight_fraction_leaf > 0 or tree.min_impurity_decrease > 0
        if draws.balanced or (of_weight and draws.bootstrap):
            each = [(m,) for m in materials]
            tasks = coded.map(class_sums, self.goal.n_classes, each=each)
            (sums,) = cluster.run([cluster.total(tasks, summed)], stopped)
            if draws.balanced:
                materials = cluster.keep(coded.map(balanced, sums, each=each))
            goals = [
                self.goal._replace(
                    rules=rules_of(tree, coded.n, self.goal.n_features, float(mass.sum()))
                )
                for mass in sums
            ]
        seeds = draws.seeds[numbers]
        if not of_weight:
            growth = LevelGrowth(coded, self.goal, materials, seeds, weighted, stopped)
            return growth.grow(self.data.centre)
        found = []
        for k, goal in enumerate(goals):
            alone = cluster.keep(coded.map(only, k, each=[(m,) for m in materials]))
            growth = LevelGrowth(coded, goal, alone, seeds[[k]], weighted, stopped)
            found += growth.grow(self.data.centre)
        return found

    # -- rows out of the bag -----------------------------------------------------------------------

    def score_out_of_bag(self, estimators: list) -> None:
        """Ask each row's trees that have not seen it, where the rows are."""
        trees = self.cluster.share([tree.tree_ for tree in estimators])
        each = [(stretches,) for stretches in self.coded.stretches()]
        tasks = self.coded.map(asked_out_of_bag, trees, self.draws, self.goal, each=each)
        said = self.cluster.run(tasks)
        sums = self.coded.in_order([sums.T for sums, _, _ in said]).T
        counts = self.coded.in_order([counts for _, counts, _ in said])
        y = self.coded.in_order([y for _, _, y in said])
        warn_never_left_out(counts)
        with np.errstate(invalid="ignore"):
            means = sums / counts[:, None]
        targets = self.forest.classes_[y] if self.goal.n_classes else y.T
        self.forest._keep_out_of_bag(means, counts > 0, targets)


def only(rows: Coded, own: Material, number: int) -> Material:
    """What one of the trees learns from."""
    return Material(own.y, [own.weights[number]])


def asked_out_of_bag(
    rows: Coded, stretches: list, trees: list[Tree], draws: Draws, goal: Goal
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of what trees say of rows that they have not seen, how many these are, and targets."""
    sums, counts = np.zeros((rows.n, goal.statistics)), np.zeros(rows.n)
    for number, tree in enumerate(trees):
        own = np.flatnonzero(draws.counts(number, rows, stretches) == 0)
        sums[own] += tree.values_at(tree.apply_binned(rows.columns, own))
        counts[own] += 1
    return sums, counts, rows.y


@fit_partitions.register(ExtraTreesClassifier)
@fit_partitions.register(ExtraTreesRegressor)
def fit_forest(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Grow a forest over partitions, or from gathered rows where the criterion needs them all."""
    several = isinstance(machine, ClassLearner) and several_outputs(y)
    if several or needs_all_rows(machine):
        return fit_gathered(machine, X, y, sample_weight)
    known = getattr(machine, "estimators_", []) if machine.warm_start else []
    before = machine._shape() if known else None
    with machine._watched() as monitor:
        data = read(machine, X, y, sample_weight)
        machine._refuse(data.rows.n, data.rows.n_features, known, before)
        count_of_features(machine.max_features, data.rows.n_features)
        growing = Growing(machine, data, monitor, len(known))
        vars(machine).pop("_bootstrap", None)
        machine._keep(known + growing.trees(len(known)), False, monitor)
    if machine.oob_score:
        growing.score_out_of_bag(machine.estimators_)
    machine.distribution_ = growing.cluster.distribution
    machine._warn_of_stop()
    return machine
