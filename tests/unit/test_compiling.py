"""Programs of the library get compiler options of their own, and only where JAX takes them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax import compiling
from hyperjax import plan as planning

X = np.asarray([[0.0, 1.0], [1.0, 0.5], [-1.0, 0.2], [-0.5, -1.0], [0.3, 0.3], [-0.2, 0.9]])
Y = np.asarray([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
PROBLEM = hj.Problem(loss=hj.losses.Logistic())


def outputs(C):
    return hj.solve(PROBLEM, {"loss": {"C": C}, "kernel": {"gamma": jnp.asarray(0.5)}}, X, Y).outputs


@pytest.fixture
def seen(monkeypatch):
    """The compiler options of every program that is asked for."""
    options, jit = [], jax.jit

    def spy(function, **kwargs):
        options.append(kwargs.get("compiler_options"))
        return jit(function, **kwargs)

    monkeypatch.setattr(jax, "jit", spy)
    compiling._options.cache_clear()
    yield options
    compiling._options.cache_clear()


@pytest.mark.parametrize("compilation", compiling.COMPILATIONS)
def test_a_call_outside_of_every_trace_has_the_options(seen, compilation):
    double = compiling.jitted(lambda x: 2.0 * x, compilation)
    assert float(double(jnp.asarray(1.5))) == 3.0
    assert seen[-1] == compiling.COMPILATIONS[compilation]
    assert float(double(jnp.asarray(2.5))) == 5.0
    assert seen.count(compiling.COMPILATIONS[compilation]) == 2, "a try and the program itself"


def test_other_backends_get_none(seen, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert float(compiling.jitted(lambda x: 2.0 * x, "quick")(jnp.asarray(1.5))) == 3.0
    assert seen == [None, None]


def test_an_option_that_xla_does_not_know_is_no_reason_to_fail(seen, monkeypatch):
    monkeypatch.setitem(compiling.COMPILATIONS, "full", {"xla_cpu_of_another_version": 1})
    assert float(compiling.jitted(lambda x: 2.0 * x)(jnp.asarray(1.5))) == 3.0
    assert seen[-1] is None


TRANSFORMED = {
    "jit": lambda C: jax.jit(outputs)(C),
    "jit of a constant": lambda C: jax.jit(lambda: outputs(C))(),
    "vmap": lambda C: jax.vmap(outputs)(C[None])[0],
    "scan": lambda C: jax.lax.scan(lambda carry, c: (carry, outputs(c)), 0, C[None])[1][0],
    "jvp": lambda C: jax.jvp(outputs, (C,), (C,))[0],
    "vjp": lambda C: jax.vjp(outputs, C)[0],
    "eval_shape": lambda C: jnp.reshape(outputs(C), jax.eval_shape(lambda: outputs(C)).shape),
}


@pytest.mark.parametrize("how", TRANSFORMED.values(), ids=TRANSFORMED)
def test_a_transformed_call_does_without(how):
    C = jnp.asarray(2.0)
    assert np.all(np.asarray(outputs(C)) != 0)
    np.testing.assert_allclose(how(C), outputs(C), rtol=1e-9)


def test_a_program_is_exported_for_other_platforms():
    exported = jax.export.export(jax.jit(outputs), platforms=("cuda", "tpu"))(jnp.asarray(2.0))
    assert exported.platforms == ("cuda", "tpu")


CHOSEN = {1000: "quick", 1001: "balanced", 3000: "balanced", 3001: "full"}


@pytest.mark.parametrize(("rows", "expected"), CHOSEN.items())
def test_the_number_of_rows_chooses(rows, expected):
    assert plan(rows, "auto").compilation == expected


def test_a_word_that_is_none_of_them_is_refused():
    with pytest.raises(ValueError, match='compilation=\'never\': choose "auto", "quick", "balanced" or "full"'):
        plan(30, "never")


def plan(rows, compilation):
    A, b = np.random.default_rng(0).normal(size=(rows, 2)), np.where(np.arange(rows) % 2 > 0, 1.0, -1.0)
    given = [None] * 6
    return planning.prepare(PROBLEM, A, b, 3, *given, "full", "auto", None, 0, compilation)
