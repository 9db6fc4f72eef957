"""What ImpGrad and PBP share: squared tubes in primal weights, one pair (C_g, eps_g) a group of rows.

Problem
    T folds with weights w_t (T, d), features x_j, groups g(j), residuals r_j = x_j'w - y_j and

        G_t(w) = w + sum_j c_tj x_j S(r_j),     S(r) = (r - eps_g)_+ - (-r - eps_g)_+,     c_tj = C_g unit_tj

    which the training of fold t makes 0, and V = sum_tj test_tj r_j^2, the criterion.  `unit` is twice the training
    weight: C multiplies a sum without the paper's 1/2.
Derivative
    With dS/dr = a and dS/deps = e (1 and -sign r outside the tube, 0 inside, anything between on its edge):

        A_t = I + sum_j c_tj a_tj x_j x_j',    dG_t/dC_g = sum_j unit_tj S_j x_j,    dG_t/deps_g = sum_j c_tj e_tj x_j

    and one adjoint solve a fold, A_t lambda_t = -dV/dw_t, gives dV/dtheta = sum_t lambda_t' dG_t/dtheta.
Source
    Moore, Bergeron & Bennett, Model selection for primal SVM, sections 3 and 4, signs corrected.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_solve

from ..compiling import compiled
from ..coordinates import Coordinates, dotted
from ..domains import Positive, Real
from ..losses.grouped import Grouped
from ..losses.squared_epsilon_insensitive import SquaredEpsilonInsensitive
from ..problem import Problem
from ..run import Point
from ..tune import TuneResult
from ..types import Array, Module, static
from .base import Search, Takes

__all__ = ["Measured", "TubeSearch", "Tubes", "adjoint", "linearise", "measure", "program", "slopes"]

COST = (1e-3, 1e3)
"""The published bounds of C, and with 0 and the standard deviation of y for eps the published box."""


class Tubes(Module):
    """The folds' problems as arrays; the hyperparameters come as theta, `scale` times a search's coordinates."""

    phi: Array
    """Features (n, d), with a constant one for a regularised bias."""
    y: Array
    group: Array
    """Group numbers (n,)."""
    unit: Array
    """What a unit of C weighs a row (T, n)."""
    test: Array
    """What a squared error weighs (T, n)."""
    coords: Coordinates
    scale: Array
    """theta in units of the paper over the coordinates of the search (k,)."""
    n_groups: int = static()
    compilation: str = static()
    """A key of compiling.COMPILATIONS."""

    def natural(self, theta: Array) -> tuple[Array, Array]:
        """C and eps (G,) at theta."""
        loss = self.coords.build(theta / self.scale)["loss"]
        return jnp.ravel(loss["C"]), jnp.ravel(loss["eps"])


class Measured(NamedTuple):
    """Where weights and hyperparameters stand."""

    V: Array
    G: Array
    """(T, d)."""
    r: Array
    """Residuals (T, n)."""
    C: Array
    eps: Array


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled form of a function of Tubes and arrays."""

    @functools.wraps(function)
    def run(tubes: Tubes, *arguments: Any) -> Any:
        return compiled(function, tubes.compilation)(tubes, *arguments)

    return run


def _tube(r: Array, eps: Array) -> Array:
    return jnp.maximum(r - eps, 0.0) - jnp.maximum(-r - eps, 0.0)


@program
def measure(tubes: Tubes, W: Array, theta: Array) -> Measured:
    """V, G and residuals at weights W (T, d)."""
    C, eps = tubes.natural(theta)
    r = W @ tubes.phi.T - tubes.y[None, :]
    pull = (C[tubes.group][None, :] * tubes.unit) * _tube(r, eps[tubes.group][None, :])
    return Measured(jnp.sum(tubes.test * r * r), W + pull @ tubes.phi, r, C, eps)


def linearise(tubes: Tubes, W: Array, theta: Array, a: Array, e: Array) -> tuple[Array, Array, Array]:
    """A (T, d, d), dG/dtheta (T, d, k) and dV/dw (T, d) with the slopes a, e (T, n) of S."""
    C, eps = tubes.natural(theta)
    r = W @ tubes.phi.T - tubes.y[None, :]
    S = _tube(r, eps[tubes.group][None, :])
    member = (tubes.group[:, None] == jnp.arange(tubes.n_groups, dtype=tubes.group.dtype)[None, :]).astype(r.dtype)
    eye = jnp.eye(tubes.phi.shape[1], dtype=r.dtype)

    def fold(x: tuple[Array, ...]) -> tuple[Array, Array]:
        unit, S, a, e = x
        cost = C[tubes.group] * unit
        A = eye + (tubes.phi * (cost * a)[:, None]).T @ tubes.phi
        sides = jnp.concatenate([(unit * S)[:, None] * member, (cost * e)[:, None] * member], axis=1)
        return A, tubes.phi.T @ sides

    A, B = lax.map(fold, (tubes.unit, S, a, e))
    moves = jax.jacfwd(lambda theta: jnp.concatenate(tubes.natural(theta)))(theta)
    return A, B @ moves, 2.0 * (tubes.test * r) @ tubes.phi


@program
def adjoint(tubes: Tubes, W: Array, theta: Array, a: Array, e: Array) -> tuple[Array, Array]:
    """dV/dtheta (k,) at weights that solve the folds, and the adjoint lambda (T, d): one solve a fold."""
    A, B, gradient = linearise(tubes, W, theta, a, e)
    lam = -lax.map(lambda x: cho_solve((jnp.linalg.cholesky(x[0]), True), x[1]), (A, gradient))
    return jnp.einsum("td,tdk->k", lam, B), lam


def slopes(r: np.ndarray, eps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """dS/dr and dS/deps (T, n), 0 on the edge itself; eps (n,)."""
    outside = (np.abs(r) > eps).astype(r.dtype)
    return outside, -np.sign(r) * outside


class TubeSearch(Search):
    """A search over (C_g, eps_g) that starts at the paper's start, C = 1 and eps = 0, inside the paper's box.

    With "mean" every group's loss is a mean over its rows: a fold that trains on N_tg of the N_g rows weighs them
    N_g / N_tg times, so that C in `hp` means the same in every fold and in the model of all rows.
    """

    def __init__(
        self, name: str, takes: Takes, problem: Problem, X: Any, y: Any, folds: Any, criterion: Any, init: Any,
        weights: Any, groups: Any, hold: Any, bounds: Any, normalisation: str, logarithms: bool, **settings: Any,
    ) -> None:  # fmt: skip
        if normalisation not in ("sum", "mean"):
            raise ValueError(f'normalisation={normalisation!r}: choose "sum" or "mean"')
        self.logarithms = logarithms
        super().__init__(
            name, takes, problem, X, y, folds, criterion, init, weights, groups, hold, bounds, **settings
        )  # fmt: skip
        if not isinstance(problem.loss, (SquaredEpsilonInsensitive, Grouped)):
            raise ValueError(
                f"{name} was not made for {type(problem.loss).__name__}: it takes SquaredEpsilonInsensitive, alone or "
                "in Grouped"
            )
        plan = self.plan
        self.group, self.n_groups = np.zeros(len(plan.y), np.int32), 1
        if isinstance(problem.loss, Grouped):
            self.group, self.n_groups = np.asarray(problem.loss.groups), int(problem.loss.n_groups or 1)
        member = self.group[None, :] == np.arange(self.n_groups)[:, None]
        counts = (np.asarray(plan.folds.train) > 0).astype(float) @ member.T
        if not counts.all():
            t, g = np.argwhere(counts == 0)[0]
            raise ValueError(f"folds: fold {t} trains on no row of group {g}: take fewer folds or fewer groups")
        rows = member.sum(axis=1).astype(float)
        self.unit = 2.0 * rows if normalisation == "mean" else np.full(self.n_groups, 2.0)
        if normalisation == "mean":
            train = np.asarray(plan.folds.train) * (rows / counts)[:, self.group]
            plan = plan._replace(folds=plan.folds.replace(train=jnp.asarray(train, plan.X.dtype)))
        hp, box = self._start(init), self._box(bounds)
        self.plan = plan._replace(hp=hp, bounds=box)
        self.begin("full", hp)

    def _start(self, init: Any) -> Any:
        """C = 1 and eps = 0 in the paper's units where `init` says nothing else."""
        given = getattr(init, "hp", init) or {}
        given = given.get("loss", {}) if isinstance(given, dict) else {}
        loss, hp = dict(self.plan.hp["loss"]), self.plan.hp
        for leaf, usual in (("C", 1.0 / self.unit), ("eps", np.zeros(self.n_groups))):
            if leaf not in given:
                loss[leaf] = jnp.asarray(usual.reshape(jnp.shape(loss[leaf])), self.plan.X.dtype)
        return {**hp, "loss": loss}

    def _box(self, bounds: Any) -> dict[str, Any]:
        """The published box, and over it the bounds the caller gives."""
        shape, spread = jnp.shape(self.plan.hp["loss"]["C"]), float(np.std(np.asarray(self.plan.y)))
        low, high = ((end / self.unit).reshape(shape) for end in COST)
        return {"loss.C": (low, high), "loss.eps": (0.0, spread if spread > 0 else 1.0)} | dict(bounds or {})

    def begin(self, stage: Any, hp: Any) -> None:
        """As for every search; without logarithms C is its own coordinate."""
        super().begin(stage, hp)
        if not self.logarithms:
            coords = self.coords
            logs = np.repeat([isinstance(domain, Positive) for domain in coords.domains], coords.sizes)
            domains = tuple(Real() if isinstance(domain, Positive) else domain for domain in coords.domains)
            low, high = (jnp.where(logs, jnp.exp(end), end) for end in (coords.low, coords.high))
            self.coords = coords.replace(domains=domains, low=low, high=high)
            self.run.begin(self.plan.task(self.coords, hp), stage)
            self.low, self.high = (np.asarray(end, float) for end in (low, high))
        wanted = np.asarray(self.run.task.centre)
        self.theta = np.clip(wanted, self.low, self.high).astype(wanted.dtype)

    def tubes(self) -> Tubes:
        """The folds' problems at this search's coordinates."""
        plan, dtype = self.plan, self.plan.X.dtype
        phi = plan.problem.kernel.features(plan.hp["kernel"], plan.X)
        if plan.problem.bias == "regularised":
            phi = jnp.concatenate([phi, jnp.ones_like(phi[:, :1])], axis=1)
        weights = np.ones(len(plan.y)) if plan.weights is None else np.asarray(plan.weights, float)
        test, repeats = np.asarray(plan.folds.test, float) * weights, plan.folds.repeats
        total = test.reshape(repeats, -1, len(weights)).sum(axis=(1, 2)) * repeats
        test = test / np.repeat(total, len(test) // repeats)[:, None]
        unit = 2.0 * np.asarray(plan.folds.train, float) * weights
        names = [dotted(path) for path in self.coords.paths]
        raw = [name == "loss.C" and not self.logarithms for name in np.repeat(names, self.coords.sizes)]
        scale = np.ones(len(raw))
        scale[raw] = self.unit if any(raw) else 1.0
        unit, test, scale = (jnp.asarray(part, dtype) for part in (unit, test, scale))
        group = jnp.asarray(self.group)
        return Tubes(phi, plan.y, group, unit, test, self.coords, scale, self.n_groups, plan.compilation)

    def weights(self, phi: Array) -> Array:
        """The folds' weights (T, d) of the last evaluation."""
        z, _ = self.run.start
        growth = self.plan.problem.growth(self.hp(self.run.last)["loss"], self.plan.y)
        return (z * growth[None, :]) @ phi

    def finish(self, point: Point, reason: str, **details: Any) -> TuneResult:
        """The result, with C as the paper counts it and the groups whose residuals all lie inside their tube."""
        loss = self.hp(point.theta)["loss"]
        details["C"] = np.ravel(np.asarray(loss["C"])) * self.unit
        details["eps"] = np.ravel(np.asarray(loss["eps"]))
        details["inactive_groups"] = silent = []
        result = self.result(point, reason, **details)
        still = np.asarray(result.solution.z) == 0
        silent += [g for g in range(self.n_groups) if still[self.group == g].all()]
        if silent:
            warnings.warn(
                f"inactive group {', '.join(map(str, silent))}: every residual lies inside the tube, so that neither C "
                "nor eps moves anything there; start at a smaller eps, or bound it",
                RuntimeWarning,
                stacklevel=3,
            )
        return result
