"""What a linear machine says of its training rows: slack, and which of them hold the street."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.risk import DirectRisk, LinearSolution, RegularisedRisk


class _Rows(NamedTuple):
    """The rows of one machine; of those that hold its street or leave it, which, and by how much.

    ``seen`` is None where the machine sees all rows. No other row has slack or a dual variable.
    """

    seen: np.ndarray | None
    places: np.ndarray
    slack: np.ndarray
    holds: np.ndarray


class Street:
    """Machines with a street or a tube: its width, the slack of rows, and those that hold it.

    A fit keeps the rows that have slack or a dual variable, and no others.
    """

    coef_: Any
    _in_columns = False  # whether slack has a column for each output, as in SVR
    _street: tuple[int, list[_Rows]]

    @property
    def margin_(self) -> Any:
        """``1 / ||w||``, of each machine: half the width of its street; infinite where w = 0."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        norms = np.linalg.norm(np.atleast_2d(coef), axis=1)
        margins = np.divide(1.0, norms, out=np.full_like(norms, np.inf), where=norms > 0)
        return float(margins[0]) if len(margins) == 1 else margins

    @property
    def slack_(self) -> np.ndarray:
        """Slack of each machine's training rows; nan for rows that it did not see."""
        n, machines = self._known_street
        slack = np.zeros((len(machines), n))
        for row, one in zip(slack, machines, strict=True):
            if one.seen is not None:
                row[:] = np.nan
                row[one.seen] = 0.0
            row[one.places] = one.slack
        if len(slack) == 1:
            return slack[0]
        return slack.T if self._in_columns else slack

    @property
    def support_(self) -> np.ndarray:
        """Training rows that have a dual variable in any machine, in order."""
        _, machines = self._known_street
        held = [one.places[one.holds] for one in machines]
        return np.unique(np.concatenate(held)).astype(np.int32)

    @property
    def _known_street(self) -> tuple[int, list[_Rows]]:
        if "_street" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has slack_ and support_ after fit, not before it and not "
                "after partial_fit, which keeps no rows, or after a fit on Dask collections, whose "
                "rows lie elsewhere: decision_function(X) is lazy there, and slack is "
                "max(0, 1 - y f), for numbers max(0, |y - f| - epsilon)."
            )
        return self._street

    def _keep_rows(self, n: int, problems: list, found_for: list[LinearSolution]) -> None:
        """Keep what the answers of problems say of their rows, of n in all."""
        kept = []
        for risk, found in zip(problems, found_for, strict=True):
            rows, f = risk.rows, risk.values(found.theta) if found.f is None else found.f
            slack = _slack(risk, f)
            known = len(found.s) == risk.n  # a run that was stopped may know of no slopes
            holds = np.any((found.s != 0).reshape(risk.n, -1), axis=1) if known else slack > 0
            places = np.flatnonzero((slack > 0) | holds)
            of_all = places if rows is None else rows[places]
            kept.append(_Rows(rows, of_all.astype(np.int32), slack[places], holds[places]))
        self._street = n, kept


def _slack(risk: RegularisedRisk | DirectRisk, f: np.ndarray) -> np.ndarray:
    """By how much each row is on the wrong side of the street's edge, or outside the tube."""
    if isinstance(risk, DirectRisk):
        return risk.losses_at(f)
    if risk.of_margins:
        return np.maximum(0.0, 1.0 - risk.y * f)
    return np.maximum(0.0, np.abs(f - risk.y) - getattr(risk.loss, "epsilon", 0.0))


def of_rows(problems: list, used: np.ndarray, n: int) -> list:
    """Return problems over some rows of a data set, which now know which of all n theirs are."""
    if len(used) < n:
        for risk in problems:
            risk.rows = used if risk.rows is None else used[risk.rows]
    return problems
