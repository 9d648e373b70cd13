"""LogitBoost and GentleBoost over partitions: trees by levels, losses and steps by sums.

F at its rows is what a worker keeps. A round grows a regression tree for the Newton steps, or one
for each class, all at once, level by level; how far to go is looked up in sums of losses. The
rounds are those of :mod:`maxmargin.ensemble.boosting.newton`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.delayed import Delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from maxmargin.dask.ensemble.columns import Coded, CodedRows
from maxmargin.dask.ensemble.levels import LevelGrowth
from maxmargin.dask.ensemble.nodes import Material
from maxmargin.dask.ensemble.reading import read_classes
from maxmargin.dask.ensemble.trees import goal_of, keep_tree
from maxmargin.dask.ensemble.weak import TreeOnCodes, on_codes
from maxmargin.dask.fits import fit_partitions
from maxmargin.dask.gathered import fit_gathered
from maxmargin.dask.reductions import summed
from maxmargin.ensemble.boosting.logitboost import LogitBoostClassifier, is_own_tree
from maxmargin.ensemble.boosting.newton import Additive, NewtonBoosting
from maxmargin.ensemble.trees.tree import Tree
from maxmargin.solvers.driver import Watch

# -- work of a worker ----------------------------------------------------------------------------


def begun(rows: Coded, n_classes: int, whole: float, method: NewtonBoosting) -> Additive:
    """F = 0 at the rows of a worker."""
    return Additive(rows.y, rows.weight / whole, n_classes, method)


def targets_of(rows: Coded, at: Additive) -> Material:
    """Newton steps of a worker's rows, and their weights."""
    pairs = at.targets()
    return Material([z[None] for z, _ in pairs], [w for _, w in pairs])


def sums_of(rows: Coded, own: Material) -> np.ndarray:
    """Weight for each tree, and how many rows have some of their own."""
    used = float(np.count_nonzero(rows.weight))
    return np.array([*(w.sum() for w in own.weights), used])  # type: ignore[union-attr]


def scaled(rows: Coded, own: Material, factors: np.ndarray) -> Material:
    """Weights of mean one."""
    pairs = zip(own.weights, factors, strict=True)
    return Material(own.y, [w * factor for w, factor in pairs])  # type: ignore[operator]


def changed(rows: Coded, at: Additive, trees: list[TreeOnCodes]) -> np.ndarray:
    """Change of F by the trees of a round."""
    return at.change([tree.at(rows.columns) for tree in trees])


def looked(rows: Coded, at: Additive, change: np.ndarray, size: float) -> np.ndarray:
    """Loss and weight of misclassified rows after a step."""
    after = at.F + size * change
    return np.array([at.loss(after), at.wrong(after)])


def moved(rows: Coded, at: Additive, change: np.ndarray, size: float) -> Additive:
    """F after a step."""
    after = copy.copy(at)
    after.F = at.F + size * change
    return after


def replayed(rows: Coded, at: Additive, rounds: list[list[TreeOnCodes]], sizes: list) -> Additive:
    """F after rounds that were made before."""
    for trees, size in zip(rounds, sizes, strict=True):
        at = moved(rows, at, changed(rows, at, trees), size)
    return at


def pulls(rows: Coded, at: Additive) -> np.ndarray:
    """How hard each row pulls, and its weight."""
    return np.array([at.pull(), at.weight])


# -- rounds --------------------------------------------------------------------------------------


@dataclass
class SpreadTargets:
    """Rows to be boosted on that lie with the workers; see ``newton.Targets``."""

    prototype: Any
    coded: CodedRows
    n_classes: int
    whole: float
    seeds: np.ndarray

    def rows(self, method: NewtonBoosting, watch: Watch) -> SpreadSteps:
        """Return what the rounds know of the rows."""
        return SpreadSteps(self, method, watch)


class SpreadSteps:
    """What the rounds know of rows that lie with the workers; see ``newton.RowSteps``."""

    def __init__(self, problem: SpreadTargets, method: NewtonBoosting, watch: Watch) -> None:
        self.problem, self.watch = problem, watch
        self.coded, self.cluster = problem.coded, problem.coded.cluster
        how = problem.n_classes, problem.whole, method
        self.at: list[Delayed] = self.cluster.keep(self.coded.map(begun, *how, name="begin"))
        self.change: list[Any] = [0.0] * len(self.at)
        self.size, self.made = 0.0, False
        self.loss = self.look(0.0)[0]

    def resume(self, rounds: tuple[list, list]) -> None:
        """Go on after rounds, given by regressions and sizes."""
        found = [[_on_codes(on_codes(m.tree_, self.coded)) for m in own] for own in rounds[0]]
        shared = self.cluster.share(found)
        tasks = self.coded.map(replayed, shared, rounds[1], each=[(a,) for a in self.at])
        self.at, self.made = self.cluster.keep(tasks), True
        self.loss = self.look(0.0)[0]

    def regress(self, seed: int) -> list[Any]:
        """Grow trees for the Newton steps."""
        coded, cluster, problem = self.coded, self.cluster, self.problem
        stopped = self.watch.stopped if self.made else lambda: None
        tasks = coded.map(targets_of, each=[(a,) for a in self.at], name="targets")
        materials = cluster.keep(tasks)
        sums = coded.map(sums_of, each=[(m,) for m in materials], name="sums")
        (total,) = cluster.run([cluster.total(sums, summed)], stopped)
        n, factors = total[-1], total[-1] / total[:-1]
        materials = cluster.keep(coded.map(scaled, factors, each=[(m,) for m in materials]))
        seeds = [seed + k for k in range(len(factors))]
        pattern = clone(problem.prototype)
        pattern.n_outputs_ = 1
        goal = goal_of(pattern, pattern, int(n), coded.n_features, float(n))
        trees = LevelGrowth(coded, goal, materials, seeds, True, stopped).grow()
        found = []
        for tree in trees:
            model = keep_tree(clone(problem.prototype), tree, goal)
            model.n_outputs_ = 1
            found.append(model)
        shared = cluster.share([_on_codes(model.tree_) for model in found])
        self.change = cluster.keep(
            coded.map(changed, shared, each=[(a,) for a in self.at], name="change")
        )
        return found

    def look(self, size: float) -> tuple[float, float]:
        """Return mean loss and training error after a step of a size."""
        self.size = size
        each = list(zip(self.at, self.change, strict=True))
        tasks = self.coded.map(looked, size, each=each, name="loss")
        ((loss, error),) = self.cluster.run([self.cluster.total(tasks, summed)])
        return float(loss), float(error)

    def take(self, loss: float) -> None:
        """Take the step that was looked at last."""
        each = list(zip(self.at, self.change, strict=True))
        self.at = self.cluster.keep(self.coded.map(moved, self.size, each=each, name="step"))
        self.loss, self.made = loss, True

    def pull(self) -> np.ndarray:
        """How hard each row pulls at F, with sum one, gathered."""
        said = self.cluster.run(self.coded.map(pulls, each=[(a,) for a in self.at]))
        pull, weight = self.coded.in_order(said)
        total = pull.sum()
        return pull / total if total > 0 else weight


def _on_codes(tree: Tree) -> TreeOnCodes:
    """Return a tree with the value of each leaf."""
    values = np.zeros(tree.node_count)
    leaves = np.flatnonzero(tree.is_leaf)
    values[leaves] = tree.values_at(leaves)[:, 0]
    return TreeOnCodes(tree, values)


@fit_partitions.register(LogitBoostClassifier)
def fit_logitboost(
    machine: LogitBoostClassifier, X: Any, y: Any, sample_weight: Any = None
) -> LogitBoostClassifier:
    """Make the rounds over partitions; regressors other than trees get all rows in one place."""
    prototype = machine._prototype()
    if not is_own_tree(prototype):
        return fit_gathered(machine, X, y, sample_weight)
    with machine._watched() as monitor:
        rows = read_classes(machine, X, y, sample_weight)
        classes = rows.classes
        assert classes is not None
        known = machine._known(classes, rows.n_features)
        random = check_random_state(machine.random_state)
        seeds = random.randint(1 << 31, size=machine.n_estimators)
        coded = CodedRows.of(rows, prototype.max_bins, weighed=True)
        whole = float(rows.class_weights.sum())
        targets = SpreadTargets(prototype, coded, len(classes), whole, seeds)
        steps = None if known is None else (known, (known.regressions, known.sizes))
        made = machine._made(targets, monitor, steps)
        machine._keep(made, classes, slice(None), rows.n)
        monitor.end(str(machine.certificate_).partition("\n")[0], machine.status_.finished)
    machine.distribution_ = coded.cluster.distribution
    machine._warn_of_stop()
    return machine
