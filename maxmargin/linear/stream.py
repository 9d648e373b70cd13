"""Learning from a stream: rows come some at a time, are looked at once, and are not kept.

Every machine of a regularised risk has one :class:`maxmargin.solvers.risk.pegasos.Stream` for each
of its problems. A stream has no number of rows, so the weights are held back by ``lam``, not by C.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np

from maxmargin.risk import L2
from maxmargin.solvers.risk.pegasos import Stream


class available_where:
    """Have a method only where a check of the object raises nothing, and say why it is not there.

    As scikit-learn's ``available_if``, whose error leaves the reason to its cause.
    """

    def __init__(self, check: Callable[[Any], Any]) -> None:
        self.check = check

    def __call__(self, method: Callable) -> available_where:
        """Take the method."""
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]
        return self

    def __get__(self, machine: Any, owner: type | None = None) -> Any:
        if machine is None:
            return self.method
        self.check(machine)
        return MethodType(self.method, machine)


_OF_A_FIT = ("certificate_", "C_", "lam_", "solver_", "_answers")
_OF_A_STREAM = ("_streams", "t_")


def takes_streams(machine: Any) -> None:
    """Raise an error that says why where the parameters do not say what to learn from a stream."""
    if machine.lam is None or machine.C != 1.0 or machine.norm_bound is not None:
        raise AttributeError(
            "partial_fit needs lam, and neither C nor norm_bound: a stream has no number of rows "
            "for C to be weighed against. Use lam = 1 / (2 N C) with the N that you expect; got "
            f"lam={machine.lam!r}, C={machine.C!r} and norm_bound={machine.norm_bound!r}."
        )
    if machine._penalty != L2:
        raise AttributeError(
            f"partial_fit goes with the l2 penalty; these parameters say {machine._penalty}. Use "
            "fit."
        )
    if getattr(machine, "class_weight", None) == "balanced":
        raise AttributeError(
            "class_weight='balanced' needs to see all labels, which a stream cannot. Give a dict, "
            "for example of sklearn.utils.compute_class_weight over labels that you have."
        )


def learns_in_parts(machine: Any) -> None:
    """Raise an error that says why where a perceptron cannot learn from parts of the data."""
    wants = {
        "variant": machine.variant != "last",
        "early_stopping": machine.early_stopping,
        "kernel": machine.kernel is not None,
        "class_weight": isinstance(machine.class_weight, str),
    }
    named = [f"{name}={getattr(machine, name)!r}" for name, wanted in wants.items() if wanted]
    if named:
        raise AttributeError(
            f"partial_fit sees a part of the data only and cannot do {', '.join(named)}: use fit, "
            "or leave the parameter at its default."
        )


def learn(machine: Any, risks: list) -> None:
    """Go over rows once, in the order in which they came; sets the attributes of the weights.

    ``risks`` are the problems of these rows, one for each stream.
    """
    if not hasattr(machine, "_streams"):
        machine._streams = [Stream(risk.shape, machine.lam) for risk in risks]
        _forget(machine, _OF_A_FIT)
    order, norms = np.arange(risks[0].design.n), risks[0].design.squared_norms()
    for stream, risk in zip(machine._streams, risks, strict=True):
        stream.lam = machine.lam
        stream.learn(risk, order, norms)
    machine._keep(risks[0].design, np.vstack([stream.average for stream in machine._streams]))
    machine.t_ = machine._streams[0].rows
    machine.n_iter_ = 1


def end_stream(machine: Any) -> None:
    """Forget a stream, since a fit has taken its place."""
    _forget(machine, _OF_A_STREAM)


def _forget(machine: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if hasattr(machine, name):
            delattr(machine, name)
