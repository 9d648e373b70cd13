"""What a Gaussian process is asked for, checked: targets, known noise, bounds of parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.estimators.warn import warn
from maxmargin.solvers.likelihood.problem import NOISE, MarginalLikelihood

_RANGE = 1e-5, 1e5  # of a parameter, as in scikit-learn; of a gamma, that of its length scale
_RANGES = {"gamma": (0.5e-10, 0.5e10)}
_SCREENED, _SHARE, _MOST = 1000, 4, 1000  # rows from which a part of them is tried, and which part


class Targets(NamedTuple):
    """Targets (n, m) as they are modelled, and what brings predictions back."""

    values: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, normalize: bool, n_targets: int | None) -> Targets:
        """Normalise the targets, if that is wanted; a constant output has a deviation of one."""
        values = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        outputs = values.shape[1]
        if n_targets is not None and outputs != n_targets:
            raise ValueError(
                "The number of targets seen in `y` is different from the parameter `n_targets`. "
                f"Got {outputs} != {n_targets}."
            )
        mean, deviation = np.zeros(outputs), np.ones(outputs)
        if normalize:
            mean, spread = values.mean(axis=0), values.std(axis=0)
            deviation = np.where(spread > 0, spread, 1.0)
        return cls((values - mean) / deviation, mean, deviation)


def known_noise(alpha: Any, n: int) -> np.ndarray:
    """Variances of the noise that are known, one for each row."""
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.ndim and alpha.shape != (n,):
        raise ValueError(
            "alpha must be a scalar or an array with same number of entries as y. "
            f"({alpha.shape} != {n})"
        )
    if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
        raise ValueError("alpha holds variances of the noise: finite, and none below zero.")
    return np.broadcast_to(alpha, n).copy()


def fixed_names(bounds: dict[str, Any], known: list[str]) -> set[str]:
    """Check bounds by name; returns which parameters they fix."""
    for name, pair in bounds.items():
        if name not in known:
            raise ValueError(
                f"bounds has {name!r}, and there is no such parameter to maximise the likelihood "
                f"over; there are {known}."
            )
        if not _is_fixed(pair) and not _is_range(pair):
            raise ValueError(
                f"bounds of {name!r} must be 'fixed' or two positive numbers, the lower one first, "
                f"got {pair!r}."
            )
    return {name for name, pair in bounds.items() if _is_fixed(pair)}


def box_of(bounds: dict[str, Any], names: list[str], own: np.ndarray) -> np.ndarray:
    """Logarithms of the bounds of some parameters, (p, 2); ``own`` are those of the kernel."""
    usual = {name: _RANGES.get(name.rpartition("__")[2], _RANGE) for name in names}
    pairs = [bounds.get(name, usual[name]) for name in names]
    box = np.log(np.array(pairs, dtype=np.float64).reshape(-1, 2))
    box[: len(own)] = np.where(np.isnan(own), box[: len(own)], own)
    return box


def rows_to_try(start_rows: Any, optimizer: Any, n: int) -> int:
    """How many rows all starts are tried on first; all n for none."""
    if start_rows == "auto":
        whole = n < _SCREENED or optimizer != "average_information"
        return n if whole else min(n // _SHARE, _MOST)
    return n if start_rows is None else min(start_rows, n)


def warn_at_bounds(
    held: tuple[str, ...], theta: np.ndarray, box: np.ndarray, problem: MarginalLikelihood
) -> None:
    """Warn of parameters that ended at a bound, in scikit-learn's words, and how to raise it.

    A column that is switched off, by a factor at the usual least or a length scale of its own at
    the usual largest, is what a likelihood is maximised for, and no reason to warn.
    """
    parameters, usual = problem.gram.parameters, np.log(_RANGE)
    for k, name in enumerate(problem.names):
        if name not in held:
            continue
        low, high = box[k]
        at_low = bool(abs(theta[k] - low) < abs(theta[k] - high))
        which, way, bound = (
            ("lower", "Decreasing", low) if at_low else ("upper", "Increasing", high)
        )
        off = name.endswith("]") and np.isclose(bound, usual[1 - at_low])
        if off and ("factors[" if at_low else "length_scale[") in name:
            continue
        of_kernel = k < len(parameters.theta)
        label = parameters.label(k) if of_kernel else f"the parameter {name}"
        own = of_kernel and not np.isnan(parameters.box[k, 0])  # bounds, in the kernel object
        how = "" if own else f" (bounds={{{name!r}: ...}})"
        runaway = (
            " Where noise_level goes to zero the likelihood may have no maximum: the targets then "
            "have no noise, or repeat themselves."
        )
        warn(
            f"The optimal value found for {label} is close to the specified {which} bound "
            f"{float(f'{np.exp(bound):.12g}')}. {way} the bound{how} and calling fit again may "
            "find a better value." + (runaway if name == NOISE and at_low else "")
        )


def _is_fixed(given: Any) -> bool:
    return isinstance(given, str) and given == "fixed"


def _is_range(given: Any) -> bool:
    """Whether bounds are two positive numbers in their order."""
    try:
        low, high = given
        return bool(0.0 < low <= high < np.inf)
    except (TypeError, ValueError):
        return False
