"""Random problems of benchmarks/certify: what certificates and bounds claim is true."""

import numpy as np
import pytest

from benchmarks.certify.families import SHARES, names, problem, svm
from benchmarks.certify.judge import judge
from benchmarks.certify.runner import run

QUICK = 5  # problems of each family in the fast tier


def _failed(verdicts):
    return [f"{v.family} {v.seed}, {v.kind}: {v.text}" for v in verdicts if v.failed]


@pytest.mark.fast
@pytest.mark.parametrize("family", [name for name in SHARES if name in names()])
def test_claims_are_true(family):
    found = [judge(problem(seed, family), seed, family) for seed in range(QUICK)]
    assert not _failed(found)
    assert sum(verdict.kind == "held" for verdict in found) >= QUICK // 2


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name in SHARES if name in names()])
def test_more_claims_are_true(family):
    seeds = range(QUICK, QUICK + 40)
    assert not _failed([judge(problem(seed, family), seed, family) for seed in seeds])


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        ("spectral", 33),
        ("direct", 100),
        ("direct", 232502),
        ("direct", 118592),  # values hidden in the rounding of a far offset
        ("boosting", 100127),  # exp(alpha) beyond float64
        ("boosting", 109778),  # thresholds between neighbours of float32
        ("boosting", 112392),
        ("features", 103036),  # a normalisation of large entries
        ("ridge", 110580),  # a float32 column far from zero beside others
        ("ridge", 1263),  # least norm over columns of 16 orders
        ("mce", 286),  # a penalty on a constant column
        ("ridge", 100695),  # an objective of terms that cancel
        ("ivanov", 107367),  # zero weights lose nothing
        ("ivanov", 100586),  # sparse coefficients
        ("ivanov", 202419),  # a float64 sum of losses is rounded
        ("ivanov", 203914),  # rows of weight zero have no part in the median
        ("ivanov", 832368),  # zero weights without an intercept have the value zero
        ("linear", 109517),  # l1: no weight but zero
        ("searches", 40),  # an intercept that may be any of an interval
        ("searches", 200549),  # scores of points within the gap
        ("searches", 301249),
        ("searches", 300155),
        ("svm", 845411),  # zero coefficients: the sum of losses is rounded
        ("svm", 756088),  # sums measured from where a later round began
        ("separability", 751438),  # a margin near what float64 resolves
        ("searches", 707529),  # a row on the boundary of a pair of classes
        ("spectral", 1011279),  # an eigenvalue that is missing between two that were found
        ("spectral", 712224),  # an eigenvalue that is called zero
        ("linear", 300313),  # l1: wide, a large C; coordinates took more than a minute
        ("linear", 106699),  # l1: rows of such lengths that a model cannot be solved in float64
    ],
)
def test_what_has_failed_before(family, seed):
    verdict = judge(problem(seed, family))
    assert not verdict.failed, verdict.text


@pytest.mark.parametrize("seed", [47, 142])
def test_kernel_machines_that_have_failed_before(seed):
    random = np.random.default_rng([13, seed])
    random.random()
    verdict = judge(svm.problem(random, largest=300))
    assert not verdict.failed, verdict.text


@pytest.mark.filterwarnings("ignore:.*close to the specified lower bound")
def test_a_curved_ridge_of_a_likelihood_takes_few_steps():
    """Noise and a constant can stand in for each other: 21,000 steps, 20 s, on 27 rows."""
    model = problem(406724, "process").fit()
    assert model.certificate_.converged
    assert model.n_iter_ < 1000


def test_the_judge_sees_a_gap_that_is_too_small():
    """The certificate of a problem with its gap taken away is found false."""
    given = svm.problem(np.random.default_rng(0), largest=60)
    fit = given.fit
    assert judge(given).kind == "held"

    def fit_and_lie():
        fitted = fit()
        for name in ("gap", "rounding"):
            object.__setattr__(fitted.certificate_, name, -1.0)
        return fitted

    given.fit = fit_and_lie
    assert judge(given).kind == "false"


@pytest.mark.slow
def test_a_process_that_dies_is_a_verdict():
    found = run([(0, "no such family"), (0, "spectral")], 1)
    assert [verdict.kind for verdict in found] == ["crash", "held"]
