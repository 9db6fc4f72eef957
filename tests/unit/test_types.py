"""Modules are pytrees whose structure tells their class: one jit cache entry never serves two of them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj


def test_structures_of_different_classes_differ():
    examples = [*hj.losses.EXAMPLES, *hj.kernels.EXAMPLES, *hj.criteria.EXAMPLES]
    for a, b in itertools.combinations(examples, 2):
        if type(a) is not type(b):
            assert jax.tree.structure(a) != jax.tree.structure(b), (a, b)


def test_one_jitted_function_tells_losses_apart():
    @jax.jit
    def phi(loss, o):
        return loss.phi(o, jnp.ones_like(o), {"C": 1.0})

    o = jnp.asarray([-2.0, 0.3, 3.0])
    for _ in range(3):
        np.testing.assert_allclose(phi(hj.losses.Hinge(), o), [3.0, 0.7, 0.0], atol=1e-12)
        np.testing.assert_allclose(phi(hj.losses.SquaredHinge(), o), [9.0, 0.49, 0.0], atol=1e-12)
        np.testing.assert_allclose(phi(hj.losses.Logistic(), o), np.log1p(np.exp(-np.asarray(o))), atol=1e-12)


def test_a_copy_by_jax_keeps_every_field():
    loss = hj.losses.Grouped(hj.losses.EpsilonInsensitive(C=2.0, eps=0.3), np.array([5, 5, 7]))
    copy = jax.tree.map(lambda leaf: leaf, loss)
    assert type(copy) is type(loss) and copy.n_groups == 2 and copy.loss.eps == 0.3
    assert jax.tree.structure(copy) == jax.tree.structure(loss)
