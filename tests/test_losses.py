"""Losses: each holds its contract, and the contract notices what is wrong."""

import inspect
from dataclasses import dataclass, fields

import numpy as np
import pytest

import maxmargin.losses as losses
from maxmargin.backends.cpu.linear import Design
from maxmargin.backends.cpu.linear.losses import RowLosses, slopes, slopes_and_curvatures
from maxmargin.losses import Exponential, Hinge, Logistic, Loss, MarginLoss, Shape, Squared, ZeroOne
from maxmargin.risk import Losses, RegularisedRisk
from maxmargin.testing import check_loss

CLASSES = [
    member
    for member in (getattr(losses, name) for name in losses.__all__)
    if issubclass(member, Loss) and not inspect.isabstract(member)
]


def examples():
    """Every loss as it is, and with its parameters away from their defaults."""
    for kind in CLASSES:
        yield kind()
        for parameter in fields(kind):
            if kind is not losses.Absolute:  # whose inherited one is fixed
                yield kind(**{parameter.name: 0.7})


@pytest.mark.parametrize("loss", list(examples()), ids=repr)
def test_contract(loss):
    check_loss(loss)


@pytest.mark.parametrize("loss", [kind() for kind in CLASSES if kind().shape], ids=repr)
def test_compiled_slopes_and_curvatures_are_those_of_the_loss(loss):
    random = np.random.default_rng(0)
    f, cost = random.normal(scale=3.0, size=50), random.random(50)
    y = np.sign(random.normal(size=50))
    margins = isinstance(loss, MarginLoss)
    u, sign = (y * f, y) if margins else (f - y, np.ones(50))
    if loss.smooth:
        rows = RowLosses(y, cost, margins, tuple(loss.shape), np.zeros(50), 0.0)
        slope, curvature = slopes_and_curvatures(rows, f)
        np.testing.assert_allclose(slope, cost * sign * loss.slope(u), atol=1e-14)
        np.testing.assert_allclose(curvature, cost * loss.curvature(u), atol=1e-14)
    else:  # held near some slopes, it is smooth
        centre, width = random.uniform(*loss.slopes, 50), 0.3
        rows = RowLosses(y, cost, margins, tuple(loss.shape), centre, 1 / width)
        np.testing.assert_allclose(slopes(rows, f), loss.shape.best(u, centre, width), atol=1e-14)


def test_newton_says_which_losses_it_takes():
    """Envelopes are compiled for quadratic conjugates only, and nothing for who has no shape."""
    design = Design(np.ones((2, 1)))
    for loss, near in ((Logistic(), {"centre": np.zeros(2), "width": 1.0}), (Exponential(), {})):
        risk = RegularisedRisk(design, np.array([1.0, -1.0]), np.ones(2), loss)
        with pytest.raises(ValueError, match="not such a loss"):
            Losses(risk, **near)


def test_names_are_unique_and_every_loss_is_public():
    assert len({kind().name for kind in CLASSES}) == len(CLASSES) >= 11
    defined = [member for _, member in inspect.getmembers(losses, inspect.isclass)]
    concrete = [c for c in defined if issubclass(c, Loss) and not inspect.isabstract(c)]
    assert set(concrete) == set(CLASSES)


@pytest.mark.parametrize("loss", [kind() for kind in CLASSES if not kind().convex], ids=repr)
def test_a_loss_that_is_not_convex_has_no_conjugate(loss):
    with pytest.raises(ValueError, match="not convex"):
        loss.conjugate(np.array([0.0]))


def test_the_zero_one_loss_counts_mistakes_and_convex_margin_losses_bound_it():
    """0-1 loss is I[y != f(x)]; the scaled logistic, the exponential and both hinges are above."""
    u = np.linspace(-3, 3, 601)
    errors = ZeroOne().value(u)
    assert (errors == (u <= 0)).all()
    for kind in (losses.Hinge, losses.SquaredHinge, losses.Exponential):
        assert (kind().value(u) >= errors).all()
    assert (Logistic().value(u) / np.log(2) >= errors - 1e-12).all()


def test_large_margins_do_not_overflow():
    u = np.array([-800.0, 800.0])
    np.testing.assert_allclose(Logistic().value(u), [800.0, 0.0])
    np.testing.assert_allclose(Logistic().slope(u), [-1.0, 0.0])
    np.testing.assert_allclose(losses.MinimumClassificationError(5.0).value(u), [1.0, 0.0])


def broken(base=Hinge, **members):
    kind = type("Broken", (base,), members)
    globals()["Broken"] = kind  # for pickle
    kind.__module__ = __name__
    return dataclass(frozen=True)(kind)()


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"base": Squared, "slope": lambda self, u: u}, "slope"),
        ({"base": Squared, "curvature": lambda self, u: np.ones_like(u)}, "curvature"),
        ({"slope": lambda self, u: np.where(u <= 1, -1.0, 0.0)}, "from the right"),
        ({"base": ZeroOne, "convex": True}, "not convex"),
        ({"convex": False}, "no chord"),
        ({"smooth": True}, "smooth"),
        ({"base": Squared, "smooth": False}, "smooth"),
        ({"shape": Shape(-1.0, 0.0)}, r"V\*"),
        ({"base": Squared, "conjugate": lambda self, s: s * s}, r"V\*"),
        ({"shape": Shape(-2.0, 0.0, linear=1.0)}, "supremum|s u"),
        ({"base": MarginLoss, "name": ""}, "abstract"),
    ],
)
def test_a_loss_that_is_wrong_is_noticed(members, complaint):
    with pytest.raises((AssertionError, TypeError), match=complaint):
        check_loss(broken(**members))


class Short(Shape):
    """A shape whose steps are too short."""

    def best(self, u, centre, width):
        return 0.9 * super().best(u, centre, width)


def test_a_step_that_is_not_the_best_is_noticed():
    with pytest.raises(AssertionError, match="best"):
        check_loss(broken(shape=Short(*Hinge().shape)))
