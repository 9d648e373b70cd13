"""Several classes in one problem: the duals of Crammer and Singer, and of Weston and Watkins.

With one function ``f_k(x) = w_k . phi(x)`` for each of K classes, minimise

    1/2 sum_k ||w_k||^2  +  sum_i C_i loss_i

where row i, of class y, loses by the classes that come closer to its own than one:
``r_k = max(0, 1 + f_k(x_i) - f_y(x_i))`` for k other than y, and

    Crammer and Singer    loss_i  =  max_k r_k
    Weston and Watkins    loss_i  =  sum_k r_k

The dual has a variable for each row and class, ``w_k = sum_i b_ik phi(x_i)``, and minimises

    1/2 sum_k b_k' K b_k  +  sum_ik e_ik b_ik          e_ik = 1, for the row's own class 0

over ``-C_i <= b_ik <= 0`` for the classes that are not the row's own, with ``sum_k b_ik = 0`` and,
after Crammer and Singer, ``b_iy <= C_i``; after Weston and Watkins ``b_iy`` is free. So both have
a box for each row and one sum: they differ in a single bound. With a bias the functions are
``f_k + b_k``, and ``b_k`` counts in the norm as one more feature, constantly one (as in BSVM and
LIBLINEAR): otherwise K more sums would tie all rows together.

With ``g = f + e``, a solution's gap is a sum over rows, ``C_i loss_i + sum_k b_ik g_ik``, no term
negative, and a row is optimal where the largest g of a variable that may fall is not above the
smallest of one that may rise.

References: Crammer and Singer, JMLR 2, 2001; Weston and Watkins, ESANN, 1999; Hsu and Lin, IEEE
Transactions on Neural Networks 13(2), 2002 (the bias).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin.gram import Gram


@dataclass(frozen=True)
class DirectProblem:
    """The dual of one machine for several classes.

    Parameters
    ----------
    y : int array (n,)
        Class of each row of the Gram matrix.
    n_classes : int
    cost : float array (n,)
        ``C_i``; a row of cost zero takes no part.
    summed : bool
        Whether the losses of a row's classes are summed (Weston and Watkins), or the largest is
        taken (Crammer and Singer).
    bias : bool
    start : float array (n, n_classes), optional
        A feasible point to begin at; zero by default.
    """

    y: np.ndarray
    n_classes: int
    cost: np.ndarray
    summed: bool
    bias: bool
    start: np.ndarray | None = None
    matrix: Gram | None = None

    @property
    def gram(self) -> Gram:
        """The Gram matrix that the problem is over."""
        assert self.matrix is not None, "problem.over(gram) comes first"
        return self.matrix

    def over(self, gram: Gram) -> DirectProblem:
        """Return the problem with the Gram matrix of its rows."""
        return replace(self, matrix=gram)

    @property
    def most(self) -> np.ndarray:
        """Upper bound of the variable of each row's own class."""
        return self.cost * (self.n_classes - 1 if self.summed else 1)

    def walls(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of all variables, (rows, classes) each."""
        own = np.arange(len(self.y)), self.y
        low = np.repeat(-self.cost[:, None], self.n_classes, axis=1)
        high = np.zeros_like(low)
        low[own], high[own] = 0.0, self.most
        return low, high

    def started_near(self, b: np.ndarray) -> DirectProblem:
        """Return the problem with a start near a point that may not be feasible."""
        own = np.arange(len(self.y)), self.y
        start = np.clip(b, -self.cost[:, None], 0.0)
        start[own] = 0.0
        total = -start.sum(axis=1)
        start *= np.divide(
            np.minimum(total, self.most), total, out=np.zeros_like(total), where=total > 0
        )[:, None]
        start[own] = -start.sum(axis=1)
        return replace(self, start=start)

    def started_after(
        self, before: DirectProblem, b: np.ndarray, values: np.ndarray
    ) -> DirectProblem:
        """Return the problem with a start from the solution of the same one with lower costs.

        Of the multiples of b that the costs have room for, the best: along them the objective is a
        parabola.
        """
        paying = before.cost > 0
        room = float((self.cost[paying] / before.cost[paying]).min(initial=np.inf))
        quadratic = float(np.vdot(b, values))
        linear = self.dual(b, values)[0] + 0.5 * quadratic
        best = linear / quadratic if quadratic > 0.0 else 1.0
        return self.started_near(min(max(best, 1.0), room) * b)

    def values(self, b: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Values ``f + bias`` of the functions on the rows, from ``K b``."""
        return products + b.sum(axis=0) if self.bias else products

    def gradient(self, values: np.ndarray) -> np.ndarray:
        """``g = f + e``, (rows, classes)."""
        g = values + 1.0
        g[np.arange(len(self.y)), self.y] -= 1.0
        return g

    def dual(self, b: np.ndarray, values: np.ndarray) -> tuple[float, float]:
        """The dual objective as maximised, and the size of its terms."""
        quadratic = 0.5 * float(np.vdot(b, values))
        linear = float(b[np.arange(len(b)), self.y].sum() - b.sum())
        return linear - quadratic, abs(linear) + abs(quadratic)

    def objectives(self, b: np.ndarray, values: np.ndarray) -> tuple[float, float]:
        """The dual objective as maximised, and the gap, summed row by row."""
        g = self.gradient(values)
        dual, _ = self.dual(b, values)
        row_gaps = self.losses(values) + (b * g).sum(axis=1)
        return dual, max(float(row_gaps.sum()), 0.0)

    def losses(self, values: np.ndarray) -> np.ndarray:
        """``C_i loss_i`` of each row, from the values of the functions there."""
        own = values[np.arange(len(self.y)), self.y]
        margins = 1.0 + values - own[:, None]
        margins[np.arange(len(self.y)), self.y] = 0.0
        margins = np.maximum(margins, 0.0)
        return self.cost * (margins.sum(axis=1) if self.summed else margins.max(axis=1))
