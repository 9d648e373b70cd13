"""What a record of measurements says: medians, ratios that may be believed, and the targets.

A record holds the runs of every library on one workload. A ratio is the peer's median time over
ours, and there is one only if no run of either raised a doubt, if our dual objective is no worse
than the peer's by more than ``WORSE``, and, for a search, if the scores agree to ``APART``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from libraries import INTELEX, OURS, PEERS, SKLEARN
from workloads import LARGE, WORKLOADS, Workload

WORSE = 1e-5
APART = 0.002
BETTER = "the better peer"


@dataclass(frozen=True)
class Row:
    """One workload's measurements."""

    workload: Workload
    runs: dict[str, list[dict]]

    def values(self, library: str, name: str) -> list:
        """What the runs of a library say under a name, where they say anything."""
        values = [run.get(name) for run in self.runs.get(library, [])]
        return [value for value in values if value is not None]

    def median(self, library: str, name: str) -> float | None:
        """Median over the runs."""
        values = self.values(library, name)
        return float(np.median(values)) if values else None

    def doubts(self, library: str) -> list[str]:
        """Every reason not to believe this library's times."""
        runs = self.runs.get(library, [])
        said = [run[name] for run in runs for name in ("error", "absent") if name in run]
        reasons = said + [reason for run in runs for reason in run.get("doubts", [])]
        return list(dict.fromkeys(reasons)) if runs else ["not measured"]

    def shortfall(self, peer: str) -> float | None:
        """How much our worst dual objective is below the peer's best, relative to that."""
        ours, theirs = ([sum(d) for d in self.values(name, "duals")] for name in (OURS, peer))
        return (max(theirs) - min(ours)) / abs(max(theirs)) if ours and theirs else None

    def apart(self, peer: str) -> float | None:
        """Largest difference of a mean score between two searches."""
        ours, theirs = (self.values(name, "mean_test_score") for name in (OURS, peer))
        return float(np.abs(np.subtract(ours[0], theirs[0])).max()) if ours and theirs else None

    def objections(self, peer: str) -> list[str]:
        """Why there is no ratio to this peer; empty if there is one."""
        reasons = [f"{name}: {text}" for name in (OURS, peer) for text in self.doubts(name)]
        shortfall, apart = self.shortfall(peer), self.apart(peer)
        if shortfall is not None and shortfall > WORSE:
            reasons.append(f"our dual objective is worse than {peer}'s by {shortfall:.1e}")
        if apart is not None and not apart <= APART:  # nan is no agreement
            reasons.append(f"mean scores of {OURS} and {peer} differ by up to {apart:.4f}")
        return reasons

    def ratio(self, peer: str, name: str = "fit") -> float | None:
        """The peer's median time over ours, if both are believed; against BETTER the smallest."""
        if peer == BETTER:
            ratios = [self.ratio(one, name) for one in PEERS]
            return min((ratio for ratio in ratios if ratio), default=None)
        ours, theirs = self.median(OURS, name), self.median(peer, name)
        return theirs / ours if ours and theirs and not self.objections(peer) else None


@dataclass(frozen=True)
class Target:
    """Ratios that a group of workloads is to reach.

    ``least`` gives the geometric mean against each peer, ``each`` what no single workload may be
    below, against the better peer.
    """

    what: str
    belongs: Callable[[Workload], bool]
    least: dict[str, float]
    name: str = "fit"
    each: float | None = None

    def size(self) -> int:
        """Number of workloads in the group."""
        return sum(map(self.belongs, WORKLOADS.values()))


TARGETS = (
    Target("SVC fit, large", lambda w: w.group == LARGE, {SKLEARN: 15, INTELEX: 3}, each=2),
    Target("SVC fit, the other four", lambda w: w.group not in ("", LARGE), {BETTER: 2.5}, each=1),
    Target("SVC predict", lambda w: w.group != "", {SKLEARN: 15, INTELEX: 1.3}, name="predict"),
    Target("SVR fit", lambda w: w.section == "svr", {SKLEARN: 8, INTELEX: 3}),
    Target("nu machines fit", lambda w: w.section == "nu", {SKLEARN: 6, INTELEX: 1.5}),
    Target("search", lambda w: w.section == "search", {SKLEARN: 50, INTELEX: 15}),
)
COLD = {"empty": 15.0, "filled": 0.5}  # seconds of the first small fit, by Numba's cache


def geometric_mean(ratios: Iterable[float]) -> float:
    """Mean of the logarithms, undone."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of a straight line through the logarithms: ``value ~ size ** exponent``."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def rows(results: dict, section: str | None = None) -> list[Row]:
    """Rows of a section, or all, in the order of the workloads."""
    chosen = (w for w in WORKLOADS.values() if w.key in results and section in (None, w.section))
    return [Row(workload, results[workload.key]["runs"]) for workload in chosen]
