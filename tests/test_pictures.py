"""The pictures, by the data that they draw."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import LinearSVC as TheirLinearSVC

import maxmargin.plotting
from maxmargin import (
    SVC,
    SVR,
    LeastSquaresClassifier,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    Perceptron,
    SVCSearchCV,
    losses,
)
from maxmargin.kernels import RBF
from maxmargin.multiclass import DAG, OneVsOne
from maxmargin.plotting import (
    ConstraintDisplay,
    DecisionDisplay,
    KernelMatrixDisplay,
    LiftDisplay,
    LossDisplay,
    MarginDisplay,
    RegularisationDisplay,
    ReliabilityDisplay,
    SchemeDisplay,
    SearchDisplay,
    StreetDisplay,
    StreetsDisplay,
    SurfaceDisplay,
    TubeDisplay,
    marks,
    plot_constraint,
    plot_decision,
    plot_lift,
    plot_margins,
    plot_regularisation,
    plot_reliability,
    plot_scheme,
    plot_search,
    plot_street,
    plot_street_path,
    plot_surface,
    plot_tube,
)
from maxmargin.plotting.geometry.lift import _cut

Figure = pytest.importorskip("matplotlib.figure").Figure
to_rgba = pytest.importorskip("matplotlib.colors").to_rgba
LineCollection = pytest.importorskip("matplotlib.collections").LineCollection
COARSE = {"grid_resolution": 40}


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture
def space():
    return Figure().add_subplot(projection="3d")


@pytest.fixture(scope="module")
def moons():
    return make_moons(90, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(60, centers=[[0, 0], [2.4, 1.2]], random_state=3)


@pytest.fixture(scope="module")
def petals():
    X, y = load_iris(return_X_y=True)
    return X[:, 2:], y


def labels(ax) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def offsets(ax, start: str) -> np.ndarray:
    """Points of the marks whose label starts so, shape (n, 2)."""
    found = [c.get_offsets() for c in ax.collections if c.get_label().startswith(start)]
    return np.asarray(np.concatenate(found)) if found else np.empty((0, 2))


# -- the street ----------------------------------------------------------------------------------


def test_slack_of_a_linear_machine_is_a_perpendicular(blobs, ax):
    X, y = blobs
    model = SVC(kernel="linear", C=0.5).fit(X, y)
    display = StreetDisplay.from_estimator(model, X, y, ax=ax, **COARSE)
    f, side = model.decision_function(X), np.where(y == 1, 1, -1)
    np.testing.assert_allclose(display.slack, np.maximum(0, 1 - side * f))
    out = display.slack > model.tol
    w = model.coef_[0]
    feet = X + ((side - f) / (w @ w))[:, None] * w
    np.testing.assert_allclose(display.feet[out], feet[out], atol=1e-8)
    assert np.isnan(display.feet[~out]).all()
    lengths = np.linalg.norm(display.feet - X, axis=1)[out]
    np.testing.assert_allclose(lengths, display.slack[out] * model.margin_, rtol=1e-6)
    (drawn,) = (c for c in ax.collections if type(c) is LineCollection)
    expected = np.stack([X[out], feet[out]], axis=1)
    np.testing.assert_allclose(np.array(drawn.get_segments()), expected, atol=1e-8)


@pytest.mark.parametrize("machine", [SVC(C=2.0), SVC(kernel="linear"), NuSVC(nu=0.4)])
def test_free_and_bounded_support_vectors(machine, moons, ax):
    """Their multipliers say the same as where they are."""
    X, y = moons
    model = make_pipeline(StandardScaler(), machine).fit(X, y)
    display = StreetDisplay.from_estimator(model, X, y, ax=ax, **COARSE)
    machine = model[-1]
    alpha = np.abs(np.asarray(machine.dual_coef_)[0])
    at_cost = alpha > (1 - 1e-6) * alpha.max()
    assert 0 < at_cost.sum() < len(alpha)
    np.testing.assert_array_equal(display.bounded, np.sort(machine.support_[at_cost]))
    np.testing.assert_array_equal(display.free, np.sort(machine.support_[~at_cost]))
    np.testing.assert_array_equal(offsets(ax, "free support vectors"), X[display.free])
    np.testing.assert_array_equal(offsets(ax, "bounded support vectors"), X[display.bounded])
    assert ax.get_title().endswith(
        f"{len(display.free)} free and {len(display.bounded)} bounded support vectors"
    )


def test_of_a_search_its_best_machine_is_drawn(moons, ax):
    X, y = moons
    scaled = make_pipeline(StandardScaler(), SVC(trace=True))
    search = GridSearchCV(scaled, {"svc__C": [0.1, 2.0]}, cv=3).fit(X, y)
    ended = make_pipeline(StandardScaler(), GridSearchCV(SVC(), {"C": [2.0]}, cv=3)).fit(X, y)
    for model, best in ((search, search.best_estimator_), (ended, ended[-1].best_estimator_)):
        machine = best[-1] if model is search else best
        display = StreetDisplay.from_estimator(model, X, y, ax=ax, **COARSE)
        drawn = np.sort(np.concatenate([display.free, display.bounded]))
        np.testing.assert_array_equal(drawn, np.sort(machine.support_))
        assert "C = 2:" in ax.get_title()
        decision = DecisionDisplay.from_estimator(model, X, y, ax=ax, **COARSE)
        assert "C = 2" in decision.description
    film = maxmargin.plotting.animate(search, X, y, max_frames=3)
    assert len(film.frames) == 3


def test_slack_of_a_kernel_machine_goes_to_the_nearest_point_of_the_edge(moons, ax):
    X, y = moons
    model = SVC(C=2.0).fit(X, y)
    display = StreetDisplay.from_estimator(model, X, y, ax=ax, grid_resolution=120)
    out = display.slack > display.tol
    feet, side = display.feet[out], display.side[out]
    assert np.isfinite(feet).all()
    np.testing.assert_allclose(model.decision_function(feet), side, atol=2e-3)
    steps = 1e-5 * np.eye(2)
    f = model.decision_function
    gradient = np.stack([(f(feet + s) - f(feet - s)) / 2e-5 for s in steps], axis=1)
    along = X[out] - feet
    cross = along[:, 0] * gradient[:, 1] - along[:, 1] * gradient[:, 0]
    sizes = np.linalg.norm(along, axis=1) * np.linalg.norm(gradient, axis=1)
    inside = (np.abs(feet - X.mean(axis=0)) < 0.5 * np.ptp(X, axis=0)).all(axis=1)
    assert inside.sum() > 10
    assert np.quantile(np.abs(cross / sizes)[inside], 0.9) < 1e-3  # perpendicular to the edge
    lines = [c for c in ax.collections if hasattr(c, "levels") and not c.filled]
    edges = dict(zip(lines[0].levels, lines[0].get_paths(), strict=True))
    for level in (-1, 1):
        edge = edges[level].vertices
        nearest = [np.linalg.norm(edge - x, axis=1).min() for x in X[out][side == level]]
        assert (np.linalg.norm(along[side == level], axis=1) <= 1.01 * np.array(nearest)).all()


def test_a_street_wider_than_the_picture_has_no_feet(moons, ax):
    X, y = moons
    display = StreetDisplay.from_estimator(SVC(C=1e-3).fit(X, y), X, y, ax=ax, **COARSE)
    assert np.abs(display.plane.values).max() < 1
    assert np.isnan(display.feet).all()
    assert f"slack: to the nearest point of the edge ({len(X)} far from it)" in labels(ax)
    flat = StreetDisplay.from_estimator(SVC(gamma=1e5, C=0.5).fit(X, y), X, y, ax=ax, **COARSE)
    assert np.isnan(flat.feet).all()


def test_a_hard_margin_has_nothing_bounded_to_list(ax):
    X, y = make_blobs(40, centers=[[0, 0], [5, 3]], random_state=1)
    model = SVC(kernel="linear", C=np.inf).fit(X, y)
    display = StreetDisplay.from_estimator(model, X, y, ax=ax, **COARSE)
    np.testing.assert_array_equal(display.free, np.sort(model.support_))
    assert not [text for text in labels(ax) if text.startswith(("bounded", "slack"))]


def test_slack_0_below_1_1_and_above_1_are_told_apart(blobs, ax):
    X, y = blobs
    display = StreetDisplay.from_estimator(SVC(kernel="linear").fit(X, y), X, y, ax=ax, **COARSE)
    slack = np.resize([0.0, 0.5, 1.0, 1.5, 5e-4], len(X))
    other = Figure().subplots()
    shown = replace(display, slack=slack, segments=False).plot(other)
    counts = [12 + 12, 12, 12, 12]
    assert [mask.sum() for mask in shown.groups().values()] == counts
    for k, name in enumerate(("slack < 1", "slack = 1", "slack > 1"), start=1):
        np.testing.assert_array_equal(offsets(other, name), X[k::5])
    assert not any(type(c) is LineCollection for c in other.collections)


@pytest.mark.parametrize(
    "machine",
    [SVC(), SVC(kernel="linear", multiclass="ovr"), LinearSVC(loss="hinge"), TheirLinearSVC()],
    ids=["ovo", "ovr", "LinearSVC", "scikit-learn"],
)
def test_street_of_one_of_several_machines(machine, petals, ax):
    X, y = petals
    model = machine.fit(X, y)
    display = StreetDisplay.from_estimator(model, X, y, task=1, ax=ax, class_names="abc", **COARSE)
    if isinstance(machine, SVC) and machine.multiclass == "ovo":  # class 0 against class 2
        assert display.names == ("c", "a")
        seen = y != 1
        np.testing.assert_array_equal(display.side, np.where(y == 0, 1, -1)[seen])
    else:
        assert display.names == ("a or c", "b")
        seen = np.ones(len(y), bool)
    if isinstance(machine, SVC):
        np.testing.assert_allclose(display.slack, model.slack_[1][seen], atol=1e-10)
        sides = np.concatenate([display.free, display.bounded])
        np.testing.assert_array_equal(np.sort(sides), display.support)
        assert (display.slack[~np.isin(np.arange(seen.sum()), sides)] <= model.tol).all()
        alone = SVC(kernel=model.kernel_).fit(X[seen], display.side)
        # of the other machines there are none among them, but for a matter of tol
        off = np.setdiff1d(display.support, alone.support_)
        y_f = display.side * alone.decision_function(X[seen])
        assert (np.abs(1 - y_f[off]) < 0.01).all()
    else:
        values = model.decision_function(X)[:, 1]
        np.testing.assert_allclose(display.slack, np.maximum(0, 1 - display.side * values))
    np.testing.assert_array_equal(display.plane.points, X[seen])


def test_streets_that_are_not_there(petals, moons, ax):
    X, y = petals
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match=r"3 classes has 3 of them.*task=0 \(0 against 1\)"):
        plot_street(model, X, y, ax=ax)
    with pytest.raises(ValueError, match="task must be from 0 to 2, got 3"):
        plot_street(model, X, y, ax=ax, task=3)
    with pytest.raises(ValueError, match="all 3 classes in one problem"):
        plot_street(SVC(multiclass="crammer_singer").fit(X, y), X, y, ax=ax, task=0)
    X, y = moons
    with pytest.raises(ValueError, match="to a LogisticRegression f = -1 and f = \\+1 mean"):
        plot_street(LogisticRegression().fit(X, y), X, y, ax=ax)
    theirs = StreetDisplay.from_estimator(TheirSVC(C=2.0).fit(X, y), X, y, ax=ax, **COARSE)
    ours = StreetDisplay.from_estimator(SVC(C=2.0).fit(X, y), X, y, ax=ax, **COARSE)
    np.testing.assert_allclose(theirs.slack, ours.slack, atol=5e-3)
    with pytest.raises(ValueError, match="of this SVC counts votes"):
        plot_margins(TheirSVC().fit(*petals), *petals, task=0, ax=ax)
    with pytest.raises(ValueError, match="OneClassSVM with 0 classes"):
        plot_street(OneClassSVM().fit(X), X, y, ax=ax)
    with pytest.raises(ValueError, match="got 90 other rows"):
        plot_street(SVC().fit(X, y), X[::-1], y[::-1], ax=ax)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_streets_of_data_frames(moons, library, ax):
    frames, (X, y) = pytest.importorskip(library), moons
    frame = frames.DataFrame({"width": X[:, 0], "height": X[:, 1]})
    for model in (SVC(C=2.0), LinearSVC(), make_pipeline(StandardScaler(), SVC())):
        shown = StreetDisplay.from_estimator(model.fit(frame, y), frame, y, ax=ax, **COARSE)
        plain = StreetDisplay.from_estimator(model.fit(X, y), X, y, ax=ax, **COARSE)
        assert shown.plane.names == ("width", "height")
        np.testing.assert_allclose(shown.plane.values, plain.plane.values)
        np.testing.assert_allclose(shown.feet, plain.feet)


def test_what_is_said_of_names_and_shapes_that_do_not_suit(moons, ax):
    X, y = moons
    named = np.where(y, "_inside", "out")
    for draw in (plot_decision, plot_street):
        listed = labels(draw(SVC().fit(X, named), X, named, ax=Figure().subplots()))
        assert any("_inside (" in text for text in listed)
        with pytest.raises(ValueError, match="A second column gives it a plane"):
            draw(SVC().fit(X[:, :1], y), X[:, :1], y, ax=ax)
        with pytest.raises(ValueError, match="got 90 other rows"):
            draw(SVC().fit(X, y), np.c_[X, X], y, ax=ax)
    with pytest.raises(ValueError, match="bar_width must be positive, or None; got 0"):
        plot_margins(SVC().fit(X, y), X, y, ax=ax, bar_width=0)


def test_ink_is_seen_on_a_dark_ground(moons):
    from matplotlib import style

    X, y = moons
    assert marks.ink() == marks.INK
    with style.context("dark_background"):
        assert marks.ground() == "black"
        ax, tube, dag = Figure().subplots(1, 3)
        plot_street(SVC().fit(X, y), X, y, ax=ax, **COARSE)
        plot_tube(SVR().fit(X[:, :1], X[:, 1]), X[:, :1], X[:, 1], ax=tube)
        plot_scheme(DAG(3), ax=dag)
    drawn = [tuple(c) for art in ax.collections for c in np.atleast_2d(art.get_edgecolor())]
    drawn += [to_rgba(line.get_color()) for line in (*ax.lines, *tube.lines)]
    dark = [colour for colour in drawn if max(colour[:3]) < 0.3 and colour[3] > 0]
    assert not dark
    for text in dag.texts:
        face = text.get_bbox_patch()
        if face is not None:
            assert to_rgba(text.get_color()) != face.get_facecolor()


@pytest.mark.parametrize(
    ("machine", "title"),
    [
        (SVC(gamma=2.0, norm_bound=0.5), "RBF(gamma=2.0), ||w|| <= 0.5: "),
        (LinearSVC(norm_bound=0.5), "LinearSVC, ||w|| <= 0.5: "),
        (
            SVC(gamma=2.0, approximation=Nystroem(n_components=9)),
            "RBF(gamma=2.0) by Nystroem, C = 1",
        ),
        (SVC(gamma=2.0, lam=0.1), "RBF(gamma=2.0), lam = 0.1: "),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The features stand in")
def test_titles_name_the_problem_that_was_solved(machine, title, moons, ax):
    assert plot_decision(machine.fit(*moons), *moons, ax=ax, **COARSE).get_title().startswith(title)


def test_functions_of_a_softmax_have_no_wrong_side(petals, ax):
    X, y = petals
    for model in (LogisticRegression(), TheirLogistic(max_iter=1000)):
        with pytest.raises(ValueError, match="by their differences only"):
            plot_margins(model.fit(X, y), X, y, task=1, ax=ax)
    for model in (LogisticRegression(multiclass="ovr"), SVC(probability=True, random_state=0)):
        plot_margins(model.fit(X, y), X, y, task=1, ax=ax)


def test_small_values_are_not_on_the_line(moons, ax):
    """A machine with a tiny C has small values everywhere, and they are not all zero."""
    X, y = moons
    display = StreetDisplay.from_estimator(SVC(C=1e-4).fit(X, y), X, y, ax=ax, **COARSE)
    assert display.groups()["slack = 1: on f = 0"].sum() < 3
    assert display.groups()["slack < 1: inside the street"].sum() > 70


def test_legends_can_be_read_beside_thousands_of_points(ax):
    X, y = make_moons(5000, noise=0.3, random_state=0)
    plot_decision(LogisticRegression().fit(X, y), X, y, ax=ax, **COARSE)
    areas = [h.get_sizes()[0] for h in ax.get_legend().legend_handles if hasattr(h, "get_sizes")]
    assert areas
    assert min(areas) >= 15


def test_names_of_classes_stay_inside_the_figure(petals):
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    ax = figure.subplots()
    names = np.array(["setosa", "versicolor", "virginica"])[petals[1]]
    KernelMatrixDisplay.from_kernel(RBF(gamma=0.5), petals[0], names, ax=ax)
    figure.canvas.draw()
    assert all(text.get_window_extent().x0 >= 0 for text in ax.get_yticklabels())


def test_what_C_and_lam_do_to_the_street(blobs, moons):
    X, y = blobs
    axes = Figure().subplots(1, 3)
    values = [1.0, 0.1, 0.01]
    display = StreetsDisplay.from_estimator(
        SVC(kernel="linear"), X, y, param="lam", values=values, ax=axes, **COARSE
    )
    assert [model.lam for model in display.models] == values
    margins = [model.margin_ for model in display.models]
    assert margins[0] > margins[1] > margins[2]
    for panel, street, model in zip(axes, display.streets, display.models, strict=True):
        support = len(model.support_)
        assert len(street.free) + len(street.bounded) == support
        assert panel.get_title().startswith(f"lam = {model.lam:g}\n{support} support vectors")
    X, y = moons
    scaled = make_pipeline(StandardScaler(), SVC())
    display = StreetsDisplay.from_estimator(
        scaled, X, y, values=[0.1, 1, 2, 3, 4], ax=Figure().subplots(2, 4), **COARSE
    )
    assert [model[-1].C for model in display.models] == [0.1, 1, 2, 3, 4]
    assert display.shape == (2, 4)
    assert [panel.axison for panel in display.ax_.flat] == [True] * 5 + [False] * 3
    linear = StreetsDisplay.from_estimator(
        LinearSVC(), X, y, values=[1], segments=True, ax=Figure().subplots(), **COARSE
    )
    assert "points with slack" in linear.ax_[0, 0].get_title()
    assert np.isfinite(linear.streets[0].feet).any()
    with pytest.raises(ValueError, match="values is empty"):
        plot_street_path(SVC(), X, y, values=[])


# -- regions and surfaces ------------------------------------------------------------------------

CLASSIFIERS = [
    SVC(),
    LinearSVC(),
    LogisticRegression(),
    Perceptron(max_iter=20),
    Perceptron(kernel="rbf", max_iter=20),
    MCEClassifier(),
    LeastSquaresClassifier(),
    RidgeClassifier(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("machine", CLASSIFIERS, ids=lambda m: f"{type(m).__name__}")
def test_decision_of_every_classifier(machine, n_classes, petals, ax):
    X, y = petals
    X, y = X[y < n_classes], np.array(["a", "b", "c"])[y[y < n_classes]]
    model = machine.fit(X, y)
    display = DecisionDisplay.from_estimator(model, X, y, ax=ax, **COARSE)
    places = np.stack(np.meshgrid(display.plane.x, display.plane.y), axis=-1).reshape(-1, 2)
    values = display.plane.values.ravel()
    said = model.classes_[(values if n_classes == 3 else values > 0).astype(int)]
    assert (said == model.predict(places)).all()
    np.testing.assert_array_equal(display.wrong, model.predict(X) != y)
    street = isinstance(machine, (SVC, LinearSVC))
    assert display.kind == ("regions" if n_classes > 2 else "street" if street else "sides")
    fields = [c for c in ax.collections if hasattr(c, "levels") and c.filled]
    assert len(fields) == (3 if n_classes == 3 else 1)


def test_a_slice_through_more_features_says_where_it_is(ax):
    frame = load_iris(as_frame=True)
    X, y = frame.data, frame.target
    chosen = ("petal length (cm)", "sepal width (cm)")
    model = LogisticRegression().fit(X[y < 2], y[y < 2])
    display = DecisionDisplay.from_estimator(
        model, X[y < 2], y[y < 2], ax=ax, features=chosen, **COARSE
    )
    medians = X[y < 2].median()
    place = medians.copy()
    place[list(chosen)] = display.plane.x[7], display.plane.y[3]
    value = model.decision_function(pd.DataFrame([place]))
    assert display.plane.values[3, 7] == pytest.approx(value[0])
    np.testing.assert_allclose(display.plane.held, medians)
    np.testing.assert_array_equal(display.plane.points, X.loc[y < 2, list(chosen)])
    assert (ax.get_xlabel(), ax.get_ylabel()) == chosen
    assert "the other 2 features at their medians" in ax.get_title()
    values = X.to_numpy()
    model = SVC().fit(values, y)
    by_number = DecisionDisplay.from_estimator(model, values, y, ax=ax, features=(2, 1), **COARSE)
    np.testing.assert_array_equal(by_number.plane.points, values[:, [2, 1]])
    surface = SurfaceDisplay.from_estimator(
        model, values, task=0, flat=True, features=(2, 1), ax=Figure().subplots(), **COARSE
    )
    assert surface.plane.held is not None
    for wrong in ((0,), (0, 4), (1, 1), ("petal", 0)):
        with pytest.raises(ValueError, match="numbers of two columns below 4"):
            plot_decision(model, values, y, ax=ax, features=wrong)
    with pytest.raises(
        ValueError, match=r"fitted on 4\. Choose two of them with features=\(0, 1\)"
    ):
        plot_decision(model, values, y, ax=ax)
    with pytest.raises(ValueError, match=r"labels \[7\]"):
        plot_decision(
            LogisticRegression().fit(values, y), values, y * 0 + 7, ax=ax, features=(0, 1)
        )
    with pytest.raises(ValueError, match="grid_resolution must be at least 2"):
        plot_decision(model, values, y, ax=ax, features=(0, 1), grid_resolution=1)


def test_surface(moons, space, ax):
    X, y = moons
    model = SVC(C=5.0).fit(X, y)
    display = SurfaceDisplay.from_estimator(model, X, y, ax=space, **COARSE)
    corner = [[display.plane.x[-1], display.plane.y[0]]]
    assert display.plane.values[0, -1] == pytest.approx(model.decision_function(corner)[0])
    assert display.levels == (-1.0, 0.0, 1.0)
    heights = [c.get_offsets() for c in space.collections if c.get_offsets().size > 2]
    assert sum(map(len, heights)) == len(X)
    flat = replace(display, flat=True).plot(ax)
    lines = [list(c.levels) for c in flat.ax_.collections if hasattr(c, "levels") and not c.filled]
    assert lines == [[-1, 0, 1]]
    other = Figure().add_subplot(projection="3d")
    linear = SurfaceDisplay.from_estimator(LogisticRegression().fit(X, y), X, ax=other, **COARSE)
    assert linear.levels == (0.0,)
    assert linear.side is None
    one = OneClassSVM().fit(X)
    plane = SurfaceDisplay.from_estimator(one, X, ax=other, **COARSE).plane
    assert plane.values[0, -1] == pytest.approx(one.decision_function(corner)[0])
    with pytest.raises(ValueError, match='make its axes with projection="3d"'):
        plot_surface(model, X, y, ax=ax)
    with pytest.raises(TypeError, match="got SVR"):
        plot_surface(SVR().fit(X, y), X, y, ax=space)


# -- margins, tubes, probabilities ---------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "machine",
    [LeastSquaresClassifier(), MCEClassifier(), Perceptron(tol=None, max_iter=20)],
    ids=lambda m: type(m).__name__,
)
def test_margins_of_machines_without_tol(machine, moons, ax):
    X, y = moons
    model = machine.fit(X, y)
    assert model.tol is None
    display = MarginDisplay.from_estimator(model, X, y, ax=ax)
    expected = np.where(y == 1, 1, -1) * model.decision_function(X)
    np.testing.assert_array_equal(display.margins["training"], expected)
    other = MarginDisplay.from_predictions(y, model.decision_function(X), ax=ax, cumulative=True)
    np.testing.assert_array_equal(other.margins["training"], expected)
    curve = ax.lines[-3]
    np.testing.assert_array_equal(np.sort(curve.get_xdata()[1:]), np.sort(expected))
    with pytest.raises(ValueError, match="of two classes, and y has"):
        MarginDisplay.from_predictions(np.arange(3), np.arange(3), ax=ax)


def test_margins_of_one_of_several_machines(petals, ax):
    X, y = petals
    model = SVC().fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, task=2, ax=ax)
    slack = model.slack_[2][y > 0]
    np.testing.assert_allclose(np.maximum(0, 1 - display.margins["training"]), slack, atol=2e-3)
    assert ax.get_title().endswith("1 against 2")
    margins = display.margins["training"]
    assert (margins[np.abs(margins - 1) <= model.tol] == 1).sum() > 1  # on the edge, not inside
    with pytest.raises(ValueError, match="choose one with task="):
        plot_margins(model, X, y, ax=ax)


@pytest.mark.parametrize("machine", [SVR(C=5, epsilon=0.2), NuSVR(C=5), LinearSVR(epsilon=0.3)])
def test_tube_tells_above_from_below(machine, ax):
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 50))[:, None]
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=50)
    model = machine.fit(X, y)
    display = TubeDisplay.from_estimator(model, X, y, ax=ax)
    miss = np.abs(y - model.predict(X)) - display.epsilon
    miss = np.where(miss > model.tol, miss, 0.0)
    np.testing.assert_allclose(display.xi + display.xi_hat, miss)
    above = y > model.predict(X)
    assert (display.xi > 0).sum() == (above & (miss > 0)).sum() > 0
    assert (display.xi_hat > 0).sum() == (~above & (miss > 0)).sum() > 0
    drawn = np.concatenate([c.get_segments() for c in ax.collections if type(c) is LineCollection])
    edge = (
        model.predict(drawn[:, 0, :1]) + np.sign(drawn[:, 1, 1] - drawn[:, 0, 1]) * display.epsilon
    )
    np.testing.assert_allclose(drawn[:, 0, 1], edge)
    if hasattr(machine, "dual_coef_"):
        np.testing.assert_allclose(display.alpha, np.ravel(model.dual_coef_))
        # a is of those above, a-hat of those below
        np.testing.assert_array_equal(above[display.support], display.alpha > 0)
        counts = {label.split(" (")[0]: label for label in _legend(ax)}
        assert counts["$a > 0$"].endswith(f"({(display.alpha > 0).sum()})")
        (rings,) = (c for c in ax.collections if c.get_label().startswith("support vectors"))
        of_xi = next(c for c in ax.collections if c.get_label().startswith(r"$\xi$"))
        same = (rings.get_edgecolor() == of_xi.get_edgecolor()).all(axis=1)
        np.testing.assert_array_equal(same, display.alpha > 0)
    else:
        assert display.support is None
    with pytest.raises(TypeError, match="got SVC"):
        plot_tube(SVC().fit(X, y > 0), X, y > 0, ax=ax)


def _legend(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_reliability_from_predictions(moons, ax):
    X, y = moons
    model = SVC(probability="temperature", random_state=0).fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    display = ReliabilityDisplay.from_predictions(y[1::2], p, ax=ax, bins=4)
    (curve,) = display.curves
    (same,) = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], ax=ax, bins=4).curves
    np.testing.assert_array_equal(curve.share, same.share)
    assert curve.counts.sum() == len(p)
    inside = (p[:, 1] >= 0.25) & (p[:, 1] < 0.5)
    assert curve.counts[1] == inside.sum()
    assert curve.share[1] == pytest.approx(y[1::2][inside].mean())
    off = np.abs(curve.share - curve.said)
    assert curve.error == pytest.approx(np.average(off, weights=curve.counts[curve.counts > 0]))
    assert (curve.low <= curve.share).all()
    assert (curve.share <= curve.high).all()


# -- schemes, losses, searches, regularisation -----------------------------------------------------


def test_scheme_loss_and_search_keep_what_they_draw(petals, ax):
    X, y = petals
    display = SchemeDisplay.from_estimator(make_pipeline(StandardScaler(), SVC()).fit(X, y), ax=ax)
    assert display.scheme == OneVsOne(3)
    assert len(display.margins) == 3
    assert SchemeDisplay.from_scheme(OneVsOne(4), ax=ax).class_names == ["1", "2", "3", "4"]
    with pytest.raises(TypeError, match="got RidgeClassifier"):
        plot_scheme(RidgeClassifier().fit(X, y), ax=ax)

    hinge = losses.Hinge()
    drawn = LossDisplay.from_losses({"own": hinge}, weights=True, interval=(-3, 3), ax=ax)
    np.testing.assert_array_equal(drawn.curves["own"], -hinge.slope(drawn.margin))
    assert drawn.margin[[0, -1]].tolist() == [-3, 3]
    tube = {"squared": losses.Squared(), "tube": losses.EpsilonInsensitive(0.5)}
    other = Figure().subplots()
    drawn = LossDisplay.from_losses(tube, interval=(-2, 2), ax=other)
    np.testing.assert_allclose(drawn.curves["tube"], np.maximum(0, np.abs(drawn.margin) - 0.5))
    assert other.get_xlabel() == "residual f(x) - y"
    with pytest.raises(ValueError, match="losses of margins or losses of residuals"):
        LossDisplay.from_losses({**tube, "hinge": hinge}, ax=ax)

    search = SVCSearchCV({"C": [0.1, 1], "gamma": [0.1, 1]}, cv=3).fit(X, y)
    found = SearchDisplay.from_search(search, ax=Figure().subplots())
    assert [axis.name for axis in found.axes] == ["C", "gamma"]
    np.testing.assert_array_equal(found.scores, search.cv_results_["mean_test_score"])
    assert search.cv_results_["params"][found.best] == search.best_params_


def test_a_bound_on_the_norm_lies_on_the_curve_of_lam(blobs, ax):
    X, y = blobs
    model = LinearSVC(loss="hinge", tol=1e-6)
    lams = [1.0, 0.01, 0.1, 3.0]
    display = RegularisationDisplay.from_estimator(
        model, X, y, lams=lams, norm_bounds=[0.5, 1.0], ax=ax
    )
    np.testing.assert_array_equal(display.lam, np.sort(lams))
    assert (np.diff(display.norm) < 1e-3).all()
    fits = [LinearSVC(loss="hinge", tol=1e-6, lam=lam).fit(X, y) for lam in display.lam]
    np.testing.assert_allclose(display.norm, [np.linalg.norm(fit.coef_) for fit in fits])
    np.testing.assert_allclose(display.bounds[:, 1], [0.5, 1.0], rtol=2e-3)
    for lam, norm in display.bounds:
        tikhonov = LinearSVC(loss="hinge", tol=1e-6, lam=lam).fit(X, y)
        assert np.linalg.norm(tikhonov.coef_) == pytest.approx(norm, rel=0.01)
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.c_[display.lam, display.norm])
    kernel = RegularisationDisplay.from_estimator(SVC(), X, y, lams=[0.1], ax=ax)
    assert kernel.norm[0] == pytest.approx(1 / SVC(lam=0.1).fit(X, y).margin_)
    with pytest.raises(TypeError, match="parameter lam"):
        plot_regularisation(Perceptron(), X, y, ax=ax)
    with pytest.raises(ValueError, match="one norm"):
        plot_regularisation(LinearSVC(), *load_iris(return_X_y=True), lams=[1.0], ax=ax)


# -- geometry ------------------------------------------------------------------------------------


def hill(x1, x2):
    return -((x1 - 0.5) ** 2) - 1.5 * (x2 - 0.4) ** 2 - 0.3 * x1 * x2


@pytest.mark.parametrize(
    ("constraint", "active"),
    [
        (lambda x1, x2: 1.6 - x1 - x2, False),
        (lambda x1, x2: 0.7 - x1**2 - (x2 + 0.6) ** 2, True),
        (lambda x1, x2: x1 - 1.0, True),
    ],
)
def test_karush_kuhn_tucker(constraint, active, ax):
    display = ConstraintDisplay.from_functions(hill, constraint, ax=ax)
    of_f, of_g = display.gradients
    g = float(constraint(*display.optimum))
    assert display.active is active
    assert g >= -1e-8
    assert display.multiplier > 0 if active else display.multiplier == 0
    assert display.multiplier * g == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(of_f + display.multiplier * of_g, 0, atol=1e-4)
    allowed = np.where(display.constraint >= 0, display.objective, -np.inf)
    assert hill(*display.optimum) >= allowed.max() - 1e-9
    np.testing.assert_allclose(ax.lines[0].get_xydata()[0], display.optimum)
    assert len([t for t in ax.texts if getattr(t, "arrow_patch", None)]) == (2 if active else 0)


def test_constraints_that_cannot_be_drawn(ax):
    with pytest.raises(ValueError, match="holds nowhere"):
        plot_constraint(hill, lambda x1, x2: -1.0 - x1**2, ax=ax)
    with pytest.raises(ValueError, match="at the frame"):
        plot_constraint(lambda x1, x2: x1 + x2, lambda x1, x2: 9.0 - x1, ax=ax)
    with pytest.raises(ValueError, match="finite"):
        plot_constraint(lambda x1, x2: x1 + np.inf, lambda x1, x2: x1, ax=ax)


def test_the_disc_is_cut_out_by_a_plane():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (150, 2))
    y = np.where((X**2).sum(axis=1) <= 1, "inside", "outside")
    model = SVC(kernel="poly", degree=2, gamma=1, coef0=0, C=1e3).fit(X, y)
    figure = Figure()
    axes = [figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")]
    display = LiftDisplay.from_estimator(model, X, y, ax=axes, **COARSE)
    np.testing.assert_allclose(
        display.lifted, np.c_[X[:, 0] ** 2, X[:, 1] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1]]
    )
    values = display.lifted @ display.w + display.b
    np.testing.assert_allclose(values, model.decision_function(X), rtol=1e-6, atol=1e-6)
    assert ((values > 0) == (y == "outside")).all()
    corners = _cut(display.w, display.b, *np.percentile(display.lifted, [0, 100], axis=0))
    assert len(corners) >= 3
    np.testing.assert_allclose(corners @ display.w + display.b, 0, atol=1e-8 * abs(display.b))
    low, high = display.lifted.min(axis=0), display.lifted.max(axis=0)
    assert ((corners >= low - 1e-12) & (corners <= high + 1e-12)).all()
    with pytest.raises(ValueError, match="degree=2 and coef0=0"):
        plot_lift(SVC().fit(X, y), X, y, ax=axes)
    with pytest.raises(ValueError, match='projection="3d"'):
        plot_lift(model, X, y, ax=Figure().subplots(1, 2))
    with pytest.raises(ValueError, match="two classes"):
        plot_lift(SVC(kernel="poly", coef0=0).fit(X, X[:, 0].round()), X, y, ax=axes)


# -- the contract --------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_display_can_be_drawn_again_and_has_a_short_way(moons, petals):
    """``plot`` returns the display, on the axes that it is given, and on new ones; so do others."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, y = moons
    model = SVC(probability="temperature", random_state=0).fit(X, y)
    tube = SVR().fit(X[:, :1], X[:, 1])
    search = SVCSearchCV({"C": [0.1, 1]}, cv=3).fit(X, y)
    quadratic = SVC(kernel="poly", degree=2, coef0=0).fit(X, y)
    line = (lambda x1, x2: 1.0 - x1,)
    cases = [
        (DecisionDisplay.from_estimator, plot_decision, (model, X, y), COARSE),
        (StreetDisplay.from_estimator, plot_street, (model, X, y), COARSE),
        (SurfaceDisplay.from_estimator, plot_surface, (model, X, y), COARSE),
        (MarginDisplay.from_estimator, plot_margins, (model, X, y), {}),
        (TubeDisplay.from_estimator, plot_tube, (tube, X[:, :1], X[:, 1]), COARSE),
        (ReliabilityDisplay.from_estimator, plot_reliability, (model, X, y), {}),
        (SchemeDisplay.from_estimator, plot_scheme, (model,), {}),
        (SearchDisplay.from_search, plot_search, (search,), {}),
        (
            RegularisationDisplay.from_estimator,
            plot_regularisation,
            (LinearSVC(), X, y),
            {"lams": [0.1, 1.0]},
        ),
        (ConstraintDisplay.from_functions, plot_constraint, (hill, *line), COARSE),
        (StreetsDisplay.from_estimator, plot_street_path, (SVC(), X, y), {"values": [1], **COARSE}),
        (LiftDisplay.from_estimator, plot_lift, (quadratic, X, y), COARSE),
    ]
    for make, short, data, options in cases:
        display = make(*data, **options)
        first = display.ax_
        assert display.plot() is display
        assert np.ravel(display.ax_)[0] is not np.ravel(first)[0]
        assert display.plot(first).ax_ is first or np.shape(first)
        assert display.figure_ is np.ravel(np.array(first, dtype=object))[0].figure
        drawn = short(*data, **options)
        assert (
            np.ravel(np.array(drawn, dtype=object))[0].get_title()
            == np.ravel(np.array(first, dtype=object))[0].get_title()
        )
        assert not legends_of(display.plot(legend=False).ax_)
        if legends_of(first):
            assert not legends_of(short(*data, **options, legend=False))
        plt.close("all")


def legends_of(axes):
    panels = np.ravel(np.array(axes, dtype=object))
    found = [panel.get_legend() for panel in panels if panel.get_legend() is not None]
    return [*found, *panels[0].figure.legends]


def test_a_picture_without_a_legend(moons):
    X, y = moons
    ax = Figure().subplots()
    own = ax.figure.legend([], [])
    assert len(legends_of(plot_street(SVC().fit(X, y), X, y, ax, **COARSE))) == 2
    ax.clear()
    assert legends_of(plot_street(SVC().fit(X, y), X, y, ax, **COARSE, legend=False)) == [own]


def test_the_page_lists_every_picture():
    page = (Path(__file__).parents[1] / "docs" / "pictures.md").read_text(encoding="utf-8")
    names = {name for name in maxmargin.plotting.__all__ if name.startswith("plot_")}
    assert names <= set(re.findall(r"plot_\w+", page))
