"""A search at work: it evaluates points, keeps count, writes the history and the checkpoint, and knows when to stop."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import checks, kinks, objective
from .checkpoint import Checkpoint
from .coordinates import natural
from .criteria._smoothed import Smoothed
from .history import History
from .results import Code

__all__ = ["Point", "Run", "Stop"]

LOOSE = 1e-6
"""Inner tolerance, in units of the outputs, of an evaluation one unit of theta away from the last (float64)."""
ROUGH = 1e-3
"""That of points whose gradient nobody asks for: LIBSVM's."""
TIGHT = 1e-8
"""Inner tolerance from which on closer points are no longer solved more tightly (float64)."""
THRESHOLD = "criterion.threshold"
FAILED = [int(code) for code in Code if code.failed]


class Stop(Exception):  # noqa: N818  # no error: the search ends where it stands
    """Ends a search; the argument is the reason in TuneResult.reason."""


class Point(NamedTuple):
    """One evaluation."""

    theta: np.ndarray
    objective: float
    value: float
    hard: float
    gradient: np.ndarray
    kkt: np.ndarray
    gap: np.ndarray
    codes: np.ndarray
    iterations: np.ndarray

    @property
    def ok(self) -> bool:
        """Whether every fold was solved and every number is finite."""
        return bool(np.isfinite(self.objective) and np.all(np.isfinite(self.gradient)))

    def explain(self) -> str:
        """What went wrong, fold by fold."""
        bad = [f"fold {t}: {Code(int(c)).name}" for t, c in enumerate(self.codes) if int(c) in FAILED]
        return ", ".join(bad) or f"value {self.value}, largest gradient entry {np.max(np.abs(self.gradient))}"


class Run:
    """The evaluations of one search, across its stages."""

    def __init__(
        self,
        compilation: str = "full",
        inner_tol: Any = "auto",
        checkpoint: Checkpoint | None = None,
        max_seconds: float | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        progress: bool = False,
        at_kinks: str = "any",
    ) -> None:
        self.compilation, self.inner_tol, self.checkpoint = compilation, inner_tol, checkpoint
        self.at_kinks = at_kinks
        self.max_seconds, self.callback = max_seconds, callback
        self.history, self.log, self.step = History(), [], 0
        self.replay = [] if checkpoint is None else list(checkpoint.entries)
        self.began, self.before = time.perf_counter(), float(self.replay[-1]["seconds"][0]) if self.replay else 0.0
        self.inner_iterations = self.kernel_products = 0
        self.bar = _bar(progress)
        self.best: Point | None = None
        self.start: Any = None
        self.outputs: Any = None
        """Of the folds at the last point that was evaluated, not replayed."""
        self.start_number = 0

    def begin(self, task: objective.Task, stage: str) -> None:
        """From now on points belong to this task."""
        self.task, self.stage, self.best, self.last, self.differentiated = task, stage, None, None, False
        self.start_number = 0
        if self.start is None:
            # from the host, where nothing needs compiling
            self.start = tuple(jnp.asarray(np.zeros(s.shape, s.dtype)) for s in jax.eval_shape(task.start))

    @property
    def kinked(self) -> bool:
        """Whether the search looks for kinks and the loss has any."""
        return self.at_kinks == "min-norm" and kinks.bends(self.task.problem.loss)

    @property
    def leaf(self) -> np.ndarray:
        """The number of the leaf of the hyperparameters each coordinate belongs to."""
        sizes = self.task.coords.sizes
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def evaluations(self) -> int:
        """Points evaluated so far."""
        return len(self.log)

    @property
    def seconds(self) -> float:
        """Time since the start, that of a run before it was killed included."""
        return self.before + time.perf_counter() - self.began

    def __call__(self, theta: np.ndarray) -> Point:
        """The objective and its gradient at theta."""
        self.differentiated = True
        return self._point(theta, objective.differentiate)

    def begin_at(self, theta: np.ndarray, flat: float = 0.0) -> Point:
        """The first point of a search, noted: theta or, where that is better, theta with a threshold that suits it.

        A threshold at 0, where criteria start it, may leave all rows on one side: the first steps then end on the
        plateau of a constant prediction, which weighted errors and F make a tempting one.  Where the first step, of
        length 1, promises less than the part `flat` of the objective nothing else is looked for.
        """
        first = self(theta)
        if not first.ok:
            return first
        self.note(first)
        other = None if np.linalg.norm(first.gradient) < flat * abs(first.objective) else self._cut(first)
        point = None if other is None else self(other)
        if point is None or not point.ok or point.objective >= first.objective:
            return first
        self.note(point)
        return point

    def _cut(self, point: Point) -> np.ndarray | None:
        """theta of the point just evaluated with the best cut of its outputs for a threshold at 0; None: as it is."""
        task, names = self.task, self.task.coords.names
        own = isinstance(task.criterion, Smoothed) and type(task.criterion).measure is not Smoothed.measure
        if not (own and point.ok and task.y.ndim == 1 and not task.loo and THRESHOLD in names):
            return None
        at = names.index(THRESHOLD)
        low, high = (np.asarray(end)[at] for end in (task.coords.low, task.coords.high))
        if point.theta[at] != np.clip(0.0, low, high):
            return None
        theta = point.theta.copy()
        if self._replaying:  # outputs are not kept in a checkpoint, and the evaluation that follows is
            theta[at] = self.replay[len(self.log)]["theta"][at]
            return theta if np.array_equal(theta, self.replay[len(self.log)]["theta"]) else None
        if self.outputs is None:  # killed between the two: the first evaluation again, from where it began
            tol = self._tolerance(None)
            facts = objective.differentiate(task, jnp.asarray(point.theta), task.start(), tol, self.compilation)[2]
            self.outputs = facts["fit"]["outputs"]
        test = np.asarray(task.folds.test) > 0
        rows = np.nonzero(test)[1]
        w = np.ones(test.shape[1]) if task.weights is None else np.asarray(task.weights, float)
        o, y = np.asarray(self.outputs, float)[test], np.asarray(task.y)[rows]
        best = task.criterion.best_cut(o, y, w[rows])
        if best is None:
            return None
        theta[at] = np.clip(best, low, high)
        return None if theta[at] == point.theta[at] else theta

    def value(self, theta: np.ndarray) -> Point:
        """The objective at theta without its gradient, zeros in its place."""

        def program(*arguments: Any) -> Any:
            value, facts = objective.evaluate(*arguments)
            return value, np.zeros_like(theta), facts

        return self._point(theta, program)

    def points(self, thetas: np.ndarray, size: int | None = None) -> list[Point]:
        """The objective at the rows of thetas, each from a cold start, in one program; none has a gradient.

        Fewer than `size` rows run the program of `size`, so that the last batch of many compiles nothing.
        """
        thetas, batch, out = np.asarray(thetas, self.task.X.dtype), None, []
        filled = thetas[np.arange(max(size or 0, len(thetas))).clip(max=len(thetas) - 1)]
        for i, theta in enumerate(thetas):
            known = self._replayed(theta)
            if known is None:
                if batch is None:
                    tol = self._tolerance(None, ROUGH)
                    values, facts = objective.evaluate_many(self.task, jnp.asarray(filled), tol, self.compilation)
                    batch = {"objective": values, **facts}
                    batch = {name: np.asarray(value) for name, value in batch.items() if value is not None}
                known = self._entry(theta, np.zeros_like(theta), {name: value[i] for name, value in batch.items()})
            out.append(self._count(theta, known))
        return out

    def _point(self, theta: np.ndarray, program: Any) -> Point:
        theta = np.asarray(theta, self.task.X.dtype)
        known = self._replayed(theta)
        if known is None:
            tol = self._tolerance(theta)
            value, gradient, facts = program(self.task, jnp.asarray(theta), self.start, tol, self.compilation)
            if self.at_kinks == "min-norm" and program is objective.differentiate:
                gradient = self._least(theta, np.asarray(gradient, float), facts)
            known = self._entry(theta, gradient, {"objective": value, **facts})
            self.outputs = facts["fit"]["outputs"]
            if not np.isin(known["code"], FAILED).any():
                self.start = facts["start"]
        return self._count(theta, known)

    def _least(self, theta: np.ndarray, gradient: np.ndarray, facts: dict[str, Any]) -> np.ndarray:
        """The gradient, or where samples are at their kinks the shortest of those of all sides."""
        near = float(np.min(np.asarray(facts["distance"]))) <= kinks.WIDTH
        if not near or np.isin(facts["code"], FAILED).any() or not np.all(np.isfinite(gradient)):
            return gradient
        solution = facts["fit"]["z"], facts["fit"]["b"]
        return kinks.least_gradient(self.task, jnp.asarray(theta), solution, gradient, self.compilation)

    def _entry(self, theta: np.ndarray, gradient: Any, facts: dict[str, Any]) -> dict[str, np.ndarray]:
        """An evaluation as the log and the checkpoint keep it."""
        hard = facts.get("hard")
        kept = {name: facts[name] for name in ("objective", "value", "kkt", "gap", "code", "iterations")}
        kept |= {"hard": np.nan if hard is None else hard, "gradient": gradient, "theta": theta}
        return {name: np.atleast_1d(np.asarray(value)) for name, value in {**kept, "seconds": self.seconds}.items()}

    def _count(self, theta: np.ndarray, known: dict[str, np.ndarray]) -> Point:
        """Count an evaluation and keep it if it is the best so far."""
        self.log.append(known)
        self.inner_iterations += int(known["iterations"].sum())
        self.kernel_products += int(known["iterations"].sum()) + 2 * len(known["iterations"])
        point = Point(
            theta,
            float(known["objective"][0]),
            float(known["value"][0]),
            float(known["hard"][0]),
            np.asarray(known["gradient"], float),
            known["kkt"],
            known["gap"],
            known["code"],
            known["iterations"],
        )
        if point.ok and (self.best is None or point.objective < self.best.objective):
            self.best = point
        self.last = theta
        return point

    def value_of(self, task: objective.Task, theta: Any) -> Any:
        """The objective as a traceable function, from a cold start: what an optax line search asks for."""
        return objective.evaluate(task, theta, task.start(), self._tolerance(None))[0]

    def note(self, point: Point) -> None:
        """Write an accepted point into history and checkpoint; may end the search by Stop."""
        record = {
            "step": self.step,
            "stage": self.stage,
            "start": self.start_number,
            "hp": jax.tree.map(np.asarray, natural(self.task.coords, jnp.asarray(point.theta))),
            "value": point.value,
            "hard": None if np.isnan(point.hard) else point.hard,
            "objective": point.objective,
            "gradient_norm": float(np.linalg.norm(point.gradient)),
            "gap": float(np.max(point.gap)),
            "kkt": float(np.max(point.kkt)),
            "codes": [int(code) for code in point.codes],
            "seconds": float(self.log[-1]["seconds"][0]),
            "inner_iterations": self.inner_iterations,
            "kernel_products": self.kernel_products,
            "evaluations": self.evaluations,
        }
        self.history.append(record)
        self.step += 1
        if self.checkpoint is not None and not self._replaying:
            self.checkpoint.save(self.log, self.start)
        if self.bar is not None:
            self.bar.set_postfix_str(f"{self.stage}: {point.value:.5g}", refresh=False)
            self.bar.update()
        if self.callback is not None and self.callback(record):
            raise Stop("callback")
        if self.max_seconds is not None and record["seconds"] >= self.max_seconds:
            raise Stop("max_seconds")

    def close(self) -> None:
        """Take the progress line down."""
        if self.bar is not None:
            self.bar.close()

    @property
    def _replaying(self) -> bool:
        return len(self.log) < len(self.replay)

    def _replayed(self, theta: np.ndarray) -> dict[str, np.ndarray] | None:
        """What the checkpoint says of the next evaluation; after its last one the warm start is that of the file."""
        at = len(self.log)
        if at >= len(self.replay):
            return None
        known = self.replay[at]
        if not np.array_equal(known["theta"].astype(theta.dtype), theta):
            raise ValueError(
                f"checkpoint: evaluation {at} was made at other hyperparameters than this search asks for: the file "
                "was written on another machine or by other versions; remove it to start afresh"
            )
        if at == len(self.replay) - 1 and self.checkpoint is not None and self.checkpoint.start is not None:
            self.start = tuple(jnp.asarray(part) for part in self.checkpoint.start)
        return known

    def _tolerance(self, theta: np.ndarray | None, loose: float = LOOSE) -> jax.Array:
        """The inner tolerance: tied to how far theta moved unless the caller gave a number, which is kept.

        `loose` is that of a point without a last one.
        """
        dtype = self.task.X.dtype
        if self.inner_tol != "auto":
            return checks.tolerance(float(self.inner_tol), dtype, "inner_tol")
        default = checks.tolerance(None, dtype)
        if dtype != jnp.float64:
            return default
        if theta is None or self.last is None or theta.shape != self.last.shape:
            tol = loose
        else:
            tol = float(np.clip(LOOSE * np.max(np.abs(theta - self.last)), TIGHT, LOOSE))
        return default.at[0].set(tol)


def _bar(wanted: bool) -> Any:
    """A progress line where tqdm is installed and somebody looks."""
    if not wanted:
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(desc="tune", unit=" steps", disable=None, leave=False)
