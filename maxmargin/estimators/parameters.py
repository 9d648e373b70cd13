"""Parameters of an estimator: checked as scikit-learn does, for their size, and what they allow.

Costs, weights and targets are multiplied and squared on their way, which ends in infinities and
their differences, nan, long before float64 ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from numbers import Real
from types import MethodType
from typing import Any

from sklearn.utils._param_validation import Interval, make_constraint

SMALLEST, LARGEST = 1e-50, 1e50  # of parameters and weights: products of a few can be squared
POSITIVE = Interval(Real, 0.0, None, closed="neither")
_PLAIN = (type(None), bool, int, float, str)  # types whose values are the same wherever they are
_REMEMBERED = 4096  # values that a class knows to be good


class CheckedParameters:
    """A machine whose parameters are checked as scikit-learn does, and for their size."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters; kept, for to inspect a signature takes long."""
        return super()._get_param_names()  # type: ignore[misc]

    @classmethod
    @cache
    def _constraints(cls) -> dict[str, list[Any]]:
        """What each parameter has to satisfy one of; scikit-learn makes them at every call."""
        constraints: dict[str, Any] = cls._parameter_constraints  # type: ignore[attr-defined]
        return {name: list(map(make_constraint, some)) for name, some in constraints.items()}

    @classmethod
    @cache
    def _known_to_be_good(cls) -> set[tuple[str, type, Any]]:
        """Plain values that have passed: on small data checks take a tenth of a fit."""
        return set()

    def _validate_params(self) -> None:
        good, constraints = self._known_to_be_good(), self._constraints()
        unknown = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if type(value) not in _PLAIN or (name, type(value), value) not in good:
                unknown[name] = value
        for name, value in unknown.items():
            if not any(known.is_satisfied_by(value) for known in constraints.get(name, ())):
                super()._validate_params()  # type: ignore[misc]
                break
        refuse_extreme_parameters(unknown)
        if len(good) > _REMEMBERED:
            good.clear()
        good.update((name, type(v), v) for name, v in unknown.items() if type(v) in _PLAIN)


def refuse_extreme_parameters(parameters: dict[str, Any]) -> None:
    """Refuse numbers, and factors in a dict or dicts, of a size that float64 cannot compute with.

    Zero, and infinity where it is not in a dict, are for others to judge.
    """
    for name, value in parameters.items():
        values = value if isinstance(value, list) else [value]  # one dict for each output
        inside = [number for one in values if isinstance(one, dict) for number in one.values()]
        for number in inside or [value]:
            if number is None or type(number) in (bool, str) or not isinstance(number, Real):
                continue
            if number == 0 or number != number:
                continue
            size: Any = abs(number)
            if SMALLEST <= size <= LARGEST or (size == float("inf") and not inside):
                continue
            raise ValueError(
                f"{name} must be zero or of a size between {SMALLEST:g} and {LARGEST:g}, got "
                f"{_shown(number)}: what is computed from it would be beyond float64."
            )


def _shown(number: Any) -> str:
    """Return a number in words that are not hundreds of digits long."""
    text = repr(number)
    return text if len(text) < 30 else f"an integer of {len(text.lstrip('-'))} digits"


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
