"""A kernel after a factor for each column: length scales of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin.backends import program as op
from maxmargin.backends.program import Program, View
from maxmargin.backends.views import Views
from maxmargin.kernels.algebra import Construction
from maxmargin.kernels.base import Input, Kernel, of_points


class Stretched(Construction):
    """``k(s * x, s * z)``: a kernel that sees each column times a factor, a case of rule (6.19).

    A column whose factor is zero is not seen, so that factors which are learned say what is
    relevant. Their squares times gamma are the rates of a Gaussian kernel with a width for each
    column.

    Parameters
    ----------
    kernel : Kernel
    factors : sequence of float of length n_features, optional
        By default one for each column.

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> RBF(gamma=1.0).stretched([1.0, 0.0])([[0.0, 5.0]], [[1.0, 7.0]]).round(4)
    array([[0.3679]])
    """

    def __init__(self, kernel: Kernel, factors: Any = None) -> None:
        self.kernel = kernel
        self.factors = factors

    @property
    def input(self) -> Input:
        """Vectors: others have no columns."""
        of_points(self.kernel, "a kernel with a factor for each column")
        return Input.VECTORS

    def _resolve_seen(self, views: Views, feature_names: Sequence[str] | None) -> Kernel:
        n = views.X.shape[1]
        factors = np.ones(n) if self.factors is None else np.asarray(self.factors, dtype=np.float64)
        if factors.shape != (n,) or not np.isfinite(factors).all():
            raise ValueError(
                f"A stretched kernel takes a finite factor for each of the {n} columns that it "
                f"sees, got {self.factors!r}."
            )
        chosen = tuple(factors.tolist())
        inside = self.kernel.resolve(views.after(op.Stretch(chosen)), feature_names)
        return Stretched(inside, chosen)

    def _emit(self, program: Program, view: View) -> None:
        self.kernel._emit(program, (*view, op.Stretch(tuple(self.factors))))

    def __str__(self) -> str:
        listed = "" if self.factors is None else [float(f"{factor:.6g}") for factor in self.factors]
        return f"{self.kernel._within(3)}.stretched({listed})"
