"""Machines that learn several classes at once, as schemes: one function for each class.

They are not put together from machines for two: all functions are found together, in one problem
(:mod:`maxmargin.duals.direct`), so that their values can be compared.
"""

from __future__ import annotations

from maxmargin.multiclass.one_vs_rest import OneVsRest


class CrammerSinger(OneVsRest):
    """A row loses by the one class that comes closest to its own: Crammer and Singer's machine.

    With functions ``f_k(x) = w_k . phi(x) + b_k``, y being the class of row i and k another,

        minimise  1/2 sum_k (||w_k||^2 + b_k^2) + C sum_i s_i max_k max(0, 1 + f_k(x_i) - f_y(x_i))

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(multiclass="crammer_singer").fit(X, y)
    >>> model.dual_coef_.sum(axis=0).round(12).any()  # what a class gains, others lose
    np.False_
    """

    unanimous = False
    direct = True

    def __post_init__(self) -> None:
        if self.balanced or self.decoding != "value":
            raise ValueError(
                f"{type(self).__name__} has one problem for all classes, without tasks to balance "
                "or votes to count: use class_weight, or OneVsRest."
            )


class WestonWatkins(CrammerSinger):
    """A row loses by every class that comes close to its own: Weston and Watkins' machine.

    As :class:`CrammerSinger`, but

        minimise  1/2 sum_k (||w_k||^2 + b_k^2) + C sum_i s_i sum_k max(0, 1 + f_k(x_i) - f_y(x_i))
    """

    summed = True
