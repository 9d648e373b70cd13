"""A fit on Dask collections has the answer of a fit in memory, and so have its predictions."""

from itertools import pairwise

import numpy as np
import pytest

from contracts.common import applies, assert_same, fit, quietly, takes_weights
from contracts.test_certificates import check_numbers, recomputed
from contracts.test_hostile import refusal

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

CUTS = 18, 19  # partitions of 18, 1 and 23 rows


@pytest.fixture(autouse=True)
def spread(monkeypatch):
    """Run tasks in this thread, and leave rows in their partitions though they are few."""
    monkeypatch.setattr("maxmargin.dask.linear.fit._better_here", lambda rows: False)
    monkeypatch.setattr("maxmargin.dask.kernel.chunking._FEW", 0)
    with dask.config.set(scheduler="synchronous"):
        yield


def partitions(rows):
    """Return rows in partitions: a Dask array of an array, delayed parts of a list."""
    if rows is None:
        return None
    if not isinstance(rows, np.ndarray):
        return [dask.delayed(rows[a:b]) for a, b in pairwise((0, *CUTS, len(rows)))]
    sizes = tuple(np.diff((0, *CUTS, len(rows))).tolist())
    return da.from_array(rows, chunks=(sizes, *[-1] * (rows.ndim - 1)))


def together(answers):
    """Return lazy answers of Dask as one array."""
    parts = dask.compute(*answers) if isinstance(answers, list) else [answers.compute()]
    return np.concatenate([np.asarray(part) for part in parts])


def is_lazy_too(model, sample):
    """Predictions of partitions are those of the rows in memory."""
    method = "predict" if hasattr(model, "predict") else "transform"
    ask = getattr(model, method)
    here, there = quietly(ask, sample.X), together(quietly(ask, partitions(sample.X)))
    if here.dtype.kind == "f":
        np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(there, here)


@applies(lambda instance: instance.target != "topics")  # sets of labels are no array
def test_dask_equals_memory(instance):
    sample = instance.sample()
    lazy = sample._replace(X=partitions(sample.X), y=partitions(sample.y))
    weights = np.random.default_rng(0).permutation(np.linspace(0.5, 1.5, len(sample.X)))
    for weight in (None, weights) if takes_weights(instance) else (None,):
        given, lazily = {}, {}
        if weight is not None:
            given, lazily = {"sample_weight": weight}, {"sample_weight": partitions(weight)}
        here = fit(instance.make_exact(), sample, **given)
        there = fit(instance.make_exact(), lazy, **lazily)
        assert there.distribution_.rows == len(sample.X)
        assert_same(there, here, sample.new)
        is_lazy_too(there, sample)
        if hasattr(here, "certificate_"):
            assert type(there.certificate_) is type(here.certificate_)
            assert there.certificate_.status == here.certificate_.status
            for part, numbers in recomputed(there, sample, weight):
                check_numbers(part, numbers)


@applies(lambda instance: "dask_equals_memory" in instance.cannot)
def test_what_dask_cannot_is_refused_with_a_way_out(instance):
    sample = instance.sample()
    lazy = sample._replace(X=partitions(sample.X), y=partitions(sample.y))
    model = instance.make()
    sentence = refusal(model.fit, lazy.X, lazy.y)
    if sentence is None:  # rows are visited in another order
        is_lazy_too(model, sample)
    else:
        assert any(word in sentence.lower() for word in ("use ", "give "))
