"""Rows spread over devices give what one device gives; independent problems run one a device."""

import json

import numpy as np

from tests.transforms.common import needs_x64, run

pytestmark = needs_x64

CODE = """
import json
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import hyperjax as hj
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from tests.transforms.common import FOLDS, HINGE, X, Y, values, softplus

assert jax.device_count() == 4
mesh = jax.make_mesh((4,), ("rows",), axis_types=(AxisType.Auto,))
rows, everywhere = NamedSharding(mesh, P("rows")), NamedSharding(mesh, P())

def loss(hp, X, y):
    return softplus(hj.cross_decision(HINGE, hp, X, y, FOLDS, tol=1e-10), y)

step = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
plain = step(values(), jnp.asarray(X), jnp.asarray(Y))
spread = step(jax.device_put(values(), everywhere), jax.device_put(X, rows), jax.device_put(Y, rows))
flat = [[np.asarray(leaf).ravel().tolist() for leaf in jax.tree.leaves(result)] for result in (plain, spread)]

draw = np.random.default_rng(0)
tasks = X[None] + 0.1 * draw.normal(size=(4, *X.shape))

def one(log_C, X):
    outputs = hj.solve(HINGE, values(jnp.exp(log_C[0])), X[0], Y, tol=1e-10).outputs
    return softplus(outputs, Y)[None]

def over_devices(log_C):
    return jax.shard_map(one, mesh=mesh, in_specs=(P("rows"), P("rows")), out_specs=P("rows"))(
        log_C, tasks)

at = np.linspace(-1.0, 1.0, 4)
mapped = jax.jit(over_devices)(at), jax.jit(jax.grad(lambda at: jnp.sum(over_devices(at))))(at)
alone = jax.jit(jax.value_and_grad(lambda log_C, X: one(log_C[None], X[None])[0]))
loop = [alone(log_C, X) for log_C, X in zip(at, tasks)]
print(json.dumps({
    "plain": flat[0], "spread": flat[1], "sharding": str(spread[1][1].sharding.spec),
    "mapped": [np.asarray(part).tolist() for part in mapped],
    "loop": [[float(value) for value, _ in loop], [float(grad) for _, grad in loop]],
}))
"""
DEVICES = "--xla_force_host_platform_device_count=4"


def test_sharded_rows_and_one_problem_a_device():
    facts = json.loads(run(CODE, XLA_FLAGS=DEVICES).splitlines()[-1])
    for spread, plain in zip(facts["spread"], facts["plain"], strict=True):
        np.testing.assert_allclose(spread, plain, rtol=1e-8, atol=1e-10)
    for mapped, alone in zip(facts["mapped"], facts["loop"], strict=True):
        np.testing.assert_allclose(mapped, alone, rtol=1e-8)
