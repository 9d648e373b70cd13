"""The adversary of benchmarks/certify.py on fixed seeds: what a certificate claims is true."""

import importlib.util
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[1] / "benchmarks" / "certify.py"
_SPEC = importlib.util.spec_from_file_location("certify", _PATH)
certify = importlib.util.module_from_spec(_SPEC)
sys.modules["certify"] = certify
_SPEC.loader.exec_module(certify)

SEEDS, AT_ONCE = 320, 20
FOUND = [47, 142]  # each has found a fault


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_no_certificate_claims_more_than_is_true(first):
    verdicts = [
        certify.judge(certify.problem(seed, largest=300, gpu=False))
        for seed in range(first, first + AT_ONCE)
    ]
    assert not [f"seed {v.seed}, {v.kind}: {v.text}" for v in verdicts if v.failed]
    assert sum(verdict.kind == "held" for verdict in verdicts) >= AT_ONCE // 2


@pytest.mark.parametrize("seed", FOUND)
def test_what_has_failed_before(seed):
    verdict = certify.judge(certify.problem(seed, gpu=False))
    assert not verdict.failed, verdict.text


def test_the_judge_sees_a_gap_that_is_too_small():
    """The certificates of a problem with their gap taken away are found false."""
    problem = certify.problem(3, gpu=False)
    problem.model.set_params(tol=10.0)
    assert certify.judge(problem).kind == "held"
    fit = problem.model.fit

    def fit_and_lie(*arguments, **weights):
        fitted = fit(*arguments, **weights)
        certificate = fitted.certificate_
        object.__setattr__(certificate, "gap", 0.0)
        object.__setattr__(certificate, "rounding", 0.0)
        return fitted

    problem.model.fit = fit_and_lie
    assert certify.judge(problem).kind == "false"
