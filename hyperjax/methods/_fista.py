"""FISTA for the smoothed hinge, in feature space: the inner solver of Klatzer & Pock."""

import jax.numpy as jnp
from jax import lax

from ..losses.smooth_hinge import SmoothHinge
from ..problem import Inner
from ..solvers.loop import Solver, run, start_point
from ..solvers.newton import Newton, smooth_violation
from ..types import Array, static

__all__ = ["FISTA"]

POWER_STEPS = 30
SAFETY = 1.1
"""Power iteration finds the largest eigenvalue from below."""


class FISTA(Solver):
    """Accelerated gradient descent on the primal.

    Iteration
        z = v - (v + s phi'(K v + b)) / L, then v moves on with Nesterov's momentum: for a linear kernel the step in
        w = X'z of the paper with its length 1/L, L = 1 + lambda_max(D K D), D^2 = diag(s C mu / 4).  The momentum is
        never larger than the strong convexity of the regulariser asks for, which takes the place of restarts.  An
        unpenalised bias minimises the primal at v, by bisection: it is defined even where every sigmoid saturates,
        as with a small C, and its elimination leaves L and the convexity as they are.
    Stops when
        max t |v + s phi'(o)| is within tol (an upper bound of `kkt`); what is not solved after `max_steps` goes on with
        Newton unless `finish` is False.
    Cost per step
        one product with K.
    Guarantee
        linear convergence with factor 1 - 1/sqrt(L).
    Source
        Klatzer & Pock, Continuous Hyper-parameter Learning for Support Vector Machines; Beck & Teboulle 2009.
    """

    max_steps: int = static(default=2000)
    finish: bool = static(default=True)

    def supports(self, inner: Inner) -> str | None:
        """The smoothed hinge, every operator, every bias."""
        if not isinstance(inner.loss, SmoothHinge):
            return f"the loss {type(inner.loss).__name__} is not a hyperjax.losses.SmoothHinge"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` (or zeros); see the class."""
        t, lipschitz = inner.steps(), _lipschitz(inner)
        root = jnp.sqrt(lipschitz)
        most = (root - 1.0) / (root + 1.0)

        def step(state: tuple[Array, ...], active: Array):
            last, v, count, _ = state
            f = inner.op.matmul(v)
            b = _bias(inner, f)
            o = f + b[:, None]
            z = v - (v + inner.slope(o)) / lipschitz[:, None]
            later = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * count * count))
            momentum = jnp.minimum((count - 1.0) / later, most)
            on = active[:, None]
            moved = z + momentum[:, None] * (z - last)
            state = jnp.where(on, z, last), jnp.where(on, moved, v), jnp.where(active, later, count), b
            return state, v, b, smooth_violation(inner, v, o, t)

        z, b = start_point(inner, init)
        point, stats = run(step, (z, z, jnp.ones_like(b), b), inner, tol, self.max_steps, patience=self.max_steps)
        if not self.finish:
            return point, {"iterations": stats["iterations"]}

        def newton():
            end, more = Newton().solve(inner, point, tol)
            return end, stats["iterations"] + more["iterations"]

        unfinished = jnp.any(stats["violation"] > tol)
        point, iterations = lax.cond(unfinished, newton, lambda: (point, stats["iterations"]))
        return point, {"iterations": iterations}


def _lipschitz(inner: Inner) -> Array:
    """1 + lambda_max(D K D) (T,): the Lipschitz constant of the primal's gradient in feature space."""
    root = jnp.sqrt(0.25 * inner.s * inner.hp["C"] * inner.hp["mu"])
    start = root * (1.0 + 0.1 * jnp.cos(jnp.arange(root.shape[1], dtype=root.dtype)))[None, :]

    def normed(v: Array) -> Array:
        size = jnp.linalg.norm(v, axis=1, keepdims=True)
        return v / jnp.where(size > 0, size, 1.0)

    def power(_: Array, v: Array) -> Array:
        return normed(root * inner.op.matmul(root * v))

    v = lax.fori_loop(0, POWER_STEPS, power, normed(start))
    return 1.0 + SAFETY * jnp.linalg.norm(root * inner.op.matmul(root * v), axis=1)


def _bias(inner: Inner, f: Array) -> Array:
    """The bias (T,) that minimises the primal at f by bisection; 0 where there is none."""
    if not inner.border:
        return jnp.zeros_like(f[:, 0])
    # beyond these ends one class has nothing left to say
    reach = 1.0 + 40.0 / inner.hp["mu"] + jnp.max(jnp.where(inner.s > 0, jnp.abs(f), 0.0), axis=1)

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        up = jnp.sum(inner.slope(f + middle[:, None]), axis=1) > 0
        return jnp.where(up, low, middle), jnp.where(up, middle, high)

    low, high = lax.fori_loop(0, 60 if f.dtype == jnp.float64 else 30, halve, (-reach, reach))
    return 0.5 * (low + high)
