"""The interior-point method, on both array libraries, and the solvers that take it where they crawl."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from maxmargin import NuSVC, SVC, SVR, Gram, duals
from maxmargin.backends import interior_point
from maxmargin.backends.threads import StoppedError, Workers
from maxmargin.kernels import RBF, Polynomial
from maxmargin.solvers import certified, near_level
from maxmargin.solvers.near_level import NearLevel


def _array(library):
    if library == "torch":
        return pytest.importorskip("torch").tensor
    return np.array


def _programme(groups, m):
    """An ill-conditioned programme, begun at a point of which most is at a wall."""
    random = np.random.default_rng(groups)
    A = random.normal(size=(m, m)) * np.geomspace(1, 1e-7, m)
    lower, upper = -np.abs(random.normal(size=m)), np.abs(random.normal(size=m))
    b = np.where(random.random(m) < 0.5, lower, upper)
    b[:6] = 0.5 * (lower + upper)[:6]
    member = np.zeros((m, groups))
    if groups:
        member[np.arange(m), np.arange(m) % groups] = 1.0
    return A @ A.T, random.normal(size=m), b, lower, upper, member


@pytest.mark.parametrize("m", [60, 1100])  # one tile of a factor, and several
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_interior_point_ends_on_the_face(library, groups, m):
    """Of an ill-conditioned programme, with every variable at a wall exactly."""
    array, target = _array(library), 1e-6
    H, v, b, lower, upper, member = _programme(groups, m)
    workers = Workers(2)
    found = interior_point.minimise(
        *(array(a) for a in (H, v, b, lower, upper, member)), target, workers
    )
    assert type(found.x) is type(array([0.0]))
    x, score = np.asarray(found.x), np.asarray(found.v).copy()
    assert found.violation <= target
    np.testing.assert_allclose(score, v - H @ (x - b), atol=1e-9 * m)
    # what the sums lack, given to one variable, changes no score by more than the target
    assert np.abs(member.T @ (x - b)).sum() * H.diagonal().max() <= target
    assert (lower <= x).all()
    assert (x <= upper).all()
    free = (lower < x) & (x < upper)
    for own in member.T > 0:
        score[own] -= score[own & free].mean()
    assert (score[x < upper] <= target).all()
    assert (score[x > lower] >= -target).all()
    assert 0 < np.count_nonzero(free) < m
    indefinite = (array(a) for a in (H - 0.1 * np.eye(m), v, b, lower, upper, member))
    assert interior_point.minimise(*indefinite, target) is None


def test_sums_that_all_variables_at_their_walls_would_break_are_kept():
    """A loose target puts everything at a wall, and nothing violates there but the sum."""
    m = 8
    start = np.array([1.0] + (m - 1) * [0.0])
    found = interior_point.minimise(
        1e6 * np.eye(m), 1e3 * np.arange(m), start, np.zeros(m), np.full(m, 2.0), np.ones((m, 1)), 1.0
    )
    assert found.x.sum() == pytest.approx(1.0, abs=1e-5)


def test_a_stop_is_heard_between_tiles():
    calls = []

    def stopped():
        calls.append(1)
        return len(calls) > 3

    with pytest.raises(StoppedError):
        interior_point.minimise(*_programme(1, 1100), 1e-6, Workers(1, stopped))


def test_the_cpu_does_without_torch():
    code = "import maxmargin.solvers.near_level, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def _crowd(n, seed=0):
    """Clusters whose classes overlap: many free variables under a smooth kernel."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    rule = np.sin(2 * X[:, 0]) + X[:, -1] * X[:, 0] + 0.3 * random.normal(size=n)
    return X, rule
