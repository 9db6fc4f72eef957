"""Accelerated proximal iteration with semismooth Newton steps: the solver for kinked losses known by phi alone."""

import jax.numpy as jnp
from jax import lax

from ..operators import DIRECT_SIZES, bordered_solve
from ..problem import Inner
from ..sparse import Matrix
from ..types import Array, Module, static
from .envelope import Envelope, in_columns, landed
from .loop import Solver, run, start_point, violation
from .newton import line_length

__all__ = ["ProxGrad"]

SHRINK, GROW = 0.3, 10.0
QUICK, TIRED = 4, 12
"""An envelope minimised within QUICK Newton steps sharpens the next one, TIRED steps soften the present one."""


class State(Module):
    """Outer iteration (centre, the last proximal point, momentum, scale of t) and inner one (z, f = K z, b)."""

    centre: Array
    last: Array
    momentum: Array
    scale: Array
    z: Array
    f: Array
    b: Array
    count: Array
    """Newton steps (T,) spent on the present envelope."""

    def envelope(self, inner: Inner) -> Envelope:
        """The smoothed loss of the present centre and scale."""
        unit = inner.steps()
        return Envelope(inner, self.centre, jnp.where(inner.s > 0, self.scale[:, None] * unit, unit))


class ProxGrad(Solver):
    """Accelerated proximal iteration on the dual with adaptive restart, for every loss that has a phi.

    Iteration
        A proximal step of the dual in the metric diag(t),  argmin_z D(z) + 1/2 sum_i t_i (z_i - c_i)^2,  is the
        minimum over (f, b) of the primal with every loss replaced by its Moreau envelope: differentiable, so
        semismooth Newton with a line search finds it, multiplier b included.  The centres c move on with Nesterov's
        momentum, restarted whenever it points uphill.  t shrinks while envelopes are easy and grows when one is hard.
        Beside every such step one Newton step on (F) itself, with the faces of the present point, is tried and kept
        as the answer if it lowers `kkt`: it ends the search to rounding once the faces are right.
        Where K = Phi Phi' is factored and has more rows than a direct solve takes, envelopes are minimised to the end
        in w = Phi'z, without momentum.
    Stops when
        `kkt` <= tol for the present point or its Newton step.
    Cost per step
        five products with K, two bordered solves and a few proximal maps a fold.
    Guarantee
        each envelope has one minimum in f and a decreasing Newton iteration; proximal points converge to a solution
        for any convex loss and any K, singular ones included.  Accuracy of the end does not depend on t.
    Source
        Guler 1992 (accelerated proximal point method), O'Donoghue & Candes 2015 (adaptive restart), Li, Sun & Toh
        2018 (semismooth Newton inside a proximal method).
    """

    max_steps: int = static(default=1000)
    """Most Newton steps; in the space of the columns most proximal steps, which `iterations` counts there."""
    patience: int = static(default=0)
    """Steps without a fall of `kkt` by a tenth before a fold is given up; 0 chooses 500 in float64 and 100 in float32,
    where rounding is the likelier cause, and 20 proximal steps in the space of the columns."""

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` (or zeros); see the class."""
        phi = inner.op.factors()
        if phi is not None and not isinstance(phi, Matrix) and inner.op.n > DIRECT_SIZES[-1]:
            return in_columns(inner, phi, init, tol, self.max_steps, self.patience or 20)
        z, b = start_point(inner, init)
        patience = self.patience or (500 if z.dtype == jnp.float64 else 100)
        b, t = b if inner.border else jnp.zeros_like(b), inner.steps()
        twice = inner.replace(y=jnp.tile(inner.y, (2, 1)), s=jnp.tile(inner.s, (2, 1)))

        def step(state: State, active: Array):
            state, z2, b2 = _newton(inner, state, active)
            state = _proximal(inner, state, active)
            zs, bs = jnp.concatenate([state.z, z2]), jnp.concatenate([state.b, b2])
            plain, polished = jnp.split(violation(twice, zs, twice.outputs(zs, bs), jnp.tile(t, (2, 1))), 2)
            use = polished < plain
            z, b = jnp.where(use[:, None], z2, state.z), jnp.where(use, b2, state.b)
            return state, z, b, jnp.where(use, polished, plain)

        f, one = inner.op.matmul(z), jnp.ones_like(b)
        # losses much stiffer than the kernel would make the first envelope as hard as the problem itself
        stiffness = jnp.mean(inner.op.diagonal()) * jnp.max(inner.scale(), axis=1)
        state = State(z, z, one, jnp.sqrt(1.0 + stiffness), z, f, b, jnp.zeros_like(b, jnp.int32))
        first = z, b, violation(inner, z, f + b[:, None], t)
        return run(step, state, inner, tol, self.max_steps, patience=patience, first=first)


def _newton(inner: Inner, state: State, active: Array) -> tuple[State, Array, Array]:
    """One Newton step on the envelope, and (z, b) after one on (F): both systems in one bordered solve."""
    env, unit = state.envelope(inner), inner.steps()
    z, f, b = state.z, state.f, state.b
    slope, P = env.slope_and_faces(f + b[:, None])
    if inner.border:
        # without a curved sample no Newton step moves the bias
        stuck = active & jnp.all(P >= 1.0, axis=1)
        b = jnp.where(stuck, lax.cond(jnp.any(stuck), lambda: _best_bias(env, f, b), lambda: b), b)
        slope, P = env.slope_and_faces(f + b[:, None])
    o = f + b[:, None]
    soft, faces = 1.0 / (2.0 - P), inner.faces(z, o, unit)
    dz, db = bordered_solve(
        inner.op,
        jnp.concatenate([soft, faces]),
        jnp.concatenate([env.t, unit]),
        jnp.concatenate([-env.t * soft * (z + slope), -inner.residual(z, o, unit)]),
        jnp.tile(-jnp.sum(z, axis=1), 2),
        inner.border,
        False,
    )
    (dz, dz2), (db, db2) = jnp.split(dz, 2), jnp.split(db, 2)
    df = inner.op.matmul(dz)
    norms = jnp.sum(z * df, axis=1), jnp.sum(dz * df, axis=1)
    length = line_length(env, o, df + db[:, None], *norms)
    length = jnp.where(active, length, 0.0)
    moved = z + length[:, None] * dz, f + length[:, None] * df, b + length * db
    state = state.replace(z=moved[0], f=moved[1], b=moved[2], count=state.count + active.astype(jnp.int32))
    return state, landed(inner, z, dz2, o, faces), b + db2


def _proximal(inner: Inner, state: State, active: Array) -> State:
    """Move the centre where the envelope is minimised well enough; soften the envelope where it takes too long."""
    env = state.envelope(inner)
    point = env.point(state.f + state.b[:, None])
    error = jnp.max(env.t * jnp.abs(state.z - point), axis=1)
    done = active & (error <= 0.1 * jnp.max(env.t * jnp.abs(point - state.centre), axis=1))
    tired = active & ~done & (state.count >= TIRED)
    step = point - state.last
    uphill = jnp.sum(env.t * (state.centre - point) * step, axis=1) > 0
    old = jnp.where(uphill, 1.0, state.momentum)
    new = 0.5 * (1.0 + jnp.sqrt(1.0 + 4.0 * old * old))
    keep = done[:, None]
    z = jnp.where(keep, point, state.z)
    factor = jnp.where(tired, GROW, jnp.where(done & (state.count <= QUICK), SHRINK, 1.0))
    return State(
        jnp.where(keep, point + ((old - 1.0) / new)[:, None] * step, state.centre),
        jnp.where(keep, point, state.last),
        jnp.where(done, new, state.momentum),
        jnp.clip(state.scale * factor, 1e-6, 1e12),
        z,
        inner.op.matmul(z),
        state.b,
        jnp.where(done | tired, 0, state.count),
    )


def _best_bias(env: Envelope, f: Array, b: Array) -> Array:
    """The bias (T,) that minimises the envelopes at f, by bisection; b itself where no bias does."""
    low, high = env.inner.interval(jnp.zeros_like(f))
    shift = env.t * env.centre - f
    right = jnp.max(jnp.where(jnp.isfinite(low), low + shift, -jnp.inf), axis=1)
    left = jnp.min(jnp.where(jnp.isfinite(high), high + shift, jnp.inf), axis=1)
    known = jnp.isfinite(left) & jnp.isfinite(right)

    def body(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        left, right = ends
        middle = 0.5 * (left + right)
        up = jnp.sum(env.slope(f + middle[:, None]), axis=1) > 0
        return jnp.where(up, left, middle), jnp.where(up, middle, right)

    left, right = lax.fori_loop(0, 50, body, (jnp.where(known, left, b), jnp.where(known, right, b)))
    return 0.5 * (left + right)
