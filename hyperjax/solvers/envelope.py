"""Losses smoothed around a centre, and the proximal iteration that minimises them in the space of the columns."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..operators import DIRECT_SIZES, Operator, bordered_solve
from ..problem import Inner
from ..types import Array, Module
from .loop import run, start_point, violation
from .newton import factored_step

__all__ = ["Envelope", "in_columns", "landed"]

SHRINK, GROW = 0.3, 4.0
"""How much sharper an envelope is than the last that was minimised, and how much softer where one was not."""
STEPS, PATIENCE = 40, 10
"""Newton steps an envelope is given, and how many of them without progress."""
CROWD = 4
"""So many free rows for every column, or a few hundred, are not too many for a Newton step on (F)."""


class Envelope(Module):
    """The loss smoothed around a centre c: minimising 1/2|f|^2_K + sum_i E_i(o_i) is a proximal step of the dual at c.

    E is the Moreau envelope of s phi at v = o - t c:  E' = (v - prox_{t s phi}(v)) / t,  E'' = (1 - P) / t.
    """

    inner: Inner
    centre: Array
    t: Array

    def slope(self, o: Array) -> Array:
        """E'(o); its negative is a feasible coefficient, the one (F) asks for."""
        v = o - self.t * self.centre
        return (v - self.inner.prox(v, self.t)) / self.t

    def slope_and_faces(self, o: Array) -> tuple[Array, Array]:
        """E' and P, the slope of the proximal map."""
        v = o - self.t * self.centre
        p, P = jax.jvp(lambda v: self.inner.prox(v, self.t), (v,), (jnp.ones_like(v),))
        return (v - p) / self.t, P

    def point(self, o: Array) -> Array:
        """-E'(o); on straight pieces -s phi' itself, so that bounds are met exactly and the bias interval is found."""
        v = o - self.t * self.centre
        p, P = jax.jvp(lambda v: self.inner.prox(v, self.t), (v,), (jnp.ones_like(v),))
        return jnp.where(self.inner.s > 0, jnp.where(P >= 1.0, -self.inner.slope(p), (p - v) / self.t), 0.0)


class Smoothed(Envelope):
    """An envelope as Newton sees it: an inner problem of its own, differentiable."""

    smooth = True
    limit = jnp.inf

    @property
    def s(self) -> Array:
        """The weights."""
        return self.inner.s

    @property
    def op(self) -> Operator:
        """The kernel matrix."""
        return self.inner.op

    @property
    def border(self) -> bool:
        """Whether sum z = 0 is part of the problem."""
        return self.inner.border

    def scale(self) -> Array:
        """The slope scale of the loss, which the envelope keeps."""
        return self.inner.scale()

    def phi(self, o: Array) -> Array:
        """E(o)."""
        v = o - self.t * self.centre
        p = self.inner.prox(v, self.t)
        return self.inner.phi(p) + (v - p) ** 2 / (2.0 * self.t)

    def slope(self, o: Array) -> Array:
        """E'(o), exact on straight pieces."""
        return -self.point(o)

    def curvature(self, o: Array) -> Array:
        """E''(o)."""
        return (1.0 - self.slope_and_faces(o)[1]) / self.t


def in_columns(inner: Inner, phi: Array, init: Any, tol: Array, max_steps: int, patience: int):
    """Proximal steps of the dual for K = Phi Phi' with many rows and few columns; returns what a solver does.

    Every envelope is minimised in w = Phi'z by Newton's factored step, which leaves out the rows without curvature; t
    is in proportion to K_ii where that is above its mean, so that no single row bends the problem more than the others
    do.  Once few enough rows are free a Newton step on (F) itself is tried beside each proximal step.
    """
    z, b = start_point(inner, init)
    b, unit = b if inner.border else jnp.zeros_like(b), inner.steps()
    diagonal = inner.op.diagonal()
    mean = jnp.mean(diagonal)
    t = unit * jnp.maximum(1.0, diagonal / jnp.where(mean > 0, mean, 1.0))[None, :]

    def step(state: tuple[Array, ...], active: Array):
        z, b, scale, shrink, later = state
        env: Any = Smoothed(inner, z, jnp.where(inner.s > 0, scale[:, None] * t, t))
        goal = jnp.where(active, 0.1 * scale, jnp.inf)
        newton, start = factored_step(env, phi, z @ phi, b, goal, alone=later)
        (new, bias), stats = run(newton, start, env, goal, STEPS, PATIENCE)
        done = active & (stats["violation"] <= 3.0 * goal)
        z, b = jnp.where(done[:, None], new, z), jnp.where(done, bias, b)
        # an envelope that is too sharp: a softer one, and from then on no sharper than those that were not
        scale = jnp.where(active, scale * jnp.where(done, shrink, GROW), scale)
        shrink = jnp.where(active & ~done, 1.0, shrink)
        o = inner.outputs(z, b)
        found, at, worst = _ended(inner, phi.shape[1], z, b, o, violation(inner, z, o, unit), active)
        return (z, b, scale, shrink, jnp.asarray(True)), found, at, worst

    one = jnp.ones_like(b)
    first = z, b, violation(inner, z, inner.outputs(z, b), unit)
    state = z, b, one, SHRINK * one, jnp.asarray(False)
    return run(step, state, inner, tol, max_steps, patience, first=first)


def _ended(
    inner: Inner, columns: int, z: Array, b: Array, o: Array, worst: Array, active: Array
) -> tuple[Array, Array, Array]:
    """(z, b) after a Newton step on (F) where few rows are free and that lowers the violation; and the violation.

    Many more free rows than columns are not those of the solution, and their system is singular.
    """
    t = inner.steps()
    P = jnp.where(active[:, None], inner.faces(z, o, t), 1.0)

    def tried() -> tuple[Array, Array]:
        rest = -inner.residual(z, o, t)
        dz, db = bordered_solve(inner.op, P, t, rest, -jnp.sum(z, axis=1), inner.border, False)
        return landed(inner, z, dz, o, P), b + db

    most = min(DIRECT_SIZES[-1], max(DIRECT_SIZES[0], CROWD * columns))
    few = jnp.max(jnp.sum((P < 1.0) & (inner.s > 0), axis=1)) <= most
    moved, at = lax.cond(few, tried, lambda: (z, b))
    after = violation(inner, moved, inner.outputs(moved, at), t)
    use = after < worst
    return jnp.where(use[:, None], moved, z), jnp.where(use, at, b), jnp.where(use, after, worst)


def landed(inner: Inner, z: Array, dz: Array, o: Array, faces: Array) -> Array:
    """z after a Newton step dz on (F) from outputs o: on straight pieces what (F) says, elsewhere z + dz.

    What lies within rounding of an end of its range at the kink is put on that end.
    """
    unit = inner.steps()
    kink = inner.prox(o - unit * z, unit)
    near = 64.0 * jnp.finfo(z.dtype).eps * inner.scale()
    off = jnp.finfo(z.dtype).eps ** 0.75 * jnp.maximum(1.0, jnp.abs(kink))
    at_kink = z + dz
    high, low = -inner.slope(kink - off), -inner.slope(kink + off)
    for end in (high, low):
        at_kink = jnp.where(jnp.abs(at_kink - end) <= near, end, at_kink)
    # where the prox stands still the loss has a kink and nothing else: its range is that of the coefficient
    at_kink = jnp.where(faces <= 0.0, jnp.clip(at_kink, low, high), at_kink)
    straight = (faces >= 1.0) | (inner.s <= 0)
    return jnp.where(straight, Envelope(inner, z, unit).point(o), at_kink)
