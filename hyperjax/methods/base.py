"""What the methods share: what each was made for, and a search that evaluates, counts and records as `tune` does."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from .. import objective
from ..coordinates import Coordinates, natural
from ..plan import Plan, prepare
from ..problem import Problem
from ..run import Point, Run, Stop
from ..threads import one_blas_thread
from ..tune import TuneResult, conclude
from ..types import Hyperparameters

__all__ = ["Search", "Stop", "Takes"]


class Takes(NamedTuple):
    """What a method was made for; the first of each is what it takes by default.  An empty tuple: anything."""

    losses: tuple[type, ...] = ()
    kernels: tuple[type, ...] = ()
    biases: tuple[Any, ...] = ()
    criteria: tuple[type, ...] = ()
    rough: bool = False
    """Whether criteria without a gradient will do."""

    def problem(self) -> Problem:
        """The problem a method takes by default."""
        fields = {
            "loss": self.losses[0]() if self.losses else None,
            "kernel": self.kernels[0]() if self.kernels else None,
            "bias": self.biases[0] if self.biases else None,
        }
        return Problem(**{name: value for name, value in fields.items() if value is not None})

    def check(self, name: str, problem: Problem, criterion: Any) -> None:
        """A ValueError that says what the method takes, where it was given something else."""
        inside = getattr(problem.loss, "loss", problem.loss)
        parts = (
            ("loss", self.losses, inside if isinstance(inside, self.losses or object) else problem.loss),
            ("kernel", self.kernels, problem.kernel),
            ("criterion", self.criteria, criterion),
        )
        for part, wanted, given in parts:
            if wanted and given is not None and not isinstance(given, wanted):
                listed = ", ".join(cls.__name__ for cls in wanted)
                found = getattr(given, "__name__", type(given).__name__)
                raise ValueError(f"{name} was not made for the {part} {found}: it takes {listed}")
        if self.biases and problem.bias not in self.biases:
            listed = ", ".join(map(repr, self.biases))
            raise ValueError(f"{name} was not made for bias={problem.bias!r}: it takes {listed}")


class Search:
    """A checked search of one stage: points, records, and the result at the end."""

    def __init__(
        self,
        name: str,
        takes: Takes,
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
        solver: Any = None,
        seed: int = 0,
        max_seconds: float | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        progress: bool = True,
        compilation: str = "auto",
        stage: Any = "full",
        inner_tol: Any = "auto",
    ) -> None:
        takes.check(name, problem, criterion)
        if criterion is None and takes.criteria:
            criterion = takes.criteria[0]()
        self.plan: Plan = prepare(
            problem, X, y, folds, criterion, init, weights, groups, hold, bounds, None, None, solver, seed, compilation,
            rough=takes.rough,
        )  # fmt: skip
        self.run = Run(self.plan.compilation, inner_tol, None, max_seconds, callback, progress)
        self.begin(stage, self.plan.hp)

    def begin(self, stage: Any, hp: Hyperparameters) -> None:
        """Another stage ("isotropic", "full" or a list of names), starting at hp."""
        self.coords: Coordinates = self.plan.coords(stage, hp)
        self.run.begin(self.plan.task(self.coords, hp), stage if isinstance(stage, str) else ", ".join(stage))
        self.low, self.high = (np.asarray(end, float) for end in (self.coords.low, self.coords.high))
        self.theta = np.clip(np.asarray(self.run.task.centre), self.low, self.high).astype(self.run.task.X.dtype)

    def hp(self, theta: Any) -> Hyperparameters:
        """The hyperparameters at theta."""
        return natural(self.coords, jnp.asarray(theta, self.run.task.X.dtype))

    def gradient(self, theta: Any) -> Point:
        """The criterion, its gradient and the certificate at theta; counted, not yet recorded."""
        return self.run(np.asarray(theta))

    def evaluate(self, theta: Any) -> Point:
        """The same without the gradient (zeros in its place)."""
        return self.run.value(np.asarray(theta))

    def sweep(self, thetas: Any, batch: int) -> str:
        """Evaluate and record the rows of thetas, `batch` of them in one program, each from a cold start."""
        thetas, size = np.asarray(thetas), min(batch, len(thetas))
        for begin in range(0, len(thetas), size):
            for point in self.run.points(thetas[begin : begin + size], size):
                self.note(point)
        return "finished"

    def note(self, point: Point) -> None:
        """Record a step; raises Stop where the callback or the clock ends the search."""
        self.run.note(point)

    def walk(self, steps: Callable[[], str]) -> str:
        """Run `steps`; why the search ended, Ctrl-C and Stop included."""
        try:
            with one_blas_thread():
                return steps()
        except Stop as end:
            return str(end)
        except KeyboardInterrupt:
            if not self.run.history:  # nothing to return yet
                raise
            return "interrupted"
        finally:
            self.run.close()

    def best(self) -> Point:
        """The best point so far; an error if no point could be solved."""
        if self.run.best is None:
            raise RuntimeError(
                "the folds could not be solved at any point: scale the features, search elsewhere or loosen inner_tol"
            )
        return self.run.best

    def result(self, best: Point, reason: str, **details: Any) -> TuneResult:
        """The result at `best`, with the model trained on all rows."""
        return conclude(self.run, self.plan, self.hp(best.theta), best, reason, **details)

    @property
    def task(self) -> objective.Task:
        """The problem, data and folds as the compiled programs see them."""
        return self.run.task
