"""The checks for plug-ins of one's own: they pass what is right and name what is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras


def failures(report):
    return {finding.what: finding.detail for finding in report.findings if not finding.holds}


class Base(hj.losses.Loss):
    """Squared loss in disguise; the others spoil one thing of it."""

    def phi(self, o, y, hp):
        return hp["C"] * (o - y) ** 2

    def init(self, X, y):
        return {"C": 1.0}


class Concave(Base):
    def phi(self, o, y, hp):
        return hp["C"] * jnp.minimum((o - y) ** 2, 1.0)


class WrongProx(Base):
    def prox(self, v, y, ts, hp):
        return (v + ts * hp["C"] * y) / (1.0 + ts * hp["C"])


class Dead(Base):
    def init(self, X, y):
        return {"C": 1.0, "width": 2.0}


class Summed(Base):
    def phi(self, o, y, hp):
        return jnp.sum(hp["C"] * (o - y) ** 2)


class Mixed(Base):
    def phi(self, o, y, hp):
        return hp["C"] * (o - jnp.mean(o) - y) ** 2


class Negative(Base):
    def init(self, X, y):
        return {"C": -1.0}


class Pretends(Base):
    smooth = True

    def phi(self, o, y, hp):
        return hp["C"] * jnp.abs(o - y)


@pytest.mark.parametrize(
    ("loss", "what", "detail"),
    [
        (Concave(), "convex", "second difference"),
        (WrongProx(), "prox", "own minimum"),
        (Dead(), "effect", "width"),
        (Summed(), "one value a row", "shape ()"),
        (Mixed(), "row by row", "another"),
        (Negative(), "init", "must be positive"),
        (Pretends(), "smooth", "has kinks"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Base) else None,
)
def test_what_is_wrong_with_a_loss_is_named(loss, what, detail, capsys):
    found = failures(hj.check_loss(loss))
    assert any(what in name and detail in text for name, text in found.items()), found
    assert "FAIL" in capsys.readouterr().out


@pytest.mark.parametrize("loss", [Base(), hj.losses.Hinge(), hj.losses.Pinball()], ids=lambda v: type(v).__name__)
def test_a_right_loss_passes(loss, capsys):
    report = hj.check_loss(loss, verbose=False)
    assert report.passed, str(report)
    assert capsys.readouterr().out == ""


def test_kernels():
    assert hj.check_kernel(lambda x, z: jnp.exp(-jnp.sum((x - z) ** 2)), verbose=False).passed
    found = failures(hj.check_kernel(lambda x, z: jnp.sum(x) + 2.0 * jnp.sum(z), verbose=False))
    assert "symmetric" in found and "k(x" in found["symmetric"]
    found = failures(hj.check_kernel(lambda x, z: -jnp.exp(-jnp.sum((x - z) ** 2)), verbose=False))
    assert "eigenvalue -" in found["positive semidefinite"]
    found = failures(hj.check_kernel(lambda x, z: x * z, verbose=False))
    assert "scalar" in found["two rows give a scalar"]

    @jax.custom_jvp
    def cubed(t):
        return t**3

    cubed.defjvp(lambda primals, tangents: (primals[0] ** 3, 2.0 * primals[0] ** 2 * tangents[0]))
    found = failures(hj.check_kernel(lambda x, z: cubed(jnp.sum(x * z)), verbose=False))
    assert set(found) == {"derivatives = differences"}


@pytest.mark.parametrize("kernel", [hj.kernels.ARD(), hj.kernels.Laplacian(), hj.kernels.Polynomial()], ids=repr)
def test_kernels_of_the_library_pass(kernel):
    report = hj.check_kernel(kernel, verbose=False)
    assert report.passed, str(report)


def test_a_fractional_degree_is_no_kernel():
    found = failures(hj.check_kernel(hj.kernels.Polynomial(degree=2.5, columns=(0, 1)), verbose=False))
    assert set(found) == {"positive semidefinite"}


def test_criteria():
    assert hj.check_criterion(hj.criteria.SmoothError(), verbose=False).passed
    assert hj.check_criterion(lambda o, y: jnp.mean(jax.nn.softplus(-y * o)), verbose=False).passed
    found = failures(hj.check_criterion(lambda o, y: y * o, verbose=False))
    assert "one number" in next(iter(found.values()))
    found = failures(hj.check_criterion(lambda o, y: jnp.sum(o * jnp.arange(1.0, 13.0)), verbose=False))
    assert "blind to the order of rows" in found
    found = failures(hj.check_criterion(lambda o, y: jnp.mean(jnp.where(y * o > 0, 0.0, 1.0)), verbose=False))
    assert "its gradient is not zero" in found

    class Leaky(hj.criteria.Criterion):
        """Looks at rows that no fold tests."""

        def __call__(self, o, y, folds=None, hp=None, weights=None):
            return jnp.mean((o - y) ** 2)

    assert "blind to rows that no fold tests" in failures(hj.check_criterion(Leaky(), verbose=False))


def test_solvers():
    class Lazy(hj.solvers.Solver):
        """Declines everything but RBF kernels, and then does nothing."""

        def supports(self, inner):
            return "no linear kernels" if inner.op.factors() is not None else None

        def solve(self, inner, init, tol):
            return (jnp.zeros_like(inner.s), jnp.zeros_like(inner.s[:, 0])), {"iterations": jnp.zeros(2, jnp.int32)}

    report = hj.check_solver(Lazy(), verbose=False)
    found = failures(report)
    assert set(found) == {"hinge, RBF, bias", "logistic, RBF, bias", "eps-insensitive, RBF, bias"}
    assert all("tol is not met" in text or "off by" in text for text in found.values()), found
    assert np.all([finding.holds for finding in report.findings if "linear" in finding.what])


@pytest.mark.parametrize(
    ("check", "given", "words"),
    [
        (hj.check_loss, hj.losses.Hinge, "loss is the class Hinge: pass an instance of it"),
        (hj.check_loss, None, "loss is a NoneType: pass an instance"),
        (hj.check_kernel, hj.kernels.RBF, "kernel is the class RBF: pass an instance of it"),
        (hj.check_criterion, hj.criteria.SmoothError, "criterion is the class SmoothError: pass an instance"),
        (hj.check_solver, hj.solvers.Newton, "solver is the class Newton: pass an instance of it"),
    ],
)
def test_what_is_no_instance_is_refused_before_anything_is_looked_at(check, given, words):
    with pytest.raises(ValueError, match=words):
        check(given, verbose=False)
