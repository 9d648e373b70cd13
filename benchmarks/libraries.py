"""The libraries that are compared: how each is called, and when its answer counts as converged."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import numpy as np
from dual import Examination

OURS, SKLEARN, INTELEX = "maxmargin", "scikit-learn", "scikit-learn-intelex"
MODULES = {OURS: "maxmargin", SKLEARN: "sklearn.svm", INTELEX: "sklearnex.svm"}
PEERS = (SKLEARN, INTELEX)

TOL = 1e-3
SETTINGS = {"kernel": "rbf", "tol": TOL, "cache_size": 2000}
SEARCH = {"cv": 5, "n_jobs": 2}

ONEDAL_ROUNDS = 10_000  # scikit-learn-intelex stops there without a word
SLACK = 1.25  # libraries stop on their own gradient, from rounded kernel values: allow for that
INFEASIBLE = 1e-6


class AbsentError(Exception):
    """A library is not installed, or has no such machine."""


def estimator(library: str, machine: str, parameters: dict):
    """Build a machine, unfitted, with the settings that all libraries share."""
    return _find(library, machine)(**SETTINGS, **parameters)


def search(library: str, grid: dict):
    """Our search, or GridSearchCV around a peer's SVC."""
    from sklearn.model_selection import GridSearchCV

    svc = estimator(library, "SVC", {})
    if library == OURS:
        return _find(library, "SVCSearchCV")(grid, estimator=svc, **SEARCH)
    return GridSearchCV(svc, grid, **SEARCH)


def _find(library: str, name: str) -> type:
    try:
        return getattr(import_module(MODULES[library]), name)
    except ImportError as error:
        raise AbsentError(f"{library} cannot be imported: {error}") from error
    except AttributeError as error:
        raise AbsentError(f"{library} has no {name}") from error


class Overheard(logging.Handler):
    """What a library said while it worked: warnings, and the log of scikit-learn-intelex."""

    def __init__(self) -> None:
        super().__init__()
        self.warnings: list[str] = []
        self.log: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line of the log."""
        self.log.append(record.getMessage().strip())


@contextmanager
def listening() -> Iterator[Overheard]:
    """Collect warnings and scikit-learn-intelex's log, which tells which code ran."""
    heard, logger = Overheard(), logging.getLogger("sklearnex")
    logger.setLevel(logging.INFO)
    logger.addHandler(heard)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield heard
        heard.warnings += [f"{item.category.__name__}: {item.message}" for item in caught]
    finally:
        logger.removeHandler(heard)


def doubts(library: str, model, heard: Overheard, found: Examination) -> list[str]:
    """Reasons not to believe a time; none for a machine that converged to ``tol``."""
    reasons = [text for text in heard.warnings if text.startswith("ConvergenceWarning")]
    if getattr(model, "fit_status_", 0) != 0:
        reasons.append(f"fit_status_ is {model.fit_status_}")
    if library == OURS and not model.certificate_.converged:
        reasons.append(f"the certificate says {model.certificate_.status}")
    if library == INTELEX:
        reasons += _onedal_doubts(model, heard)
    if found.violation > SLACK * TOL:
        reasons.append(f"its KKT violation is {found.violation:.2g}")
    if found.infeasibility > INFEASIBLE:
        reasons.append(f"its coefficients are infeasible by {found.infeasibility:.2g} of the box")
    return reasons


def _onedal_doubts(model, heard: Overheard) -> list[str]:
    reasons = []
    if not heard.log or not all("running accelerated version" in line for line in heard.log):
        reasons.append("it fell back to scikit-learn")
    if np.max(model.n_iter_) >= ONEDAL_ROUNDS:
        reasons.append(f"it stopped after {ONEDAL_ROUNDS} rounds")
    return reasons
