"""Where the hypergradient comes from: the implicit function theorem on (F), in one rule.

Problem
    x = (z, b) solves (F) for the data (hyperparameters, kernel matrix, y, s).  `attach` hands x through
    unchanged and tells JAX how x moves when the data move.

Derivative
    Let P be the slope of the prox at v = o - t z, and let a dot mean a derivative along the data at fixed x.
    Differentiating (F) with o = K z + b gives, with g = prox' - (1 - P) K' z,

        (1 - P)(K dz + db) + t P dz = g,     sum dz = 0,     do = K dz + db + K' z,

    the bordered system (B).  The rule is linear in the data's tangent and its one solve is transposable, so
    forward mode costs one solve a direction and reverse mode one solve for all data together.  The rule calls
    `attach` on its own x, which makes every higher derivative come out of the same lines.
    Where no sample of a fold is curved or free the bias is the midpoint of an interval, and moves with the samples
    that attain the two ends.

Source
    Jiang & Siddiqui (exact Jacobian), Keerthi, Sindhwani & Chapelle (one adjoint solve; empty free set), in the
    form (F) that covers every loss.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .operators import bordered_solve, partial_jvp
from .problem import Inner
from .types import Array, Float

__all__ = ["attach", "kink_positions"]


@jax.custom_jvp
def attach(
    z: Float[Array, "T n"], b: Float[Array, " T"], o: Float[Array, "T n"], inner: Inner
) -> tuple[Float[Array, "T n"], Float[Array, " T"], Float[Array, "T n"]]:
    """(z, b, o) again, as the differentiable solution of `inner`; o = K z + b."""
    return z, b, o


def _attach_jvp(primals: Any, tangents: Any) -> Any:
    z, b, o, inner = primals
    moved: Inner = tangents[3]
    z, b, o = attach(z, b, o, inner)
    t = inner.steps()
    v = o - t * z
    nobody = inner.nobody_free(z)
    P = jnp.where(nobody[:, None], 1.0, inner.faces(z, o, t))

    kernel_part = inner.op.moved(moved.op, z)
    local, d_local = (inner.loss, inner.hp, inner.y, inner.s), (moved.loss, moved.hp, moved.y, moved.s)

    loss_part = partial_jvp(lambda parts: _inner_of(parts, inner).prox(v, t), local, d_local)
    kernel_part = jnp.zeros_like(z) if kernel_part is None else kernel_part
    loss_part = jnp.zeros_like(z) if loss_part is None else loss_part

    g = loss_part - (1.0 - P) * kernel_part
    dz, db = bordered_solve(inner.op, P, t, g, jnp.zeros_like(b), inner.border, inner.smooth, again=inner.smooth)
    df = inner.op.matmul(dz) + kernel_part
    if inner.border and inner.loss.flat:
        db = jnp.where(nobody, _midpoint_jvp(inner, z, o - b[:, None], df, local, d_local), db)
    return (z, b, o), (dz, db, df + db[:, None])


attach.defjvp(_attach_jvp, symbolic_zeros=True)


def kink_positions(inner: Inner, z: Float[Array, "T n"], f: Float[Array, "T n"]) -> tuple[Array, Array]:
    """The samples that b = (lo + hi)/2 hangs on: (inside, share), each (2, T, n) for the two ends.

    `share` is 1/2 at the sample that attains an end (1 if the other end is infinite) and 0 elsewhere; `inside` is an
    argument of the prox in the middle of the flat that this sample's kink makes.
    """
    z, f = lax.stop_gradient((z, f))
    o, t = jnp.stack(inner.interval(z)), inner.steps()
    slack = jnp.where(jnp.asarray([True, False])[:, None, None], -1.0, 1.0) * (o - f[None])
    attained = jnp.arange(z.shape[1])[None, None, :] == jnp.argmin(slack, axis=2)[:, :, None]
    known = jnp.any(jnp.isfinite(o) & attained, axis=2)
    kink = jnp.where(jnp.isfinite(o), o, 0.0)
    off = 1e-3 * jnp.maximum(1.0, jnp.abs(kink)) * jnp.sqrt(jnp.finfo(z.dtype).eps)
    both = jax.vmap(lambda k, e: inner.slope(k - e) + inner.slope(k + e))(kink, off)
    count = jnp.maximum(jnp.sum(known.astype(z.dtype), axis=0), 1.0)
    share = jnp.where(attained & known[:, :, None], 1.0 / count[None, :, None], 0.0)
    return lax.stop_gradient((kink + 0.5 * t[None] * both, share))


def _midpoint_jvp(inner: Inner, z: Array, f: Array, df: Array, local: Any, d_local: Any) -> Array:
    """How b = (lo + hi)/2 moves: with the kinks and the outputs of the samples that attain lo and hi."""
    t = inner.steps()
    out = jnp.zeros_like(df[:, 0])
    for inside, share in zip(*kink_positions(inner, z, f), strict=True):
        change = partial_jvp(lambda parts, at=inside: _inner_of(parts, inner).prox(at, t), local, d_local)
        moved = -df if change is None else change - df
        out = out + jnp.sum(share * moved, axis=1)
    return out


def _inner_of(parts: Any, inner: Inner) -> Inner:
    """`inner` with its loss, hyperparameters, y and weights replaced."""
    loss, hp, y, s = parts
    return inner.replace(loss=loss, hp=hp, y=y, s=s)
