"""What a model answers: one rule from values to labels, weights, the order of rows and classes."""

import numpy as np
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.utils import get_tags

from contracts.common import (
    applies,
    assert_same,
    fit,
    has,
    names_classes,
    numbers_of,
    quietly,
    takes_weights,
)


def decides(instance):
    """Condition: there are decision values, and predict returns one label for each row."""
    estimator = instance.estimator
    labels = is_classifier(estimator) or is_outlier_detector(estimator)
    return has("decision_function", "predict")(instance) and labels and instance.target != "topics"


def chosen(model, values):
    """Return the labels that decision values stand for: the first of the largest, or the sign."""
    if is_outlier_detector(model):
        return np.where(values < 0, -1, 1)
    if values.ndim == 1:
        return model.classes_[(values > 0).astype(int)]
    return model.classes_[values.argmax(axis=1)]


def between(instance):
    """Yield many points, also between the classes, where X is a matrix of numbers."""
    if instance.data == "numbers":
        yield 2.0 * np.random.default_rng(3).normal(size=(300, 4))


@applies(decides)
def test_predict_agrees_with_decision_function(instance):
    sample = instance.sample()
    model = fit(instance.make(), sample)
    for points in (sample.X, sample.new, *between(instance)):
        values = model.decision_function(points)
        np.testing.assert_array_equal(model.predict(points), chosen(model, values))


@applies(lambda instance: decides(instance) and instance.data in ("numbers", "counts", "gram"))
def test_ties_have_one_rule(instance):
    sample = instance.sample()
    constant = np.ones_like(sample.X)  # every value is a tie, or nearly
    labels = [sample.y]
    if is_classifier(instance.estimator):
        labels.append(np.unique(sample.y)[np.arange(len(constant)) % 2])  # the value is zero
    for y in labels:
        try:
            model = quietly(instance.make().fit, constant, y)
        except ValueError as error:
            if len(str(error).split()) > 4:  # refused in words
                continue
            raise
        for points in (constant, np.ones_like(sample.new), 0 * constant, constant[:1]):
            values = quietly(model.decision_function, points)
            np.testing.assert_array_equal(quietly(model.predict, points), chosen(model, values))


@applies(lambda instance: has("predict_proba")(instance) and instance.target != "topics")
def test_predict_agrees_with_probabilities(instance):
    sample = instance.sample()
    model = fit(instance.make(), sample)
    for points in (sample.X, sample.new):
        logs = has("predict_log_proba")(instance)
        ask = model.predict_log_proba if logs else model.predict_proba
        found = model.predict_proba(points), model.classes_, model.predict(points).T
        found = *found, quietly(ask, points)
        several = isinstance(found[0], list)  # an entry for each output
        for p, classes, labels, log in zip(*found, strict=True) if several else [found]:
            assert p.shape == (len(points), len(classes))
            assert (p >= 0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-6)
            np.testing.assert_array_equal(labels, classes[p.argmax(axis=1)])
            np.testing.assert_allclose(np.exp(log) if logs else log, p, atol=1e-6)


@applies(takes_weights)
def test_weight_is_repetition(instance):
    sample = instance.sample()
    weight = np.random.default_rng(1).integers(0, 3, size=len(sample.X))
    weight[:6] = 1
    rows = np.repeat(np.arange(len(weight)), weight)
    repeated = sample.rows(rows, instance.pairwise)
    ours = fit(instance.make_exact(), sample, sample_weight=weight.astype(float))
    theirs = fit(instance.make_exact(), repeated)
    assert_same(ours, theirs, sample.new, repeated.new)


@applies(takes_weights)
def test_weights_of_one_are_none(instance):
    sample = instance.sample()
    ours = fit(instance.make_exact(), sample, sample_weight=np.ones(len(sample.X)))
    assert_same(ours, fit(instance.make_exact(), sample), sample.new)


def weighs_classes(instance):
    """Condition: rows and classes have weights."""
    return takes_weights(instance) and has("class_weight")(instance) and names_classes(instance)


def class_weights(instance):
    """Return a sample, weights of its rows, and factors that make its classes equally heavy."""
    sample = instance.sample()
    weight = np.random.default_rng(1).uniform(0.5, 1.5, size=len(sample.X))
    classes, index = np.unique(sample.y, return_inverse=True)
    factors = weight.sum() / (len(classes) * np.bincount(index, weight))
    return sample, weight, dict(zip(classes, factors, strict=True))


@applies(weighs_classes)
def test_balanced_classes_can_be_written_out(instance):
    sample, weight, factors = class_weights(instance)
    ours, theirs = (instance.make_exact(class_weight=given) for given in ("balanced", factors))
    assert_same(*(fit(one, sample, sample_weight=weight) for one in (ours, theirs)), sample.new)


@applies(weighs_classes)
def test_class_weight_is_weight(instance):
    sample, weight, factors = class_weights(instance)
    named = "class_weight_on" in instance.estimator.get_params()
    rows = {"class_weight_on": "rows"} if named else {}
    for given in (factors, {sample.y[0]: 3.0}):
        ours = fit(instance.make_exact(class_weight=given, **rows), sample, sample_weight=weight)
        times = weight * np.array([given.get(label, 1.0) for label in sample.y])
        theirs = fit(instance.make_exact(class_weight=None), sample, sample_weight=times)
        assert_same(ours, theirs, sample.new)


@applies(lambda instance: has("C", "lam")(instance) and takes_weights(instance))
def test_lam_is_another_way_to_say_C(instance):
    sample = instance.sample()
    if is_classifier(instance.estimator):  # binary problems of several classes have rows of each
        sample = sample.rows(np.flatnonzero(sample.y != sample.y[0]), instance.pairwise)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, size=len(sample.X))
    C = 1 / (2 * weight.sum() * 0.03)
    free = {"norm_bound": None} if has("norm_bound")(instance) else {}
    ours = instance.make_exact(lam=0.03, C=1.0, **free)
    theirs = clone(ours).set_params(lam=None, C=C)
    fit(ours, sample, sample_weight=weight)
    fit(theirs, sample, sample_weight=weight)
    assert_same(ours, theirs, sample.new)


def test_order_of_rows_is_nothing(instance):
    sample = instance.sample()
    rows = np.random.default_rng(2).permutation(len(sample.X))
    other = sample.rows(rows, instance.pairwise)
    ours, theirs = fit(instance.make_exact(), sample), fit(instance.make_exact(), other)
    assert_same(ours, theirs, sample.new, other.new)


@applies(names_classes)
def test_names_of_classes_are_nothing(instance):
    sample = instance.sample()
    model = fit(instance.make_exact(), sample)
    swap = dict(zip(model.classes_.tolist(), model.classes_[::-1].tolist(), strict=True))
    other = sample._replace(y=np.array([swap[label] for label in sample.y]))
    renamed = np.array([swap[label] for label in model.predict(sample.new)])
    found = fit(instance.make_exact(), other).predict(sample.new)
    np.testing.assert_array_equal(found, renamed)


@applies(names_classes)
def test_labels_keep_their_type(instance):
    sample = instance.sample()
    several = get_tags(instance.estimator).classifier_tags.multi_class
    index = np.unique(sample.y, return_inverse=True)[1]
    index = index if several else (index > 0).astype(int)
    plain = fit(instance.make_exact(), sample._replace(y=index))
    words = np.array(["a fig", "b", "pear"])
    kinds = [words, words.astype(object), np.array([-3, 2, 7], np.int8), np.array([-1.0, 0.0, 2.0])]
    for classes in (*kinds, *([np.array([False, True])] * (not several))):
        labels = classes[index]
        model = fit(instance.make_exact(), sample._replace(y=labels))
        assert model.classes_.tolist() == sorted(set(labels))
        assert model.classes_.dtype == model.predict(sample.new).dtype == labels.dtype
        found = numbers_of(model, sample.new)
        for method, values in numbers_of(plain, sample.new).items():
            np.testing.assert_array_equal(found[method], values)
