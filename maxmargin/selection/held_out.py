"""A machine as scorers see it, whose values on certain rows are known already."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.metaestimators import available_if

from maxmargin.certificate import Certificate
from maxmargin.multiclass import as_scheme
from maxmargin.selection.plan import Candidate, last_step


class Claim(NamedTuple):
    """What is proven of a fit: a bound on its relative duality gap, and how it ended.

    The gap is nan where a certificate has none, and the status empty without a certificate.
    """

    gap: float = np.nan
    status: str = ""

    @classmethod
    def of(cls, certificate: Certificate) -> Claim:
        """Return what a certificate claims."""
        return cls(getattr(certificate, "relative_gap", np.nan), certificate.status)

    @classmethod
    def of_fitted(cls, estimator: Any) -> Claim:
        """Return what a fitted estimator, or the last step of a pipeline, claims."""
        certificate = getattr(last_step(estimator), "certificate_", None)
        return cls.of(certificate) if isinstance(certificate, Certificate) else cls()


FAILED, NOT_FITTED = Claim(status="failed"), Claim(status="not fitted")


def _answered(name: str) -> Any:
    """Return a method that is there where the estimator has it, and asks what knows the values."""

    def method(self: HeldOut, X: Any, *args: Any, **params: Any) -> Any:
        return self._ask(name, X, *args, **params)

    method.__name__ = name
    return available_if(lambda self: hasattr(self._estimator, name))(method)


class HeldOut:
    """What is known of a candidate's machine on one split; to a scorer, the fitted estimator.

    ``predict``, ``decision_function``, ``score`` and, with a calibration, the probabilities of the
    very rows whose values are known are answered from these. For all else (other rows, fitted
    attributes) the estimator is really fitted, once, when it is first asked for.

    ``seconds`` is the time of its own solution, without what is shared, and ``how`` says by which
    means it was found; ``claim`` is what is proven of it. ``test`` and ``train`` are its values,
    (rows, problems), on the rows of the split; without ``classes`` there is one problem.
    ``calibration`` makes probabilities of them.
    Where the fitted estimator is there, no values are needed.
    """

    def __init__(
        self,
        candidate: Candidate,
        split: int,
        seconds: float,
        how: str,
        claim: Claim,
        *,
        test: np.ndarray | None = None,
        train: np.ndarray | None = None,
        classes: np.ndarray | None = None,
        calibration: Any = None,
        fitted: Any = None,
    ) -> None:
        self.candidate, self.split, self.seconds, self.how = candidate, split, seconds, how
        self.claim = claim
        self._estimator, self._fitted = candidate.estimator, fitted
        self._sides = [test, train]
        self._known: list[tuple[Any, np.ndarray]] = []
        self._machine = copy.copy(candidate.machine)
        if classes is None:
            self._sides = [None if side is None else side[:, 0] for side in self._sides]
            self._machine._decision = self._values
        else:
            self.classes_ = self._machine.classes_ = classes
            self._machine.scheme_ = as_scheme(candidate.machine.multiclass, len(classes))
            self._machine._machine_values = self._values
            self._machine._class_index = lambda X: self._machine._decoded(self._values(X))
        self._probable = calibration is not None
        self._machine.calibration_ = calibration
        self._machine.n_features_in_ = None  # fitted, for who asks

    def on(self, sides: list[Any], fit: Callable[[], Any]) -> HeldOut:
        """Take the rows, test before train, as scorers get them, and what fits the estimator."""
        known = zip(sides, self._sides, strict=False)
        self._known = [(rows, values) for rows, values in known if values is not None]
        self._fit = fit
        return self

    def _values(self, X: Any) -> np.ndarray:
        return next(values for rows, values in self._known if rows is X)

    def __sklearn_tags__(self) -> Any:
        return self._estimator.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return repr(self._estimator)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not name.endswith("_"):
            getattr(self._estimator, name)  # what it does not have, fitting does not give it
        return getattr(self._really_fitted(), name)

    predict = _answered("predict")
    decision_function = _answered("decision_function")
    predict_proba = _answered("predict_proba")
    predict_log_proba = _answered("predict_log_proba")
    score = _answered("score")

    def _ask(self, name: str, X: Any, *args: Any, **params: Any) -> Any:
        known = any(rows is X for rows, _ in self._known)
        known &= self._probable or "proba" not in name
        machine = self._machine if known else self._really_fitted()
        return getattr(machine, name)(X, *args, **params)

    def _really_fitted(self) -> Any:
        if self._fitted is None:
            self._fitted = self._fit()
        return self._fitted
