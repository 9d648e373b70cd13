"""Kernel values tile by tile: rows and squares of them, and their sums with coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from maxmargin.backends.cpu.loops import add_rows, exponentiate, run, transpose
from maxmargin.backends.cpu.operand import Operand
from maxmargin.backends.cpu.tiles import (
    PANEL_ENTRIES,
    PANEL_ROWS,
    TILE_BYTES,
    rooms,
    spans,
)
from maxmargin.backends.program import Program
from maxmargin.backends.threads import ALONE, Workers


def kernel_rows(
    program: Program,
    left: Operand,
    rows: np.ndarray,
    right: Operand,
    out: np.ndarray,
    workers: Workers = ALONE,
    places: np.ndarray | None = None,
) -> None:
    """Write the kernel values between ``left[rows]`` and all of ``right`` into ``out`` (q, n).

    Row k goes to ``out[places[k]]``, or to ``out[k]`` without places.
    """
    workers = workers.for_work(left.entry_time * len(rows) * right.n)
    for part, panels in _panels(left, rows):
        place: Any = part if places is None else places[part]

        def fill(span: tuple[int, int], part: slice = part, panels: list = panels) -> None:
            for start, stop, values in _values(program, left, rows[part], panels, right, span):
                out[place, start:stop] = values  # noqa: B023 - run before the next panel

        workers.map(fill, spans(right.n, workers.count))


def kernel_square(
    program: Program,
    points: Operand,
    rows: np.ndarray | None,
    out: np.ndarray,
    workers: Workers = ALONE,
) -> None:
    """Write the symmetric matrix of the kernel values among ``points[rows]`` into ``out``.

    Without rows, among all points.
    """
    chosen = points if rows is None else points.take(rows).gathered()
    workers = workers.for_work(chosen.entry_time * chosen.n * chosen.n / 2)
    order = np.arange(chosen.n)
    step = _panel_rows(chosen)

    def fill(first: int) -> None:
        part = slice(first, min(first + step, chosen.n))
        ((_, panels),) = _panels(chosen, order[part])
        span = (first, chosen.n)
        for start, stop, values in _values(program, chosen, order[part], panels, chosen, span):
            workers.check()  # the first panel touches all memory of ``out``, which takes seconds
            out[part, start:stop] = values
            beyond = max(start, part.stop)  # of the panel's own square
            if beyond < stop:
                transpose(values[:, beyond - start :], out[beyond:stop, part])

    workers.map(fill, range(0, chosen.n, step))


def accumulate(
    program: Program,
    left: Operand,
    rows: np.ndarray,
    coefficients: np.ndarray,
    right: Operand,
    out: np.ndarray,
    workers: Workers = ALONE,
) -> None:
    """Add ``sum_i coefficients_i k(left[rows_i], x)`` to ``out`` at every x of ``right``.

    Also several sums at once: coefficients (k, q), ``out`` (k, n). No value leaves the cache: each
    tile is made, summed and forgotten; the sums are float64, within a tile of float32 several are
    of its precision.
    """
    workers = workers.for_work(left.entry_time * len(rows) * right.n)
    for part, panels in _panels(left, rows):
        order, weights = np.arange(part.stop - part.start), coefficients[..., part]
        if weights.ndim == 2:
            weights = weights.astype(left.dtype, copy=False)

        def add(span: tuple[int, int], part: slice = part, panels: list = panels) -> None:
            for start, stop, values in _values(program, left, rows[part], panels, right, span):
                if values.dtype == np.float32 and weights.ndim == 1:  # noqa: B023
                    add_rows(values, order, weights, 0, stop - start, out[start:stop])  # noqa: B023
                else:
                    out[..., start:stop] += weights @ values  # noqa: B023 - before the next panel

        workers.map(add, spans(right.n, workers.count))


def accumulate_square(
    program: Program, points: Operand, coefficients: np.ndarray, workers: Workers = ALONE
) -> np.ndarray:
    """``coefficients @ K`` for the points among themselves: a value is made once for both sides.

    The coefficients are those of one sum (n,) or of several (k, n), in the precision of the points.
    """
    n, step = points.n, _panel_rows(points)
    order = np.arange(n)
    workers = workers.for_work(points.entry_time * n * n / 2)

    def add(share: range) -> np.ndarray:
        out = np.zeros(coefficients.shape)
        for first in share:
            workers.check()
            part = slice(first, min(first + step, n))
            weights = coefficients[..., part]
            ((_, panels),) = _panels(points, order[part])
            for start, stop, values in _values(
                program, points, order[part], panels, points, (first, n)
            ):
                out[..., start:stop] += weights @ values
                mirrored = max(start, part.stop)
                if mirrored < stop:
                    rest = values[:, mirrored - start :]
                    out[..., part] += coefficients[..., mirrored:stop] @ rest.T
        return out

    firsts = range(0, n, step)
    shares = [firsts[k :: workers.count] for k in range(workers.count)]  # early panels are longer
    return np.sum(workers.map(add, shares), axis=0)


def expand(
    program: Program,
    left: Operand,
    right: Operand,
    coefficients: np.ndarray,
    stretches: list[tuple[int, int]],
    finish: Callable[[np.ndarray], np.ndarray],
    workers: Workers = ALONE,
) -> list[np.ndarray]:
    """Kernel expansions over stretches of ``right``, at every point of ``left``.

    For each panel of points ``finish`` gets the sums ``K[:, stretch] @ coefficients[:, stretch].T``
    as an array (q, stretches, k); what it returns is collected.
    """
    rows = np.arange(left.n)

    def values(first: int) -> np.ndarray:
        part = rows[first : first + step]
        ((_, panels),) = _panels(left, part)
        sums = np.zeros((len(part), len(stretches), len(coefficients)))
        with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses what is not finite
            for start, stop, tile in _values(program, left, part, panels, right, (0, right.n)):
                for s, (begin, end) in enumerate(stretches):
                    first, last = max(begin, start), min(end, stop)
                    if first < last:
                        inside = tile[:, first - start : last - start]
                        sums[:, s] += inside @ coefficients[:, first:last].T
            return finish(sums)

    step = _panel_rows(left)
    workers = workers.for_work(left.entry_time * left.n * right.n)
    return workers.map(values, range(0, left.n, step))


def _panel_rows(left: Operand) -> int:
    return min(PANEL_ROWS, max(PANEL_ENTRIES // max(left.dimension, 1), 1))


def _panels(left: Operand, rows: np.ndarray) -> Iterator[tuple[slice, list]]:
    """Yield the rows in parts small enough that their panels stay in the cache."""
    step = _panel_rows(left)
    for first in range(0, len(rows), step):
        part = slice(first, min(first + step, len(rows)))
        yield part, [points.panel(rows[part]) for points in left.primitives]


def _values(
    program: Program,
    left: Operand,
    rows: np.ndarray,
    panels: list,
    right: Operand,
    span: tuple[int, int],
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield ``(start, stop, kernel values)`` over a stripe of ``right``, tile by tile."""
    q, (first, last) = len(rows), span
    step = min(max(TILE_BYTES // left.dtype.itemsize // max(right.width, q), 16), 4096)
    at_once = program.gaussian_rate is not None or program.is_primitive  # without tiles apart
    tiles_held = 1 if at_once else len(panels) + 1
    row_factors = np.ascontiguousarray(left.factors[:, rows])
    with rooms.lent(tiles_held * q * min(step, last - first), left.dtype) as buffer:
        for start in range(first, last, step):
            stop = min(start + step, last)
            size = q * (stop - start)
            values = buffer[:size].reshape(q, stop - start)
            if program.gaussian_rate is not None:
                rate = program.gaussian_rate
                right.primitives[0].gaussian_tile(panels[0], start, stop, rate, values)
            elif program.is_primitive:
                right.primitives[0].tile(panels[0], start, stop, values)
            else:
                tiles = buffer[size : size * tiles_held].reshape(len(panels), q, stop - start)
                for points, panel, tile in zip(right.primitives, panels, tiles, strict=True):
                    points.tile(panel, start, stop, tile)
                column_factors = np.ascontiguousarray(right.factors[:, start:stop])
                run(*program.arrays(left.dtype), tiles, row_factors, column_factors, values)
            yield start, stop, values


def kernel_values(
    program: Program, primitives: np.ndarray, left: np.ndarray, right: np.ndarray, out: np.ndarray
) -> None:
    """Run the programme over stored primitives (p, q, n), with the factors of both sides."""
    if program.gaussian_rate is not None:
        out[:] = primitives[0]
        exponentiate(out.dtype.type(program.gaussian_rate), out)
        return
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)  # one compiled form
    run(*program.arrays(out.dtype), primitives, left, right, out)


def kernel_diagonal(program: Program, points: Operand) -> np.ndarray:
    """Kernel value of every point with itself, shape (n,)."""
    if program.is_given:
        return points.primitives[0].diagonal()
    primitives = np.empty((len(points.primitives), 1, points.n))
    for k, primitive in enumerate(points.primitives):
        primitives[k, 0] = primitive.diagonal()
    out = np.empty((1, points.n))
    ones = np.ones((len(points.factors), 1))
    kernel_values(program, primitives, ones, points.factors**2, out)
    return out[0]
