"""The multi-class inner problem of Crammer and Singer, and (F) for k outputs a sample."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .. import operators
from ..kernels.base import as_kernel
from ..kernels.linear import Linear
from ..losses.base import Loss
from ..operators.base import Operator
from ..problem import Inner
from ..types import Array, Hyperparameters, Module, static
from .simplex import face_basis, project, support, threshold

__all__ = ["CrammerSinger", "Rows", "Turned"]


class _MaxMargin(Loss):
    """The hyperparameters of the loss of k outputs; its formulas are those of `Rows`."""

    smooth = False

    def init(self, X, y):
        return {"C": 1.0}


class CrammerSinger(Module):
    """A classifier of k classes whose outputs are fitted together.

    Problem:     1/2 sum_j |f_j|^2_K + C sum_i s_i max_j (o_ij + [j != y_i] - o_iy_i),  o_i = (f_1(x_i), .., f_k(x_i))
    Optimality:  O = K Z with row z_i = s_i C (e_{y_i} - p_i), p_i in the simplex and on the classes that attain the max
    Derivative:  the prox projects a row onto the simplex: its slope is 0 along the face and 1 across it, so that h of
                 (B) is a k x k block a sample, diagonal in coordinates along and across
    Source:      Crammer & Singer, On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines; C
                 multiplies the sum, as in LIBLINEAR's -s 4

    `classes` is k, `kernel` a `hyperjax.kernels.Kernel` or a bare callable k(x, z), `bias` False or "regularised" (a
    constant feature).  Labels are the integers 0 .. k - 1.
    """

    classes: int = static()
    kernel: Any = dataclasses.field(default_factory=Linear)
    bias: bool | str = static(default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))

    def init(self, X: Any, labels: Any = None) -> Hyperparameters:
        """Start values {"loss": {"C": 1}, "kernel": {..}} in the float type of X."""
        X = jnp.asarray(X)
        dtype = X.dtype if jnp.issubdtype(X.dtype, jnp.floating) else jnp.result_type(float)
        X = X.astype(dtype)
        y = jnp.zeros_like(X[:, 0])
        values = {"loss": self.loss.init(X, y), "kernel": self.kernel.init(X, y)}
        return jax.tree.map(lambda v: jnp.asarray(v, dtype), values)

    @property
    def loss(self) -> Loss:
        """The loss, for its hyperparameters alone."""
        return _MaxMargin()

    def domains(self, hp: Hyperparameters) -> Any:
        """The domain of every hyperparameter, a tree like `hp`."""
        return {"loss": self.loss.domain_tree(hp["loss"]), "kernel": self.kernel.domain_tree(hp["kernel"])}

    def inner(self, hp: Hyperparameters, X: Array, labels: Array, s: Array) -> "Rows":
        """The inner problem with weights s (n,); the kernel matrix is built here, once."""
        k = self.classes
        op = operators.build(self.kernel, hp["kernel"], X, offset=self.bias == "regularised")
        own = jax.nn.one_hot(labels, k, dtype=X.dtype).reshape(1, -1)
        return Rows(self.loss, hp["loss"], Outputs(op, k), own, jnp.repeat(s, k)[None, :], False, k=k)


class Outputs(Operator):
    """K for each of k outputs: acts on rows (n, k) written one after the other, in coordinates of each row's own."""

    base: Operator
    k: int = static()
    turn: Array | None = None
    """Orthogonal (n, k, k), row = turn @ coordinates; None: the outputs themselves."""

    @property
    def n(self) -> int:
        return self.base.n * self.k

    def matmul(self, v: Array) -> Array:
        rows = v.reshape(-1, self.base.n, self.k)
        if self.turn is not None:
            rows = jnp.einsum("nab,tnb->tna", self.turn, rows)
        flat = jnp.moveaxis(rows, 2, 1).reshape(-1, self.base.n)
        rows = jnp.moveaxis(self.base.matmul(flat).reshape(-1, self.k, self.base.n), 1, 2)
        if self.turn is not None:
            rows = jnp.einsum("nab,tna->tnb", self.turn, rows)
        return rows.reshape(v.shape)

    def whole(self) -> Array:
        return self.block(jnp.arange(self.n))

    def block(self, index: Array) -> Array:
        index = jnp.minimum(index, self.n - 1)
        row, which = index // self.k, index % self.k
        axes = jnp.eye(self.k, dtype=self.diagonal().dtype)[which] if self.turn is None else self.turn[row, :, which]
        return self.base.block(row) * (axes @ axes.T)

    def diagonal(self) -> Array:
        return jnp.repeat(self.base.diagonal(), self.k)


class Rows(Inner):
    """(F) for n rows of k outputs.  z, o, y, s and t are (1, n k), row after row; y holds 1 at a row's own class.

    With d_i = 1 - y_i and a_i = t_i s_i C:  prox(v_i) = v_i + a_i y_i - the projection of v_i + d_i + a_i y_i onto the
    simplex of size a_i.
    """

    k: int = static(default=2)

    @property
    def smooth(self) -> bool:
        """False: the maximum has kinks."""
        return False

    def rows(self, v: Array) -> Array:
        """(1, n k) as the outputs (n, k)."""
        return v.reshape(-1, self.k)

    def flat(self, rows: Array) -> Array:
        """(n, k) as (1, n k)."""
        return rows.reshape(1, -1)

    def cost(self) -> Array:
        """s_i C (n,): the size of the simplex that holds row i of the coefficients."""
        return self.rows(self.s)[:, 0] * self.hp["C"]

    def margins(self) -> Array:
        """d (n, k): 0 at the own class, 1 elsewhere."""
        return 1.0 - self.rows(self.y)

    def scale(self) -> Array:
        return jnp.where(self.s > 0, self.s, 1.0) * self.hp["C"]

    def phi(self, o: Array) -> Array:
        """The loss of every row at the place of its own class, 0 elsewhere."""
        outputs, own = self.rows(o), self.rows(self.y)
        worst = jnp.max(outputs + self.margins(), axis=1) - jnp.sum(own * outputs, axis=1)
        return self.flat(own * (self.cost() * worst)[:, None])

    def shifted(self, v: Array, t: Array) -> tuple[Array, Array]:
        """What the prox projects (n, k), and onto a simplex of which size (n,)."""
        size = self.rows(t)[:, 0] * self.cost()
        return self.rows(v) + self.margins() + size[:, None] * self.rows(self.y), size

    def prox(self, v: Array, t: Array) -> Array:
        x, size = self.shifted(v, t)
        return v + self.flat(size[:, None] * self.rows(self.y) - project(x, size))

    def feasible(self, z: Array) -> Array:
        """The nearest coefficients (n, k) that some outputs ask for: s C (own class - simplex)."""
        most = self.cost()
        own = most[:, None] * self.rows(self.y)
        return own - project(own - z, most)

    def gap(self, z: Array, o: Array) -> Array:
        """Primal minus dual value over the primal value (1,); each is evaluated without the other."""
        inside, loss = 0.5 * jnp.sum(z * o), jnp.sum(self.phi(o))
        dual = -inside - jnp.sum(self.rows(z) * self.margins())
        return (jnp.abs(inside + loss - dual) / jnp.maximum(inside + loss, jnp.finfo(z.dtype).tiny))[None]

    def distances(self, z: Array, o: Array, t: Array) -> Array:
        """How far a row (n,) is from changing its face, to a factor of k, in output units; infinite where s = 0."""
        x, size = self.shifted(o - t * z, t)
        on = support(x, size)
        away = jnp.abs(x - threshold(x, size, on))
        alone = jnp.sum(on, axis=1, keepdims=True) == 1
        away = jnp.where(on & alone, jnp.inf, away)
        return jnp.where(size > 0, jnp.min(away, axis=1), jnp.inf)

    def turned(self, z: Array, o: Array) -> "Turned":
        """The same problem in coordinates along and across the faces that hold z, o.

        (F) holds for any t.  This one puts K_ii z_i beside o_i, so that a coefficient small beside s_i C still counts.
        """
        op: Outputs = self.op  # type: ignore[assignment]  # Rows are made with no other
        t = jnp.maximum(self.steps(), lax.stop_gradient(op.diagonal())[None, :])
        turn, free = face_basis(support(*self.shifted(o - t * z, t)), z.dtype)
        # a row of zeros ties no output down, whatever its face
        free = lax.stop_gradient(free & (op.base.diagonal()[:, None] > 0))
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Turned(**{**fields, "op": op.replace(turn=turn)}, free=free, t=t)


class Turned(Rows):
    """Rows in the coordinates of `face_basis`: there the slope of the prox is a 0 or a 1 an entry."""

    free: Any = None
    """Which coordinates (n, k) run along a face."""
    t: Any = None
    """The steps (1, n k) of (F) that the faces were found with."""

    def steps(self) -> Array:
        return self.t

    def out(self, v: Array) -> Array:
        """Coordinates (1, n k) as outputs (1, n k)."""
        return self.flat(jnp.einsum("nab,nb->na", self._turn, self.rows(v)))

    def into(self, v: Array) -> Array:
        """Outputs (1, n k) as coordinates (1, n k)."""
        return self.flat(jnp.einsum("nab,na->nb", self._turn, self.rows(v)))

    @property
    def _turn(self) -> Array:
        op: Outputs = self.op  # type: ignore[assignment]  # Rows are made with no other
        assert op.turn is not None
        return op.turn

    def prox(self, v: Array, t: Array) -> Array:
        return self.into(super().prox(self.out(v), t))

    def faces(self, z: Array, o: Array, t: Array) -> Array:
        return jnp.where(self.free, 0.0, 1.0).astype(z.dtype).reshape(1, -1)
