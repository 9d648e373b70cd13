"""What certificates claim is true: numbers computed again, bounds held against better answers."""

import numpy as np
import pytest

from contracts.common import fit, takes_weights
from contracts.objectives import RECOMPUTED
from maxmargin.certificate import Certificate
from maxmargin.ensemble.boosting.certificates import BoostingCertificate

EXACT = 1e-8  # of a number's size: recomputed with other sums


def fits(instance):
    """Yield options of a fit, and weights of the rows or None: as it is, stopped, and weighted."""
    yield {}, None
    if "max_iter" in instance.estimator.get_params(deep=False):
        yield {"max_iter": 2}, None
    if takes_weights(instance):
        yield {}, np.random.default_rng(0).permutation(np.linspace(0.5, 1.5, 42))


def recomputed(model, sample, weights):
    """Return the certificate of each problem that was solved, with the numbers it has to have."""
    s = np.ones(len(sample.X)) if weights is None else weights
    certificate = model.certificate_
    parts = certificate.parts or (certificate,)
    numbers = RECOMPUTED[type(model).__name__](model, sample.X, sample.y, s)
    return list(zip(parts, numbers, strict=True))


def check_numbers(part, numbers):
    """The numbers of a certificate are those that were recomputed, or are above them."""
    for name, value in numbers.items():
        claimed = getattr(part, name.removeprefix("at most "))
        if name.startswith("at most "):
            assert value <= claimed * (1 + EXACT), name
        else:
            assert claimed == pytest.approx(value, rel=EXACT, abs=1e-3 * EXACT), name


def check_status(part):
    """A problem has converged if what has to become small is at most tol, but for rounding."""
    size = max(abs(getattr(part, "primal", 1.0)), 1e-300)
    rounding = getattr(part, "rounding", 0.0) / size
    assert isinstance(part, Certificate)
    said = str(part)
    for text in (str(part.status), part.claim, *part.numbers(), *part.numbers().values()):
        assert text in said
    if isinstance(part, BoostingCertificate):  # its rounds have an end of their own
        assert part.train_error <= part.bound + 1e-12
    elif part.converged:
        assert part.violation <= part.tol + 2 * rounding
    else:
        assert part.violation > part.tol


def check_gap(part, best):
    """The gap is the difference of the objectives, and no better answer is below the bound."""
    if hasattr(part, "dual"):
        off = part.rounding if hasattr(part, "rounding") else 0.0
        room = off + 1e-12 * abs(part.primal)
        assert part.dual <= part.primal + room
        assert abs(part.primal - part.dual - part.gap) <= room
        assert best["primal"] >= part.dual - room
    elif hasattr(part, "norm_error"):  # ridge regression
        least = part.objective - part.gap - part.rounding
        assert best["objective"] >= least - 1e-12 * part.objective
    elif getattr(part, "convex", False):
        assert best["objective"] <= part.objective * (1 + 1e-9)
    elif hasattr(part, "exhaustive"):  # boosting for the largest soft margin
        assert best["margin"] <= part.bound + 1e-9


def check_whole(whole):
    """Of several problems, the certificate has the numbers of the worst."""
    parts = whole.parts
    assert f"worst of {len(parts)} " in str(whole)
    assert whole.converged == all(part.converged for part in parts)
    assert whole.badness == max(part.badness for part in parts)
    assert whole.violation == max(part.violation for part in parts)
    for name in ("primal", "dual", "gap", "objective", "mistakes"):
        if hasattr(whole, name):
            worst = [part for part in parts if part.badness == whole.badness]
            assert getattr(whole, name) in [getattr(part, name) for part in worst], name


def test_certificates_are_true(instance):
    sample = instance.sample()
    for options, weights in fits(instance):
        given = {} if weights is None else {"sample_weight": weights}
        model = fit(instance.make(**options), sample, **given)
        if not hasattr(model, "certificate_"):
            assert type(model).__name__ not in RECOMPUTED
            return
        best = fit(instance.make_exact(), sample, **given)
        better = [numbers for _, numbers in recomputed(best, sample, weights)]
        for (part, numbers), least in zip(recomputed(model, sample, weights), better, strict=True):
            check_numbers(part, numbers)
            check_status(part)
            check_gap(part, least)
        if model.certificate_.parts:
            check_whole(model.certificate_)
