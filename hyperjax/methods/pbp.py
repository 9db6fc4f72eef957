"""Penalised bilevel programming (PBP): weights and hyperparameters of an SVR in one descent."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..criteria.squared_error import SquaredError
from ..kernels.linear import Linear
from ..losses.squared_epsilon_insensitive import SquaredEpsilonInsensitive
from ..problem import Problem
from ..run import Stop
from ..tune import TuneResult
from ._proximity import Box, Rules, State, descend, locate
from ._tubes import TubeSearch
from .base import Takes

__all__ = ["pbp"]

TAKES = Takes((SquaredEpsilonInsensitive,), (Linear,), (False, "regularised"), (SquaredError,))
RULES = ("corrected", "printed")
MOST = 1e12
"""The penalty is not doubled beyond this."""


def pbp(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    init: Any = None,
    weights: Any = None,
    groups: Any = None,
    bounds: Any = None,
    hold: Any = None,
    normalisation: str = "sum",
    logarithms: bool = False,
    penalty: float = 1.0,
    proximity: float = 0.1,
    share: float = 0.1,
    rule: str = "corrected",
    width_first: bool = True,
    feasibility: float = 1e-3,
    shortest: float = 1e-3,
    tol: float = 1e-6,
    edge: float = 1e-6,
    max_steps: int = 1000,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Minimise the cross-validated squared error of a linear SVR with the folds' optimality as a penalty.

    Problem:    minimise V(W) + nu sum_t |G_t(w_t, C, eps)|^2 over all folds' weights and the hyperparameters in their
                box, for nu = penalty, 2 penalty, 4 penalty, .. until max_t |G_t| <= feasibility (Algorithm 2); V and
                the tubes as in `impgrad`.
    Optimality: the subgradient of least norm, normals of the active bounds included, vanishes (equation (39));
                2 nu G_t then is the adjoint vector of fold t.
    Derivative: d/dw_t = dV/dw_t + 2 nu A_t G_t,  d/dtheta = 2 nu sum_t (dG_t/dtheta)'G_t; rows on the edge of their
                tube contribute p in [0, 1] times their part (a triangle where eps = 0), p from a small quadratic
                program.
    Source:     Moore, Bergeron & Bennett, Model selection for primal SVM, section 4, Algorithms 2 and 3, with the
                model, the kink intervals, the direction and the rule of tau corrected (rule="printed" keeps theirs,
                which stalls).

    Bounds, start, normalisation and units are those of `impgrad`.  `proximity` is the first tau, `share` the part of
    the promised decrease a step must keep, `shortest` the step (in W and theta) below which a descent ends, `tol` the
    squared norm of the subgradient that counts as 0 (1e-3 in the paper, which often ends where it starts), `edge` how
    near the edge a row must be, in standard deviations of y.  With `width_first` eps stays at its start in a first
    round, and the penalty begins anew in the second, as in the paper's second experiment.  `logarithms=True` moves
    log C in the place of C.  The result's value is that of folds solved exactly at the last hyperparameters.  The
    differences it takes want float64.
    """
    _check(rule, penalty=penalty, proximity=proximity, share=share, shortest=shortest, tol=tol, edge=edge)
    if not feasibility > 0:
        raise ValueError(f"feasibility={feasibility!r}: give a positive number, inf for one penalty alone")
    search = TubeSearch(
        "pbp", TAKES, problem, X, y, folds, criterion, init, weights, groups, hold, bounds, normalisation, logarithms,
        seed=seed, max_seconds=max_seconds, callback=callback, progress=progress, compilation=compilation,
    )  # fmt: skip
    spread = float(np.std(np.asarray(search.plan.y)))
    rules = Rules(tol, shortest, share, edge * (spread if spread > 0 else 1.0), rule == "printed", max_steps)
    program = _Program(search, rules, max_seconds)

    def steps() -> str:
        reason = program.solve(penalty, proximity, feasibility, program.eps_held()) if width_first else ""
        if not width_first or program.eps_moves():
            reason = program.solve(penalty, proximity, feasibility, program.box)
        return reason

    reason = search.walk(steps)
    return search.finish(program.point(), reason, normalisation=normalisation, **program.details())


def _check(rule: str, **numbers: Any) -> None:
    if rule not in RULES:
        raise ValueError(f'rule={rule!r}: choose "corrected" or "printed"')
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < float(value) < np.inf:
            raise ValueError(f"{name}={value!r}: give one positive number")


class _Program:
    """The doubling of the penalty, and what it leaves behind."""

    def __init__(self, search: TubeSearch, rules: Rules, max_seconds: float | None) -> None:
        self.search, self.rules, self.max_seconds = search, rules, max_seconds
        self.tubes = search.tubes()
        self.scale = np.asarray(self.tubes.scale, float)
        self.box = Box(search.low * self.scale, search.high * self.scale)
        self.track: list[dict[str, float]] = []
        self.nu, self.last = 0.0, None
        first = search.gradient(search.theta)
        if not first.ok:
            raise RuntimeError(f"the folds could not be solved at the start values ({first.explain()}): scale X")
        self.state: State = locate(self.tubes, search.weights(self.tubes.phi), search.theta * self.scale)
        self.first = first

    def eps_moves(self) -> bool:
        """Whether eps is tuned at all."""
        return any(name.startswith("loss.eps") for name in self.search.coords.names)

    def eps_held(self) -> Box:
        """The box with eps where it is."""
        held = np.asarray([name.startswith("loss.eps") for name in self.search.coords.names])
        return Box(*(np.where(held, self.state.theta, end) for end in self.box))

    def solve(self, nu: float, tau: float, feasibility: float, box: Box) -> str:
        """Double the penalty until the folds are solved to `feasibility`; a record a penalty."""
        if self.search.run.step == 0:
            self.search.note(self.first)
        while True:
            self.nu = nu
            self.state, last, reason = descend(self.tubes, self.state, nu, tau, box, self.rules, self._seen)
            self.last = self.search.evaluate(self._theta())
            self.search.note(self.last)
            worst = float(np.linalg.norm(np.asarray(self.state.at.G, float), axis=1).max())
            if worst <= feasibility or nu >= MOST:
                return "tolerance" if reason != "max_steps" and worst <= feasibility else "max_steps"
            nu, tau = 2.0 * nu, min(last, tau)

    def point(self) -> Any:
        """The last point, its folds solved exactly, with the gradient."""
        return self.search.gradient(self._theta())

    def details(self) -> dict[str, Any]:
        """Penalty, weights, residual and path."""
        return {
            "penalty": self.nu,
            "W": np.asarray(self.state.W),
            "G": np.asarray(self.state.at.G),
            "V": float(self.state.at.V),
            "track": self.track,
        }

    def _theta(self) -> np.ndarray:
        return np.clip(self.state.theta / self.scale, self.search.low, self.search.high)

    def _seen(self, nu: float, state: State, tau: float, phi: float) -> None:
        self.state = state
        size = float(jnp.sqrt(jnp.max(jnp.sum(state.at.G**2, axis=1))))
        self.track.append({"penalty": nu, "phi": phi, "V": float(state.at.V), "residual": size, "tau": tau})
        if self.max_seconds is not None and self.search.run.seconds >= self.max_seconds:
            raise Stop("max_seconds")
