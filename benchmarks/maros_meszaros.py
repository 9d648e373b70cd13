"""The quadratic programmes of Maros and Meszaros: our two solvers beside Clarabel and PIQP.

    python benchmarks/maros_meszaros.py --data FOLDER [--seconds 60] [--most 3000] [--json FILE]

FOLDER has the .mat files of github.com/qpsolvers/maros_meszaros_qpbenchmark (read, not kept here):

    minimise  1/2 x'Px + q'x   subject to  l <= A x <= u,  lower <= x <= upper

- ``qp``: `maxmargin.solvers.classical.qp.Programme`, which scales and hands to Clarabel what
  ``solver="qp"`` does. It takes any convex programme: all problems have its form.
- ``interior point``: `maxmargin.backends.interior_point.minimise`, which other solvers turn to. Its
  form is a box and equalities that share no variable: a row is scaled to have coefficients of one,
  and given a slack if it is no equality. Matrices are dense. Sides of the box that are infinite are
  put at ``_FAR`` times the size of the data; an answer there is not called solved.
- ``clarabel`` and ``piqp`` at their defaults.

What a solver calls solved is checked from x and multipliers alone, in float64: constraints, the
gradient of the Lagrangian, and the duality gap, each relative to the size of its terms, at 1e-6.
Multipliers have a sign, so that the gap is a bound on how much better any x can be. One thread, a
process of its own for each, limited in CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import resource
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat

TOLERANCE = 1e-6
_FAR = 1e4  # times the largest bound, or the distance to a parabola's foot


class Quadratic(NamedTuple):
    """``1/2 x'Px + q'x`` over ``low <= A x <= high``; the last rows of A are the identity."""

    P: Any
    q: np.ndarray
    A: Any
    low: np.ndarray
    high: np.ndarray


Found = tuple[bool, np.ndarray, np.ndarray]  # called solved, x, multipliers of A's rows


def read(path: Path) -> Quadratic:
    """Read a problem; 1e20 is infinite."""
    given = loadmat(path)
    P, A = (sp.csc_matrix(given[name], dtype=np.float64) for name in "PA")
    q, low, high = (given[name].astype(np.float64).ravel() for name in ("q", "l", "u"))
    low[low < -9e19], high[high > 9e19] = -np.inf, np.inf
    return Quadratic(P, q, A, low, high)


def errors(problem: Quadratic, x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Relative errors of constraints, of the Lagrangian's gradient, and the gap."""
    P, q, A, low, high = problem
    values, slope = A @ x, A.T @ y
    Px = P @ x
    outside = np.maximum(np.maximum(low - values, values - high), 0).max(initial=0.0)
    # a multiplier that pushes against a side which is not there is an error of the gradient
    wrong = np.where(y > 0, np.isinf(high), np.isinf(low)) & (y != 0)
    lagrange = max(np.abs(Px + q + slope).max(), np.abs(y[wrong]).max(initial=0.0))
    ends = np.where(y > 0, high, low)
    support = float(np.where(wrong | (y == 0), 0.0, y * np.where(np.isinf(ends), 0, ends)).sum())
    half, linear = float(x @ Px) / 2, float(q @ x)
    sizes = (
        1 + np.abs(values).max(),
        1 + max(np.abs(Px).max(), np.abs(q).max(), np.abs(slope).max()),
        1 + max(abs(half + linear), abs(half + support)),
    )
    return outside / sizes[0], lagrange / sizes[1], abs(2 * half + linear + support) / sizes[2]


def by_qp(problem: Quadratic) -> Found:
    """Our programme over Clarabel, posed in rows that are equal and rows that are below."""
    from maxmargin.solution import Status
    from maxmargin.solvers.classical.qp import Programme

    P, q, A, low, high = problem
    same = np.flatnonzero(low == high)
    below = np.flatnonzero((low != high) & np.isfinite(high))
    above = np.flatnonzero((low != high) & np.isfinite(low))
    rows = sp.vstack([A.tocsr()[same], A.tocsr()[below], -A.tocsr()[above]])
    ends = np.concatenate([low[same], high[below], -low[above]])
    answer = Programme(sp.triu(P, format="csc"), q, rows, ends, len(same)).solve()
    y = np.zeros(len(low))
    parts = np.split(answer.z, np.cumsum([len(same), len(below)]))
    y[same] = parts[0]
    y[below] += parts[1]
    y[above] -= parts[2]
    return answer.status is Status.CONVERGED, answer.x, y


def by_clarabel(problem: Quadratic) -> Found:
    """Clarabel at its defaults."""
    import clarabel

    P, q, A, low, high = problem
    same, A = low == high, A.tocsr()
    below, above = ~same & np.isfinite(high), ~same & np.isfinite(low)
    rows = sp.vstack([A[same], A[below], -A[above]], format="csc")
    ends = np.concatenate([low[same], high[below], -low[above]])
    cones = [clarabel.ZeroConeT(int(same.sum()))]
    cones.append(clarabel.NonnegativeConeT(int(below.sum() + above.sum())))
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    P = sp.triu(P, format="csc")
    found = clarabel.DefaultSolver(P, q, rows, ends, cones, settings).solve()
    y, z = np.zeros(len(low)), np.array(found.z)
    parts = np.split(z, np.cumsum([same.sum(), below.sum()]))
    y[same] = parts[0]
    y[below] += parts[1]
    y[above] -= parts[2]
    return found.status == clarabel.SolverStatus.Solved, np.array(found.x), y


def by_piqp(problem: Quadratic) -> Found:
    """PIQP's sparse solver at its defaults."""
    import piqp

    P, q, A, low, high = problem
    n, A = len(q), A.tocsr()
    own, box = A[:-n], slice(len(low) - n, None)
    below, above = low[: len(low) - n], high[: len(low) - n]
    same = below == above
    solver = piqp.SparseSolver()
    solver.settings.verbose = False
    solver.setup(
        P,
        q,
        own[same].tocsc(),
        below[same],
        own[~same].tocsc(),
        below[~same],
        above[~same],
        low[box],
        high[box],
    )
    status, result = solver.solve(), solver.result
    y = np.zeros(len(low))
    y[: len(same)][same] = result.y
    y[: len(same)][~same] = np.asarray(result.z_u) - np.asarray(result.z_l)
    y[box] = np.asarray(result.z_bu) - np.asarray(result.z_bl)
    return status == piqp.PIQP_SOLVED, np.asarray(result.x), y


def has_our_form(problem: Quadratic, most: int) -> bool:
    """Whether the interior point takes it: rows that share no variable, and a dense matrix."""
    n = len(problem.q)
    own = problem.A[:-n]
    bounded = np.isfinite(problem.low[:-n]) | np.isfinite(problem.high[:-n])
    per_variable = np.diff((own.tocsr()[bounded] != 0).tocsc().indptr)
    return bool(per_variable.max(initial=0) <= 1) and n + int(bounded.sum()) <= most


def by_interior_point(problem: Quadratic) -> Found:
    """Our interior point: rows scaled to sums, slacks, sides of the box that are far enough."""
    from maxmargin.backends.interior_point import minimise

    P, q, A, low, high = problem
    n = len(q)
    kept = np.flatnonzero((np.isfinite(low) | np.isfinite(high))[:-n])
    own, below, above = A[:-n].tocsr()[kept], low[kept], high[kept]
    slack = np.flatnonzero(below < above)
    m, g = n + len(slack), len(kept)
    scale, group = np.ones(m), np.full(m, -1)  # z = scale x, so that each row is a sum
    rows, columns = own.nonzero()
    scale[columns], group[columns] = np.asarray(own[rows, columns]).ravel(), rows
    group[n:] = slack
    lower = np.concatenate([low[-n:], -above[slack]])  # a'x + s = 0
    upper = np.concatenate([high[-n:], -below[slack]])
    total = np.where(below < above, 0.0, below)
    foot = np.abs(q).max() / max(P.diagonal().max(), 1e-300)
    ends = np.concatenate([lower[np.isfinite(lower)], upper[np.isfinite(upper)], total])
    far = _FAR * max(np.abs(ends).max(initial=0.0), min(foot, 1e6), 1.0)
    open_low, open_high = np.isinf(lower), np.isinf(upper)
    lower[open_low], upper[open_high] = -far, far
    ends = np.sort(np.column_stack([lower * scale, upper * scale]), axis=1)
    lower, upper = ends.T
    H = np.zeros((m, m))
    H[:n, :n] = P.toarray() / np.outer(scale[:n], scale[:n])
    v = np.append(q, np.zeros(m - n)) / scale
    wide = np.flatnonzero(lower < upper)
    member = (group[wide][:, None] == np.arange(g)).astype(np.float64)
    # a point with the right sums: what is lacking is shared by the room that there is
    z = np.clip(np.zeros(m), lower, upper)
    for k in range(g):
        of = np.flatnonzero(group == k)
        lacking = total[k] - z[of].sum()
        room = (upper - z)[of] if lacking > 0 else (z - lower)[of]
        z[of] += np.clip(lacking / max(room.sum(), 1e-300), -1, 1) * room
    target = 1e-8 * (1 + np.abs(v).max())
    gradient = H @ z + v
    found = minimise(
        H[np.ix_(wide, wide)],
        -gradient[wide],
        z[wide],
        lower[wide],
        upper[wide],
        member[:, member.any(axis=0)],
        target,
    )
    y = np.zeros(len(low))
    if found is None:
        return False, z[:n] / scale[:n], y
    z[wide] = found.x
    gradient = H @ z + v
    level = np.zeros(g)
    for k in range(g):  # between the largest that may rise and the smallest that may fall
        of = group == k
        rises, falls = of & (z < upper), of & (z > lower)
        top = (-gradient)[rises].max(initial=-np.inf)
        bottom = (-gradient)[falls].min(initial=np.inf)
        known = [end for end in (top, bottom) if np.isfinite(end)]
        level[k] = np.mean(known) if known else 0.0
    y[kept] = level
    left = -(gradient + np.where(group >= 0, level[group], 0.0)) * scale
    y[len(low) - n :] = left[:n]
    artificial = (open_low & (z * scale <= -0.99 * far)) | (open_high & (z * scale >= 0.99 * far))
    return found.violation <= target and not artificial.any(), z[:n] / scale[:n], y


SOLVERS: dict[str, Callable[[Quadratic], Found]] = {
    "qp": by_qp,
    "interior point": by_interior_point,
    "clarabel": by_clarabel,
    "piqp": by_piqp,
}


def _solve(path: Path, name: str, seconds: int, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    problem = read(path)
    started = time.process_time()
    with np.errstate(all="ignore"):
        called, x, y = SOLVERS[name](problem)
        took = time.process_time() - started
        pipe.send((bool(called), errors(problem, x, y), took))


def judged(path: Path, name: str, seconds: int) -> dict[str, Any]:
    """Solve a problem in a process of its own."""
    receiver, sender = mp.Pipe(duplex=False)
    process = mp.get_context("fork").Process(target=_solve, args=(path, name, seconds, sender))
    process.start()
    sender.close()
    try:
        called, off, took = receiver.recv()
    except EOFError:  # over its limit, or it died
        process.join()
        how = "time" if process.exitcode in (-24, -9) else "crash"
        return {"solver": name, "called": False, "true": False, "how": how}
    process.join()
    true = bool(max(off) <= TOLERANCE)
    return {"solver": name, "called": called, "true": true, "errors": off, "seconds": took}


def table(found: dict[str, dict[str, Any]], ours: set[str]) -> str:
    """Count by solver, over all problems and over those of the interior point's form."""
    lines = [
        "| problems | solver | problems | called solved | of these true | share | true in all "
        "| time | crash |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for title, names in (("all", set(found)), ("box, rows apart", ours)):
        for solver in SOLVERS:
            own = [found[name][solver] for name in names if solver in found[name]]
            if not own:
                continue
            called = [one for one in own if one["called"]]
            true = sum(one["true"] for one in called)
            share = f"{true / len(called):.1%}" if called else ""
            how = [one.get("how") for one in own]
            numbers = [len(own), len(called), true, share, sum(one["true"] for one in own)]
            row = " | ".join(map(str, [*numbers, how.count("time"), how.count("crash")]))
            lines.append(f"| {title} | {solver} | {row} |")
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=60, help="CPU time of each")
    parser.add_argument("--most", type=int, default=3000, help="variables that a dense matrix has")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for library in ("piqp", "maxmargin.solvers.classical.qp"):  # once, before processes fork
        import_module(library)
    found: dict[str, dict[str, Any]] = {}
    ours: set[str] = set()
    for path in sorted(options.data.glob("*.mat"), key=lambda path: path.stat().st_size):
        if has_our_form(read(path), options.most):
            ours.add(path.stem)
        names = [name for name in SOLVERS if name != "interior point" or path.stem in ours]
        found[path.stem] = {name: judged(path, name, options.seconds) for name in names}
        said = {name: (one["called"], one["true"]) for name, one in found[path.stem].items()}
        print(path.stem, said, flush=True)
        if options.json:
            options.json.write_text(json.dumps({"ours": sorted(ours), "found": found}) + "\n")
    print(table(found, ours))


if __name__ == "__main__":
    main()
