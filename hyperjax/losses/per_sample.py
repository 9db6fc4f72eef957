"""A cost C for every single row."""

import jax.numpy as jnp
import numpy as np

from .hinge import Hinge
from .logistic import Logistic
from .wrapped import Wrapped

__all__ = ["EXAMPLES", "PerSample"]


class PerSample(Wrapped):
    """`loss` with one C a row: a hyperparameter of shape (n,) that learns which rows to trust.

    Problem:     phi(o, y) = phi_loss(o, y; C_i, ..) for row i
    Optimality:  that of the loss, row by row
    Derivative:  that of the loss, d / d C_i of row i alone
    Source:      the instance-weighted SVM; Yang, Song & Cao, A weighted support vector machine (2005).
    """

    def init(self, X, y):
        start = self.loss.init(X, y)
        if "C" not in start:
            raise ValueError(f"PerSample needs a loss with a hyperparameter C; {type(self.loss).__name__} has none")
        if jnp.ndim(start["C"]):
            raise ValueError(
                f"PerSample needs a loss with one C, and {type(self.loss).__name__} has several: wrap the loss inside"
            )
        return {**start, "C": jnp.full((len(y),), start["C"])}

    def expand(self, hp):
        return self.loss.expand(hp)

    def problem_with(self, y, hp):
        if np.shape(hp["C"]) not in ((), np.shape(y)):
            return f"C must hold one value for each of the {len(y)} rows, found shape {np.shape(hp['C'])}"
        return self.loss.problem_with(y, hp)


EXAMPLES = [PerSample(Hinge()), PerSample(Logistic(C=2.0))]
