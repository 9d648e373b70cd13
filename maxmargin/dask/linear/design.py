"""Rows on many machines as one design: what solvers ask of rows, by passes over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.backends.cpu.linear import Design
from maxmargin.dask.linear.passes import Passes, Pose
from maxmargin.dask.linear.vectors import Place, RowVector, Values


class PartitionedDesign(Design):
    """A :class:`~maxmargin.backends.cpu.linear.Design` whose rows lie in partitions.

    Values are vectors that are made where the rows are, sums over rows take a pass.
    """

    in_memory = False

    def __init__(self, passes: Passes, pose: Pose, n: int, entries: int, sparse: bool) -> None:
        like: Design = pose.template.design
        self.passes, self.pose, self._entries = passes, pose, entries
        self.n, self.features, self.width = n, like.features, like.width
        self.constant, self.workers, self.sparse = like.constant, like.workers, sparse

    @property
    def dtype(self) -> Any:
        """Type of the entries of the first partition."""
        return self.pose.template.design.X.dtype

    @property
    def entries(self) -> int:
        """Numbers that a pass reads."""
        return self._entries

    def values(self, theta: np.ndarray) -> Any:
        """``Z theta``."""
        return Values(self.n, theta)

    def values_of_nothing(self, shape: tuple[int, ...]) -> Any:
        """Values of weights of zero, of some shape."""
        return Values(self.n, np.zeros(shape))

    def combination(self, beta: Any) -> np.ndarray:
        """``Z' beta``."""
        if isinstance(beta, RowVector) and beta.combined is not None:
            return beta.combined
        return self.passes.total(self.pose, _combination, beta)[0]

    def gram(self, curvature: Any) -> np.ndarray:
        """``Z' diag(curvature) Z``."""
        return self.passes.total(self.pose, _gram, curvature)[0]


def _combination(place: Place, beta: np.ndarray) -> tuple:
    return (place.risk.design.combination(beta),)


def _gram(place: Place, curvature: np.ndarray) -> tuple:
    return (place.risk.design.gram(curvature),)
