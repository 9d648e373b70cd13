"""Random data of some scale, offset, outliers, precision and form; kernels with their formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.kernels import RBF, Kernel, Laplacian, Linear, Polynomial, exp

EPS = float(np.finfo(np.float64).eps)
LONG_EPS = float(np.finfo(np.longdouble).eps)
_LEAVES = ["rbf", "laplacian", "linear", "polynomial"]
_RULES = ["sum", "product", "scaled", "shifted", "power", "columns", "map", "exp"]


def eps_of(values: Any) -> float:
    """Rounding unit of an answer, sparse or not, which is float32 where the data are."""
    return float(np.finfo(values.dtype).eps)


Formula = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass
class Data:
    """Rows, targets and weights; ``formula(A, B)`` are a kernel's values, by differences."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    formula: Formula | None = None

    @property
    def dense(self) -> np.ndarray:
        """The rows in long double."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        return X.astype(np.longdouble)

    @property
    def weights(self) -> np.ndarray:
        """Weights of all rows."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def gram(self) -> np.ndarray:
        """Kernel values in long double."""
        assert self.formula is not None
        return self.formula(self.dense, self.dense)


def some_rows(random: np.random.Generator, most: int = 40) -> int:
    """Number of rows of a problem that is solved in full to know the truth."""
    return int(random.integers(4, most + 1))


def classes_of(random: np.random.Generator, X: np.ndarray, scale: float, classes: int) -> Any:
    """Labels by a rule that is nearly linear, rounded to classes, or at random."""
    rule = numbers(random, X, scale)
    y = np.argsort(np.argsort(rule, kind="stable"), kind="stable") * classes // len(X)
    if random.random() < 0.2:
        y = random.integers(classes, size=len(X))
    y[:classes] = np.arange(classes)
    return y


def numbers(random: np.random.Generator, X: np.ndarray, scale: float) -> np.ndarray:
    """Targets by a rule of the rows, with some noise."""
    middle = (X - np.median(X, axis=0)) / scale
    rule = np.sin(2 * middle[:, 0]) + middle[:, -1] * middle[:, 0]
    if random.random() < 0.5:
        rule = middle @ random.normal(size=X.shape[1])
    noise = 10.0 ** random.uniform(-3, 0.5)
    return np.clip(rule, -1e3, 1e3) + noise * random.normal(size=len(X))


def in_form(random: np.random.Generator, X: np.ndarray) -> tuple[Any, str]:
    """Return the rows in float64 or float32, dense or CSR."""
    form = "dense"
    if random.random() < 0.3:
        X = X.astype(np.float32)
        form += " float32"
    if random.random() < 0.25:
        return sp.csr_matrix(X), form.replace("dense", "csr")
    return X, form


def tolerance(random: np.random.Generator, usual: float, finest: float = -8) -> float:
    """Return a ``tol``: the default, or any."""
    return float(10.0 ** random.uniform(finest, -1)) if random.random() < 0.6 else usual


def points(
    random: np.random.Generator, n: int, tame: bool = False
) -> tuple[np.ndarray, float, str]:
    """Return rows, their scale and what they are; ``tame`` ones have no offsets or outliers."""
    d = int(random.integers(1, 7)) if random.random() < 0.9 else int(random.integers(7, 31))
    kind = str(random.choice(["normal", "grid", "clusters", "sparse"]))
    X = random.normal(size=(n, d))
    if kind == "grid":
        X = np.round(2 * X) / 2  # with rows that coincide
    elif kind == "clusters":
        X = 0.1 * X + random.normal(size=(3, d))[random.integers(3, size=n)]
    elif kind == "sparse":
        X *= random.random(size=(n, d)) < 0.3
    scale = float(10.0 ** random.uniform(-3, 3)) if random.random() < 0.4 else 1.0
    X *= scale
    about = [kind, f"scale {scale:.2g}"]
    if not tame and random.random() < 0.4:
        shift = scale * 10.0 ** random.uniform(0, 9)
        columns = random.random(d) < random.choice([0.3, 1.0])
        X += shift * columns
        about.append(f"offset {shift:.2g} in {int(columns.sum())}")
    if not tame and random.random() < 0.3:
        far = scale * 10.0 ** random.uniform(1, 9)
        some = random.random(n) < random.choice([0.0, 0.1, 0.5])
        some[random.integers(n)] = True
        X[some] += far * random.choice([0.0, 1.0], size=d, p=[0.3, 0.7])
        about.append(f"{int(some.sum())} rows at {far:.2g}")
    if d > 1 and random.random() < 0.1:
        X[:, 0] = X[0, 0]
        about.append("a constant column")
    return X, scale, ", ".join(about)


def sample_weights(random: np.random.Generator, n: int) -> np.ndarray | None:
    """No weights, or some: alike, zero in part, or over eight orders of magnitude."""
    kind = random.random()
    if kind < 0.6:
        return None
    weight = random.uniform(0.2, 2.0, size=n)
    if kind < 0.75:
        weight[random.random(n) < 0.3] = 0.0
    elif kind < 0.9:
        weight = 10.0 ** random.uniform(-4, 4, size=n)
    return weight


def kernel_with_formula(
    random: np.random.Generator, d: int, scale: float, depth: int = 0
) -> tuple[Kernel, Formula]:
    """Return a kernel, and its formula written out for two arrays of rows."""
    leaf = depth >= 2 or random.random() < 0.6
    if leaf:
        kind = str(random.choice(_LEAVES, p=[0.5, 0.2, 0.15, 0.15]))
        if kind == "rbf":
            gamma = float(10.0 ** random.uniform(-3, 2) / scale**2)
            return RBF(gamma), lambda A, B: np.exp(-gamma * squared(A, B))
        if kind == "laplacian":
            gamma = float(10.0 ** random.uniform(-3, 1.5) / scale)
            return Laplacian(gamma), lambda A, B: np.exp(-gamma * _city_block(A, B))
        if kind == "linear":
            return Linear(), lambda A, B: A @ B.T
        degree, c = int(random.integers(2, 5)), float(random.choice([0.0, 0.5, 1.0, 100.0]))
        gamma = float(10.0 ** random.uniform(-2, 1) / scale**2)
        if random.random() < 0.2:
            gamma = 1.0
        kernel = Polynomial(degree=degree, coef0=c, gamma=gamma)
        return kernel, lambda A, B: (gamma * (A @ B.T) + c) ** degree
    kind = str(random.choice(_RULES))
    first, f = kernel_with_formula(random, d, scale, depth + 1)
    if kind == "sum":
        second, g = kernel_with_formula(random, d, scale, depth + 1)
        return first + second, lambda A, B: f(A, B) + g(A, B)
    if kind == "product":
        second, g = kernel_with_formula(random, d, scale, depth + 1)
        return first * second, lambda A, B: f(A, B) * g(A, B)
    if kind == "scaled":
        factor = float(10.0 ** random.uniform(-3, 3))
        return factor * first, lambda A, B: factor * f(A, B)
    if kind == "shifted":
        constant = float(10.0 ** random.uniform(-2, 3))
        return first + constant, lambda A, B: f(A, B) + constant
    if kind == "power":
        return first**2, lambda A, B: f(A, B) ** 2
    if kind == "columns":
        columns = np.sort(random.choice(d, size=int(random.integers(1, d + 1)), replace=False))
        inner, g = kernel_with_formula(random, len(columns), scale, depth + 1)
        chosen = columns.tolist()
        return inner.on(chosen), lambda A, B: g(A[:, chosen], B[:, chosen])
    if kind == "map":
        return first.after(_doubled), lambda A, B: f(_doubled(A), _doubled(B))
    gamma = float(1.0 / scale**2)
    return exp(2.0 * RBF(gamma)), lambda A, B: np.exp(2.0 * np.exp(-gamma * squared(A, B)))


def _doubled(X: Any) -> Any:
    """A feature map: twice the row, and its first column again; exact in any precision."""
    if sp.issparse(X):
        return sp.hstack([2.0 * X, X[:, :1]]).tocsr()
    return np.concatenate([2.0 * X, X[:, :1]], axis=1)


def squared(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Squared distances, by differences."""
    total = np.zeros((len(A), len(B)), dtype=A.dtype)
    for k in range(A.shape[1]):
        difference = A[:, k][:, None] - B[:, k]
        total += difference * difference
    return total


def _city_block(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    total = np.zeros((len(A), len(B)), dtype=A.dtype)
    for k in range(A.shape[1]):
        total += np.abs(A[:, k][:, None] - B[:, k])
    return total
