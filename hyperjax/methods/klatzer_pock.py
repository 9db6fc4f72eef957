"""Continuous learning of SVM hyperparameters with a smoothed hinge and L-BFGS-B (Klatzer & Pock)."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from ..criteria.smooth_hinge_loss import SmoothHingeLoss
from ..criteria.squared_error import SquaredError
from ..criteria.zero_one import ZeroOne
from ..domains import Domain, Simplex
from ..kernels.ard import ARD
from ..kernels.exp_chi2 import ExpChi2
from ..kernels.linear import Linear
from ..kernels.rbf import RBF
from ..kernels.weighted import Weighted
from ..losses.smooth_hinge import SmoothHinge
from ..problem import Problem
from ..run import Point
from ..tune import TuneResult, conclude
from ._fista import FISTA
from .base import Search, Takes

__all__ = ["klatzer_pock"]

TAKES = Takes(
    losses=(SmoothHinge,),
    kernels=(RBF, Linear, ARD, Weighted, ExpChi2),
    biases=(False, True, "regularised"),
    criteria=(ZeroOne, SmoothHingeLoss, SquaredError),
)
BAD = 1e6
"""What the search is told of a point that could not be solved."""


def klatzer_pock(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    init: Any = None,
    weights: Any = None,
    groups: Any = None,
    hold: Any = None,
    bounds: Any = None,
    soften: tuple[float, ...] = (),
    solver: Any = None,
    inner_tol: Any = "auto",
    max_steps: int = 100,
    max_evaluations: int = 150,
    tol: float = 1e-5,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Adapt cost, widths and kernel weights of a smoothed SVM by L-BFGS-B on a smooth validation loss of k folds.

    Problem:    minimise V(theta), theta the logarithms of C = 1/c, gamma (one, or one a feature) and the weights
                beta_p, gamma_p of several kernels; V is the mean over held-out rows of the smooth zero-one loss, the
                smoothed hinge or the squared error (the paper's sums and its factor 1/2 change nothing).  Inside,
                1/2 |f|^2 + C sum log(1 + e^{mu (1 - y f)}) / mu of every fold, without a bias for kernels and with one
                for a linear model in the paper; here `problem.bias` says.
    Optimality: L-BFGS-B's: a relative decrease below `tol`, or a projected gradient below 1e-6; at most
                `max_evaluations` evaluations ("trials": all folds at one theta) a stage.
    Derivative: exact, one adjoint solve a fold, whatever the number of hyperparameters (the paper's multipliers
                lambda_t); see hyperjax.implicit.
    Source:     Klatzer & Pock, Continuous Hyper-parameter Learning for Support Vector Machines, CVWW 2015.

    C and all beta_p multiplied by one number change no output: beta_p sum to 1 here.  Widths a feature start from
    the optimum with all of them equal.  The search starts at the problem's own values, or at `init`; V is not
    convex, and several starts are worth their price for the squared error.  y of shape (k, n) fits k one-vs-rest
    machines that share their hyperparameters; the paper's own classes have theirs each: one call a class.
    `soften` lists smaller mu to go through first, each from the optimum of the last.  The folds are solved by FISTA,
    which passes hard cases to Newton; `solver` names another.  details: c = 1/C, trials, L-BFGS-B's message, and the
    value, hard value and evaluations of each stage.
    """
    TAKES.check("klatzer_pock", problem, criterion)
    mild = [float(mu) for mu in soften]
    if any(not 0.0 < mu < np.inf for mu in mild):
        raise ValueError(f"soften={soften!r}: give positive numbers, values of mu to go through first")
    mix = isinstance(problem.kernel, Weighted)
    wide = "isotropic" if isinstance(problem.kernel, ARD) else "full"
    search = Search(
        "klatzer_pock", TAKES, _summed_to_one(problem), X, y, folds, criterion, _shares(init) if mix else init, weights,
        groups, hold, bounds, FISTA() if solver is None else solver, seed, max_seconds, callback, progress, compilation,
        wide, inner_tol,
    )  # fmt: skip
    outer = _Outer(search, tol, max_steps, max_evaluations)
    reason = search.walk(lambda: outer.stages(mild))
    if not outer.ends:
        search.best()
    hp, best, _ = outer.ends[-1]
    stages = [{"value": point.value, "hard": point.hard, "evaluations": count} for _, point, count in outer.ends]
    details = {"c": 1.0 / float(np.mean(np.asarray(hp["loss"]["C"]))), "trials": search.run.evaluations}
    result = conclude(search.run, search.plan, hp, best, reason, **details, message=outer.message, stages=stages)
    return dataclasses.replace(result, problem=problem, solution=result.solution.replace(problem=problem))


class _Mixture(Weighted):
    """The same kernel with weights that sum to 1."""

    domains: ClassVar[dict[str, Domain]] = {"beta": Simplex()}


def _summed_to_one(problem: Problem) -> Problem:
    kernel = problem.kernel
    if not isinstance(kernel, Weighted):
        return problem
    return problem.replace(kernel=_Mixture(kernel.kernels, columns=kernel.columns))


def _shares(init: Any) -> Any:
    """Start values with beta divided by its sum, which C takes over."""
    init = getattr(init, "hp", init)
    if not isinstance(init, dict) or "beta" not in init.get("kernel", {}):
        return init
    beta = np.asarray(init["kernel"]["beta"], float)
    total = beta.sum()
    if not np.all(beta > 0):
        raise ValueError(f"init['kernel']['beta'] is {beta}: give every kernel a positive weight to start from")
    loss = dict(init.get("loss", {}))
    loss["C"] = np.asarray(loss.get("C", 1.0), float) * total
    return {**init, "loss": loss, "kernel": {**init["kernel"], "beta": beta / total}}


class _Outer:
    """L-BFGS-B over the stages of a search, and where each stage ended."""

    def __init__(self, search: Search, tol: float, max_steps: int, max_evaluations: int) -> None:
        self.search, self.tol, self.max_steps, self.max_evaluations = search, tol, max_steps, max_evaluations
        self.ends: list[tuple[Any, Point, int]] = []
        self.message, self.seen = "", False

    def stages(self, mild: list[float]) -> str:
        """Soft hinges before the problem's own, one width before one a feature."""
        search = self.search
        hp, first, sharp = search.plan.hp, search.run.stage, search.plan.hp["loss"]["mu"]
        todo = [(first, jnp.asarray(mu, sharp.dtype)) for mu in mild] + [(first, sharp)]
        if first == "isotropic":
            todo.append(("full", sharp))
        reason = "no_progress"
        for number, (stage, mu) in enumerate(todo):
            if number or mild:
                hp = self.ends[-1][0] if self.ends else hp
                search.begin(stage, {**hp, "loss": {**hp["loss"], "mu": mu}})
            before = search.run.evaluations
            try:
                reason = self._stage()
            finally:
                best = search.run.best
                if best is not None:
                    self.ends.append((search.hp(best.theta), best, search.run.evaluations - before))
            if not self.ends:
                break
        return reason

    def _stage(self) -> str:
        from scipy.optimize import minimize

        search, points = self.search, {}
        self.seen = False

        def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
            point = search.gradient(theta.astype(search.theta.dtype))
            if not self.seen and point.ok:
                search.note(point)
                self.seen = True
            points[theta.tobytes()] = point
            return (point.objective, point.gradient) if point.ok else (BAD, np.zeros(len(theta)))

        def note(theta: np.ndarray) -> None:
            point = points.get(np.asarray(theta, float).tobytes())
            if point is not None and point.ok:
                search.note(point)
            points.clear()

        first = search.theta.astype(float)
        options = {"ftol": self.tol, "gtol": 1e-6, "maxiter": self.max_steps, "maxfun": self.max_evaluations}
        bounds = list(zip(search.low, search.high, strict=True))
        found = minimize(
            value_and_gradient, first, jac=True, method="L-BFGS-B", bounds=bounds, callback=note, options=options
        )
        self.message = str(found.message)
        return _reason(self.message)


def _reason(message: str) -> str:
    """L-BFGS-B's message in the words of TuneResult.reason."""
    text = message.upper()
    if "GRADIENT" in text:
        return "gradient"
    if "REDUCTION" in text or "CONVERGENCE" in text:
        return "tolerance"
    return "max_steps" if "EXCEEDS" in text or "REACHED" in text else "no_progress"
