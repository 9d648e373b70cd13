"""The command line's demonstration and the pictures: what they say and show is true."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import maxmargin
from maxmargin import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MCEClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
)
from maxmargin.cli import main
from maxmargin.kernels import RBF
from maxmargin.plotting import (
    ProcessDisplay,
    plot_decision,
    plot_margins,
    plot_process,
    plot_reliability,
    plot_tube,
)

Figure = pytest.importorskip("matplotlib.figure").Figure
mpl_image = pytest.importorskip("matplotlib.image")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.25, random_state=0)


def marked(ax, name: str) -> np.ndarray:
    """Points of the marks whose label starts with a name, shape (n, 2)."""
    found = [c.get_offsets() for c in ax.collections if c.get_label().startswith(name)]
    return np.asarray(np.concatenate(found)) if found else np.empty((0, 2))


def legend_texts(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


# -- the command line ----------------------------------------------------------------------------


def test_version_needs_no_heavy_import():
    code = (
        "import sys\nfrom maxmargin.cli import main\n"
        "try: main(['--version'])\n"
        "finally: print(sorted({'sklearn', 'numba', 'numpy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == [f"maxmargin {maxmargin.__version__}", "[]"]


def test_demo_tells_the_truth_and_writes_a_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    machine = model[-1]
    right, right_test = np.sum(model.predict(X) == y), np.sum(model.predict(X_test) == y_test)
    accuracy = f"{100 * right_test / len(y_test):.2f} % ({right_test} of {len(y_test)})"
    assert f"held out {accuracy}, training {100 * right / len(y):.2f} % ({right} of" in said
    slack = 1 - np.where(y == 1, 1, -1) * model.decision_function(X)
    inside = np.sum((slack > machine.tol) & (slack <= 1))
    assert f"{inside} inside the street, {np.sum(slack > 1)} on the wrong side" in said
    bound = np.sum(np.abs(machine.dual_coef_) == machine.C)
    assert f"{len(machine.support_)} of {len(y)}: {len(machine.support_) - bound} free" in said
    assert f"1 / ||w|| = {machine.margin_:.4g}" in said
    assert f"gap {machine.certificate_.gap:.3g} (and" in said
    assert f"RBF(gamma={machine.kernel_.gamma:.5g})" in said
    path = tmp_path / "maxmargin-demo.png"
    assert said.splitlines()[-1].split(maxsplit=1) == ["picture", str(path)]
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    picture = mpl_image.imread(path)[..., :3]
    assert min(picture.shape[:2]) > 500
    assert len(np.unique((picture[::4, ::4] * 15).astype(int).reshape(-1, 3), axis=0)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("data", ["digits", "iris", "wine"])
def test_demo_on_several_classes(data, tmp_path, capsys):
    assert main(["demo", "--data", data, "--output", str(tmp_path / "picture")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"held out 9\d\.\d\d %|held out 100\.00 %", said)
    assert "certificate       converged" in said
    assert (tmp_path / "picture.png").stat().st_size > 20_000


def test_demo_without_matplotlib(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", "--data", "iris"]) == 0
    assert 'pip install "maxmargin[plot]"' in capsys.readouterr().out.splitlines()[-1]
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ImportError, match=r'pip install "maxmargin\[plot\]"'):
        plot_decision(SVC().fit(X[:, :2], y), X[:, :2], y)


@pytest.mark.slow
def test_demo_in_an_ascii_terminal_and_a_folder_that_is_not(tmp_path):
    folder = tmp_path / "Käse"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "from maxmargin.cli import main; main(['demo', '--data', 'iris'])"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONIOENCODING": "ascii",
            "PYTHONUTF8": "0",
            "MPLCONFIGDIR": str(tmp_path),
        },
        capture_output=True,
        check=True,
    )
    assert rb"K\xe4se" in done.stdout.splitlines()[-1]
    assert (folder / "maxmargin-demo.png").exists()


@pytest.mark.parametrize("name", ["missing/picture.png", "picture.unknown"])
def test_a_picture_that_cannot_be_written_is_an_error(name, tmp_path, capsys):
    assert main(["demo", "--data", "iris", "--output", str(tmp_path / name)]) == 1
    assert "cannot write the picture" in capsys.readouterr().err


# -- the pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [SVC(C=2.0), NuSVC(nu=0.4), SVC(kernel="linear")])
def test_decision_of_two_classes(machine, moons, ax):
    X, y = moons
    model = make_pipeline(StandardScaler(), machine).fit(X, y)
    assert plot_decision(model, X, y, ax=ax, class_names=["upper", "lower"]) is ax
    machine = model[-1]
    np.testing.assert_array_equal(marked(ax, "support vectors"), X[machine.support_])
    for k, name in enumerate(["upper", "lower"]):
        np.testing.assert_array_equal(marked(ax, name), X[y == k])
    signed = np.where(y == 1, 1, -1) * model.decision_function(X)
    np.testing.assert_array_equal(marked(ax, "slack: wrong side"), X[signed < 0])
    inside = (signed >= 0) & (signed < 1 - machine.tol)
    np.testing.assert_array_equal(marked(ax, "slack: inside"), X[inside])
    lines = [c for c in ax.collections if hasattr(c, "levels") and not c.filled]
    assert [list(line.levels) for line in lines] == [[-1, 0, 1]]
    for level, path in zip(lines[0].levels, lines[0].get_paths(), strict=True):
        assert model.decision_function(path.vertices) == pytest.approx(level, abs=0.02)


def test_decision_of_several_classes_names_them(ax):
    frame = load_iris(as_frame=True)
    X, y = frame.data.iloc[:, [0, 2]], frame.target.map(dict(enumerate(frame.target_names)))
    model = SVC().fit(X, y)
    plot_decision(model, X, y, ax=ax)
    written = {text.get_text(): text.get_position() for text in ax.texts}
    assert sorted(written) == sorted(model.classes_)
    places = pd.DataFrame(list(written.values()), columns=X.columns)
    assert model.predict(places).tolist() == list(written)  # each in its own region
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(X.columns)
    assert len(marked(ax, "support vectors")) == len(model.support_)
    assert len(marked(ax, "misclassified")) == np.sum(model.predict(X) != y)


def test_decision_of_one_class(moons, ax):
    X, _ = moons
    model = OneClassSVM(nu=0.2).fit(X)
    plot_decision(model, X, ax=ax)
    np.testing.assert_array_equal(marked(ax, "slack"), X[model.slack_ > model.tol])
    np.testing.assert_array_equal(marked(ax, "support vectors"), X[model.support_])


@pytest.mark.parametrize(
    "machine",
    [
        LinearSVC(),
        LogisticRegression(),
        Perceptron(max_iter=20),
        MCEClassifier(),
        RidgeClassifier(),
        DecisionTreeClassifier(max_depth=2),
    ],
    ids=lambda machine: type(machine).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_decision_of_other_classifiers(machine, moons, ax):
    X, y = moons
    model = machine.fit(X, y)
    plot_decision(model, X[:90], y[:90], ax=ax)  # any points will do
    wrong = model.predict(X[:90]) != y[:90]
    np.testing.assert_array_equal(marked(ax, "misclassified"), X[:90][wrong])
    assert ax.get_title().startswith(type(machine).__name__)
    lines = [list(c.levels) for c in ax.collections if hasattr(c, "levels") and not c.filled]
    if isinstance(machine, LinearSVC):
        assert lines == [[-1, 0, 1]]
    elif hasattr(machine, "decision_function"):
        assert lines == [[0]]


def test_thousands_of_points_are_not_hidden_under_marks(ax):
    X, y = make_moons(3000, noise=0.4, random_state=0)
    model = SVC().fit(X, y)
    assert len(model.support_) > 400
    plot_decision(model, X, y, ax=ax)
    texts = legend_texts(ax)
    assert f"support vectors ({len(model.support_)} of 3000, not marked)" in texts
    assert [len(c.get_offsets()) for c in ax.collections if not hasattr(c, "levels")] == [
        1500,
        1500,
    ]
    plot_decision(model, X, y, ax=ax, support=True)
    assert len(marked(ax, "support vectors")) == len(model.support_)


def test_names_of_regions_do_not_lie_on_points(ax):
    X, y = load_iris(return_X_y=True)
    X = X[:, 2:]
    plot_decision(SVC().fit(X, y), X, y, ax=ax)
    extent = np.ptp([ax.get_xlim(), ax.get_ylim()], axis=1)
    for text in ax.texts:
        away = np.linalg.norm((X - text.get_position()) / extent, axis=1)
        assert away.min() > 0.02


def test_marks_can_be_left_out(moons, ax):
    X, y = moons
    plot_decision(SVC().fit(X, y), X, y, ax=ax, support=False, slack=False)
    assert not [text for text in legend_texts(ax) if re.match("support|slack", text)]


@pytest.mark.parametrize("machine", [SVR(C=10, epsilon=0.1), NuSVR(C=10, nu=0.3)])
def test_tube(machine, ax):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hour": rng.uniform(0, 6, 60)})
    y = pd.Series(np.sin(X["hour"]) + 0.2 * rng.normal(size=60), name="height")
    model = make_pipeline(StandardScaler(), machine).fit(X, y)
    plot_tube(model, X, y, ax=ax)
    machine = model[-1]
    points = np.column_stack([X, y])
    np.testing.assert_array_equal(marked(ax, "support vectors"), points[machine.support_])
    epsilon = getattr(machine, "epsilon_", None) or machine.epsilon
    error = np.abs(model.predict(X) - y)
    outside = points[error > epsilon + machine.tol]
    np.testing.assert_array_equal(marked(ax, "slack"), outside)
    lower, upper, curve = (line.get_ydata() for line in ax.lines)
    np.testing.assert_allclose((upper - lower) / 2, epsilon)
    np.testing.assert_allclose((upper + lower) / 2, curve)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour", "height")


@pytest.mark.slow
def test_process(ax):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hour": rng.uniform(0, 6, 40)})
    y = pd.Series(np.sin(X["hour"]) + 0.1 * rng.normal(size=40), name="height")
    machine = GaussianProcessRegressor(RBF(gamma=0.5), noise_level=0.01, normalize_y=True)
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), machine).fit(X, y)
    options = {"samples": 2, "grid_resolution": 50, "random_state": 3}
    plot_process(model, X, y, ax=ax, **options)
    *functions, curve = ax.lines
    x = curve.get_xdata()
    display = ProcessDisplay.from_estimator(model, X, y, ax=Figure().subplots(), **options)
    assert len(x) == 50
    np.testing.assert_array_equal(display.functions, [drawn.get_ydata() for drawn in functions])
    np.testing.assert_array_equal([display.x, display.mean], curve.get_data())
    np.testing.assert_array_equal(display.points, np.column_stack([X, y]))
    other = ProcessDisplay.from_estimator(model, X, y, ax=display.ax_, samples=2)
    assert not np.allclose(other.functions[:, ::6], display.functions, atol=0.01)
    mean, deviation = model.predict(pd.DataFrame({"hour": x}), return_std=True)
    np.testing.assert_allclose(display.deviation, deviation)
    np.testing.assert_allclose(curve.get_ydata(), mean, atol=1e-9)
    edge = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert edge.max() == pytest.approx((mean + 2 * deviation).max())
    assert len(functions) == 2
    for drawn in functions:  # smooth: without noise
        assert np.abs(np.diff(drawn.get_ydata(), 2)).max() < 0.1
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour", "height")
    with pytest.raises(TypeError, match="see plot_tube"):
        plot_process(SVR().fit(X, y), X, y, ax=ax)
    several = GaussianProcessRegressor(alpha=0.1).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="several"):
        plot_process(several, X, y, ax=ax)


@pytest.mark.slow
def test_a_legend_covers_no_points_where_it_need_not():
    """Where there is room for it, in pictures of many sizes; some of its texts are long."""
    x = np.linspace(0.0, 6.0, 30)[:, None]
    model = GaussianProcessRegressor(RBF(gamma=0.5), alpha=0.01, optimizer=None)
    for size in ((3, 3), (5, 4), (10, 7)):
        for sign in (1, -1):
            y = sign * (x[:, 0] > 3) * np.minimum(x[:, 0] - 3, 1.0)
            ax = Figure(figsize=size).subplots()
            plot_process(model.fit(x, y), x, y, ax=ax)
            ax.figure.canvas.draw()
            box = ax.get_legend().get_window_extent()
            seen = ax.transData.transform(np.column_stack([x, y]))
            assert box.count_contains(seen) == 0


@pytest.mark.parametrize("cumulative", [False, True])
def test_margins(cumulative, moons, ax):
    X, y = moons
    labels = np.array(["no", "yes"])[y]
    model = SVC().fit(X[:80], labels[:80])
    held_out = X[80:], labels[80:]
    plot_margins(
        model, X[:80], labels[:80], ax=ax, others={"held out": held_out}, cumulative=cumulative
    )
    wrong, inside = (
        np.sum(model.slack_ > 1),
        np.sum((model.slack_ > model.tol) & (model.slack_ <= 1)),
    )
    assert (
        legend_texts(ax)[0] == f"training: {wrong} of 80 on the wrong side, {inside} in the street"
    )
    errors = np.sum(model.predict(held_out[0]) != held_out[1])
    assert legend_texts(ax)[1].startswith(f"held out: {errors} of 40 on the wrong side")
    if not cumulative:
        heights, edges, _ = next(p for p in ax.patches if hasattr(p, "get_data")).get_data()
        assert heights.sum() == pytest.approx(1)
        assert heights[edges[1:] <= 0].sum() == pytest.approx(wrong / 80)
        assert heights[(edges[1:] <= 1) & (edges[:-1] >= 0)].sum() == pytest.approx(inside / 80)


def test_reliability(ax):
    """Shares, their means, the error and the counts, each recounted by hand."""
    p = np.array([0.05, 0.15, 0.12, 0.95, 0.85, 0.9, 1.0, 0.5])
    y = np.array(["no", "no", "yes", "yes", "yes", "no", "yes", "no"])
    assert plot_reliability(p, None, y, ax=ax, bins=2) is ax
    said, share = ax.lines[1].get_data()
    np.testing.assert_allclose(said, [p[:3].mean(), p[3:].mean()])
    np.testing.assert_allclose(share, [1 / 3, 3 / 5])
    error = (3 * abs(said[0] - 1 / 3) + 5 * abs(said[1] - 3 / 5)) / 8
    assert legend_texts(ax) == ["calibrated", f"P(class yes), ECE {error:.3f}"]
    (counts,) = (patch.get_data()[0] for patch in ax.child_axes[0].patches)
    assert counts.tolist() == [3, 5]


def test_reliability_of_several_classes_and_models(ax):
    X, y = load_iris(return_X_y=True)
    model = SVC(probability=True, random_state=0).fit(X[::2], y[::2])
    p, right = model.predict_proba(X[1::2]), model.predict_proba(X[1::2]).argmax(axis=1) == y[1::2]
    plot_reliability({"sigmoid": model, "the same": p}, X[1::2], y[1::2], ax=ax)
    assert [text.split(",")[0] for text in legend_texts(ax)] == [
        "calibrated",
        "sigmoid",
        "the same",
    ]
    first, second = (line.get_data() for line in ax.lines[1:])
    np.testing.assert_array_equal(first, second)
    assert first[1][-1] == pytest.approx(right[p.max(axis=1) >= 0.9].mean())
    band = ax.collections[0].get_paths()[0].get_extents()
    assert band.ymin <= first[1].min() < first[1].max() <= band.ymax
    other = Figure().subplots()
    plot_reliability(model, X, y, ax=other, each_class=True, confidence=0.5, bins=4)
    assert len(other.lines) == 4
    assert "P(class 2)" in legend_texts(other)[3]
    assert "50%" in other.get_title()
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        plot_reliability(LinearSVC().fit(X, y), X, y, ax=ax)
    with pytest.raises(ValueError, match="say with classes="):
        plot_reliability(p[:, :2], None, y[1::2], ax=ax)
    with pytest.raises(ValueError, match="nothing to draw: the mapping"):
        plot_reliability({}, X, y, ax=ax)
    with pytest.raises(ValueError, match="bins must be"):
        plot_reliability(model, X, y, ax=ax, bins=0)
    absent = plot_reliability(p[y[1::2] < 2], None, y[1::2][y[1::2] < 2], ax=ax, classes=[0, 1, 2])
    assert absent is ax


def test_what_cannot_be_drawn_is_refused_with_advice(moons, ax):
    X, y = moons
    three = np.column_stack([X, X[:, 0]])
    with pytest.raises(ValueError, match=r"on 2 features, and this one was fitted on 3.*PCA"):
        plot_decision(SVC().fit(three, y), three, y, ax=ax)
    with pytest.raises(ValueError, match=r"on 1 feature, and this one was fitted on 2"):
        plot_tube(SVR().fit(X, y), X, y, ax=ax)
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="got 5 rows where fit had 120"):
        plot_decision(model, X[:5], y[:5], ax=ax)
    with pytest.raises(ValueError, match="got 120 other rows"):
        plot_decision(model, X[::-1], y[::-1], ax=ax)
    with pytest.raises(ValueError, match="needs y"):
        plot_decision(model, X, ax=ax)
    with pytest.raises(ValueError, match="1 names for the 2 classes"):
        plot_decision(model, X, y, ax=ax, class_names=["one"])
    with pytest.raises(ValueError, match="precomputed"):
        plot_decision(SVC(kernel="precomputed").fit(X @ X.T, y), X, y, ax=ax)
    with pytest.raises(TypeError, match=r"got LinearSVR.*plot_tube"):
        plot_decision(LinearSVR().fit(X, y), X, y, ax=ax)
    with pytest.raises(TypeError, match="see plot_decision"):
        plot_tube(model, X, y, ax=ax)
    with pytest.raises(NotFittedError):
        plot_decision(SVC(), X, y, ax=ax)
    with pytest.raises(ValueError, match="with 3 classes"):
        plot_margins(SVC().fit(*load_iris(return_X_y=True)), X, y, ax=ax)
    with pytest.raises(ValueError, match=r"labels \[7\]"):
        plot_margins(model, X, np.full_like(y, 7), ax=ax)
