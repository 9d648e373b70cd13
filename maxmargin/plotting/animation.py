"""Films: the states of a picture one after the other, as a file or in a notebook."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from maxmargin.plotting import marks
from maxmargin.plotting.display import Display, MovingDisplay
from maxmargin.plotting.solvers.convergence import ConvergenceDisplay, has_traces
from maxmargin.plotting.solvers.moving_street import MovingStreetDisplay
from maxmargin.plotting.solvers.moving_tube import MovingTubeDisplay

_PILLOW, _FFMPEG, _HTML = (".gif", ".webp"), (".mp4", ".mov", ".mkv"), (".html",)


@dataclass(frozen=True)
class Animation:
    """A film that is drawn when it is saved or shown.

    In a notebook it shows itself, with buttons to stop it and to go through it frame by frame.

    Attributes
    ----------
    pictures : MovingDisplay or list of Display
        What is drawn.
    frames : int array
        The states, or the pictures, that it shows.
    fps : int
        Frames in a second.
    hold : float
        Seconds for which the last one stays.
    figsize : pair of float
        In inches.
    """

    pictures: MovingDisplay | Sequence[Display]
    frames: np.ndarray
    fps: int = 10
    hold: float = 1.0
    figsize: tuple[float, float] = (6.4, 4.8)

    @property
    def thinned(self) -> str:
        """What was left out, by choice or to stay within ``max_frames``; empty where nothing."""
        shown, all_states = len(self.frames), len(self.pictures)
        if shown == all_states:
            return ""
        ends = ", the first and the last among them" * {0, all_states - 1}.issubset(self.frames)
        return f"{shown} of {all_states} states are shown{ends}"

    def save(self, path: Any, dpi: float = 100) -> Path:
        """Write the film to a file, of the kind that its name ends with.

        Parameters
        ----------
        path : str or Path
            ``.gif`` and ``.webp`` need nothing more; ``.mp4``, ``.mov`` and ``.mkv`` need the
            programme ffmpeg; ``.html`` is what a notebook shows.
        dpi : float, default=100
            Dots in an inch.

        Returns
        -------
        path : Path
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind in _HTML:
            path.write_text(self.to_html(dpi), encoding="utf-8")
        else:
            self._write(_writer(kind, self.fps), path, dpi)
        return path

    def to_html(self, dpi: float = 72) -> str:
        """Return the film as a piece of HTML with buttons, all frames inside."""
        from matplotlib.animation import HTMLWriter

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "film.html")
            self._write(HTMLWriter(fps=self.fps, embed_frames=True), path, dpi)
            film = path.read_text(encoding="utf-8")
        return film + (f"<p><small>{self.thinned}.</small></p>" if self.thinned else "")

    def _repr_html_(self) -> str:
        return self.to_html()

    def _write(self, writer: Any, path: Path, dpi: float) -> None:
        import matplotlib.pyplot as plt
        from matplotlib.figure import Figure

        usual: Any = Figure(figsize=self.figsize, layout="compressed")
        held = round(self.hold * self.fps)
        with writer.saving(usual, str(path), dpi):
            for place, k in enumerate(self.frames):
                writer.fig = figure = self._drawn(int(k), usual)
                writer.grab_frame()
                if held and place == len(self.frames) - 1:
                    figure.set_layout_engine("none")  # a second layout can differ a little
                    for _ in range(held):
                        writer.grab_frame()
                if figure is not usual:
                    plt.close(figure)

    def _drawn(self, k: int, usual: Any) -> Any:
        """Draw one frame; return its figure, of a picture with panels or in space its own."""
        if isinstance(self.pictures, MovingDisplay):
            usual.clear()
            self.pictures.plot(usual.subplots(), state=k)
            return usual
        figure = self.pictures[k].plot().figure_
        figure.set_size_inches(usual.get_size_inches())
        return figure

    def __repr__(self) -> str:
        said = f": {self.thinned}" if self.thinned else ""
        return f"Animation({len(self.frames)} frames, {self.fps} a second{said})"


def animate(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    max_frames: int = 100,
    frames: Sequence[int] | None = None,
    fps: int = 10,
    hold: float = 1.0,
    figsize: tuple[float, float] = (6.4, 4.8),
    **options: Any,
) -> Animation:
    """Make a film of a fit, of a trace or of pictures.

    Parameters
    ----------
    source : fitted machine, Trace, MovingDisplay or sequence of Display
        A classifier on two features that was fitted with ``trace=True``: its street as it moves; a
        regression machine on one: its tube. A trace, several of them by name, or a comparison of
        solvers: the gap as it falls. A picture with states: these, one after the other. Pictures:
        one frame each.
    X, y : array-like, optional
        The training data of the machine.
    max_frames : int, default=100
        Of more states, so many are shown, evenly spaced; ``thinned`` of the film says so. The three
        of a step of SMO in its box stay together, if there is room for those of two steps.
    frames : sequence of int, optional
        The states to show instead, in this order; -1 is the last one.
    fps : int, default=10
        Frames in a second.
    hold : float, default=1.0
        Seconds for which the last frame stays.
    figsize : pair of float, default=(6.4, 4.8)
        Size of the figure in inches.
    **options
        For a machine those of :meth:`MovingStreetDisplay.from_estimator` or
        :meth:`MovingTubeDisplay.from_estimator`, for traces those of
        :meth:`ConvergenceDisplay.from_trace`.

    Returns
    -------
    film : Animation
        With ``save(path)``; a notebook shows it by itself.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import animate
    >>> X, y = make_blobs(30, centers=2, random_state=0)
    >>> model = SVC(kernel="linear", solver="smo", trace=True).fit(X, y)
    >>> film = animate(model, X, y, max_frames=20)
    >>> film
    Animation(20 frames, 10 a second: 20 of ... states are shown, the first and the last among them)
    >>> path = film.save("street.gif")  # doctest: +SKIP
    """
    marks.require_matplotlib()
    if max_frames < 2:
        raise ValueError(f"A film has at least two frames; got max_frames={max_frames}.")
    if not (fps >= 1 and hold >= 0):
        raise ValueError(f"fps must be at least 1 and hold not negative; got {fps!r} and {hold!r}.")
    pictures = _pictures(source, X, y, options)
    n = len(pictures)
    if frames is None:
        shown = _spread(n, max_frames, getattr(pictures, "phases", 1))
    else:
        shown = np.asarray(frames)
        if shown.ndim != 1 or not len(shown) or not np.isin(shown, np.arange(-n, n)).all():
            raise ValueError(f"frames must be some of the states 0 to {n - 1}; got {frames!r}.")
    return Animation(pictures, shown % n, fps, hold, figsize)


def _spread(n: int, most: int, phases: int) -> np.ndarray:
    """Choose states evenly; those that belong together stay so, if those of two are not too many.

    >>> _spread(12, 6, 3)
    array([ 0,  1,  2,  9, 10, 11])
    """
    together = phases if 2 * phases <= most else 1
    groups, count = n // together, min(n, most) // together
    first = together * np.unique(np.linspace(0, groups - 1, count).round().astype(int))
    return np.ravel(first[:, None] + np.arange(together))


def _pictures(source: Any, X: Any, y: Any, options: dict[str, Any]) -> Any:
    """Return what has the frames."""
    from matplotlib.figure import Figure

    wrapped = isinstance(source, Pipeline) or hasattr(source, "best_estimator_")
    if hasattr(source, "trace_") or wrapped:
        if X is None or y is None:
            raise ValueError(
                "A machine's street, or tube, is drawn among its points: animate(model, X, y). The "
                "gap as it falls needs none: animate(model.trace_)."
            )
        tube = is_regressor(source)
        display: Any = MovingTubeDisplay if tube else MovingStreetDisplay
        return display.from_estimator(source, X, y, Figure().subplots(), **options)
    if has_traces(source):
        return ConvergenceDisplay.from_trace(source, ax=Figure().subplots(), **options)
    if isinstance(source, Iterable) and not isinstance(source, MovingDisplay | Mapping | str):
        source = list(source)
    slides = isinstance(source, list) and source and all(isinstance(one, Display) for one in source)
    if not (slides or isinstance(source, MovingDisplay)):
        raise TypeError(
            "animate takes a machine fitted with trace=True, a Trace, a picture with several "
            f"states or a list of pictures; got {type(source).__name__}."
        )
    if options:
        raise TypeError(f"A picture that is made already takes no {', '.join(options)}.")
    return source


def _writer(kind: str, fps: int) -> Any:
    """Return matplotlib's writer of a kind of file."""
    from matplotlib import animation, rcParams

    if kind in _PILLOW:
        return animation.PillowWriter(fps=fps)
    if kind not in _FFMPEG:
        known = ", ".join((*_PILLOW, *_FFMPEG, *_HTML))
        raise ValueError(f"A film's file name ends in one of {known}; got {kind!r}.")
    programme = rcParams["animation.ffmpeg_path"]
    if shutil.which(programme) is None:
        raise RuntimeError(
            f"{kind} files are written by ffmpeg, which is not here (looked for {programme!r}): "
            "install it (apt install ffmpeg, brew install ffmpeg or conda install ffmpeg), name it "
            "in matplotlib.rcParams['animation.ffmpeg_path'], or save as .gif or .html."
        )
    return animation.FFMpegWriter(fps=fps)
