"""One set of hyperparameters for each group of rows."""

import jax
import jax.numpy as jnp
import numpy as np

from ..types import ArrayLike, static
from .squared_epsilon_insensitive import SquaredEpsilonInsensitive
from .weighted_hinge import WeightedHinge
from .wrapped import Wrapped

__all__ = ["EXAMPLES", "Grouped"]


class Grouped(Wrapped):
    """`loss` with hyperparameters of its own for every group of rows.

    `Grouped(loss, groups)` takes one label a row, of any kind; the sorted distinct labels become the groups
    0 .. G - 1, and every hyperparameter an array (G,) in that order.  Inside a traced function give group
    numbers and `n_groups`.

    Problem:     phi(o, y) = phi_loss(o, y; hp[g]) for a row of group g
    Optimality:  that of the loss, row by row
    Derivative:  gathering leaf[groups] turns (G,) leaves into one value a row; its transpose sums over a group
    Source:      Moore, Bergeron & Bennett, Model selection for primal SVM: multiSVR, a pair (C_g, eps_g) a group.
    """

    groups: ArrayLike
    n_groups: int | None = static(default=None)

    def __post_init__(self) -> None:
        # JAX rebuilds instances with placeholders for leaves, but always with n_groups known.
        if self.n_groups is None:
            labels, numbers = np.unique(np.asarray(self.groups), return_inverse=True)
            object.__setattr__(self, "groups", numbers.reshape(-1).astype(np.int32))
            object.__setattr__(self, "n_groups", len(labels))

    def init(self, X, y):
        return jax.tree.map(lambda leaf: jnp.full((self.n_groups,), leaf), self.loss.init(X, y))

    def expand(self, hp):
        groups = jnp.asarray(self.groups)
        inside = jax.tree.map(lambda leaf: jnp.asarray(leaf)[groups] if jnp.ndim(leaf) else leaf, hp)
        return self.loss.expand(inside)

    def problem_with(self, y, hp):
        groups = np.asarray(self.groups)
        if groups.shape != np.shape(y):
            return f"groups must name one group for each of the {len(y)} rows, found shape {groups.shape}"
        if groups.min() < 0 or groups.max() >= self.n_groups:
            reach = f"{groups.min()} to {groups.max()}"
            return f"groups must be numbers from 0 and below n_groups = {self.n_groups}, and reach from {reach}"
        for name, leaf in hp.items():
            if np.shape(leaf) not in ((), (self.n_groups,)):
                return f"{name} must hold one value for each of the {self.n_groups} groups, found {np.shape(leaf)}"
        inside = {name: np.asarray(leaf)[groups] if np.ndim(leaf) else leaf for name, leaf in hp.items()}
        return self.loss.problem_with(y, inside)


EXAMPLES = [
    Grouped(SquaredEpsilonInsensitive(), np.array([3, 7, 3, 3, 7, 7, 3, 7])),
    Grouped(WeightedHinge(C_pos=2.0), np.array(["a", "b", "b", "c", "a", "c", "b", "a"])),
]
