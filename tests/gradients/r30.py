"""Reference values of five papers on one small problem that needs no random generator.

R30: x_i = (sin 1.3 i, cos(2.1 i + 0.5)), label sign(x_i1 - 0.6 x_i2 + 1.5 sin 0.37 i^2), target
x_i1 - 0.6 x_i2 + 0.5 sin 0.37 i^2; rows 1..20 train, 21..30 validate.  G5 has the features x1, x2, x1^2, x2^2, x1 x2.
The values are those of independent numpy programs in double precision, checked by central differences.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj

I = np.arange(1, 31)  # noqa: E741  # the papers' index
R30 = np.stack([np.sin(1.3 * I), np.cos(2.1 * I + 0.5)], axis=1)
WAVE = np.sin(0.37 * I**2)
LABELS = np.sign(R30[:, 0] - 0.6 * R30[:, 1] + 1.5 * WAVE)
TARGETS = R30[:, 0] - 0.6 * R30[:, 1] + 0.5 * WAVE
G5 = np.concatenate([R30, R30**2, R30[:, :1] * R30[:, 1:]], axis=1)
TRAIN, VALID = slice(0, 20), slice(20, 30)
TOL = 1e-13
LINEAR, RBF, ARD = hj.kernels.Linear(), hj.kernels.RBF(), hj.kernels.ARD()


def quick(f):
    return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def fit(loss, kernel, bias, five=False, targets=False):
    """The jitted hyperparameters -> (Solution, validation outputs) of one problem on R30 (or G5)."""
    X, y = (G5 if five else R30), (TARGETS if targets else LABELS)
    problem = hj.Problem(loss=loss, kernel=kernel, bias=bias)

    def run(hp):
        solution = hj.solve(problem, hp, jnp.asarray(X[TRAIN]), jnp.asarray(y[TRAIN]), tol=TOL)
        return solution, solution.decision(jnp.asarray(X[VALID]))

    return run


@functools.cache
def outer(criterion, loss, kernel, bias, five=False, targets=False):
    """The jitted validation value, its gradient in every hyperparameter, and the solution."""
    run = fit(loss, kernel, bias, five, targets)

    def value(hp):
        solution, o = run(hp)
        return criterion(o, hp), solution

    return quick(jax.value_and_grad(value, has_aux=True))


def arrays(tree):
    return jax.tree.map(lambda v: jnp.asarray(v, float), tree)


def cost(C):
    return arrays({"loss": {"C": C}, "kernel": {}})


def weights_of(solution, X=R30):
    return X[TRAIN].T @ np.asarray(solution.z)


# Instances that name a static problem once, so that every test of it shares one compilation.
HINGE, WEIGHTED, SQUARED_HINGE = hj.losses.Hinge(), hj.losses.WeightedHinge(), hj.losses.SquaredHinge()
SQUARED, LOGISTIC = hj.losses.Squared(), hj.losses.Logistic()
SMOOTH, TUBE = hj.losses.SmoothHinge(), hj.losses.SquaredEpsilonInsensitive()
Y = LABELS[VALID]
POSITIVE = Y > 0
