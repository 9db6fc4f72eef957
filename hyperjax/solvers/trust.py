"""Trust-region Newton with conjugate gradients for differentiable losses: products with K only."""

import jax.numpy as jnp
from jax import lax

from ..problem import Inner
from ..types import Array, Module, static
from .loop import Solver, run, start_point
from .newton import smooth_violation

__all__ = ["Trust"]


class Vector(Module):
    """An element of function space + bias: coefficients z, outputs K z carried along, bias b.

    Inner product  <u, v> = z_u' K z_v + b_u b_v.
    """

    z: Array
    f: Array
    b: Array

    def plus(self, length: Array, other: "Vector") -> "Vector":
        """self + length (T,) * other."""
        a = length[:, None]
        return Vector(self.z + a * other.z, self.f + a * other.f, self.b + length * other.b)

    def dot(self, other: "Vector") -> Array:
        """The inner product, one value a fold."""
        return jnp.sum(self.z * other.f, axis=1) + self.b * other.b


class Trust(Solver):
    """Steihaug's trust-region method in function space, every fold at once; no factorisation anywhere.

    Iteration
        In the metric |f|_K^2 + b^2 the gradient has coefficients z + s phi'(o) and bias sum_i s_i phi'(o_i); the
        Hessian maps dz to dz + h (K dz + db) and db to sum_i h_i (K dz + db)_i, h = s phi''(o).  Conjugate gradients
        in this metric stop at the radius, at negative curvature, or at a fraction of the gradient.  The step is taken
        when the objective falls by a fair part of what the quadratic model promises, which also sets the radius.
    Stops when
        max t |z + s phi'(o)| <= tol and |sum z| is small, as Newton: an upper bound of `kkt` that needs no prox.
    Cost per step
        three products with K, and one for each conjugate gradient step.
    Guarantee
        trust-region steps never increase the objective, to rounding; convergence from any start,
        superlinear at the end.
    """

    max_steps: int = static(default=200)
    max_products: int = static(default=1000)
    """Most conjugate gradient steps within one step."""

    def supports(self, inner: Inner) -> str | None:
        """Differentiable losses, every operator, every bias."""
        if not inner.smooth:
            return f"the loss {type(inner.loss).__name__} has kinks and Trust needs a differentiable loss"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` (or zeros); see the class."""
        z, b = start_point(inner, init)
        b, t = b if inner.border else jnp.zeros_like(b), inner.steps()
        x = Vector(z, inner.op.matmul(z), b)

        def step(state: tuple[Vector, Array], active: Array):
            x, radius = state
            o = x.f + x.b[:, None]
            gradient = _riesz(inner, x.z + inner.slope(o), jnp.sum(inner.slope(o), axis=1))
            radius = jnp.where(jnp.isfinite(radius), radius, jnp.sqrt(gradient.dot(gradient)))
            d, promised = _steihaug(inner, inner.curvature(o), gradient, radius, self.max_products)
            fall, noise = _fall(inner, x, d)
            ratio = (fall + noise) / (promised + noise)
            length = jnp.sqrt(d.dot(d))
            radius = jnp.where(ratio < 0.25, 0.25 * length, radius)
            radius = jnp.where((ratio > 0.75) & (length > 0.9 * radius), 3.0 * radius, radius)
            x = x.plus(jnp.where(active & (ratio > 1e-4), 1.0, 0.0), d)
            x = x.replace(f=inner.op.matmul(x.z))
            # where K is singular f alone does not determine z; the loss does, and what is left of z in K's null space
            # would drown the gradient in rounding
            z = -inner.slope(x.f + x.b[:, None])
            clean = x.replace(z=z, f=inner.op.matmul(z))
            before, after = (smooth_violation(inner, v.z, v.f + v.b[:, None], t) for v in (x, clean))
            use = active & (after < 0.5 * before)
            x = Vector(jnp.where(use[:, None], z, x.z), jnp.where(use[:, None], clean.f, x.f), x.b)
            return (x, radius), x.z, x.b, jnp.where(use, after, before)

        first = x.z, x.b, smooth_violation(inner, x.z, x.f + x.b[:, None], t)
        return run(step, (x, jnp.full_like(b, jnp.inf)), inner, tol, self.max_steps, patience=30, first=first)


def _riesz(inner: Inner, z: Array, b: Array) -> Vector:
    return Vector(z, inner.op.matmul(z), b if inner.border else jnp.zeros_like(b))


def _fall(inner: Inner, x: Vector, d: Vector) -> tuple[Array, Array]:
    """How much the objective falls from x to x + d, and the rounding in that number."""
    o, do = x.f + x.b[:, None], d.f + d.b[:, None]
    losses = inner.phi(o)
    change = jnp.sum(x.z * d.f + 0.5 * d.z * d.f + (inner.phi(o + do) - losses), axis=1)
    size = jnp.sum(jnp.abs(losses) + jnp.abs(x.z * x.f), axis=1)
    return -change, 10.0 * jnp.finfo(o.dtype).eps * size


def _steihaug(inner: Inner, h: Array, gradient: Vector, radius: Array, limit: int) -> tuple[Vector, Array]:
    """A step d with |d| <= radius that lowers the quadratic model, and by how much (T,)."""
    zero = gradient.plus(-jnp.ones_like(radius), gradient)
    size = gradient.dot(gradient)
    goal = size * jnp.minimum(0.01, size / (1.0 + size))

    def cond(state: tuple) -> Array:
        *_, go, it = state
        return jnp.any(go) & (it < limit)

    def body(state: tuple) -> tuple:
        d, r, p, rr, go, it = state
        pull = h * (p.f + p.b[:, None])
        Hp = _riesz(inner, p.z + pull, jnp.sum(pull, axis=1))
        curve = p.dot(Hp)
        bends = curve > 0
        a = rr / jnp.where(bends, curve, 1.0)
        edge = _to_edge(d, p, radius)
        out = ~bends | (a >= edge)
        a = jnp.where(go, jnp.where(out, edge, a), 0.0)
        d, r = d.plus(a, p), r.plus(a, Hp)
        new = r.dot(r)
        go = go & ~out & (new > goal)
        ratio = jnp.where(go, new / jnp.where(rr > 0, rr, 1.0), 0.0)
        p = zero.plus(-jnp.ones_like(a), r).plus(ratio, p)
        return d, r, p, new, go, it + 1

    down = zero.plus(-jnp.ones_like(radius), gradient)
    start = (zero, gradient, down, size, size > 0, jnp.zeros((), jnp.int32))
    d, r, *_ = lax.while_loop(cond, body, start)
    # the residual is r = gradient + H d, so the model g'd + d'Hd/2 is the mean of g'd and r'd
    return d, -0.5 * (gradient.dot(d) + r.dot(d))


def _to_edge(d: Vector, p: Vector, radius: Array) -> Array:
    """The positive length at which |d + length p| = radius."""
    pp, dp, dd = p.dot(p), d.dot(p), d.dot(d)
    room = jnp.maximum(radius * radius - dd, 0.0)
    root = jnp.sqrt(jnp.maximum(dp * dp + pp * room, 0.0))
    below = dp + root
    return jnp.where(below > 0, room / jnp.where(below > 0, below, 1.0), 0.0)
