"""The hypergradient alone, from a given solution: hyperjax's rule against jaxopt's implicit differentiation.

Both get the same (z, b) of five folds, build the ARD kernel matrix themselves by the same lines, and return value and
gradient of the smoothed CV error in C and every gamma.  jaxopt differentiates the optimality function of the solver
it would have used, at z: ProjectedGradient's fixed point on the dual box and hyperplane, with b as the mean over free
rows; or BoxOSQP's KKT conditions, where b is a multiplier.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments.speed.gradient_rows import CRITERION, ready
from experiments.speed.task import SEED, WARM, Options, Race, clock, load, low, peak, permuted, standardised
from experiments.speed.task import draw as stratified
from hyperjax._jaxopt import load as jaxopt
from hyperjax.implicit import attach

PROBLEM = hj.Problem(hj.losses.Hinge(), hj.kernels.ARD(), bias=True)
ITERATIONS = 1000
"""Limit of jaxopt's linear solvers: without one they run for minutes in float32."""


def rows(name: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows; splice has 1,000 training rows, so its test rows fill up."""
    X, y = load(name)
    if len(y) < size:
        from experiments import common

        found = common.arrays(name)
        X = np.r_[X, np.asarray(found["X_test"], np.float64)]
        y = np.r_[y, np.asarray(found["y_test"], np.float64)]
    X, y = stratified(X, y, size, SEED)
    return standardised(X), y


def held_out(outputs: Any, y: Any, folds: Any) -> Any:
    return CRITERION(jnp.sum(jnp.where(folds.test > 0, outputs, 0.0), axis=0), y, folds)


def ours(hp: Any, X: Any, y: Any, folds: Any, z: Any, b: Any) -> Any:
    """hyperjax's rule at (z, b)."""

    def value(hp: Any) -> Any:
        inner = PROBLEM.inner(hp, X, y, folds.train)
        o = jax.lax.stop_gradient(inner.outputs(z, b))
        return held_out(attach(z, b, o, inner)[2], y, folds)

    return jax.value_and_grad(value)(hp)


def onto_the_plane(x: Any, box: tuple[Any, Any]) -> Any:
    """The nearest point of the box whose entries sum to 0.

    jaxopt's projection_box_section is the same, but its derivative has no transpose in JAX 0.10, which every linear
    solver of custom_root asks for.  Here the shift is found by bisection, and one Newton step carries the derivative.
    """
    lower, upper = box
    constant = jax.lax.stop_gradient((x, lower, upper))

    def halve(_: Any, ends: Any) -> Any:
        middle = 0.5 * (ends[0] + ends[1])
        high = jnp.sum(jnp.clip(constant[0] - middle, *constant[1:])) > 0
        return jnp.where(high, middle, ends[0]), jnp.where(high, ends[1], middle)

    reach = jnp.max(jnp.abs(constant[0])) + jnp.max(constant[2] - constant[1])
    nu = 0.5 * sum(jax.lax.fori_loop(0, 40, halve, (-reach, reach)))
    shifted = x - nu
    inside = jax.lax.stop_gradient(((shifted > lower) & (shifted < upper)).astype(x.dtype))
    nu = nu + jnp.sum(jnp.clip(shifted, lower, upper)) / jnp.maximum(jnp.sum(inside), 1.0)
    return jnp.clip(x - nu, lower, upper)


def projected(solve: Callable[..., Any]) -> Callable[..., Any]:
    """jaxopt's custom_root over ProjectedGradient, with one of its linear solvers."""
    library = jaxopt()

    def dual(z: Any, K: Any, y: Any) -> Any:
        return 0.5 * z @ (K @ z) - y @ z

    solver = library.ProjectedGradient(fun=dual, projection=onto_the_plane)

    def run(hp: Any, X: Any, y: Any, folds: Any, z: Any, b: Any) -> Any:
        def outputs(hp: Any, K: Any, z: Any, s: Any) -> Any:
            ends = y * s * hp["loss"]["C"]
            box = (jnp.minimum(ends, 0.0), jnp.maximum(ends, 0.0))
            given = library.implicit_diff.custom_root(solver.optimality_fun, solve=solve)(lambda init, *_: z)
            root = given(z, box, K, y)
            free = jax.lax.stop_gradient(((z > box[0]) & (z < box[1])).astype(y.dtype))
            f = K @ root
            return f + jnp.sum(free * (y - f)) / jnp.maximum(jnp.sum(free), 1.0)

        def value(hp: Any) -> Any:
            K = PROBLEM.kernel.cross(hp["kernel"], X, X)
            return held_out(jax.vmap(outputs, (None, None, 0, 0))(hp, K, z, folds.train), y, folds)

        return jax.value_and_grad(value)(hp)

    return run


def osqp(solve: Callable[..., Any]) -> Callable[..., Any]:
    """jaxopt's custom_root over the KKT conditions of BoxOSQP."""
    library = jaxopt()
    # constraints A x = (x, sum x) between (box, 0); as products, so that no identity matrix is stored
    solver = library.BoxOSQP(
        matvec_Q=lambda K, x: K @ x, matvec_A=lambda _, x: (x, jnp.sum(x)), check_primal_dual_infeasability=False
    )

    def run(hp: Any, X: Any, y: Any, folds: Any, z: Any, b: Any) -> Any:
        def outputs(hp: Any, K: Any, z: Any, b: Any, s: Any) -> Any:
            ends, none = y * s * hp["loss"]["C"], jnp.zeros_like(b)
            box = (jnp.minimum(ends, 0.0), none), (jnp.maximum(ends, 0.0), none)
            pull = jax.lax.stop_gradient(y - K @ z - b)
            free = (z > box[0][0]) & (z < box[1][0]) & (s > 0)
            pull = jnp.where(free, 0.0, pull)
            up, down = jnp.maximum(pull, 0.0), jnp.maximum(-pull, 0.0)
            sides = (up, jnp.maximum(b, 0.0)), (down, jnp.maximum(-b, 0.0))
            blank = solver.init_params(z, (K, -y), None, box)
            solution = blank._replace(primal=(z, (z, jnp.sum(z))), dual_eq=(pull, b), dual_ineq=sides)
            solution = jax.lax.stop_gradient(solution)
            given = library.implicit_diff.custom_root(solver.optimality_fun, solve=solve)(lambda init, *_: solution)
            root = given(solution, (K, -y), None, box)
            return K @ root.primal[0] + root.dual_eq[1]

        def value(hp: Any) -> Any:
            K = PROBLEM.kernel.cross(hp["kernel"], X, X)
            return held_out(jax.vmap(outputs, (None, None, 0, 0, 0))(hp, K, z, b, folds.train), y, folds)

        return jax.value_and_grad(value)(hp)

    return run


def linear_solvers() -> dict[str, Callable[..., Any]]:
    """jaxopt's own, at their default tolerance; the first is what custom_root takes unless told otherwise."""
    library = jaxopt().linear_solve
    names = {"normal_cg": library.solve_normal_cg, "bicgstab": library.solve_bicgstab}
    return {name: lambda matvec, b, solve=solve: solve(matvec, b, maxiter=ITERATIONS) for name, solve in names.items()}


def against_jaxopt(options: Options, name: str, size: int) -> Iterator[dict[str, Any]]:
    """C = 1, gamma_j = 1/d; ProjectedGradient with jaxopt's usual linear solver and with its fastest, and BoxOSQP."""
    X, y = rows(name, 120 if options.small else size)
    width = X.shape[1]
    hp = {"loss": {"C": jnp.float32(1.0)}, "kernel": {"gamma": jnp.full((width,), 1.0 / width, jnp.float32)}}
    mine = jax.jit(ours)
    given = solved(hp, *permuted(X, y, WARM))
    first, (_, right) = clock(lambda: ready(mine, *given))
    facts: dict[str, Any] = {"first": first, "memory": peak()}
    peers, notes = {}, {}
    able = linear_solvers()
    usual = {"normal_cg": able["normal_cg"]}
    for key, make, solvers in (("shipped", projected, usual), ("projected", projected, able), ("osqp", osqp, usual)):
        peers[key], notes[key] = quickest(make, solvers, given, right)

    def calls(given: Any) -> dict[str, Any]:
        return {who: partial(ready, run, *given) for who, run in {"ours": mine, **peers}.items()}

    race, others = Race(options), calls(given)
    for repeat in range(options.repeats):
        found = race.round(repeat, calls(solved(hp, *permuted(X, y, SEED + repeat))), others)
        for key in peers:
            if key in found:
                notes[key].setdefault("difference", []).append(difference(found[key][1], found["ours"][1]))
        yield {key: race.row(key, **facts, **notes[key]) for key in peers}


def quickest(make: Callable[..., Any], solvers: dict[str, Callable[..., Any]], given: Any, right: Any) -> Any:
    """The peer with the fastest of its linear solvers that gives the gradient to 1 % (the fastest if none does)."""
    tried: dict[str, Any] = {}
    runs = {}
    for label, solve in solvers.items():
        runs[label] = jax.jit(make(solve))
        try:
            ready(runs[label], *given)
        except NotImplementedError as error:  # some of jaxopt's own rules have no transpose
            tried[label] = str(error).partition("\n")[0]
            continue
        seconds, (_, gradient) = clock(lambda run=runs[label]: ready(run, *given))
        tried[label] = [seconds, difference(gradient, right)]
    able = {label: facts for label, facts in tried.items() if not isinstance(facts, str)}
    good = {label: facts for label, facts in able.items() if facts[1] < 0.01}
    best = min(good or able, key=lambda label: able[label][0])
    return runs[best], {"solver": best, "tried": tried}


def difference(one: Any, other: Any) -> float:
    """Largest difference of two gradients relative to the largest entry."""
    a, b = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in (one, other))
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


def solved(hp: Any, A: Any, signs: Any, folds: Any) -> tuple[Any, ...]:
    """Everything on the device, with the folds' solution."""
    X, y = (jnp.asarray(part) for part in low(A, signs))
    folds = jax.tree.map(lambda part: jnp.asarray(part, jnp.float32), folds)
    found = hj.cross_solve(PROBLEM, hp, X, y, folds, tol=1e-4)
    return jax.block_until_ready((hp, X, y, folds, found.z, found.b))
