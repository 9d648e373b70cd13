"""Boosted words: AdaBoost.MH as the paper has it, on documents, counts and labels of every form."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline

from maxmargin import WordStumpBooster
from maxmargin.backends.threads import ALONE
from maxmargin.ensemble.words import rounds
from maxmargin.ensemble.words.thresholds import best_threshold
from maxmargin.ensemble.words.weights import LabelSets, LabelWeights
from maxmargin.plotting import BoostedWordsDisplay, plot_boosted_words

KINDS = ["real", "abstaining", "discrete"]


def counts(n=300, words=200, labels=3, seed=0):
    """Documents of common and rare words, and labels that some of the words speak for."""
    random = np.random.default_rng(seed)
    X = (random.random((n, words)) < random.beta(0.5, 6.0, words)).astype(float)
    X *= random.integers(1, 4, X.shape)
    pull = random.normal(size=(words, labels)) * (random.random((words, labels)) < 0.2)
    f = (X > 0) @ pull + random.normal(size=(n, labels))
    return sp.csr_matrix(X), f > np.quantile(f, 0.8, axis=0)


def reference(X, Y, kind, words):
    """AdaBoost.MH in NumPy, from the formulas: yields Z of all words, and a word's stump."""
    present = (X.toarray() > 0).astype(float)
    sign = np.where(Y, 1.0, -1.0)
    D = np.full(Y.shape, 1.0 / Y.size)
    eps = 1.0 / Y.size
    for word in words:
        W = np.array(  # side, sign, word, label
            [[side.T @ (D * (sign == b)) for b in (1.0, -1.0)] for side in (1.0 - present, present)]
        )
        if kind == "real":
            Z = 2.0 * np.sqrt(W[:, 0] * W[:, 1]).sum(axis=(0, 2))
        elif kind == "abstaining":
            Z = W[0].sum(axis=(0, 2)) + 2.0 * np.sqrt(W[1, 0] * W[1, 1]).sum(axis=1)
        else:
            r = np.abs(W[:, 0] - W[:, 1]).sum(axis=(0, 2))
            Z = np.sqrt(1.0 - r**2)
        if kind == "discrete":
            alpha = 0.5 * np.log((1.0 + r[word] + eps) / (1.0 - r[word] + eps))
            c = alpha * np.sign(W[:, 0, word] - W[:, 1, word])
        else:
            c = 0.5 * np.log((W[:, 0, word] + eps) / (W[:, 1, word] + eps))
            c[0] *= kind == "real"
        h = np.where(present[:, word, None] > 0, c[1], c[0])
        D = D * np.exp(-sign * h)
        true_Z = D.sum()
        D /= true_Z
        yield Z, c, true_Z, D


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [1, 3, 17])
def test_the_rounds_are_those_of_the_formulas(kind, labels, monkeypatch):
    """Word for word; also those whose sums are kept and those that a bound leaves out."""
    monkeypatch.setattr(rounds, "_KEPT", 20)
    X, Y = counts(labels=labels)
    model = WordStumpBooster(80, stump=kind).fit(X, sp.csr_matrix(Y))
    assert 0 < (X.getnnz(axis=0) < 20).sum() < X.shape[1]
    columns = model.words_.columns
    for k, (Z, c, true_Z, D) in enumerate(reference(X, Y, kind, columns)):
        assert Z[columns[k]] <= Z.min() + 1e-11
        np.testing.assert_allclose(model.words_.absent[k], c[0], atol=1e-9)
        np.testing.assert_allclose(model.words_.present[k], c[1], atol=1e-9)
        assert model.Z_[k] == pytest.approx(true_Z, rel=1e-10)
        last = D
    np.testing.assert_allclose(model.D_, last, rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_word_stays_the_best_for_long(kind):
    """Sums that are only changed by what has changed do not drift away."""
    X, Y = counts(n=120, words=150)
    model = WordStumpBooster(600, stump=kind).fit(X, Y)
    present, sign = X.toarray() > 0, np.where(Y, 1.0, -1.0)
    D = np.full(Y.shape, 1.0 / Y.size)
    for k, stump in enumerate(map(model.words_.__getitem__, range(len(model.words_)))):
        if k % 50 == 49:
            sides = (~present).astype(float), present.astype(float)
            W = np.array([[s.T @ (D * (sign == b)) for b in (1, -1)] for s in sides])
            if kind == "real":
                score = 2.0 * np.sqrt(W[:, 0] * W[:, 1]).sum(axis=(0, 2))
            elif kind == "abstaining":
                score = 1.0 - ((np.sqrt(W[1, 0]) - np.sqrt(W[1, 1])) ** 2).sum(axis=1)
            else:
                score = -np.abs(W[:, 0] - W[:, 1]).sum(axis=(0, 2))
            assert score[model.words_.columns[k]] <= score.min() + 1e-9
        h = np.where(present[:, model.words_.columns[k], None], stump.present, stump.absent)
        D = D * np.exp(-sign * h) / stump.Z


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_holds(kind):
    """prod Z is the mean of exp(-Y f), and not below the Hamming loss; weights count in both."""
    X, Y = counts()
    weight = np.random.default_rng(1).integers(0, 4, len(Y)).astype(float)
    model = WordStumpBooster(60, stump=kind).fit(X, Y, sample_weight=weight)
    share = weight[:, None] / (weight.sum() * Y.shape[1])
    sign = np.where(Y, 1.0, -1.0)
    for f, bound, loss in zip(
        model.staged_decision_function(X), model.bound_, model.hamming_loss_, strict=True
    ):
        assert (share * np.exp(-sign * f)).sum() == pytest.approx(bound, rel=1e-9)
        assert (share * ((f > 0) != Y)).sum() == pytest.approx(loss, abs=1e-12)
        assert loss <= bound
    np.testing.assert_allclose(f, model.decision_function(X), atol=1e-10)
    assert model.D_.sum() == pytest.approx(1.0)
    doubled = np.repeat(np.arange(len(Y)), weight.astype(int))
    again = WordStumpBooster(60, stump=kind).fit(X[doubled], Y[doubled])
    np.testing.assert_allclose(again.Z_, model.Z_, rtol=1e-9)


def small(seed):
    """Few documents and words, so that ties are the rule; whole numbers as weights."""
    random = np.random.default_rng(seed)
    n, d, k = (int(random.integers(*ends)) for ends in ((4, 40), (2, 20), (2, 5)))
    X = (random.random((n, d)) < random.uniform(0.1, 0.6)).astype(float)
    return X, random.integers(0, k, n), random.integers(1, 4, n)


@pytest.mark.parametrize("seed", [41, 47, 137, 212, 269, 278, 350])
def test_a_weight_of_two_is_a_document_written_twice(seed):
    # a word in 16 documents was preferred to one in 15 where both were as good, and where as many
    # documents spoke for a label as against it the sign of a rounding error decided
    X, y, weight = small(seed)
    model = WordStumpBooster(n_estimators=30, stump="discrete")
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.words_.columns.tolist() == repeated.words_.columns.tolist()
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_those_of_the_largest_value(kind):
    for seed in range(12):
        X, y, _ = small(seed)
        model = WordStumpBooster(n_estimators=20, stump=kind).fit(X, y)
        values = model.decision_function(X)
        # values are multiples of 2**-30: exact sums, the same in any order
        assert not np.any(values * 2.0**30 % 1)
        *_, last = model.staged_decision_function(X)
        assert np.array_equal(last, values)
        column = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        assert np.array_equal(model.predict(X), model.classes_[column])
        assert np.array_equal(model.rank(X)[:, 0], model.predict(X))
        *_, last = model.staged_predict(X)
        assert np.array_equal(last, model.predict(X))


def test_the_same_answer_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("maxmargin.estimators.base.SHARED_FROM", 1)
    monkeypatch.setattr(rounds, "_WORK", 500)
    X, Y = counts()
    models = [WordStumpBooster(70, n_jobs=n).fit(X, Y) for n in (1, 2, 5)]
    for other in models[1:]:
        assert (other.words_.columns == models[0].words_.columns).all()
        assert (other.words_.present == models[0].words_.present).all()
        assert (other.Z_ == models[0].Z_).all()
        assert (other.D_ == models[0].D_).all()


DOCUMENTS = [
    "The corn crop, and wheat.",
    "Crude oil prices rise",
    "wheat exports to the east",
    "oil and gas",
    "",
    "Corn oil is no crude oil",
    "gas prices rise",
    "the wheat price",
]
TOPICS = [
    ["grain"],
    ["energy"],
    ["grain"],
    ["energy"],
    [],
    ["grain", "energy"],
    ["energy"],
    {"grain"},
]
NEW = ["corn and gas", "a poem", ""]


def test_text_and_counts_say_the_same():
    """Documents in any container, counts in any, and what other vectorizers make of them."""
    y = ["grain" if "grain" in topics else "other" for topics in TOPICS]
    model = WordStumpBooster(20, ngram_range=(1, 2)).fit(DOCUMENTS, y)
    values = model.decision_function(NEW)
    vectorizer = CountVectorizer(ngram_range=(1, 2))
    X = vectorizer.fit_transform(DOCUMENTS)
    containers = [
        (np.array(DOCUMENTS), np.array(NEW)),
        (np.array(DOCUMENTS, dtype=object), tuple(NEW)),
        (pd.Series(DOCUMENTS, index=range(5, 13)), pd.Series(NEW)),
        (pl.Series(DOCUMENTS), pl.Series(NEW)),
        (pd.DataFrame({"text": DOCUMENTS}), pd.DataFrame({"text": NEW})),
        (pl.DataFrame({"text": DOCUMENTS}), pl.DataFrame({"text": NEW})),
    ]
    for train, new in containers:
        assert (clone(model).fit(train, y).decision_function(new) == values).all()
    counted = vectorizer.transform(NEW)
    assert (model.decision_function(counted) == values).all()
    for kind in (sp.csr_matrix, sp.csc_array, lambda X: X.toarray(), lambda X: X.astype("f4")):
        other = WordStumpBooster(20).fit(kind(X), y)
        assert (other.decision_function(kind(counted)) == values).all()
        assert (
            other.words_.renamed(vectorizer.get_feature_names_out()).words == model.words_.words
        ).all()
    own = WordStumpBooster(20, vectorizer=TfidfVectorizer(ngram_range=(1, 2))).fit(DOCUMENTS, y)
    assert (own.decision_function(NEW) == values).all()
    assert own.vectorizer is not own.vectorizer_
    hashed = HashingVectorizer(n_features=64, alternate_sign=False)
    assert WordStumpBooster(5, vectorizer=hashed).fit(DOCUMENTS, y).words_[0].word[0] == "x"


def test_a_matrix_is_left_as_it_was():
    X = sp.csr_matrix(
        (np.array([1.0, 0.0, 2.0, 3.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3)
    )
    before = X.copy()
    WordStumpBooster(3).fit(X, [0, 1])
    assert (X.data == before.data).all()
    assert (X.indices == before.indices).all()
    counted, Y = counts()
    some = sp.csr_matrix(counted).astype(float)
    some.data[::3] = 0.0  # written down, but no words
    full = WordStumpBooster(5).fit(some.toarray(), Y).decision_function(some.toarray())
    assert (WordStumpBooster(5).fit(some, Y).decision_function(some) == full).all()


def test_every_form_of_labels():
    lists = WordStumpBooster(20).fit(DOCUMENTS, TOPICS)
    assert lists.classes_.tolist() == ["energy", "grain"]
    assert lists.predict(DOCUMENTS) == [tuple(sorted(topics)) for topics in TOPICS]
    assert lists.score(DOCUMENTS, TOPICS) == 1.0
    Y = np.array([[name in topics for name in lists.classes_] for topics in TOPICS])
    for given in (Y, Y.astype(int), sp.csr_matrix(Y), Y.astype(int).tolist()):
        model = WordStumpBooster(20).fit(DOCUMENTS, given)
        assert (model.predict(DOCUMENTS) == Y).all()
        assert (model.decision_function(NEW) == lists.decision_function(NEW)).all()
    frame = WordStumpBooster(20).fit(DOCUMENTS, pd.DataFrame(Y.astype(int), columns=["e", "g"]))
    assert frame.classes_.tolist() == ["e", "g"]
    one = ["a", "b", "c", "a", "b", "c", "a", "b"]
    model = WordStumpBooster(50).fit(DOCUMENTS, one)
    assert model.decision_function(NEW).shape == (3, 3)
    assert (model.predict(DOCUMENTS) == model.rank(DOCUMENTS)[:, 0]).all()


def test_two_labels_are_one_machine():
    """As a third of the work: f of the first is -f of the second, as AdaBoost.MH has them."""
    X, Y = counts(labels=1)
    two = WordStumpBooster(40).fit(X, Y[:, 0])
    both = WordStumpBooster(40).fit(X, np.hstack([~Y, Y]))
    assert (two.words_.columns == both.words_.columns).all()
    np.testing.assert_allclose(both.decision_function(X)[:, 1], two.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(
        both.decision_function(X)[:, 0], -two.decision_function(X), atol=1e-9
    )
    np.testing.assert_allclose(both.Z_, two.Z_, rtol=1e-10)
    assert two.rank(X).shape == (X.shape[0], 2)
    assert two.ranking_scores(X, Y[:, 0]).one_error == pytest.approx(1.0 - two.score(X, Y[:, 0]))
    with pytest.raises(ValueError, match=r"\[7\] are not among those of the fit"):
        two.ranking_scores(X, np.where(Y[:, 0], 7, 0))


def test_scores_of_an_order():
    X, Y = counts()
    model = WordStumpBooster(40).fit(X, Y)
    scores = model.ranking_scores(X, Y)
    order, counted = model.rank(X), np.flatnonzero(Y.any(axis=1) & ~Y.all(axis=1))
    assert scores.documents == len(counted)
    assert scores.one_error == pytest.approx(np.mean([~Y[i, order[i, 0]] for i in counted]))
    last = [max(np.flatnonzero(Y[i, order[i]])) for i in counted]
    assert scores.coverage == pytest.approx(np.mean(last))
    rows, weight = (model.predict(X) == Y).all(axis=1), np.arange(len(Y))
    assert model.score(X, Y, weight) == pytest.approx(np.average(rows, weights=weight))


@pytest.mark.slow
def test_thresholds_are_tuned_on_documents_left_out():
    X, Y = counts(n=500)
    Y[:, 2] &= np.random.default_rng(3).random(500) < 0.2
    model = WordStumpBooster(60, thresholds="f1", cv=KFold(4)).fit(X, Y)
    left_out = np.empty(Y.shape)
    for inside, outside in KFold(4).split(Y):
        fold = WordStumpBooster(60).fit(X[inside], Y[inside])
        left_out[outside] = fold.decision_function(X[outside])
    for k in range(3):
        here = f1_score(Y[:, k], left_out[:, k] > model.thresholds_[k])
        best = max(f1_score(Y[:, k], left_out[:, k] > t) for t in np.unique(left_out[:, k]))
        assert here == pytest.approx(best) if best > 0.3 else model.thresholds_[k] == 0
    assert model.thresholds_[:2].all()
    assert model.thresholds_[2] == 0  # nothing to be learned: no threshold is believed
    assert (model.predict(X) == (model.decision_function(X) > model.thresholds_)).all()
    fixed = WordStumpBooster(60, thresholds=[0.5, 1.0, np.float32(-2)]).fit(X, Y)
    assert (fixed.predict(X) == (fixed.decision_function(X) > [0.5, 1.0, -2])).all()
    two = WordStumpBooster(20, thresholds="f1").fit(X, Y[:, 0])
    assert (two.predict(X) == (two.decision_function(X) > two.thresholds_[0])).all()


def test_thresholds_are_those_of_weighted_boosters():
    X, Y = counts()
    weight = np.random.default_rng(1).integers(1, 9, size=len(Y)).astype(float)
    model = WordStumpBooster(20, thresholds="f1", cv=KFold(3)).fit(X, Y, weight)
    left_out = np.empty(Y.shape)
    for inside, outside in KFold(3).split(Y):
        fold = WordStumpBooster(20).fit(X[inside], Y[inside], weight[inside])
        left_out[outside] = fold.decision_function(X[outside])
    best = [best_threshold(*columns) for columns in zip(Y.T, left_out.T, strict=True)]
    assert np.any(best)
    np.testing.assert_allclose(model.thresholds_, best, atol=1e-9)


def test_the_best_threshold():
    rare = np.arange(100) == 70
    assert best_threshold(np.zeros(3, dtype=bool), np.arange(3.0)) == 0.0
    assert best_threshold(rare, -np.arange(100.0)) == 0.0  # not for one among 71
    assert best_threshold(rare, -np.abs(np.arange(100.0) - 70) - 1) == -1.5
    equal = np.array([True, False, False, True]), np.array([9.0, 8.0, 3.0, 2.0])
    assert best_threshold(*equal) == 1.5  # and not 8.5, which is as good but farther from zero


def test_more_rounds():
    """warm_start goes on where the last fit ended; with text, in its vocabulary."""
    X, Y = counts()
    whole = WordStumpBooster(60).fit(X, Y)
    parts = WordStumpBooster(20, warm_start=True).fit(X, Y)
    for n in (45, 60, 60):
        parts.set_params(n_estimators=n).fit(X, Y)
        assert len(parts.words_) == parts.n_iter_ == n
    assert (parts.words_.columns == whole.words_.columns).all()
    np.testing.assert_allclose(parts.bound_, whole.bound_, rtol=1e-8)
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="larger or equal to the 60 rounds"):
        parts.set_params(n_estimators=10).fit(X, Y)
    parts.set_params(n_estimators=70)
    with pytest.raises(ValueError, match="goes on with the labels"):
        parts.fit(X, Y[:, :2])
    text = WordStumpBooster(3, warm_start=True).fit(DOCUMENTS, TOPICS)
    vectorizer = text.vectorizer_
    text.set_params(n_estimators=9).fit(DOCUMENTS, TOPICS)
    assert text.vectorizer_ is vectorizer
    assert len(text.words_) == 9


def test_long_work_can_be_seen_and_stopped():
    X, Y = counts()
    reports = []

    def stop(progress):
        reports.append(progress)
        return len(reports) == 3

    model = WordStumpBooster(10**6, callback=stop, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="of 1000000 rounds"):
        model.fit(X, Y)
    assert model.status_ == "interrupted"
    assert len(model.words_) == model.n_iter_ > 0
    assert "rounds, bound on the Hamming loss" in str(reports[-1])
    assert reports[-1].share == pytest.approx(reports[-1].steps / 10**6)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0\.2 s"):
        WordStumpBooster(10**6, time_limit=0.2).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="The thresholds are zero"):
        WordStumpBooster(10**6, time_limit=0.1, thresholds="f1").fit(X, Y)
    traced = WordStumpBooster(30, trace=True).fit(X, Y)
    np.testing.assert_allclose(traced.trace_.curve("objective")[1:], traced.bound_)
    last = traced.trace_.records[0][-1]
    assert last.working_set.tolist() == [traced.words_.columns[-1]]


def test_the_first_round_is_made_whoever_stops():
    X, Y = counts()
    model = WordStumpBooster(500, time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="after 1 of 500 rounds"):
        model.fit(X, Y)
    assert (len(model.words_), model.status_) == (1, "time_limit")
    assert WordStumpBooster(1, time_limit=1e-9).fit(X, Y).status_ == "completed"


def test_where_words_say_no_more():
    """A perfect word, words that are everywhere, and words that say nothing end in a sentence."""
    X = np.ones((6, 3))
    model = WordStumpBooster(500).fit(X, [0, 0, 0, 0, 1, 1])
    assert model.status_ == "no_improvement"
    assert (model.predict(X) == 0).all()
    nothing = WordStumpBooster(5, stump="abstaining").fit(
        [[1, 0], [1, 0], [1, 1], [1, 1]], [0, 1] * 2
    )
    assert len(nothing.words_) == 0
    assert nothing.decision_function([[1, 0]]) == [0.0]
    perfect = WordStumpBooster(100).fit([[1, 0], [1, 0], [0, 1], [0, 1]], [0, 0, 1, 1])
    assert np.isfinite(perfect.decision_function([[1, 0], [0, 0], [0, 1]])).all()
    assert perfect.score([[1, 0], [0, 1]], [0, 1]) == 1.0
    tiny = WordStumpBooster(200, smoothing=1e-50).fit(
        [[1, 0], [1, 0], [0, 1], [0, 1]], [0, 0, 1, 1]
    )
    assert np.isfinite(tiny.D_).all()


BAD = [
    (DOCUMENTS, ["a"] * 8, {}, "number of classes has to be greater than one"),
    (DOCUMENTS, [[]] * 8, {}, "No document has a label"),
    (DOCUMENTS, [*TOPICS[:7], "grain"], {}, "document 7 has 'grain'"),
    (DOCUMENTS, np.arange(24).reshape(8, 3), {}, "each entry is 0 or 1"),
    (DOCUMENTS, [*TOPICS[:7], [1]], {}, "of the types int, str"),
    (DOCUMENTS, [*list("abababa"), None], {}, "of the types NoneType, str"),
    ("one document", ["a"], {}, "string object received"),
    ([*DOCUMENTS[:7], None], TOPICS, {}, "document 7 is of type NoneType"),
    (pd.Series([np.nan, *DOCUMENTS[1:]]), TOPICS, {}, "document 0 is of type float"),
    (pd.DataFrame({"a": DOCUMENTS, "b": DOCUMENTS}), TOPICS, {}, "one column of text, and X has 2"),
    (["a", "b"], [0, 1], {}, "empty vocabulary"),
    (DOCUMENTS, TOPICS, {"min_df": 8}, "no terms remain"),
    (DOCUMENTS, TOPICS, {"ngram_range": (2, 1)}, "ngram_range"),
    (DOCUMENTS, TOPICS, {"vectorizer": CountVectorizer(), "min_df": 2}, "min_df would be ignored"),
    (DOCUMENTS, list("abcabcab"), {"thresholds": "f1"}, "one of 3 labels"),
    (DOCUMENTS, TOPICS, {"thresholds": [0.0, 1.0, 2.0]}, "one for each of 2 labels"),
    (sp.csr_matrix((4, 3)), [0, 1, 0, 1], {}, "all counts are zero"),
    ([[1.0, -1.0], [0, 1]], [0, 1], {}, "Negative values"),
]


@pytest.mark.parametrize(("X", "y", "options", "said"), BAD, ids=[said for *_, said in BAD])
def test_bad_input_is_refused_in_a_sentence(X, y, options, said):
    with pytest.raises(ValueError, match=said):
        WordStumpBooster(5, **options).fit(X, y)


def test_documents_and_counts_are_not_mixed_up():
    X = CountVectorizer().fit_transform(DOCUMENTS)
    on_counts = WordStumpBooster(5).fit(X, TOPICS)
    with pytest.raises(ValueError, match="was fitted on counts"):
        on_counts.predict(DOCUMENTS)
    with pytest.raises(ValueError, match="expecting"):
        on_counts.predict(X[:, :3])
    on_text = WordStumpBooster(5).fit(DOCUMENTS, TOPICS)
    with pytest.raises(ValueError, match="X has 3 columns"):
        on_text.predict(X[:, :3])
    assert not hasattr(on_text, "n_features_in_")
    with pytest.raises(ValueError, match="lists of labels"):
        on_text.score(DOCUMENTS, ["grain"] * 8)
    with pytest.raises(ValueError, match="document 0 is of type NoneType"):
        on_text.predict([None])
    for several in (False, True):  # nor are labels that the fit has not seen taken for others
        labels = TOPICS if several else list("abababab")
        strange = [["dairy"]] * 8 if several else ["dairy"] * 8
        with pytest.raises(ValueError, match=r"'dairy'.* not among those of the fit"):
            WordStumpBooster(5).fit(DOCUMENTS, labels).ranking_scores(DOCUMENTS, strange)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_nobody_or_everybody_has(kind):
    X, Y = counts()
    Y = np.hstack([Y, np.zeros((len(Y), 1), dtype=bool), np.ones((len(Y), 1), dtype=bool)])
    with pytest.warns(
        UserWarning, match=r"3: no training document|4: every training document"
    ) as w:
        model = WordStumpBooster(40, stump=kind).fit(X, Y)
    assert len(w) == 2
    f = model.decision_function(X)
    assert np.isfinite(f).all()
    if kind != "abstaining":  # which says nothing of a document with none of its words
        assert not model.predict(X)[:, 3].any()
        assert model.predict(X)[:, 4].all()


def test_the_table_of_words():
    model = WordStumpBooster(12).fit(DOCUMENTS, TOPICS)
    table, frame = model.words_, model.words_.to_frame()
    assert frame.columns.tolist()[:4] == ["round", "word", "Z", "present energy"]
    assert len(frame) == len(table) == 12
    assert table[-1].word == frame["word"].iloc[-1]
    assert "more rounds" in repr(table)
    weights = dict(table.weights("grain"))
    f = model.intercept_[1] + sum(weights.get(word, 0.0) for word in ("corn", "and", "gas"))
    assert model.decision_function(NEW)[0, 1] == pytest.approx(f)
    with pytest.raises(ValueError, match="label must be one of"):
        table.weights("politics")
    with pytest.raises(ValueError, match="one for each column"):
        table.renamed(["a"])


def test_the_picture_of_words():
    X, Y = counts(labels=14)
    model = WordStumpBooster(30).fit(X, Y)
    display = BoostedWordsDisplay.from_estimator(model, rounds=[1, 30])
    assert len(display.labels) == 12
    shown = [int(label) for label in display.labels]
    change = np.abs(model.words_.present - model.words_.absent)[[0, 29]].max(axis=0)
    assert change[shown].min() >= np.delete(change, shown).max()
    assert (display.present == model.words_.present[np.ix_([0, 29], shown)]).all()
    assert "12 of 14 labels" in display.ax_[0, 0].get_title()
    assert [tick.get_text()[-2:] for tick in display.ax_[0, 0].get_yticklabels()] == [" 1", "30"]
    chosen = BoostedWordsDisplay.from_estimator(model, rounds=4, labels=[13, 2])
    assert (chosen.absent == model.words_.absent[:4][:, [13, 2]]).all()
    drawn = display.ax_[0, 1].images[0].get_array()
    assert (drawn == display.absent).all()
    two = make_pipeline(CountVectorizer(), WordStumpBooster(5)).fit(DOCUMENTS, list("abababab"))
    one = plot_boosted_words(two)
    assert one.shape == (1, 1)
    assert one[0, 0].images[0].get_array().shape == (5, 2)
    plt.close("all")
    with pytest.raises(ValueError, match="rounds are numbers from 1 to 30"):
        plot_boosted_words(model, rounds=[31])
    with pytest.raises(ValueError, match="labels are some of"):
        plot_boosted_words(model, labels=["politics"])
    with pytest.raises(ValueError, match="BernoulliNB has no words_"):
        plot_boosted_words(BernoulliNB().fit(X, Y[:, 0]))


def test_a_booster_for_each_label():
    """scikit-learn's meta-estimators take it, on counts and on text."""
    X, Y = counts(n=200)
    each = OneVsRestClassifier(WordStumpBooster(15)).fit(X, Y.astype(int))
    for k in range(3):
        alone = WordStumpBooster(15).fit(X, Y[:, k])
        assert (each.decision_function(X)[:, k] == alone.decision_function(X)).all()
    y = ["grain" if "grain" in topics else "other" for topics in TOPICS]
    assert cross_val_predict(WordStumpBooster(5), DOCUMENTS, y, cv=2).shape == (8,)
    search = GridSearchCV(WordStumpBooster(5), {"ngram_range": [(1, 1), (1, 2)]}, cv=2)
    assert search.fit(3 * DOCUMENTS, 3 * y).best_score_ > 0.9


def test_weights_of_documents_follow_the_formula():
    random = np.random.default_rng(0)
    truth = random.random((30, 3)) < 0.4
    f, weight = random.normal(size=(30, 3)), random.random(30) + 0.5
    weights = LabelWeights(LabelSets.of(truth), weight, f.copy(), ALONE)
    for _ in range(3):
        documents = np.flatnonzero(random.random(30) < 0.3)
        absent, present = random.normal(size=(2, 3))
        weights.update(documents, absent, present)
        own = np.isin(np.arange(30), documents)[:, None]
        f += np.where(own, present, absent)
        D = weight[:, None] * np.exp(np.where(truth, -f, f))
        np.testing.assert_allclose(weights.D, D / D.sum(), rtol=1e-12)
        wrong = weight @ (truth != (f > 0)) / (3 * weight.sum())
        assert weights.loss == pytest.approx(wrong.sum())
