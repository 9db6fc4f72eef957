"""Does a loss, kernel, criterion or solver of your own keep its contract?  What holds, and the numbers otherwise."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from . import checks
from . import prox as automatic
from .criteria.base import Criterion, apply, refuse
from .folds import Folds, kfold
from .kernels.base import Kernel, as_kernel
from .kernels.linear import Linear
from .kernels.rbf import RBF
from .losses.base import Loss
from .losses.epsilon_insensitive import EpsilonInsensitive
from .losses.hinge import Hinge
from .losses.logistic import Logistic
from .losses.squared import Squared
from .losses.squared_hinge import SquaredHinge
from .problem import Problem
from .results import Code
from .solve import cross_decision, solve
from .solvers.loop import Solver
from .trust import check_hypergradient

__all__ = ["Finding", "Report", "check_criterion", "check_kernel", "check_loss", "check_solver"]

ROWS = 12


@dataclasses.dataclass(frozen=True)
class Finding:
    """One promise and whether it is kept."""

    what: str
    holds: bool
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """What was looked at, in order."""

    subject: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether everything holds."""
        return all(finding.holds for finding in self.findings)

    def __str__(self) -> str:
        width = max(len(finding.what) for finding in self.findings)
        lines = [f"{self.subject}: {'everything holds' if self.passed else 'something does not hold'}"]
        for finding in self.findings:
            lines.append(f"  {'ok  ' if finding.holds else 'FAIL'}  {finding.what:{width}}  {finding.detail}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__


class _Notes:
    """Collects findings; a promise that raises is one that is not kept."""

    def __init__(self, subject: Any) -> None:
        self.subject = type(subject).__name__ if not hasattr(subject, "__name__") else subject.__name__
        self.findings: list[Finding] = []

    def look(self, what: str, promise: Callable[[], str | None]) -> bool:
        """`promise` returns None where it holds, or what was found."""
        try:
            detail = promise()
        except Exception as error:  # noqa: BLE001  # whatever a user's code raises is the finding
            text = str(error).strip()
            detail = f"{type(error).__name__}: {text.splitlines()[0] if text else 'no message'}"
        self.findings.append(Finding(what, detail is None, detail or ""))
        return detail is None

    def report(self, verbose: bool) -> Report:
        report = Report(self.subject, tuple(self.findings))
        if verbose:
            print(report)
        return report


def check_loss(loss: Loss, X: Any = None, y: Any = None, verbose: bool = True) -> Report:
    """Look at a loss: elementwise, convex, its prox, every hyperparameter, its hypergradient.

    X (n, d) and y (n,) are data it was made for; by default a few random rows.  Prints and returns the report.
    """
    checks.instance("loss", loss, Loss, "losses.Hinge()")
    notes = _Notes(loss)
    checks.known("the rows are looked at on the host; call check_loss", X=X, y=y)
    X, y = _data(getattr(loss, "labels", False), X, y)

    def start() -> str | None:
        return _outside(loss.domain_tree(loss.init(X, y)), loss.init(X, y))

    if not notes.look("init gives start values inside their domains", start):
        return notes.report(verbose)
    own = jax.tree.map(lambda v: jnp.asarray(v, X.dtype), loss.init(X, y))
    inside, hp = loss.expand(own)
    o = jnp.asarray(np.linspace(-3.0, 3.0, len(y)), X.dtype)

    def shape() -> str | None:
        found = jnp.shape(inside.phi(o, y, hp))
        return None if found == y.shape else f"phi(o, y, hp) has shape {found} for o, y of shape {y.shape}: one a row"

    def elementwise() -> str | None:
        change = np.asarray(jax.jacobian(lambda o: inside.phi(o, y, hp))(o))
        mixed = np.abs(change - np.diag(np.diag(change))).max()
        return None if mixed == 0 else f"phi of one row moves with the output of another (by {mixed:.2g})"

    def convex() -> str | None:
        grid = np.linspace(-6.0, 6.0, 1201)
        values = np.asarray(jax.vmap(lambda at: inside.phi(jnp.full_like(y, at), y, hp))(jnp.asarray(grid, X.dtype)))
        if not np.all(np.isfinite(values)):
            at, row = np.argwhere(~np.isfinite(values))[0]
            return f"phi is {values[at, row]} at o = {grid[at]:.3g}, y = {float(y[row]):.3g}"
        bend = np.diff(values, n=2, axis=0)
        if bend.min() >= -1e3 * float(jnp.finfo(X.dtype).eps) * np.abs(values).max():
            return None
        at, row = np.unravel_index(bend.argmin(), bend.shape)
        return f"second difference {bend.min():.3g} around o = {grid[at + 1]:.3g}, y = {float(y[row]):.3g}"

    def far() -> str | None:
        """Slopes rise, far out too: a phi that bends down beyond the data is not convex."""
        out = np.concatenate([np.linspace(0.0, 6.0, 241), np.geomspace(6.1, 1e3, 120)])
        around = jnp.zeros_like(y) if getattr(loss, "labels", False) else y
        grid = np.asarray(around)[None, :] + np.concatenate([-out[:0:-1], out])[:, None]
        slopes = np.asarray(jax.vmap(lambda at: automatic.slope(inside, at, y, hp))(jnp.asarray(grid, X.dtype)))
        rise = np.diff(slopes, axis=0)  # an exponential may overflow far out: NaN is no fall
        steps = np.where(np.isfinite(rise), rise, 0.0)
        size = np.max(np.abs(slopes), initial=0.0, where=np.isfinite(slopes))
        if steps.min() >= -1e3 * float(jnp.finfo(X.dtype).eps) * size:
            return None
        at, row = np.unravel_index(steps.argmin(), steps.shape)
        ends = f"o = {grid[at, row]:.4g} and {grid[at + 1, row]:.4g}, y = {float(y[row]):.3g}"
        return f"the slope falls from {slopes[at, row]:.4g} to {slopes[at + 1, row]:.4g} between {ends}"

    if not (notes.look("phi gives one value a row", shape) and notes.look("row by row", elementwise)):
        return notes.report(verbose)
    rounding = 1e3 * float(jnp.finfo(X.dtype).eps)
    notes.look("convex in the output", lambda: convex() or far())
    notes.look("the prox is the minimum it claims to be", lambda: _prox(inside, y, hp))
    notes.look("every hyperparameter has an effect", lambda: _effect(lambda hp: _phi_sum(loss, hp, y), own, rounding))
    notes.look("smooth as it claims", lambda: _smoothness(inside))
    problem = Problem(loss, RBF(), True)
    notes.look("hypergradient = differences", lambda: _hypergradient(problem, X, y))
    return notes.report(verbose)


def check_kernel(kernel: Any, X: Any = None, verbose: bool = True) -> Report:
    """Look at a kernel: symmetric, positive semidefinite, its diagonal, every hyperparameter, derivatives.

    X (n, d) are rows it was made for; by default a few random positive ones.  Prints and returns the report.
    """
    notes = _Notes(kernel)
    checks.known("the rows are looked at on the host; call check_kernel", X=X)
    kernel = as_kernel(kernel)
    checks.instance("kernel", kernel, Kernel, "kernels.RBF() or a callable k(x, z)")
    X, y = _data(True, X, None, positive=True)

    def start() -> str | None:
        return _outside(kernel.domain_tree(kernel.init(X, y)), kernel.init(X, y))

    if not notes.look("init gives start values inside their domains", start):
        return notes.report(verbose)
    hp = jax.tree.map(lambda v: jnp.asarray(v, X.dtype), kernel.init(X, y))

    def shape() -> str | None:
        found = jnp.shape(kernel.cross(hp, X, X[:3]))
        return None if found == (len(X), 3) else f"k of {len(X)} and 3 rows has shape {found}: k(x, z) must be a scalar"

    if not notes.look("two rows give a scalar", shape):
        return notes.report(verbose)
    K = np.asarray(kernel.cross(hp, X, X), float)
    size, eps = max(np.abs(K).max(), 1e-300), float(jnp.finfo(X.dtype).eps)

    def symmetric() -> str | None:
        gap = np.abs(K - K.T).max()
        i, j = np.unravel_index(np.abs(K - K.T).argmax(), K.shape)
        return None if gap <= 1e3 * eps * size else f"k(x{i}, x{j}) = {K[i, j]:.6g}, k(x{j}, x{i}) = {K[j, i]:.6g}"

    def semidefinite() -> str | None:
        least = np.linalg.eigvalsh(0.5 * (K + K.T))[0]
        return None if least >= -1e3 * eps * len(K) * size else f"smallest eigenvalue {least:.3g} of {size:.3g}"

    def diagonal() -> str | None:
        gap = np.abs(np.asarray(kernel.diagonal(hp, X)) - np.diag(K)).max()
        return None if gap <= 1e3 * eps * size else f"`diagonal` is off by {gap:.3g}"

    def form(parts: Any) -> Any:
        # other rows on the other side: where x = z a kernel may have a kink
        other = X if kernel.needs_all_rows() else 1.1 * X[::-1] + 0.03
        u = jnp.asarray(np.random.default_rng(1).normal(size=(2, len(X))), X.dtype)
        return u[0] @ kernel.cross(parts["hp"], parts["X"], other) @ u[1]

    notes.look("finite", lambda: None if np.all(np.isfinite(K)) else f"{int((~np.isfinite(K)).sum())} entries are not")
    notes.look("symmetric", symmetric)
    notes.look("positive semidefinite", semidefinite)
    notes.look("its diagonal", diagonal)
    if jax.tree.leaves(hp):
        notes.look("every hyperparameter has an effect", lambda: _effect(lambda hp: form({"hp": hp, "X": X}), hp))
    notes.look("derivatives = differences", lambda: _derivative(form, {"hp": hp, "X": X}))
    return notes.report(verbose)


def check_criterion(criterion: Any, y: Any = None, verbose: bool = True) -> Report:
    """Look at a criterion, an instance or a callable of (o, y): finite, blind to order and to untested rows, smooth.

    `y` (n,) are targets it was made for; by default -1 and +1.  Prints and returns the report.
    """
    refuse(criterion)
    notes = _Notes(criterion)
    rng = np.random.default_rng(0)
    y = np.where(np.arange(ROWS) % 3 == 0, 1.0, -1.0) if y is None else np.asarray(y, float)
    n = len(y)
    o, folds = jnp.asarray(rng.normal(size=n) + 0.3 * y), kfold(n, 3)
    hp = {"criterion": jax.tree.map(jnp.asarray, criterion.init(jnp.asarray(y)))} if hasattr(criterion, "init") else {}

    def value(o: Any, y: Any = y, folds: Folds = folds) -> Any:
        return apply(criterion, o, jnp.asarray(y, o.dtype), folds, hp)

    def scalar() -> str | None:
        found = value(o)
        if jnp.shape(found) != ():
            return f"it returns shape {jnp.shape(found)}: one number for all rows"
        return None if np.isfinite(found) else f"it returns {found}"

    def order() -> str | None:
        mix = rng.permutation(n)
        other = value(o[mix], y[mix], folds.replace(train=folds.train[:, mix], test=folds.test[:, mix]))
        gap = abs(float(other) - float(value(o)))
        return None if gap <= 1e-6 * max(abs(float(value(o))), 1.0) else f"other order of rows: it changes by {gap:.3g}"

    def blind() -> str | None:
        absent = folds.replace(test=folds.test.at[:, 0].set(0.0))
        gap = abs(float(value(o.at[0].add(5.0), folds=absent)) - float(value(o, folds=absent)))
        return None if gap <= 1e-9 else f"an output that no fold tests moves it by {gap:.3g}: use folds.test or weights"

    if not notes.look("one finite number", scalar):
        return notes.report(verbose)
    notes.look("blind to the order of rows", order)
    if isinstance(criterion, Criterion):
        notes.look("blind to rows that no fold tests", blind)
    if getattr(criterion, "smooth", True):
        notes.look("derivatives = differences", lambda: _derivative(value, o))
        notes.look("its gradient is not zero", lambda: None if np.any(jax.grad(value)(o)) else "it is zero everywhere")
    return notes.report(verbose)


def check_solver(solver: Solver, tol: float | None = None, verbose: bool = True) -> Report:
    """Look at a solver: on each of six problems it declines in words, or meets `tol` at the solution of the library.

    Prints and returns the report.
    """
    checks.instance("solver", solver, Solver, "solvers.Newton()")
    notes = _Notes(solver)
    cases = {
        "hinge, RBF, bias": Problem(Hinge(), RBF(gamma=0.4), True),
        "hinge, linear, regularised bias": Problem(Hinge(C=0.5), Linear(), "regularised"),
        "squared hinge, linear, no bias": Problem(SquaredHinge(C=0.4), Linear(), False),
        "logistic, RBF, bias": Problem(Logistic(C=0.6), RBF(gamma=0.4), True),
        "eps-insensitive, RBF, bias": Problem(EpsilonInsensitive(C=0.8, eps=0.2), RBF(gamma=0.4), True),
        "squared, linear, regularised bias": Problem(Squared(C=0.4), Linear(), "regularised"),
    }
    for name, problem in cases.items():
        notes.look(name, lambda problem=problem: _solves(solver, problem, tol))
    return notes.report(verbose)


def _solves(solver: Solver, problem: Problem, tol: Any) -> str | None:
    X, y = _data(problem.loss.labels, None, None, rows=24)
    weights = jnp.asarray(np.stack([np.arange(24) % 3 != t for t in range(2)]), X.dtype)
    hp = problem.init(X, y)
    objection = solver.supports(problem.inner(hp, X, y, weights))
    if objection is not None:
        return None if isinstance(objection, str) and objection else "`supports` must return None or say why, in words"
    found = solve(problem, hp, X, y, weights, solver=solver, tol=tol)
    right = solve(problem, hp, X, y, weights, tol=tol)
    gap = float(jnp.max(jnp.abs(found.outputs - right.outputs)))
    allowed = 1e-2 if X.dtype == jnp.float32 else 1e-5
    if any(Code(int(code)).failed for code in found.code):
        return f"kkt {float(jnp.max(found.kkt)):.2g} after {int(jnp.max(found.iterations))} iterations: tol is not met"
    return None if gap <= allowed else f"its outputs are off by {gap:.2g}"


def _data(labels: bool, X: Any, y: Any, positive: bool = False, rows: int = ROWS) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    if X is None:
        X = rng.uniform(0.1, 2.0, size=(rows, 3)) if positive else rng.normal(size=(rows, 3))
    X = jnp.asarray(X, jnp.result_type(float))
    if y is None:
        target = np.asarray(X)[:, 0] - np.mean(np.asarray(X)[:, 0]) + 0.3 * rng.normal(size=len(X))
        y = np.where(target > 0, 1.0, -1.0) if labels else target
    return X, jnp.asarray(y, X.dtype)


def _outside(domains: Any, values: Any) -> str | None:
    for path, (domain, value) in _pairs(domains, values):
        wrong = domain.problem_with(np.asarray(value))
        if wrong or not np.all(np.isfinite(np.asarray(value))):
            return f"{path} starts at {np.asarray(value)}: it {wrong or 'must be finite'}"
    return None


def _pairs(domains: Any, values: Any, path: str = "") -> list[tuple[str, tuple[Any, Any]]]:
    if isinstance(values, dict):
        return [pair for name in values for pair in _pairs(domains[name], values[name], f"{path}.{name}".strip("."))]
    if isinstance(values, (list, tuple)):
        return [pair for i, v in enumerate(values) for pair in _pairs(domains[i], v, f"{path}.{i}")]
    return [(path, (domains, values))]


def _phi_sum(loss: Loss, own: Any, y: Any) -> Any:
    inside, hp = loss.expand(own)
    grid = np.linspace(-3.0, 3.0, 37)
    weights = np.cos(grid + 0.5)  # neither even nor odd
    weights = weights - np.mean(weights)  # of sum 0: what phi has besides a function of o is no effect
    values = jax.vmap(lambda at: inside.phi(y * 0 + at, y, hp))(jnp.asarray(grid, y.dtype))
    return jnp.sum(values * jnp.asarray(weights, y.dtype)[:, None])


def _prox(loss: Loss, y: Any, hp: Any) -> str | None:
    rng = np.random.default_rng(2)
    near = rng.uniform(-4.0, 4.0, size=(20, len(y)))
    far = rng.choice([-1.0, 1.0], size=(20, len(y))) * np.geomspace(5.0, 500.0, 20)[:, None]
    v = jnp.asarray(np.concatenate([near, far]), y.dtype)
    ts = jnp.asarray(rng.choice([0.0, 0.3, 5.0, 100.0], size=v.shape), y.dtype)
    closed = np.asarray(jax.vmap(lambda v, ts: loss.prox(v, y, ts, hp))(v, ts))
    found = np.asarray(jax.vmap(lambda v, ts: automatic.prox(loss, v, y, ts, hp))(v, ts))
    gap = np.abs(closed - found)
    # the minimum is found among numbers of the size of v and of what a slope moves it by
    gap = gap / (1.0 + np.maximum(np.abs(found), np.abs(np.asarray(v))))
    if gap.max() <= 1e5 * float(jnp.finfo(y.dtype).eps):
        return None
    i, j = np.unravel_index(gap.argmax(), gap.shape)
    return (
        f"prox of {float(ts[i, j]):.2g} phi at v = {float(v[i, j]):.4g}, y = {float(y[j]):.3g} is {closed[i, j]:.6g}, "
        f"and phi's own minimum lies at {found[i, j]:.6g}"
    )


def _smoothness(loss: Loss) -> str | None:
    kinks = automatic.has_kinks(loss)
    if loss.smooth is None or loss.smooth != kinks:
        return None
    return f"smooth = {loss.smooth}, and phi {'has kinks' if kinks else 'has none that probing finds'}"


def _effect(f: Callable[[Any], Any], hp: Any, rounding: float = 0.0) -> str | None:
    leaves = jax.tree_util.tree_leaves_with_path(jax.grad(f)(hp))
    dead = [jax.tree_util.keystr(path) for path, g in leaves if np.all(np.abs(g) <= rounding)]
    return f"nothing moves with {', '.join(dead)}" if dead else None


def _derivative(f: Callable[[Any], Any], at: Any) -> str | None:
    flat, unravel = ravel_pytree(at)
    along = jnp.asarray(np.random.default_rng(3).normal(size=flat.size), flat.dtype)
    g = jax.jit(lambda x: f(unravel(x)))
    slope = float(jax.grad(g)(flat) @ along)
    h = float(jnp.finfo(flat.dtype).eps) ** (1 / 3)
    difference = (float(g(flat + h * along)) - float(g(flat - h * along))) / (2 * h)
    worst = max(abs(slope), abs(difference), 1e-12)
    if abs(slope - difference) <= 50 * h * worst:
        return None
    return f"along a random direction the gradient says {slope:.6g} and differences {difference:.6g}"


def _hypergradient(problem: Problem, X: Any, y: Any) -> str | None:
    hp, folds = problem.init(X, y), kfold(len(y), 2)
    tol = 1e-11 if X.dtype == jnp.float64 else None
    mix = jnp.asarray(np.cos(np.arange(len(y))), X.dtype)
    report = check_hypergradient(
        # beside 1, the size of its terms, the sum tells how far it is rounded
        lambda hp: 1.0 + jnp.mean(mix * jnp.tanh(cross_decision(problem, hp, X, y, folds, tol=tol))),
        hp,
    )
    if not np.isfinite(report.value):
        return "two folds of these rows could not be solved at the start values, so there is nothing to compare"
    need = 3 if X.dtype == jnp.float64 else 1
    wrong = ~(report.agree(need) | report.kinked)
    if not np.any(wrong):
        return None
    worst = int(np.argmin(np.where(wrong, report.digits, np.inf)))
    said, found = report.reverse[worst], report.central[worst]
    return f"{report.names[worst]}: the gradient says {said:.6g}, differences {found:.6g}"
