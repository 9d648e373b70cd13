"""Pictures of kernels and solvers, and films: the data drawn are those of the fit."""

from __future__ import annotations

import os
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    NuSVC,
    NuSVR,
    Perceptron,
    Ridge,
    Trace,
)
from maxmargin.kernels import RBF, GaussianBasis, Laplacian, Linear, Matern, PolynomialBasis
from maxmargin.solvers import coordinate_ascent, two_variable_step

Figure = pytest.importorskip("matplotlib.figure").Figure
to_hex = pytest.importorskip("matplotlib.colors").to_hex

from maxmargin import plotting  # noqa: E402
from maxmargin.plotting import animate  # noqa: E402

X, Y = make_moons(60, noise=0.2, random_state=0)
BLOBS, SIDES = make_blobs(40, centers=[[0, 0], [2.2, 2]], cluster_std=0.6, random_state=1)


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def smo():
    return SVC(solver="smo", C=2.0, trace=True).fit(X, Y)


def line(ax, label):
    return next(line for line in ax.lines if line.get_label() == label).get_xydata()


# -- kernels ---------------------------------------------------------------------------------------


def test_a_kernel_matrix_has_its_classes_together(ax):
    points, species = load_iris(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(150)
    points, species = points[mixed], species[mixed]
    display = plotting.KernelMatrixDisplay.from_kernel(RBF(gamma=0.5), points, species, ax)
    assert (np.diff(species[display.order]) >= 0).all()
    assert display.ends.tolist() == [50, 100, 150]
    whole = RBF(gamma=0.5)(points)
    np.testing.assert_allclose(display.matrix, whole[np.ix_(display.order, display.order)])
    np.testing.assert_array_equal(ax.images[0].get_array(), display.matrix)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2"]
    assert ax.get_xticks().tolist() == ax.get_yticks().tolist() == [24.5, 74.5, 124.5]
    assert sorted({line.get_ydata()[0] for line in ax.lines if line.get_xdata()[0] == 0}) == [
        *(49.5, 99.5)
    ]
    some = plotting.KernelMatrixDisplay.from_kernel("precomputed", whole, order=[7, 3], ax=ax)
    np.testing.assert_allclose(some.matrix, whole[np.ix_([7, 3], [7, 3])])
    model = make_pipeline(StandardScaler(), SVC(gamma=0.3)).fit(points, species)
    scaled = plotting.KernelMatrixDisplay.from_estimator(model, points, ax=ax)
    np.testing.assert_allclose(scaled.matrix, RBF(0.3)(model[0].transform(points)))
    assert scaled.title == "RBF(gamma=0.3)"
    with pytest.raises(ValueError, match=r"numbers from 0 to 149"):
        plotting.plot_kernel_matrix("rbf", points, order=[150])
    with pytest.raises(ValueError, match=r"finer than any picture.*order="):
        plotting.plot_kernel_matrix("rbf", np.zeros((5001, 1)))
    with pytest.raises(TypeError, match=r"machine with a kernel.*LinearSVC.*from_kernel"):
        plotting.KernelMatrixDisplay.from_estimator(LinearSVC().fit(X, Y), X)


def test_kernels_against_distance_and_beside_a_point(ax):
    kernels = {"wide": RBF(sigma=2.0), "edge": Laplacian(gamma=0.5)}
    display = plotting.KernelProfileDisplay.from_distances(kernels, largest=4.0, ax=ax)
    r = display.x
    assert r[[0, -1]].tolist() == [0.0, 4.0]
    np.testing.assert_allclose(line(ax, "wide"), np.column_stack([r, np.exp(-(r**2) / 8)]))
    np.testing.assert_allclose(display.values["edge"], np.exp(-0.5 * r))
    with pytest.raises(ValueError, match=r"Linear\(\) is not a function of the distance.*interval"):
        plotting.plot_kernel_profile(Linear(), ax=ax)
    beside = plotting.KernelProfileDisplay.from_interval(["linear", "rbf"], (-2, 1), at=0.5, ax=ax)
    np.testing.assert_allclose(beside.values["Linear()"], 0.5 * beside.x)
    (name,) = set(beside.values) - {"Linear()"}  # gamma="scale" of what is drawn
    np.testing.assert_allclose(
        beside.values[name], np.exp(-((beside.x - 0.5) ** 2) / beside.x.var())
    )
    with pytest.raises(ValueError, match="low < high"):
        plotting.plot_kernel_profile("rbf", interval=(1, -1))
    with pytest.raises(ValueError, match="no kernel to draw"):
        plotting.plot_kernel_profile([])
    with pytest.raises(ValueError, match="must be positive"):
        plotting.KernelProfileDisplay.from_distances("rbf", largest=0)


def test_basis_functions_above_their_kernel():
    bases = {"bumps": GaussianBasis(5), "cubes": lambda x: x**3}
    axes = plotting.plot_basis(bases, at=0.5, interval=(-1, 2), ax=Figure().subplots(2, 2))
    bumps = GaussianBasis(5)
    x = axes[0, 0].lines[0].get_xdata()
    assert x[[0, -1]].tolist() == [-1, 2]
    assert len(axes[0, 0].lines) == 5
    np.testing.assert_allclose(
        axes[1, 0].lines[0].get_ydata(), bumps.kernel(x[:, None], [[0.5]])[:, 0], atol=1e-12
    )
    np.testing.assert_allclose(axes[1, 1].lines[0].get_ydata(), x**3 / 8)
    with pytest.raises(ValueError, match=r"must map points \(n, 1\)"):
        plotting.plot_basis({"flat": np.ravel})
    with pytest.raises(ValueError, match=r"2 x 1 panels and got 4 axes"):
        plotting.plot_basis(PolynomialBasis(3), ax=axes)


def test_functions_drawn_have_the_kernel_as_their_covariance(ax):
    kernel = Matern(nu=1.5, length_scale=1.0) + 0.3 * Linear()
    draw = plotting.KernelSamplesDisplay.from_kernel
    display = draw(kernel, (-2, 2), ax, samples=5, grid_resolution=5)
    wanted = kernel(np.linspace(-2, 2, 5)[:, None])
    normal = np.random.RandomState(0).standard_normal((5, 5))
    root = np.linalg.solve(normal, display.functions)
    np.testing.assert_allclose(root.T @ root, wanted, atol=1e-8)
    np.testing.assert_allclose(display.deviation, np.sqrt(wanted.diagonal()))
    same, other = draw(kernel, ax=ax, random_state=3), draw(kernel, ax=ax, random_state=4)
    again = draw(kernel, ax=ax, random_state=3)
    np.testing.assert_array_equal(same.functions, again.functions)
    assert not np.allclose(same.functions, other.functions)
    with pytest.raises(ValueError, match="not positive semidefinite on this interval"):
        plotting.plot_kernel_samples("sigmoid", interval=(-3, 3))


# -- solvers ---------------------------------------------------------------------------------------


def test_convergence_of_several_solvers_in_one_picture(ax):
    traces = {}
    for C in (1.0, 10.0):
        traces[f"C = {C:g}"] = SVC(solver="smo", C=C, trace=True).fit(X, Y).trace_
    display = plotting.ConvergenceDisplay.from_trace(traces, "violation", ax=ax)
    for name, trace in traces.items():
        drawn = line(ax, name)
        np.testing.assert_array_equal(drawn[:, 0], trace.curve("steps"))
        positive = trace.curve("violation") > 0
        np.testing.assert_array_equal(drawn[positive, 1], trace.curve("violation")[positive])
    assert display.tol == traces["C = 1"].records[0][-1].tol
    seconds = plotting.ConvergenceDisplay.from_trace(traces, against="seconds", ax=ax)
    np.testing.assert_array_equal(seconds.x["C = 1"], traces["C = 1"].curve("seconds"))

    comparison = SimpleNamespace(traces=traces)  # as compare_solvers returns it
    again = plotting.ConvergenceDisplay.from_trace(comparison, "violation", ax=ax)
    np.testing.assert_array_equal(again.y["C = 1"], display.y["C = 1"])

    only = Figure().subplots()
    alone = plotting.ConvergenceDisplay.from_trace(traces["C = 1"], "objective", ax=only)
    upper, lower = line(only, "objective")[:, 1], line(only, "lower bound (dual)")[:, 1]
    assert (lower <= upper + 1e-9).all()
    assert only.get_title() == "SMO"
    early = Figure().subplots()
    alone.plot(early, state=3)
    assert len(line(early, "objective")) == 4
    assert early.get_xlim() == only.get_xlim()
    assert early.get_ylim() == only.get_ylim()
    with pytest.raises(ValueError, match=r"no records of problem 3, only of \[0\]"):
        plotting.plot_trace(traces, problem=3)
    with pytest.raises(ValueError, match="'steps' or 'seconds'"):
        plotting.plot_trace(traces, against="hours")
    with pytest.raises(TypeError, match="a dict of them"):
        plotting.ConvergenceDisplay.from_trace({"smo": 3})
    walk = Perceptron(tol=None, trace=True).fit(BLOBS, SIDES).trace_
    with pytest.raises(ValueError, match=r"does not know its duality gap.*objective"):
        plotting.plot_trace(walk)


@pytest.mark.parametrize("kind", ["lines", "bars"])
def test_multipliers(smo, ax, kind):
    display = plotting.AlphasDisplay.from_estimator(smo, ax=ax, kind=kind)
    alpha = smo.trace_.alpha()
    assert display.C == 2.0
    assert display.names == ("0", "1")
    np.testing.assert_array_equal(display.alpha, alpha)
    np.testing.assert_array_equal(display.positive[alpha[-1] > 0], Y[alpha[-1] > 0] == 1)
    if kind == "bars":
        np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], alpha[-1])
    else:
        np.testing.assert_array_equal(ax.lines[7].get_ydata(), alpha[:, 7])
    few = plotting.AlphasDisplay.from_trace(smo.trace_, ax=ax, kind=kind, most=5)
    assert few.alpha.shape == (len(alpha), 5)
    assert few.alpha.max(axis=0).min() >= np.sort(alpha.max(axis=0))[-5]
    assert "5 of 60 drawn" in ax.get_title()
    kernel = Perceptron(kernel="rbf", tol=None, trace=True).fit(X, Y)
    assert plotting.AlphasDisplay.from_trace(kernel.trace_, ax=ax).alpha.shape[1] == len(X)
    for machine in (
        LinearSVC(),
        Perceptron(tol=None),
        LogisticRegression(),
        Ridge(),
        MCEClassifier(),
    ):
        trace = machine.set_params(trace=True).fit(BLOBS, SIDES).trace_
        with pytest.raises(ValueError, match="no row of dual variables"):
            plotting.plot_alphas(trace)
    with pytest.raises(ValueError, match="'lines' or 'bars'"):
        plotting.plot_alphas(smo.trace_, kind="pie")


@pytest.mark.parametrize(
    ("y", "ends"),
    [((1, -1), [[0.0, 0.3], [0.7, 1.0]]), ((1, 1), [[0.7, 0.0], [0.0, 0.7]])],
)
def test_the_box_of_both_label_cases(ax, y, ends):
    step = two_variable_step(y, (0.2, 0.5), errors=(-3, 3), K=(1, 1, 0), C=1.0)
    display = plotting.SMOBoxDisplay.from_steps(step, ax)
    np.testing.assert_allclose(display.ends(0), ends, atol=1e-12)
    np.testing.assert_allclose(line(ax, "the constraint in the box"), ends, atol=1e-12)
    np.testing.assert_array_equal(line(ax, "before"), [[0.2, 0.5]])
    np.testing.assert_array_equal(line(ax, "after"), [step.after])
    assert any(np.allclose(step.after, end) for end in ends)  # clipped
    start = Figure().subplots()
    display.plot(start, state=0)
    assert np.isnan(line(start, "after")).all()
    with pytest.raises(ValueError, match="two_variable_step returns"):
        plotting.plot_smo_box([])


def test_the_box_shows_the_steps_of_a_fit(smo, ax):
    display = plotting.SMOBoxDisplay.from_estimator(smo, X, Y, ax)
    alpha = smo.trace_.alpha()
    assert len(display.steps) > 0.8 * len(alpha)  # others move more than two at once
    for step, pair, k in zip(display.steps, display.pairs, display.numbers, strict=True):
        np.testing.assert_array_equal(step.before, alpha[k - 1, list(pair)])
        np.testing.assert_allclose(step.after, alpha[k, list(pair)], atol=1e-9)
    assert ax.get_title().endswith(f"step {display.numbers[-1]}")
    with pytest.raises(ValueError, match="got 20 rows where fit had 60"):
        plotting.SMOBoxDisplay.from_estimator(smo, X[:20], Y[:20], ax)
    coarse = SVC(solver="smo", C=2.0, trace=Trace(limit=4)).fit(X, Y)
    with pytest.raises(ValueError, match=r"no single step of two multipliers.*limit"):
        plotting.SMOBoxDisplay.from_estimator(coarse, X, Y, ax)
    weight = np.linspace(0.5, 2.0, len(X))
    model = SVC(solver="smo", trace=True).fit(X, Y, weight)
    display = plotting.SMOBoxDisplay.from_estimator(model, X, Y, ax, sample_weight=weight)
    for step, pair in zip(display.steps, display.pairs, strict=True):
        np.testing.assert_allclose(step.C, weight[list(pair)])
    free = SVC(fit_intercept=False, trace=True).fit(X, Y)
    with pytest.raises(ValueError, match="soft margin with a bias"):
        plotting.SMOBoxDisplay.from_estimator(free, X, Y, ax)


def test_contours_of_the_dual_hold_the_other_multipliers(smo, ax):
    display = plotting.PathDisplay.from_estimator(smo, X, Y, ax, variables=(4, 2))
    alpha, sign = smo.trace_.alpha()[-1], 2 * Y - 1
    K = smo.kernel_(X) * np.outer(sign, sign)
    found, wanted = [], []
    for row, column in [(0, 0), (60, 60), (120, 3)]:
        point = alpha.copy()
        point[[4, 2]] = display.grid[0][row, column], display.grid[1][row, column]
        wanted.append(point.sum() - 0.5 * point @ K @ point)
        found.append(display.values[row, column])
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-6, atol=1e-8)
    assert ax.get_xlabel() == "multiplier of row 4"


def test_the_staircase_is_on_contours_of_the_dual(ax):
    two, labels = np.array([[1.0, 0.5], [-0.5, 1.0]]), np.array([1, 0])
    model = SVC(kernel="rbf", gamma=0.2, C=5.0, fit_intercept=False, solver="smo", trace=True)
    model.fit(two, labels)
    display = plotting.PathDisplay.from_estimator(model, two, labels, ax)
    np.testing.assert_array_equal(display.path, model.trace_.alpha())
    moved = display.path[1:-1] != display.path[:-2]
    assert (moved.sum(axis=1) == 1).all()  # one at a time; the last step may be one of both
    K = RBF(0.2)(two) * np.array([[1, -1], [-1, 1]])
    a = np.stack(display.grid, axis=-1)
    np.testing.assert_allclose(
        display.values, a.sum(-1) - 0.5 * np.einsum("...i,ij,...j", a, K, a), atol=1e-10
    )
    np.testing.assert_array_equal(line(ax, "start"), display.path[:1])
    np.testing.assert_array_equal(display.box, [[0, 5], [0, 5]])
    with pytest.raises(ValueError, match="two of the 2"):
        plotting.PathDisplay.from_estimator(model, two, labels, ax, variables=(0, 2))
    with pytest.raises(ValueError, match=r"points \(n, 2\).*choose two columns"):
        plotting.plot_path(np.hypot, np.zeros((3, 5)))
    way = coordinate_ascent(lambda x: -(x[0] ** 2) - x[1] ** 2 + x[0] * x[1] + 3 * x[1], [0, 0])
    hill = plotting.PathDisplay.from_function(
        lambda x: -(x[0] ** 2) - x[1] ** 2 + x[0] * x[1] + 3 * x[1], way.points, ax
    )
    a, b = hill.grid
    np.testing.assert_allclose(hill.values, -(a**2) - b**2 + a * b + 3 * b)
    slow = plotting.PathDisplay.from_function(lambda a, b: max(a, b), [[0, 0], [1, 1]], ax)
    np.testing.assert_array_equal(slow.values, np.maximum(*slow.grid))
    limits = [[-1, 1], [0, 3]]
    plotting.plot_path(np.hypot, [[0, 0], [1, 1]], ax=ax, limits=limits)
    assert ax.get_ylim() == (0, 3)


def test_the_perceptron_update_by_update(ax):
    model = Perceptron(order="cyclic", tol=None)
    display = plotting.PerceptronDisplay.from_estimator(model, BLOBS, SIDES, ax)
    w, b, used, k = np.zeros(2), 0.0, [], 0
    sign = 2 * SIDES - 1
    while (sign * (BLOBS @ w + b) <= 0).any():
        for i in range(len(BLOBS)):
            if sign[i] * (BLOBS[i] @ w + b) <= 0:
                w, b, k = w + sign[i] * BLOBS[i], b + sign[i], k + 1
                used.append(i)
                np.testing.assert_allclose(display.coef[k], w, atol=1e-12)
                np.testing.assert_array_equal(np.flatnonzero(display.used(k)), np.unique(used))
    assert len(display) == k + 1
    assert ax.get_title() == f"after {k} updates: 0 wrong"
    ends = ax.lines[0].get_xydata()  # on the line w . x + b = 0
    np.testing.assert_allclose(ends @ w + b, 0, atol=1e-9)
    path = plotting.WeightPathDisplay.from_estimator(model, BLOBS, SIDES, ax)
    np.testing.assert_array_equal(path.path, display.coef)
    at = [np.abs(side - value).argmin() for side, value in zip(_sides(path), w, strict=True)]
    assert path.wrong[at[1], at[0]] <= 0.05
    np.testing.assert_array_equal(path.wrong == 0, path.margin > 0)
    with pytest.raises(ValueError, match=r"two features.*X\[:, \[0, 1\]\].*PCA"):
        plotting.plot_perceptron(model, np.zeros((4, 3)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="3 classes: choose two"):
        plotting.plot_perceptron(model, np.zeros((3, 2)), [0, 1, 2])
    with pytest.raises(ValueError, match=r"has no line.*MovingStreetDisplay"):
        plotting.plot_perceptron(Perceptron(kernel="rbf"), BLOBS, SIDES)
    with pytest.raises(TypeError, match="draws a Perceptron"):
        plotting.plot_perceptron(LinearSVC(), BLOBS, SIDES)


def _sides(path):
    return path.grid[0][0], path.grid[1][:, 0]


def test_several_solutions_by_order(ax):
    model = Perceptron(tol=None)
    display = plotting.SeparatorsDisplay.from_orders(model, BLOBS, SIDES, ax, orders=4)
    for k in range(4):
        fitted = Perceptron(tol=None, random_state=k).fit(BLOBS, SIDES)
        np.testing.assert_array_equal(display.coef[k], fitted.coef_[0])
        ends = line(ax, f"order {k}")
        np.testing.assert_allclose(fitted.decision_function(ends), 0, atol=1e-9)
    assert len({tuple(w / np.hypot(*w)) for w in display.coef}) > 1
    points = {to_hex(c.get_facecolor()[0]) for c in ax.collections if len(c.get_facecolor())}
    assert not points & {to_hex(drawn.get_color()) for drawn in ax.lines}  # lines of no class
    with pytest.raises(ValueError, match="no line in the plane"):
        plotting.plot_separators({"kernel": SVC().fit(BLOBS, SIDES)}, BLOBS, SIDES)
    with pytest.raises(TypeError, match="by their names"):
        plotting.plot_separators([model], BLOBS, SIDES)


MACHINES = [
    SVC(solver="smo", C=2.0, trace=True),
    SVC(kernel="linear", C=np.inf, trace=True),
    NuSVC(nu=0.4, trace=True),
    LinearSVC(loss="hinge", trace=True),
    LogisticRegression(trace=True),
    Perceptron(tol=None, trace=True),
    Perceptron(kernel="rbf", tol=None, trace=True),
    make_pipeline(StandardScaler(), SVC(solver="smo", trace=True)),
]


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_the_street_ends_where_the_machine_is(machine, ax):
    model = machine.fit(BLOBS, SIDES)
    display = plotting.MovingStreetDisplay.from_estimator(
        model, BLOBS, SIDES, ax, grid_resolution=15
    )
    last = len(display) - 1
    places = np.stack(np.meshgrid(display.plane.x, display.plane.y), axis=-1).reshape(-1, 2)
    wanted = model.decision_function(places).reshape(15, 15)
    np.testing.assert_allclose(display.values(last), wanted, atol=1e-4 * np.abs(wanted).max())
    assert not np.allclose(display.values(0), wanted, rtol=1e-2)
    np.testing.assert_array_equal(display.side, 2 * SIDES - 1)
    if display.support is not None:
        found = model[-1] if hasattr(model, "steps") and not hasattr(model, "coef_init_") else model
        np.testing.assert_array_equal(
            np.flatnonzero(display.support[last]), np.sort(found.support_)
        )


def test_its_legend_is_below_in_every_state(smo):
    """In a corner it would lie on points, or go from corner to corner as it grows."""
    ax = Figure(layout="constrained").subplots()
    display = plotting.MovingStreetDisplay.from_estimator(smo, X, Y, ax, grid_resolution=10)
    for state in (0, 5, -1):
        display.plot(ax, state)
        ax.figure.draw_without_rendering()
        assert ax.get_legend().get_window_extent().y1 < ax.bbox.y0


def test_a_start_is_a_problem_of_its_own(ax):
    model = MCEClassifier(n_restarts=3, random_state=0, trace=True).fit(BLOBS, SIDES)
    ends = []
    for problem in model.trace_.problems:
        display = plotting.MovingStreetDisplay.from_estimator(
            model, BLOBS, SIDES, ax, problem=problem, grid_resolution=9
        )
        assert display.names == ("0", "1")
        ends.append(display.coef[-1])
    assert any(np.allclose(end, model.coef_[0], rtol=1e-3) for end in ends)


def test_the_street_of_one_pair_of_several_classes(ax):
    points, species = load_iris(return_X_y=True)
    points = points[:, 2:]
    model = SVC(solver="smo", decision_function_shape="ovo", trace=True).fit(points, species)
    for problem, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        display = plotting.MovingStreetDisplay.from_estimator(
            model, points, species, ax, problem=problem, grid_resolution=9
        )
        places = np.stack(np.meshgrid(display.plane.x, display.plane.y), axis=-1).reshape(-1, 2)
        wanted = model.decision_function(places)[:, problem]
        np.testing.assert_allclose(display.values(len(display) - 1).ravel(), wanted, atol=1e-4)
        assert sorted(display.names) == [str(label) for label in pair]
        right = display.side * model.decision_function(display.plane.points)[:, problem] > 0
        assert right.mean() > 0.9


def test_what_a_street_cannot_show(smo, ax):
    street = plotting.MovingStreetDisplay.from_estimator
    with pytest.raises(ValueError, match="trace=True"):
        street(SVC().fit(X, Y), X, Y, ax)
    points, species = load_iris(return_X_y=True)
    flowers = SVC(trace=True).fit(points, species)
    with pytest.raises(ValueError, match=r"2 features.*on 4.*PCA"):
        street(flowers, points, species, ax)
    with pytest.raises(TypeError, match=r"draws classifiers.*SVR"):
        street(SVR(trace=True).fit(X, Y), X, Y, ax)
    with pytest.raises(ValueError, match="problem 1, only of"):
        street(smo, X, Y, ax, problem=1)
    with pytest.raises(ValueError, match="model was not fitted on"):
        street(smo, X, Y + 5, ax)
    with pytest.raises(ValueError, match="must be those of fit"):
        street(smo, X[:-1], Y[:-1], ax)
    together = LogisticRegression(trace=True).fit(BLOBS, np.arange(40) % 3)
    with pytest.raises(ValueError, match="all classes together"):
        street(together, BLOBS, np.arange(40) % 3, ax)


def cut(figure):
    """How many inches of what is drawn first are outside of the figure."""
    figure.canvas.draw()
    box, size = figure.get_tightbbox(), figure.get_size_inches()
    return max(*-box.min, *(box.max - size))


@pytest.mark.parametrize("own", [True, False])
def test_nothing_is_cut_where_scales_are_equal(smo, own):
    step = two_variable_step((1, -1), (0.2, 0.5), errors=(-3, 3), K=(1, 1, 0), C=1.0)
    iris = load_iris()
    pictures = [
        lambda ax: plotting.StreetDisplay.from_estimator(smo, X, Y, ax=ax),
        lambda ax: plotting.SMOBoxDisplay.from_steps(step, ax),
        lambda ax: plotting.KernelMatrixDisplay.from_kernel(
            "rbf", iris.data, iris.target_names[iris.target], ax
        ),
    ]
    for draw in pictures:
        if own:
            figure = draw(None).figure_
        else:
            figure = Figure(figsize=(9, 5), layout="constrained")
            left, right = figure.subplots(1, 2)
            draw(left)
            draw(right)
        assert cut(figure) < 0.02  # antialiasing
    if not own:
        legend = plotting.plot_smo_box(step, Figure().subplots()).get_legend()
        assert cut(legend.figure) < 0.02  # no layout makes room for it below


def test_a_long_title_has_lines(ax):
    kernel = RBF(gamma=0.5) + Laplacian(gamma=0.25) * Matern(nu=1.5, length_scale=1.0)
    beside = Figure(figsize=(5, 3), layout="constrained").subplots(1, 2)[0]
    plotting.plot_kernel_samples(kernel, beside)
    lines = beside.get_title().split("\n")
    assert len(lines) > 1
    assert " ".join(lines) == str(kernel)
    assert beside.title.get_window_extent().width < 250  # half of the figure


# -- films -----------------------------------------------------------------------------------------


def frames_of(path):
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as film:
        found = []
        for k in range(film.n_frames):
            film.seek(k)
            found.append((np.asarray(film.convert("RGB")), film.info["duration"]))
    return found


@pytest.mark.slow
def test_a_film_has_the_frames_that_it_says(smo, tmp_path):
    film = animate(smo, X, Y, max_frames=4, fps=5, hold=2.0, figsize=(3, 2), grid_resolution=20)
    states = len(smo.trace_.records[0])
    assert film.frames[[0, -1]].tolist() == [0, states - 1]
    assert film.thinned == (f"4 of {states} states are shown, the first and the last among them")
    assert film.thinned in repr(film)
    frames = frames_of(film.save(tmp_path / "street.gif", dpi=40))
    assert len(frames) == 4
    assert all(frame.shape == (80, 120, 3) for frame, _ in frames)
    assert all((one != other).any() for (one, _), (other, _) in pairwise(frames))
    assert [duration for _, duration in frames] == [200, 200, 200, 2200]  # the last one is held


def test_every_picture_with_states_is_a_film(smo, tmp_path):
    ax = Figure().subplots()
    step = two_variable_step((1, -1), (0.2, 0.5), errors=(-3, 3), K=(1, 1, 0), C=1.0)
    path = [[0, 0], [1, 0], [1, 1], [0.5, 1]]
    pictures = {
        "gap": smo.trace_,
        "box": plotting.SMOBoxDisplay.from_steps([step, step], ax),
        "stairs": plotting.PathDisplay.from_function(np.hypot, path, ax),
        "alphas": plotting.AlphasDisplay.from_trace(smo.trace_, ax=ax),
        "line": plotting.PerceptronDisplay.from_estimator(Perceptron(tol=None), BLOBS, SIDES, ax),
        "weights": plotting.WeightPathDisplay.from_estimator(
            Perceptron(tol=None), BLOBS, SIDES, ax
        ),
        "lines": plotting.SeparatorsDisplay.from_orders(Perceptron(tol=None), BLOBS, SIDES, ax),
        "slides": [
            plotting.BasisDisplay.from_bases(GaussianBasis(n), ax=Figure().subplots(2, 1))
            for n in (3, 5, 7)
        ],
    }
    for name, picture in pictures.items():
        film = animate(picture, max_frames=2, hold=0, figsize=(4, 3.4))
        frames = frames_of(film.save(tmp_path / f"{name}.gif", dpi=20))
        assert len(frames) == len(film.frames) == 2, name
    assert animate(pictures["slides"]).frames.tolist() == [0, 1, 2]
    assert not animate(pictures["slides"]).thinned


def test_frames_of_a_film_may_be_chosen_and_steps_stay_whole(smo):
    film = animate(smo.trace_, frames=[0, 5, 2, -1])
    last = len(film.pictures) - 1
    assert film.frames.tolist() == [0, 5, 2, last]
    assert film.thinned == f"4 of {last + 1} states are shown, the first and the last among them"
    assert animate(smo.trace_, frames=[3]).thinned == f"1 of {last + 1} states are shown"
    for wrong in ([], [last + 1], [0.5], 3):
        with pytest.raises(ValueError, match=f"some of the states 0 to {last}"):
            animate(smo.trace_, frames=wrong)
    box = plotting.SMOBoxDisplay.from_estimator(smo, X, Y, Figure().subplots())
    frames = animate(box, max_frames=10).frames.reshape(3, 3)
    assert (frames % 3 == [0, 1, 2]).all()
    assert (frames // 3 == frames[:, :1] // 3).all()
    assert frames[[0, -1], [0, -1]].tolist() == [0, len(box) - 1]
    assert len(animate(box, max_frames=4).frames) == 4


@pytest.mark.parametrize(
    "machine",
    [
        SVR(C=2.0, epsilon=0.2, solver="smo"),
        NuSVR(C=2.0, solver="smo"),
        LinearSVR(epsilon=0.3),
        make_pipeline(StandardScaler(), SVR(C=2.0, epsilon=0.2, solver="smo")),
    ],
)
def test_a_tube_that_moves_ends_as_the_machine(machine, ax):
    x = np.linspace(0.0, 6.0, 30)[:, None]
    y = np.sin(x[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=30)
    weight = np.where(np.arange(30) < 15, 1.0, 0.3)
    model = clone(machine)
    end = model[-1] if isinstance(model, Pipeline) else model
    end.set_params(trace=True, tol=1e-6)
    given = {
        f"{model.steps[-1][0]}__sample_weight" if model is not end else "sample_weight": weight
    }
    model.fit(x, y, **given)
    options = {} if isinstance(end, LinearSVR) else {"sample_weight": weight}
    display = plotting.MovingTubeDisplay.from_estimator(
        model, x, y, ax, grid_resolution=50, **options
    )
    assert display.curves.shape == (len(end.trace_), 50)
    whole = plotting.TubeDisplay.from_estimator(model, x, y, ax=Figure().subplots())
    last = display.tube(-1)
    np.testing.assert_allclose(display.fitted[-1], model.predict(x), atol=1e-4)
    np.testing.assert_allclose(last.curve[[0, -1]], whole.curve[[0, -1]], atol=1e-4)
    assert last.epsilon == pytest.approx(whole.epsilon, abs=1e-4)
    np.testing.assert_allclose(last.xi + last.xi_hat, whole.xi + whole.xi_hat, atol=1e-3)
    if whole.support is not None:
        np.testing.assert_array_equal(last.support, whole.support)
    first = display.tube(0)
    if not isinstance(end, NuSVR):  # it begins at zero, with all that is outside of its tube
        assert np.ptp(first.curve) == 0
    assert display.ax_.lines[2].get_ydata().tolist() == last.curve.tolist()
    film = animate(model, x, y, max_frames=3, **options)
    assert isinstance(film.pictures, plotting.MovingTubeDisplay)


def test_a_film_in_a_notebook(tmp_path):
    picture = plotting.PathDisplay.from_function(
        np.hypot, np.random.default_rng(0).normal(size=(9, 2)), Figure().subplots()
    )
    film = animate(picture, max_frames=2, hold=0, figsize=(2, 1.5))
    shown = film._repr_html_()
    assert shown.count("data:image/png;base64") == 2
    assert "2 of 9 states are shown" in shown
    assert film.save(tmp_path / "film.html").read_text().count("data:image/png;base64") == 2


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_a_film_by_ffmpeg(tmp_path, monkeypatch):
    import matplotlib as mpl

    stand_in = tmp_path / "ffmpeg"  # keeps what it is given, in the file that it is to write
    stand_in.write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n')
    stand_in.chmod(0o755)
    monkeypatch.setitem(mpl.rcParams, "animation.ffmpeg_path", str(stand_in))
    path = [[0, 0], [1, 0], [1, 1]]
    picture = plotting.PathDisplay.from_function(np.hypot, path, Figure().subplots())
    film = animate(picture, fps=4, hold=0.5, figsize=(4, 3))
    written = film.save(tmp_path / "film.mp4", dpi=20).read_bytes()
    assert len(written) == (3 + 2) * 80 * 60 * 4  # frames of so many pixels


def test_what_is_no_film(smo, tmp_path, monkeypatch):
    import matplotlib as mpl

    film = animate(smo.trace_, max_frames=2)
    monkeypatch.setitem(mpl.rcParams, "animation.ffmpeg_path", str(tmp_path / "no-ffmpeg"))
    with pytest.raises(RuntimeError, match=r"ffmpeg, which is not here.*install.*\.gif"):
        film.save(tmp_path / "film.mp4")
    with pytest.raises(ValueError, match=r"ends in one of \.gif.*got '\.bmp'"):
        film.save(tmp_path / "film.bmp")
    with pytest.raises(ValueError, match="at least two frames"):
        animate(smo.trace_, max_frames=1)
    with pytest.raises(ValueError, match="fps must be at least 1"):
        animate(smo.trace_, fps=0)
    with pytest.raises(ValueError, match=r"animate\(model, X, y\).*animate\(model.trace_\)"):
        animate(smo)
    for nothing in (SVC().fit(X, Y), [], [1], "film"):
        with pytest.raises(TypeError, match="fitted with trace=True"):
            animate(nothing, X, Y)
    with pytest.raises(TypeError, match="takes no problem"):
        animate(plotting.AlphasDisplay.from_trace(smo.trace_), problem=0)


def test_snapshots_share_a_colour_bar():
    perceptron = Perceptron(tol=None)
    picture = plotting.WeightPathDisplay.from_estimator(perceptron, BLOBS, SIDES)
    said = [axes.get_ylabel() for axes in picture.figure_.axes]
    axes = plotting.plot_snapshots(picture, 3)
    (bar,) = set(axes[0, 0].figure.axes) - set(axes.flat)
    assert bar.get_ylabel() == said[-1]


def test_snapshots(smo):
    picture = plotting.AlphasDisplay.from_trace(smo.trace_, ax=Figure().subplots())
    display = plotting.SnapshotsDisplay.from_picture(picture, 5, Figure().subplots(2, 3))
    assert display.states[0] == 0
    assert display.states[-1] == len(picture) - 1
    shown = [axes.get_title().split(":")[0] for axes in display.ax_.flat if axes.axison]
    assert shown == [f"step {picture.steps[state]}" for state in display.states]
    with pytest.raises(ValueError, match="some of the"):
        plotting.plot_snapshots(picture, [len(picture)])
    with pytest.raises(ValueError, match="no state 1000"):
        picture.plot(state=1000)
