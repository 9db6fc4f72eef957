"""Dual coordinate descent for every loss with a proximal map."""

import jax
import jax.numpy as jnp
from jax import lax

from ..operators import Operator, Sparse
from ..problem import Inner
from ..types import Array, static
from .loop import Solver, run, start_point, violation

__all__ = ["DCD", "sample_prox"]


class DCD(Solver):
    """Dual coordinate descent in random order, every fold at once.

    Iteration
        Pass over the samples in a fresh random order.  With r = o_i - K_ii z_i, the output without sample i, the best
        coefficient follows from one proximal map:  o_i = prox_{K_ii s_i phi}(r),  z_i = (o_i - r) / K_ii.  Where phi
        is differentiable at the new output z_i is -s_i phi'(o_i) itself, so bounds are met exactly.  Where
        K_ii = 0 the output cannot move and any slope there is optimal.
    Stops when
        `kkt` <= tol, looked at after every pass with outputs computed afresh from z.
    Cost per step
        a pass costs O(n d) a fold with K factored (w = Phi'z is kept), O(n^2) with K stored (f = K z is kept).
    Guarantee
        the dual never increases; it is a quadratic plus separable terms, so the passes converge to the solution, and
        linearly for piecewise linear and for smooth losses.  Slow where K is ill-conditioned and C large.
    """

    seed: int = 0
    """Seed of the random orders: the same seed gives the same bits."""
    max_steps: int = static(default=3000)
    """Most passes over the samples."""

    def supports(self, inner: Inner) -> str | None:
        """Every loss; no unregularised bias, whose constraint ties the coordinates together."""
        if isinstance(inner.op, Sparse):
            return "DCD reads rows one by one and X is sparse; use solver=None, or pass X.toarray()"
        if inner.border:
            return (
                'bias=True ties all coefficients by sum z = 0 and DCD moves them one by one; use bias="regularised" '
                "or bias=False"
            )
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` (or zeros); see the class."""
        z, b = start_point(inner, init)
        b, t, key = jnp.zeros_like(b), inner.steps(), jax.random.key(self.seed)
        phi = inner.op.factors()
        rows = inner.op.whole() if phi is None else phi
        diagonal = jnp.maximum(inner.op.diagonal(), 0.0)

        def one(kept: Array, x: tuple[Array, Inner, Array]) -> tuple[Array, Array]:
            """Sample i, which is alone in `some`; `kept` is f (T, n) where K is stored and w (T, p) where factored."""
            i, some, old = x
            row = rows[i]
            o = kept[:, i] if phi is None else kept @ row
            new = _best(some, old, o, diagonal[i])
            return kept + (new - old)[:, None] * row[None, :], new

        def step(state: tuple[Array, Array], active: Array):
            z, count = state
            order = jax.random.permutation(jax.random.fold_in(key, count), inner.op.n)
            kept = inner.op.matmul(z) if phi is None else z @ phi
            # a scan over what each sample needs: a loop that writes into z would copy all of it for every sample
            _, moved = lax.scan(one, kept, (order, _one_by_one(inner, order), z.T[order]))
            z = jnp.where(active[:, None], jnp.zeros_like(z).at[:, order].set(moved.T), z)
            return (z, count + 1), z, b, violation(inner, z, inner.op.matmul(z), t)

        first = z, b, violation(inner, z, inner.op.matmul(z), t)
        return run(step, (z, jnp.zeros((), jnp.int32)), inner, tol, self.max_steps, patience=300, first=first)


def _best(some: Inner, z: Array, o: Array, diagonal: Array) -> Array:
    """The optimal coefficients (T,) of the one sample in `some` at outputs o (T,), the others fixed."""
    rest = o - diagonal * z
    p, P = sample_prox(some, rest[:, None], jnp.full_like(rest, diagonal)[:, None])
    smooth_part = -some.slope(p)[:, 0]
    p, P = p[:, 0], P[:, 0]
    moving = diagonal > 0
    tied = (p - rest) / jnp.where(moving, diagonal, 1.0)
    return jnp.where(moving & (P <= 0), tied, smooth_part)


def _one_by_one(inner: Inner, order: Array) -> Inner:
    """The same losses with a leading axis that runs over the samples in this order, one at a time."""
    n = inner.op.n
    hp = jax.tree.map(
        lambda leaf: leaf[order, None] if jnp.shape(leaf) == (n,) else jnp.broadcast_to(leaf, (n, *jnp.shape(leaf))),
        (inner.loss, inner.hp),
    )
    loss, hp = hp
    none = jnp.zeros_like(inner.y[0])
    y, s = inner.y.T[order, :, None], inner.s.T[order, :, None]
    return inner.replace(loss=loss, hp=hp, op=Operator(), limit=none, y=y, s=s)


def part(inner: Inner, index: Array) -> Inner:
    """The same losses on the samples `index` only; the operator is not to be used."""
    n = inner.op.n
    loss, hp = jax.tree.map(lambda leaf: leaf[index] if jnp.shape(leaf) == (n,) else leaf, (inner.loss, inner.hp))
    return inner.replace(loss=loss, hp=hp, y=inner.y[:, index], s=inner.s[:, index])


def sample_prox(some: Inner, v: Array, t: Array) -> tuple[Array, Array]:
    """prox_{t_i s_i phi}(v_i) and its slope for the samples in `some`; v and t are (T, m)."""
    return jax.jvp(lambda v: some.prox(v, t), (v,), (jnp.ones_like(v),))
