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
from jax.custom_derivatives import SymbolicZero

from . import prox as automatic
from .operators import bordered_solve, partial_jvp
from .problem import Inner
from .types import Array

__all__ = ["attach"]


@jax.custom_jvp
def attach(z: Array, b: Array, o: Array, inner: Inner) -> tuple[Array, Array, Array]:
    """(z, b, o) again, as the differentiable solution of `inner`; o = K z + b."""
    return z, b, o


def _attach_jvp(primals: Any, tangents: Any) -> Any:
    z, b, o, inner = primals
    moved: Inner = tangents[3]
    z, b, o = attach(z, b, o, inner)
    t = inner.steps()
    v = o - t * z
    P = inner.faces(z, o, t)

    kernel_part = partial_jvp(lambda op: op.matmul(z), inner.op, moved.op)
    local, d_local = (inner.loss, inner.hp, inner.y, inner.s), (moved.loss, moved.hp, moved.y, moved.s)

    def prox_of(parts: Any) -> Array:
        return Inner(parts[0], parts[1], inner.op, parts[2], parts[3], inner.border).prox(v, t)

    loss_part = partial_jvp(prox_of, local, d_local)
    kernel_part = jnp.zeros_like(z) if kernel_part is None else kernel_part
    loss_part = jnp.zeros_like(z) if loss_part is None else loss_part

    g = loss_part - (1.0 - P) * kernel_part
    dz, db = bordered_solve(inner.op, P, t, g, jnp.zeros_like(b), inner.border, inner.smooth)
    df = inner.op.matmul(dz) + kernel_part
    if inner.border and inner.loss.flat:
        nobody = jnp.all(P >= 1.0, axis=1)
        db = jnp.where(nobody, _midpoint_jvp(inner, z, o - b[:, None], df, local, d_local), db)
    return (z, b, o), (dz, db, df + db[:, None])


attach.defjvp(_attach_jvp, symbolic_zeros=True)


def _midpoint_jvp(inner: Inner, z: Array, f: Array, df: Array, local: Any, d_local: Any) -> Array:
    """How b = (lo + hi)/2 moves: with the kinks and the outputs of the samples that attain lo and hi."""
    low, high = inner.interval(lax.stop_gradient(z))
    low, high = lax.stop_gradient((low - f, high - f))
    moves = []
    for value, pick in ((low, jnp.argmax(low, axis=1)), (high, jnp.argmin(high, axis=1))):
        at = pick[:, None]
        kink = jnp.take_along_axis(value + lax.stop_gradient(f), at, axis=1)
        dkink = _kink_jvp(inner, kink, at, local, d_local)
        known = jnp.isfinite(jnp.take_along_axis(value, at, axis=1))
        moves.append((jnp.where(known, dkink - jnp.take_along_axis(df, at, axis=1), 0.0)[:, 0], known[:, 0]))
    (dlo, has_lo), (dhi, has_hi) = moves
    count = jnp.maximum(has_lo.astype(df.dtype) + has_hi.astype(df.dtype), 1.0)
    return (dlo + dhi) / count


def _kink_jvp(inner: Inner, kink: Array, at: Array, local: Any, d_local: Any) -> Array:
    """The movement (T, 1) of the kink that sample `at` of each fold sits on, from the prox inside its flat."""
    kink = jnp.where(jnp.isfinite(kink), kink, 0.0)
    everywhere = jnp.broadcast_to(kink, inner.s.shape)
    off = 1e-3 * jnp.maximum(1.0, jnp.abs(everywhere)) * jnp.sqrt(jnp.finfo(kink.dtype).eps)

    def slopes(o: Array) -> Array:
        return inner.over_folds(lambda o: automatic.slope(inner.loss, o, inner.y, inner.hp), o)

    t = inner.steps()
    middle = lax.stop_gradient(0.5 * t * inner.s * (slopes(everywhere - off) + slopes(everywhere + off)))
    inside = lax.stop_gradient(everywhere) + middle

    def prox_of(parts: Any) -> Array:
        return Inner(parts[0], parts[1], inner.op, parts[2], parts[3], inner.border).prox(inside, t)

    change = partial_jvp(prox_of, local, d_local)
    return jnp.zeros_like(kink) if change is None else jnp.take_along_axis(change, at, axis=1)
