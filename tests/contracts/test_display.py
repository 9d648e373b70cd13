"""What a notebook shows of an estimator, and what ``explain`` says of a fitted one."""

from html.parser import HTMLParser

import numpy as np
from sklearn.base import is_classifier

from contracts.common import fit
from maxmargin import explain


class Tags(HTMLParser):
    """Checks that what is opened is closed, and keeps the text and the links."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.links = [], "", []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += "" if self.open[-1:] == ["style"] else data


def test_html_shows_the_estimator_and_its_answer(instance):
    sample, before = instance.sample(), instance.estimator._repr_html_()
    model = fit(instance.make(), sample)
    after = model._repr_html_()
    for page, fitted in ((before, False), (after, True)):
        assert type(model).__name__ in page
        assert ("Not fitted" in page) == (not fitted)
        assert ("maxmargin-explanation" in page) == (fitted and "explanation" in after)


def test_explanation_has_what_the_model_has(instance):
    sample = instance.sample()
    model = fit(instance.make(), sample)
    found, own = explain(model), getattr(model, "best_estimator_", model)
    # scikit-learn has no accuracy of several outputs
    if hasattr(own, "score") and sample.y is not None and instance.target != "columns of classes":
        found = explain(model, sample.X, sample.y)
        assert np.isclose(found.score, model.score(sample.X, sample.y))
    sections, said = found.sections(), str(found)
    name, classes = type(own).__name__, len(getattr(own, "classes_", ()))
    assert sections["machine"].startswith(f"{name}: ")
    if hasattr(own, "n_features_in_"):
        assert f"{own.n_features_in_} features" in sections["data"]
    if is_classifier(own):
        assert sections["data"].endswith(f"{classes} classes")
    for part, attribute in (("kernel", "kernel_"), ("margin", "margin_"), ("slack", "slack_")):
        assert (part in sections) == hasattr(own, attribute), part
    certificate = getattr(own, "certificate_", None)
    assert found.certificate is certificate
    assert ("certificate" in sections) == (certificate is not None)
    if certificate is not None:
        assert str(certificate.status) in sections["certificate"]
        assert certificate.claim in " ".join(sections["certificate"].split())
        assert "problem" in sections
        assert "fit time" in sections
    assert "None" not in said
    assert "nan" not in said
    page = Tags(found._repr_html_())
    assert page.text == "".join(name + text for name, text in sections.items())
    assert not page.links
