"""The searches of the outer loop: quasi-Newton with bounds, and any optax transformation.

Iteration
    Quasi-Newton: d = -H g on the coordinates that no bound holds, cut so that none moves by more than CAP; the step is
    halved until the objective has fallen by a part of what the gradient promised, at a point where every fold was
    solved; H learns from the change of the gradient.
Stops when
    the objective changed by no more than tol, relatively, and the next step promises no more than that, and so does a
    look CAP further along a shallow valley; or what is left of a step down the gradient promises no more; or nothing is
    left of the gradient; or no step along it helps.
Source
    Keerthi, Sindhwani & Chapelle, section 3 (BFGS on logarithms, first step of length 1); Nocedal & Wright, Numerical
    Optimization, chapters 6 and 16.7.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .compiling import jitted
from .run import Point, Run

__all__ = ["DENSE", "Rules", "first_order", "quasi_newton"]

CAP = 2.0
"""No coordinate moves further in one step; a factor of seven for a positive hyperparameter."""
DENSE = 200
"""Up to this many coordinates the metric is a whole matrix, beyond a limited memory."""
SHALLOW = 0.15
"""A valley along which the objective seems to rise by no more than this part of it within CAP is looked along: rows at
kinks of their loss make gradients jump by more than such a valley falls."""
LEVEL = 1e-8
"""A leaf whose slopes are below this part of the steepest has no unit of its own: they are rounding."""
SUFFICIENT = 1e-4
TRIALS = 12
FLAT = 1e-9
"""A gradient below this, relative to the objective, has nothing left."""


class Rules(NamedTuple):
    """What published searches do otherwise."""

    trials: int = TRIALS
    """Points a line search tries."""
    halve: bool = False
    """Whether a step that does not do is halved, and not cut to where a parabola has its minimum."""
    rescale: bool = True
    """Whether the first change of the gradient sets the scale of the metric."""
    promise: bool = True
    """Whether a small change ends the search only if the next step promises no more, and a line search as well."""
    valley: bool = True
    """Whether a search that would end in a shallow valley first looks further along it."""


OURS = Rules()


class Dense:
    """The inverse Hessian as a matrix (BFGS)."""

    def __init__(self, gradient: np.ndarray, rescale: bool = True) -> None:
        self.rescale = rescale
        self.restart(gradient)

    def restart(self, gradient: np.ndarray) -> None:
        size = np.linalg.norm(gradient)
        self.H = np.eye(len(gradient)) / (size if size > 0 else 1.0)
        self.learnt = 0

    def direction(self, gradient: np.ndarray, theta: np.ndarray) -> np.ndarray:
        free = gradient != 0
        d = np.zeros_like(gradient)
        d[free] = -self.H[np.ix_(free, free)] @ gradient[free]
        return d

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        curvature = s @ y
        if curvature <= 1e-10 * np.linalg.norm(s) * np.linalg.norm(y):
            return
        if self.fresh and self.rescale:
            self.H = np.diag(_scales(self.H[0, 0], min(float(curvature / (y @ y)), CAP * self.H[0, 0]), s))
        r = s / curvature
        left = np.eye(len(s)) - np.outer(r, y)
        self.H = left @ self.H @ left.T + np.outer(r, s)
        self.learnt += 1

    @property
    def fresh(self) -> bool:
        """Whether nothing has been learnt yet."""
        return self.learnt == 0

    def valley(self) -> tuple[np.ndarray, float]:
        """The direction that seems flattest, of unit length, and the curvature along it: infinite as long as fewer
        steps were learnt from than there are coordinates.
        """
        values, vectors = np.linalg.eigh(self.H)
        return vectors[:, -1], 1.0 / float(values[-1]) if self.learnt >= len(values) else np.inf


def _scales(old: float, new: float, s: np.ndarray) -> np.ndarray:
    """A metric's first diagonal after a step s that asks for the scale `new`.

    A larger scale holds for all coordinates, a smaller one as far as each took part in the step: one steep coordinate
    (a tube's width, whose criterion has kinks) would otherwise end the search of all.
    """
    if new >= old:
        return np.full(len(s), new)
    share = s * s / np.max(s * s)
    return old ** (1.0 - share) * new**share


class Memory:
    """The last ten pairs of steps and gradient changes (limited-memory BFGS, by optax).

    Every leaf of the hyperparameters has a unit of its own, in which the first step moves its steepest coordinate by 1:
    beside a width's, the slope of one row's cost among 10,000 is next to nothing, and that of all of them is not.
    `leaf` numbers each coordinate's.
    """

    def __init__(self, gradient: np.ndarray, leaf: np.ndarray) -> None:
        import optax  # takes a while, and most searches do without

        self.transform, self.leaf = optax.scale_by_lbfgs(memory_size=10), leaf
        self.restart(gradient)

    def restart(self, gradient: np.ndarray) -> None:
        steepest = np.zeros(np.max(self.leaf) + 1)
        np.maximum.at(steepest, self.leaf, np.abs(gradient))
        most = np.max(steepest)
        self.unit = 1.0 / np.sqrt(np.maximum(steepest, LEVEL * most) if most > 0 else 1.0 + steepest)[self.leaf]
        self.state = self.transform.init(jnp.asarray(gradient))
        self.fresh = True

    def direction(self, gradient: np.ndarray, theta: np.ndarray) -> np.ndarray:
        slope, at = self.unit * gradient, theta / self.unit
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integer types
            d, self.state = self.transform.update(jnp.asarray(slope), self.state, jnp.asarray(at))
        d = slope if self.fresh else np.asarray(d, float)
        return np.where(gradient != 0, -self.unit * d, 0.0)

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        """The transformation sees the pairs itself."""
        self.fresh = False

    def valley(self) -> tuple[np.ndarray, float]:
        """Unknown: among so many coordinates a few steps show no flattest one."""
        return np.zeros(len(self.leaf)), np.inf


def quasi_newton(
    run: Run,
    point: Point,
    low: np.ndarray,
    high: np.ndarray,
    tol: float,
    max_steps: int,
    memory: bool = False,
    rules: Rules = OURS,
) -> str:
    """Minimise from `point`; the run keeps the best point.  Why it stopped."""
    # a steep coordinate that its bound holds says nothing of the others' scale
    first = _projected(point, low, high)
    metric = Memory(first, run.leaf) if memory or len(first) > DENSE else Dense(first, rules.rescale)
    g, d, begun = first, _descent(metric, first, point.theta), point.theta
    for _ in range(max_steps):
        if np.max(np.abs(g)) <= FLAT * max(abs(point.objective), FLAT):
            return "gradient"
        new = _line_search(run, point, d, g, low, high, rules)
        if isinstance(new, str):
            if metric.fresh:
                return new
            metric.restart(g)
            d = metric.direction(g, point.theta)
            continue
        if _newly_bounded(point, new, low, high):
            metric.restart(_projected(new, low, high))
        else:
            metric.learn(new.theta.astype(float) - point.theta, new.gradient - point.gradient)
        change, point = point.objective - new.objective, new
        run.note(point)
        g = _projected(point, low, high)
        d = _descent(metric, g, point.theta)
        small = tol * abs(point.objective)
        if change <= small and not (rules.promise and _promised(g, d) > small):
            further = _along_valley(run, metric, point, begun, low, high) if rules.valley else point
            gained, point = point.objective - further.objective, further
            if gained > 0:
                run.note(point)
            if gained <= small:
                return "tolerance"
            g = _projected(point, low, high)
            metric.restart(g)
            d = metric.direction(g, point.theta)
    return "max_steps"


def _projected(point: Point, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The gradient without the coordinates that sit on a bound and want to leave through it."""
    g, theta = point.gradient, point.theta
    return np.where(((theta <= low) & (g > 0)) | ((theta >= high) & (g < 0)), 0.0, g)


def _newly_bounded(old: Point, new: Point, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether a coordinate that still had a slope met its bound: what the metric learnt of it no longer holds."""
    held = (new.theta <= low) | (new.theta >= high)
    return bool(np.any(held & (old.theta > low) & (old.theta < high)))


def _descent(metric: Any, g: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The metric's direction, or that of the gradient where it does not lead downhill."""
    d = metric.direction(g, theta)
    if g @ d >= 0:
        metric.restart(g)
        d = metric.direction(g, theta)
    return d


def _promised(g: np.ndarray, d: np.ndarray) -> float:
    """The decrease a quadratic model expects of the next step d."""
    return max(-0.5 * min(1.0, CAP / max(float(np.max(np.abs(d))), 1e-300)) * float(g @ d), 0.0)


def _along_valley(run: Run, metric: Any, point: Point, begun: np.ndarray, low: np.ndarray, high: np.ndarray) -> Point:
    """The point CAP further along a shallow valley, away from where the search began, if it is lower."""
    along, curvature = metric.valley()
    if 0.5 * curvature * CAP**2 > SHALLOW * abs(point.objective):
        return point
    reach = np.copysign(CAP, along @ (point.theta.astype(float) - begun))
    theta = np.clip(point.theta + reach * along, low, high).astype(point.theta.dtype)
    new = point if np.array_equal(theta, point.theta) else run(theta)
    return new if new.ok and new.objective < point.objective else point


def _line_search(
    run: Run, point: Point, d: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray, rules: Rules
) -> Point | str:
    """The first point along d, cut to the bounds, that is solved and low enough, or why there is none."""
    noise = 4.0 * float(np.finfo(point.theta.dtype).eps) * abs(point.objective)
    length = min(1.0, CAP / max(float(np.max(np.abs(d))), 1e-300))
    for _ in range(rules.trials):
        theta = np.clip(point.theta + length * d, low, high).astype(point.theta.dtype)
        if np.array_equal(theta, point.theta):
            return "no_progress"
        new = run(theta)
        slope = float(g @ (theta.astype(float) - point.theta))
        if new.ok and new.objective <= point.objective + SUFFICIENT * slope + noise:
            return new
        if rules.halve:
            length *= 0.5
        elif new.ok and slope < 0 and run.kinked and _ahead(point, new) > 0:
            # beyond a kink: where both tangents meet
            after = _ahead(point, new)
            meet = (new.objective - point.objective - after) / (slope - after)
            length *= float(np.clip(meet, 0.02, 0.98))
        elif new.ok and slope < 0:
            # the minimum of the parabola through both values and the slope, kept well inside
            bend = 2.0 * (new.objective - point.objective - slope)
            length *= float(np.clip(-slope / bend, 0.1, 0.5)) if bend > 0 else 0.5
        else:
            length *= 0.25
    return "no_progress"


def _ahead(point: Point, new: Point) -> float:
    """The slope at the new point along the step that led there."""
    return float(new.gradient @ (new.theta.astype(float) - point.theta))


def first_order(
    run: Run, point: Point, low: np.ndarray, high: np.ndarray, tol: float, max_steps: int, transform: Any
) -> str:
    """Follow an optax transformation, every step cut to the bounds; the run keeps the best point."""
    import optax

    transform = optax.with_extra_args_support(transform)
    state = transform.init(jnp.asarray(point.theta))
    update = jitted(
        lambda task, gradient, state, theta, value: transform.update(
            gradient, state, theta, value=value, grad=gradient, value_fn=lambda at: run.value_of(task, at)
        ),
        run.compilation,
    )
    for _ in range(max_steps):
        g = _projected(point, low, high)
        if np.max(np.abs(g)) <= FLAT * max(abs(point.objective), FLAT):
            return "gradient"
        theta = jnp.asarray(point.theta)
        value = jnp.asarray(point.objective, theta.dtype)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integer types
            change, state = update(run.task, jnp.asarray(g, theta.dtype), state, theta, value)
        new, whole = None, np.asarray(change, float)
        for trial in range(TRIALS):
            new = run(np.clip(point.theta + 0.25**trial * whole, low, high).astype(point.theta.dtype))
            if new.ok:
                break
        if new is None or not new.ok:
            return "no_progress"
        moved, point = abs(point.objective - new.objective), new
        run.note(point)
        if moved <= tol * abs(point.objective):
            return "tolerance"
    return "max_steps"
