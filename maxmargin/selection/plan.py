"""What the fits of a search can share, and for each that cannot, why.

Whether a fit can share is first asked of its parameters (:meth:`Candidate.refusal`), then of its
data, where they are at hand (:mod:`maxmargin.selection.run`). Every answer ends as a sentence in
:class:`Sharing`, which the user finds as ``sharing_`` at the fitted search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from maxmargin.backends.device import DeviceError
from maxmargin.linear import LinearSVC, LinearSVR, LogisticRegression
from maxmargin.svm import SVC, SVR, NuSVC, NuSVR
from maxmargin.svm.probability import kind_of

T = TypeVar("T")

REFUSALS = (ValueError, TypeError, DeviceError)  # how a fit refuses its parameters or its data
FLOAT32_FROM = 1e-4  # tol from which on float32 kernel values are enough

_ALONG_C = (SVC, SVR)  # whose next C begins from the last: only the upper walls move
_KERNEL_MACHINES = (*_ALONG_C, NuSVC, NuSVR)
_LINEAR_MACHINES = (LinearSVC, LinearSVR, LogisticRegression)
_OF_PROBLEM = {"tol", "class_weight", "epsilon", "fit_intercept", "probability", "random_state"}
_OF_KERNEL_MACHINE = {
    *_OF_PROBLEM,
    *("C", "lam", "nu", "kernel", "gamma", "degree", "coef0"),
    *("decision_function_shape", "break_ties", "multiclass"),
    *("shrinking", "cache_size", "verbose", "n_jobs", "warm_start", "device"),
}
_ONLY_ALONE = {"lam", "norm_bound", "time_limit", "callback", "trace"}  # of the linear machines


@dataclass
class Candidate:
    """A point of the grid: its number, its estimator, and the machine at the estimator's end.

    ``pipeline_params`` are those of its parameters that do not belong to the machine; ``kernel``
    is known once :meth:`refusal` was asked.
    """

    number: int
    estimator: Any
    pipeline_params: dict[str, Any]
    kernel: Any = None

    @cached_property
    def pairwise(self) -> bool:
        """Whether X is a square matrix of all rows with all rows."""
        return bool(get_tags(self.estimator).input_tags.pairwise)

    @property
    def machine(self) -> Any:
        """The last step, or the estimator itself."""
        return last_step(self.estimator)

    @property
    def steps(self) -> list:
        """Transformers before the machine; none where all of them pass the data through."""
        steps = self.estimator.steps[:-1] if isinstance(self.estimator, Pipeline) else []
        idle = all(step in (None, "passthrough") for _, step in steps)
        return [] if idle else steps

    @property
    def linear(self) -> bool:
        """Whether the machine is one without a kernel."""
        return isinstance(self.machine, _LINEAR_MACHINES)

    @property
    def cost(self) -> float:
        """What the candidates of a path are ordered by."""
        machine = self.machine
        if getattr(machine, "lam", None) is not None:
            return 1.0 / machine.lam
        return machine.C if hasattr(machine, "C") else machine.nu

    @property
    def dtype(self) -> Any:
        """Of the kernel values that its problems are solved over first."""
        followed = isinstance(self.machine, _ALONG_C) and self.machine.tol >= FLOAT32_FROM
        return np.float32 if followed else np.float64

    @property
    def calibration(self) -> str | None:
        """Kind of its probabilities, if it has any."""
        return kind_of(getattr(self.machine, "probability", False))

    def refusal(self, probabilities: bool) -> str | None:
        """Why its parameters ask for a fit of its own; None where they do not."""
        machine, kind = self.machine, type(self.machine)
        if kind not in _KERNEL_MACHINES + _LINEAR_MACHINES:
            names = ", ".join(known.__name__ for known in _KERNEL_MACHINES + _LINEAR_MACHINES)
            return f"{kind.__name__} is none of the machines whose fits can share ({names})."
        if isinstance(self.estimator, Pipeline) and type(self.estimator) is not Pipeline:
            other = f"{type(self.estimator).__module__}.{type(self.estimator).__name__}"
            return f"A pipeline of another kind, {other}, is fitted by its own rules."
        given, defaults = machine.get_params(deep=False), signature(kind.__init__).parameters
        apart = _ONLY_ALONE if self.linear else given.keys() - _OF_KERNEL_MACHINE
        for name in sorted(given.keys() & apart):
            if not same(given[name], defaults[name].default):
                return f"{name}={given[name]!r} is for a fit of its own."
        try:
            machine._validate_params()
            self.kernel = None if self.linear else machine._validated_kernel()
        except (ValueError, TypeError) as error:
            return f"Its fit refuses the parameters: {error}"
        if not np.isfinite(self.cost):
            return "C=inf, without slack, is a problem of another kind."
        if self.linear and machine.solver in ("sgd", "subgradient"):
            return f"solver={machine.solver!r} ends where its steps lead: not to one answer."
        if probabilities and self.calibration and self.dtype is not np.float32:
            return (
                f"Only an SVC with tol >= {FLOAT32_FROM:g} shares what "
                f"probability={machine.probability!r} needs."
            )
        return None

    def same_data(self, other: Candidate) -> bool:
        """Whether the two see the same data in the same form and in the same place."""
        mine, theirs = self.machine, other.machine
        alike = type(mine) is type(theirs) and same(self.pipeline_params, other.pipeline_params)
        if not alike or self.linear:
            return alike
        return (
            self.kernel.input is other.kernel.input
            and mine.device == theirs.device
            and same(getattr(mine, "multiclass", None), getattr(theirs, "multiclass", None))
        )

    def same_problem(self, other: Candidate) -> bool:
        """Whether the two differ in kernel and cost only; linear machines, in C only."""
        mine, theirs = self.machine.get_params(deep=False), other.machine.get_params(deep=False)
        compared = set(mine) - {"C"} if self.linear else _OF_PROBLEM & set(mine)
        if "C" in mine and "nu" in mine:
            compared |= {"nu"}
        return all(same(mine[name], theirs[name]) for name in compared)


@dataclass
class Sharing:
    """What the fits of a search shared, and for each that did not the reason.

    Candidates are counted as in ``cv_results_``, splits as in its columns. Printing it shows one
    line for every kernel (of linear machines: for every machine), and one for every reason.

    Attributes
    ----------
    n_candidates, n_splits : int
    how : dict of (candidate, split) to (group, how)
        For each fit that was shared: with whom, and by which means it was solved.
    reasons : dict of (candidate, split) to str
        For each of the others, why not.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVCSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCSearchCV({"C": [1, 10, float("inf")], "gamma": [0.1]}, cv=2, error_score=0)
    >>> print(search.fit(X, y).sharing_)
    4 of 6 fits shared their work, 2 were made one by one.
    RBF(gamma=0.1): 4 fits, 2 candidates on all splits; along paths of C over float32 values
    one by one: candidate 2 on all splits. C=inf, without slack, is a problem of another kind.
    >>> search.sharing_.why(2)
    'C=inf, without slack, is a problem of another kind.'
    >>> search.sharing_.why(0) is None
    True
    """

    n_splits: int
    n_candidates: int = 0
    how: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    reasons: dict[tuple[int, int], str] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes with dictionaries as pairs: skops keeps no keys that are tuples."""
        return {
            name: list(value.items()) if isinstance(value, dict) else value
            for name, value in vars(self).items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({n: dict(v) if isinstance(v, list) else v for n, v in state.items()})

    @property
    def shared(self) -> np.ndarray:
        """Which fits were shared: bool array of shape (n_candidates, n_splits)."""
        shared = np.zeros((self.n_candidates, self.n_splits), dtype=bool)
        for place in self.how:
            shared[place] = True
        return shared

    def why(self, candidate: int, split: int | None = None) -> str | None:
        """Why a candidate did not share its work, on a split or on any; None where it did."""
        splits = range(self.n_splits) if split is None else [split]
        found = (self.reasons.get((candidate, s)) for s in splits)
        return " ".join(dict.fromkeys(filter(None, found))) or None

    def leave_alone(self, candidates: Iterable[Candidate], splits: Iterable, reason: str) -> None:
        """Note why some candidates share nothing on some splits; a first reason stands."""
        splits, reason = list(splits), reason.splitlines()[0]  # of an error, what it begins with
        for candidate in candidates:
            for split in splits:
                self.reasons.setdefault((candidate.number, split), reason)

    def note(self, candidate: Candidate, split: int, how: str) -> None:
        """Note that a fit was shared: with those of its kernel or, of linear ones, its machine."""
        group = type(candidate.machine).__name__ if candidate.linear else repr(candidate.kernel)
        self.how[candidate.number, split] = group, how

    def __str__(self) -> str:
        alone = f", {len(self.reasons)} were made one by one" if self.reasons else ""
        fits = self.n_candidates * self.n_splits
        lines = [f"{len(self.how)} of {fits} fits shared their work{alone}."]
        for group, places in _by_value({k: what for k, (what, _) in self.how.items()}).items():
            means = _by_value({place: self.how[place][1] for place in places})
            said = "; ".join(
                f"{how} ({len(some)})" if len(means) > 1 else how for how, some in means.items()
            )
            lines.append(f"{group}: {len(places)} fits, {self._who(places)}; {said}")
        for reason, places in _by_value(self.reasons).items():
            lines.append(f"one by one: {self._who(places)}. {reason}")
        return "\n".join(lines)

    def _who(self, places: list[tuple[int, int]]) -> str:
        """Name the candidates and splits of some fits."""
        candidates = sorted({k for k, _ in places})
        splits = sorted({s for _, s in places})
        if len(candidates) == 1:
            who = f"candidate {candidates[0]}"
        elif len(candidates) <= 8 and places[0] in self.reasons:
            who = f"candidates {', '.join(map(str, candidates))}"
        else:
            who = f"{len(candidates)} candidates"
        if len(splits) == self.n_splits:
            return f"{who} on all splits"
        return f"{who} on split{'s' * (len(splits) > 1)} {', '.join(map(str, splits))}"


def last_step(estimator: Any) -> Any:
    """Return the machine of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def own_prefix(estimator: Any) -> str:
    """Return what the names of the machine's own parameters begin with."""
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def grouped(items: Sequence[T], alike: Callable[[T, T], bool]) -> list[list[T]]:
    """Put items together that are alike; the first of each group stands for it.

    >>> grouped([1, 2, 3, 4], lambda a, b: a % 2 == b % 2)
    [[1, 3], [2, 4]]
    """
    groups: list[list[T]] = []
    for item in items:
        group = next((group for group in groups if alike(group[0], item)), None)
        if group is None:
            groups.append(group := [])
        group.append(item)
    return groups


def same(a: Any, b: Any) -> bool:
    """Whether two values, or dictionaries of values, are known to be the same.

    >>> same({"C": 1.0, "x": (1, 2)}, {"C": 1, "x": (1, 2)})
    True
    """
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    try:
        return bool(a is b or a == b)
    except ValueError:  # arrays
        return False


def _by_value(found: dict[tuple[int, int], str]) -> dict[str, list[tuple[int, int]]]:
    """Return the places of each value."""
    places: dict[str, list[tuple[int, int]]] = {}
    for place, value in sorted(found.items()):
        places.setdefault(value, []).append(place)
    return places
