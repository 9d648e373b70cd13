"""Several classes from machines for two: a code says which, and the scheme puts them together.

Row t of the code is a task, a problem for two: +1 for the classes on its positive side, -1 for
those on the other, 0 for those that it does not see. From a task comes a machine.

    tasks          rows and labels of each task
    weigh          weights of a task's rows
    decode         class of a point from the machines' values there
    decide         the same, where machines need not all be asked
    scores         one value per class
    probabilities  from those of the machines, or their logarithms from the machines' values
    tempered       from the machines' values, by one scale
    layout         where ``dual_coef_`` keeps the coefficients

With two classes every scheme has one machine, positive for the second class.

Reference: Allwein, Schapire and Singer, Reducing multiclass to binary, JMLR 1, 2000.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import expit, softmax

from maxmargin.multiclass.coupling import SMALLEST, couple

Question = tuple[int, np.ndarray]  # a machine, and the points at which its value is wanted
Ask = Callable[[list[Question]], list[np.ndarray]]


def tied(scores: np.ndarray) -> np.ndarray:
    """Which rows have their largest entry more than once."""
    return (scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1


@dataclass(frozen=True)
class Scheme(ABC):
    """How machines for two classes tell several apart.

    A scheme has a code; all else follows from it, and may be replaced. Schemes are equal if their
    parameters are: one that has more than ``n_classes`` is a frozen dataclass, too. Pass a scheme
    of your own to a machine as ``multiclass=MyScheme``, and test it with
    :func:`maxmargin.testing.check_scheme`.

    Parameters
    ----------
    n_classes : int
        At least two.
    balanced : bool, default=False
        Make both sides of each task equally heavy. One class against many others is outweighed,
        and its machine may never say yes.

    Attributes
    ----------
    unanimous : bool
        Whether a point always goes to its own class if all machines that have seen this class are
        right about it. Bounds on errors rest on that.
    direct : bool
        Whether all functions are found in one problem, and not each from a task of its own;
        ``summed`` then says whether a row's losses against all classes are summed.
    by_class : bool
        Whether ``combine`` wants the sums over each class's support vectors apart.
    by_sides : bool
        Whether ``tempered`` is made of the probabilities of the machines' sides.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.multiclass import Scheme
    >>> class EvenOrOdd(Scheme):
    ...     '''Four classes by two questions: the second half? an odd one?'''
    ...
    ...     def _code(self):
    ...         return [[-1, -1, 1, 1], [-1, 1, -1, 1]]
    >>> scheme = EvenOrOdd(4)
    >>> scheme.decode(np.array([[2.0, -0.1], [-1.0, 0.5]]))
    array([2, 1])
    """

    n_classes: int
    balanced: bool = field(default=False, kw_only=True)
    unanimous = False
    direct = False
    summed = False
    by_class = False
    by_sides = False

    @abstractmethod
    def _code(self) -> np.ndarray | list[list[int]]:
        """Return the code of three classes or more, (tasks, classes), entries -1, 0 and +1."""

    @cached_property
    def code(self) -> np.ndarray:
        """The code, int array (tasks, classes)."""
        if self.n_classes == 2:
            return np.array([[-1, 1]])
        given = np.asarray(self._code())
        code = given.astype(np.int64)
        wrong = (code != given).any() or (np.abs(code) > 1).any()
        if code.ndim != 2 or code.shape[1] != self.n_classes or wrong:
            raise ValueError(
                f"The code of {self!r} must be a matrix of -1, 0 and 1 with {self.n_classes} "
                f"columns, one for each class; got\n{given}"
            )
        if code.max(axis=1).min() < 1 or code.min(axis=1).max() > -1:
            raise ValueError(f"Each row of a code needs both a 1 and a -1; {self!r} has\n{code}")
        return code

    @property
    def sign(self) -> float:
        """Sign from a kernel machine to the problem that is posed for it: turned for two classes.

        The problem keeps LIBSVM's orientation, because SMO's path depends on it, and with an
        indefinite kernel so does the stationary point at its end.
        """
        return -1.0 if self.n_classes == 2 else 1.0

    def tasks(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows and labels (-1, +1) of each problem as posed, given class indices y."""
        members, tasks = [(y == k).nonzero()[0] for k in range(self.n_classes)], []
        for codes in self.sign * self.code:
            seen = [members[k] for k in codes.nonzero()[0]]
            rows = np.sort(np.concatenate(seen), kind="stable")
            tasks.append((rows, codes[y[rows]]))
        return tasks

    def signs(self, y: np.ndarray) -> list[np.ndarray]:
        """Label of every row in each machine, and 0 where the machine does not see the row."""
        return [codes[y] for codes in self.code.astype(np.float64)]

    def weigh(self, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights of the rows of a task, given its labels and what the rows weigh elsewhere.

        Where the sides are balanced, their sum stays what it was.
        """
        if not self.balanced:
            return weight
        positive = labels > 0
        sides = weight[positive].sum(), weight[~positive].sum()
        if not all(sides):
            return weight
        half = 0.5 * sum(sides)
        return weight * np.where(positive, half / sides[0], half / sides[1])

    # -- answers -------------------------------------------------------------------------------

    def scores(self, values: np.ndarray) -> np.ndarray:
        """One value per class, (n, classes), from the machines' values (n, tasks).

        Loss-based decoding: minus the sum of the hinge losses that the class's own signs have.
        """
        scores = np.zeros((len(values), self.n_classes))
        for value, codes in zip(values.T, self.code, strict=True):
            scores -= np.maximum(0.0, 1.0 - value[:, None] * codes)
        return scores

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Class index of each row, (n,), from the machines' values; ties go to the first."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(np.intp)
        return np.argmax(self.scores(values), axis=1)

    @property
    def n_asked(self) -> int:
        """Number of machines that :meth:`decide` asks about a point."""
        return len(self.code)

    def decide(self, ask: Ask, n: int) -> np.ndarray:
        """Class index of n points; ``ask`` has the values of a machine at some of them.

        Here all are asked. A scheme that can do with fewer asks again once it knows more.
        """
        everywhere = np.arange(n)
        values = ask([(task, everywhere) for task in range(len(self.code))])
        return self.decode(np.column_stack(values))

    def ambiguous(self, values: np.ndarray) -> np.ndarray:
        """Which rows have several classes with the best score: the rule for ties decides there."""
        return tied(self.scores(values))

    def probabilities(self, r: np.ndarray) -> np.ndarray:
        """Class probabilities (n, classes) from each machine's P(positive side | either), r."""
        if self.n_classes == 2:
            return np.column_stack([1 - r[:, 0], r[:, 0]])
        return couple(r, self.code)

    def log_probabilities(self, values: np.ndarray) -> np.ndarray:
        """Logarithms of class probabilities (n, classes), from machines' logarithms of odds."""
        with np.errstate(divide="ignore"):  # a code may leave nothing for a class
            return np.log(self.probabilities(expit(values)))

    def logits(self, values: np.ndarray) -> np.ndarray:
        """One value per class, (n, classes), whose softmax at some scale is a probability.

        Those of loss-based decoding, however the scheme decides; votes would say too little.
        """
        return values * [-0.5, 0.5] if self.n_classes == 2 else Scheme.scores(self, values)

    def tempered(self, values: np.ndarray, scale: float) -> np.ndarray:
        """Class probabilities (n, classes) from the machines' values, times a scale.

        The softmax of the logits or, ``by_sides``, ``1 / (1 + exp(-scale value))`` put together.
        """
        if self.by_sides:
            return self.probabilities(np.clip(expit(scale * values), SMALLEST, 1 - SMALLEST))
        return softmax(scale * self.logits(values), axis=1)

    # -- layout of the coefficients ------------------------------------------------------------

    @cached_property
    def layout(self) -> np.ndarray:
        """Row of ``dual_coef_`` with the coefficients of a task on a class, (tasks, classes).

        As it stands, a row for each task. A scheme in which a class meets few tasks can save room.
        """
        return np.repeat(np.arange(len(self.code))[:, None], self.n_classes, axis=1)

    @property
    def n_rows(self) -> int:
        """Number of rows of ``dual_coef_``."""
        return int(self.layout.max()) + 1

    def pack(
        self, machines: list[tuple[np.ndarray, np.ndarray]], y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bring the machines' coefficients into one matrix.

        Parameters
        ----------
        machines : list of (rows, coefficients)
            For each task, some training rows and their coefficients.
        y : int array (n,)
            Class indices of all training rows.

        Returns
        -------
        support : int array (n_SV,)
            Support vectors of any machine, grouped by class.
        n_support : int array (classes,)
        dual_coef : float array (n_rows, n_SV)
        """
        used = np.zeros(len(y), dtype=bool)
        chosen = [values.nonzero()[0] for _, values in machines]
        machines = [
            (rows[own], values[own]) for (rows, values), own in zip(machines, chosen, strict=True)
        ]
        for rows, _ in machines:
            used[rows] = True
        support = used.nonzero()[0]
        support = support[np.argsort(y[support], kind="stable")]
        n_support = np.bincount(y[support], minlength=self.n_classes)
        place = np.empty(len(y), dtype=np.int64)
        place[support] = np.arange(len(support))
        dual_coef = np.zeros((self.n_rows, len(support)))
        for rows_of_classes, (rows, values) in zip(self.layout, machines, strict=True):
            dual_coef[rows_of_classes[y[rows]], place[rows]] = values
        return support, n_support, dual_coef

    def expansions(self, dual_coef: np.ndarray, n_support: np.ndarray) -> np.ndarray:
        """Undo :meth:`pack`: coefficients of each machine over the support vectors."""
        owner = np.repeat(np.arange(self.n_classes), n_support)
        own = dual_coef[self.layout[:, owner], np.arange(dual_coef.shape[1])]
        return np.where(self.code[:, owner] != 0, own, 0.0)

    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Values of the machines, (q, tasks), from sums over the support vectors.

        ``sums[:, c, o]`` is the sum of row o of ``dual_coef_`` over those of class c; over all,
        with c = 0 only, unless the scheme is ``by_class``.
        """
        return sums[:, 0]
