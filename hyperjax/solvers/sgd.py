"""Stochastic proximal gradient for every loss, in the dual representation."""

import jax
import jax.numpy as jnp
from jax import lax

from ..operators import Sparse
from ..problem import Inner
from ..types import Array, static
from .dcd import part, sample_prox
from .loop import Solver, run, start_point, violation

__all__ = ["SGD"]


class SGD(Solver):
    """Mini-batch stochastic descent with steps 1/k and averaging, every fold at once: approximate by nature.

    Iteration
        With step a = 1/k, f shrinks by 1 - a, and every sampled row adds its subgradient with weight a n / batch.
        The subgradient is taken at the row's output after its own step (one proximal map), so that no loss and no C
        makes the steps unstable; at small steps this is the subgradient step of Pegasos.  An unregularised bias takes
        the same steps with the mean of K's diagonal as its metric.  The result is the average of all iterates, the
        k-th with weight k.
    Stops when
        `kkt` of the average is <= tol, looked at once an epoch, or the epochs are over.  Returns the best average.
    Cost per step
        O(batch n) a fold with K stored, O(batch d + n) with K factored; an epoch ends with one product with K.
    Guarantee
        the steps satisfy sum a = inf, sum a^2 < inf and f is strongly convex: f converges with the number of epochs,
        the objective of the average about as 1/k (without unregularised bias).
        Expect two or three digits of it, not more.
    """

    epochs: int = static(default=200)
    batch: int = static(default=2)
    seed: int = 0
    """Seed of the sampling: the same seed gives the same bits."""

    def supports(self, inner: Inner) -> str | None:
        """Every loss, every bias; rows one by one."""
        if isinstance(inner.op, Sparse):
            return "SGD reads rows one by one and X is sparse; use solver=None, or pass X.toarray()"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` (or zeros); see the class."""
        z, b = start_point(inner, init)
        n, size = inner.op.n, min(self.batch, inner.op.n)
        per_epoch, t, key = -(-n // size), inner.steps(), jax.random.key(self.seed)
        phi = inner.op.factors()

        def one(j: Array, state: tuple[Array, ...], order: Array, epoch: Array) -> tuple[Array, ...]:
            z, w, b, zbar, bbar = state
            index = order[(j * size + jnp.arange(size)) % n]
            # the point to start from counts as one epoch already taken
            k = ((epoch + 1) * per_epoch + j + 1).astype(z.dtype)
            z, w = (1.0 - 1.0 / k) * z, (1.0 - 1.0 / k) * w
            f = z @ inner.op.whole()[index].T if phi is None else w @ phi[index].T
            push, lift = _push(inner, index, f + b[:, None], n / k)
            z, b = z.at[:, index].add(push), b + lift
            w = w if phi is None else w + push @ phi[index]
            part_of = 2.0 / (k + 1.0)
            return z, w, b, zbar + part_of * (z - zbar), bbar + part_of * (b - bbar)

        def step(state: tuple[Array, ...], active: Array):
            *point, epoch = state
            order = jax.random.permutation(jax.random.fold_in(key, epoch), n)
            point = lax.fori_loop(0, per_epoch, lambda j, p: one(j, p, order, epoch), tuple(point))
            zbar, bbar = point[3:]
            return (*point, epoch + 1), zbar, bbar, violation(inner, zbar, inner.outputs(zbar, bbar), t)

        first = z, b, violation(inner, z, inner.outputs(z, b), t)
        w = jnp.zeros_like(z[:, :1]) if phi is None else z @ phi
        state = (z, w, b, z, b, jnp.zeros((), jnp.int32))
        return run(step, state, inner, tol, self.epochs, patience=self.epochs, first=first)


def _push(inner: Inner, index: Array, o: Array, weight: Array) -> tuple[Array, Array]:
    """What the rows `index` add to z (T, m) and to b (T,) at outputs o, each with its own implicit step."""
    diagonal = jnp.maximum(inner.op.diagonal(), 0.0)
    metric = jnp.mean(diagonal) if inner.border else jnp.zeros((), o.dtype)
    metric = jnp.where(inner.border & (metric <= 0), 1.0, metric)
    reach = jnp.broadcast_to(diagonal[index][None, :] + metric, o.shape)
    p, _ = sample_prox(part(inner, index), o, weight * reach)
    explicit = -weight * part(inner, index).slope(o)
    push = jnp.where(reach > 0, (p - o) / jnp.where(reach > 0, reach, 1.0), explicit) / index.shape[0]
    return push, metric * jnp.sum(push, axis=1)
