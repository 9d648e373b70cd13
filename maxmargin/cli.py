"""The command ``maxmargin``: its version, and a demonstration on data that scikit-learn ships."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin import __version__

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.pipeline import Pipeline

_DATA = ("breast_cancer", "digits", "iris", "wine")
_SEED = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; by default those of the process.

    Examples
    --------
    >>> from maxmargin.cli import main
    >>> main(["demo", "--data", "iris", "--no-plot"])
    maxmargin ...: a support vector machine on iris
    ...
    accuracy          held out ... % (... of 45), training ... % (... of 105)
    ...
    0
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    try:
        return _demo(arguments.data, None if arguments.no_plot else Path(arguments.output))
    except BrokenPipeError:  # whoever read the output has gone, as with `| head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is still buffered goes nowhere
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="maxmargin", description="Support vector machines, exact and certified."
    )
    parser.add_argument("--version", action="version", version=f"maxmargin {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")
    demo = commands.add_parser(
        "demo",
        help="train a machine on data shipped with scikit-learn and say how it went",
        description="Train a support vector classifier on data shipped with scikit-learn, say how "
        "it went, and draw it.",
    )
    demo.add_argument("--data", choices=_DATA, default=_DATA[0], help="default: %(default)s")
    demo.add_argument(
        "--output",
        metavar="PATH",
        default="maxmargin-demo.png",
        help="picture to write; its ending chooses the format (default: %(default)s)",
    )
    demo.add_argument("--no-plot", action="store_true", help="draw no picture")
    return parser


# -- the demonstration ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trial:
    """A machine trained on 70 % of some data, and what was measured."""

    data: str
    class_names: list[str]
    train: tuple[np.ndarray, np.ndarray]
    held_out: tuple[np.ndarray, np.ndarray]
    model: Pipeline
    predicted: np.ndarray
    seconds: dict[str, float]

    @property
    def machine(self) -> Any:
        """The classifier, without the scaling before it."""
        return self.model[-1]


def _demo(data: str, output: Path | None) -> int:
    from maxmargin.plotting.marks import require_matplotlib

    if output is not None and not output.absolute().parent.is_dir():
        folder = output.absolute().parent
        print(f"maxmargin demo: cannot write the picture: no folder {folder}", file=sys.stderr)
        return 1
    from maxmargin.estimators.explanation import in_lines

    trial = _train(data)
    _say(f"maxmargin {__version__}: a support vector machine on {data}\n")
    for name, text in _summary(trial).items():
        _say(in_lines(name, text))
    if output is None:
        return 0
    try:
        require_matplotlib()
    except ImportError as missing:
        _say(f"{'picture':<18}none. {missing}")
        return 0
    figure = _picture(trial)
    path = (output if output.suffix else output.with_suffix(".png")).absolute()
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        print(f"maxmargin demo: cannot write the picture: {error}", file=sys.stderr)
        return 1
    _say(f"{'picture':<18}{path}")
    return 0


def _say(text: str) -> None:
    """Print, with escapes for what the terminal's encoding lacks (such as in a path)."""
    encoding = sys.stdout.encoding or "ascii"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def _train(data: str) -> _Trial:
    from sklearn import datasets
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from maxmargin import SVC

    bunch = getattr(datasets, f"load_{data}")()
    X, X_held_out, y, y_held_out = train_test_split(
        bunch.data, bunch.target, test_size=0.3, stratify=bunch.target, random_state=_SEED
    )
    model = make_pipeline(StandardScaler(), SVC())
    seconds: dict[str, float] = {}
    with _timed(seconds, "first"):
        clone(model).fit(X, y).predict(X_held_out)
    model.fit(X, y)
    with _timed(seconds, "prediction"):
        predicted = model.predict(X_held_out)
    names = [str(name) for name in bunch.target_names]
    return _Trial(data, names, (X, y), (X_held_out, y_held_out), model, predicted, seconds)


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Keep the wall time of a ``with`` block under a name."""
    start = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - start


# -- what it says --------------------------------------------------------------------------------


def _summary(trial: _Trial) -> dict[str, str]:
    from maxmargin import explain
    from maxmargin.estimators.explanation import in_seconds

    (X, y), (_, y_held_out) = trial.train, trial.held_out
    seconds, sections = trial.seconds, explain(trial.model).sections()
    accuracy = f"held out {_share(trial.predicted == y_held_out)}"
    sections["data"] = (
        f"{len(y) + len(y_held_out)} points, {X.shape[1]} features, "
        f"{len(trial.class_names)} classes; {len(y)} for training, {len(y_held_out)} held out"
    )
    return {
        **sections,
        "accuracy": f"{accuracy}, training {_share(trial.model.predict(X) == y)}",
        "prediction time": f"{in_seconds(seconds['prediction'])} for {len(y_held_out)} points",
        "first time": f"{in_seconds(seconds['first'])} for the same fit and prediction, done "
        "first: that compiles the code after a fresh installation, and loads it from then on",
    }


def _share(right: np.ndarray) -> str:
    return f"{100 * right.mean():.2f} % ({right.sum()} of {len(right)})"


# -- what it draws -------------------------------------------------------------------------------


def _picture(trial: _Trial) -> Figure:
    """Draw the machine in a figure of its own, without touching pyplot's state or windows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from maxmargin.plotting import plot_margins

    figure = Figure(figsize=(13, 5.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_plane(trial, left)
    if len(trial.class_names) == 2:
        plot_margins(trial.model, *trial.train, ax=right, others={"held out": trial.held_out})
    else:
        _draw_confusion(trial, right)
    right.set_title(f"The machine on all {trial.train[0].shape[1]} features\n{right.get_title()}")
    figure.suptitle(
        f"maxmargin on {trial.data}: "
        f"{_share(trial.predicted == trial.held_out[1])} right on held-out data",
        weight="bold",
    )
    return figure


def _draw_plane(trial: _Trial, ax: Axes) -> None:
    """Draw the same kind of machine on the first two principal components."""
    from sklearn.base import clone
    from sklearn.decomposition import PCA

    from maxmargin.plotting import plot_decision

    X, y = trial.train
    pca = PCA(n_components=2, random_state=_SEED)
    plane = pca.fit_transform(trial.model[:-1].transform(X))
    machine = clone(trial.machine).fit(plane, y)
    plot_decision(machine, plane, y, ax=ax, class_names=trial.class_names)
    first, second = pca.explained_variance_ratio_
    ax.set_xlabel(f"first principal component ({first:.0%} of the variance)")
    ax.set_ylabel(f"second principal component ({second:.0%})")
    ax.set_title(f"Another machine of this kind, on two principal components\n{ax.get_title()}")


def _draw_confusion(trial: _Trial, ax: Axes) -> None:
    """Draw how often each class was taken for each other."""
    from sklearn.metrics import ConfusionMatrixDisplay

    display = ConfusionMatrixDisplay.from_predictions(
        trial.held_out[1],
        trial.predicted,
        display_labels=trial.class_names,
        cmap="Blues",
        colorbar=False,
        ax=ax,
    )
    for count in display.text_.ravel():
        if count.get_text() == "0":
            count.set_text("")
    ax.set(xlabel="predicted", ylabel="true", title="Held-out data: what was taken for what")
