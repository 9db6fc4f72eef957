"""Tables 2 and 3 and figures 1-3 of Chu et al., and LIBLINEAR's own -C in the same run.

    python -m experiments.chu.run                                  everything
    python -m experiments.chu.run --only newton liblinear          some parts, merged into the table
    python -m experiments.chu.run --quick                          300 rows of one set

Parts: newton (sweeps over the whole range, warm and cold, loose and tight), dual (warm and cold), distance (figure 2),
shared (table 3), liblinear.
"""

import contextlib
import io
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments import common
from experiments.chu import data
from hyperjax.compiling import compiled
from hyperjax.methods import _record as book
from hyperjax.methods import _sweep
from hyperjax.methods.chu import IN_A_ROW, path

OUTPUT = Path(__file__).with_name("results.json")
PARTS = ("newton", "liblinear", "shared", "dual", "distance")
LOSSES = {"LR": hj.losses.Logistic(), "L2": hj.losses.SquaredHinge()}
KINDS = {"LR": 0, "L2": 2}
LOOSE, TIGHT = 1e-2, 1e-6
BUDGET = 60.0
"""Seconds after which a sweep ends where it stands."""
PASSES = 300
"""Most passes of coordinate descent a C."""


def sweep(one: data.Task, loss: str, inner: str, warm: bool, tol: float, budget: float) -> dict[str, Any]:
    """One sweep over the whole range, and where the rule would have ended it."""
    arguments = dict(
        inner=inner, warm=warm, tol=tol, stop=None, stop_tol=LOOSE, progress=False,
        compilation="quick" if len(one.y) <= 300 else "full",
        max_iterations=PASSES if inner == "dual" else 1000,
    )  # fmt: skip
    problem, X = one.problem(LOSSES[loss]), one.dense() if inner == "dual" else one.X
    first = _lowest(one, loss)
    # compiles, so that the seconds are those of the solvers
    path(problem, X, one.y, one.folds, **{**arguments, "C_min": first, "C_max": first})
    before = time.process_time()
    _, log, reason = path(problem, X, one.y, one.folds, **{**arguments, "max_seconds": budget})
    cpu = time.process_time() - before
    return {
        "data": one.name,
        "loss": loss,
        "inner": inner,
        "warm": warm,
        "tol": tol,
        "log2C": np.log2(log["C"]),
        "accuracy": np.round(100.0 * (1.0 - log["value"]), 4),
        "stop": ending(log),
        "seconds": np.round(log["seconds"], 4),
        "cpu": cpu,
        "iterations": log["iterations"].sum(axis=1),
        "products": log["products"].sum(axis=1),
        "solved": (log["code"] == 0).all(axis=1),
        "primal_away": (log["start_primal"] - log["primal"]).sum(axis=1),
        "dual_away": (log["start_dual"] - log["dual"]).sum(axis=1),
        "half_norm": 0.5 * (log["start_norm"] ** 2).sum(axis=1),
        "primal": log["primal"].sum(axis=1),
        "reason": reason,
    }


def _lowest(one: data.Task, loss: str) -> float:
    """The smallest C of the sweep."""
    squares = np.asarray(one.rows.multiply(one.rows).sum(axis=1)).ravel()
    return float(2.0 ** np.floor(np.log2(1.0 / ((2.0 if loss == "L2" else 1.0) * len(one.y) * squares.max()))))


def ending(log: dict[str, np.ndarray]) -> int | None:
    """The index of the last C of the paper's procedure: three in a row at which the last models met the rule."""
    quiet = 0
    for k in range(1, len(log["C"])):
        quiet = quiet + 1 if (log["ratio"][k] <= log["share"][k]).all() else 0
        if quiet == IN_A_ROW["gradient"]:
            return k
    return None


def newton_rows(one: data.Task, budget: float, brief: bool) -> Iterator[dict[str, Any]]:
    kinds = (("LR", True, LOOSE), ("L2", True, LOOSE), ("LR", True, TIGHT), ("LR", False, LOOSE), ("L2", False, LOOSE))
    for loss, warm, tol in kinds:
        if not brief or (warm and tol == LOOSE):
            yield sweep(one, loss, "newton", warm, tol, budget)


def dual_rows(one: data.Task, budget: float, brief: bool) -> Iterator[dict[str, Any]]:
    if one.dense() is None:
        return
    for loss, warm in (("LR", True), ("LR", False), ("L2", True), ("L2", False)):
        if not brief or loss == "LR":
            yield sweep(one, loss, "dual", warm, LOOSE, budget)


def shared_rows(one: data.Task, budget: float) -> Iterator[dict[str, Any]]:
    """Table 3: one vector for all folds against one a fold, at C = 2^1, 2^3 .. 2^9."""
    for shared in (False, True):
        with contextlib.ExitStack() as stack:
            if shared:
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore", RuntimeWarning)
            _, log, _ = path(
                one.problem(LOSSES["LR"]), one.X, one.y, one.folds, C_min=0.125, stop=None, shared=shared,
                progress=False, max_seconds=budget,
            )  # fmt: skip
        exponents = np.round(np.log2(log["C"])).astype(int)
        wanted = np.isin(exponents, (1, 3, 5, 7, 9))
        accuracy = 100.0 * (1.0 - log["value"][wanted])
        yield {"data": one.name, "shared": shared, "log2C": exponents[wanted], "accuracy": accuracy}


def liblinear_rows(one: data.Task, table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """LIBLINEAR's -C (five folds of its own), and its models on our folds at its best C and at ours."""
    from liblinear.liblinear import parameter
    from liblinear.liblinear import problem as rows_of
    from liblinear.liblinearutil import predict, train

    for loss, kind in KINDS.items():
        said = io.StringIO()
        before = time.perf_counter()
        with contextlib.redirect_stdout(said):
            best_C, _, rate = train(rows_of(one.y, one.rows), parameter(f"-s {kind} -C -v {data.FOLDS} -B -1 -q"))
        seconds = time.perf_counter() - before
        ours = common.rows_of(table, "newton", data=one.name, loss=loss, warm=True, tol=LOOSE)
        exponents = [float(np.log2(best_C)), *(chosen(row) for row in ours)]
        accuracy = []
        for exponent in exponents:
            right = 0
            for weights, tested in zip(np.asarray(one.folds.train), np.asarray(one.folds.test), strict=True):
                inside, outside = np.flatnonzero(weights > 0), np.flatnonzero(tested > 0)
                with contextlib.redirect_stdout(io.StringIO()):
                    model = train(
                        rows_of(one.y[inside], one.rows[inside]), parameter(f"-s {kind} -c {2.0**exponent} -B -1 -q")
                    )
                    labels, _, _ = predict(one.y[outside], one.rows[outside], model, "-q")
                right += int(np.sum(np.asarray(labels) == one.y[outside]))
            accuracy.append(100.0 * right / len(one.y))
        yield {
            "data": one.name,
            "loss": loss,
            "log2C": float(np.log2(best_C)),
            "accuracy": 100.0 * float(rate),
            "seconds": seconds,
            "our_folds_log2C": exponents,
            "our_folds_accuracy": np.round(accuracy, 4),
        }


def chosen(row: dict[str, Any]) -> float:
    """log2 of the C a sweep of the table would choose: the best up to the end of the procedure."""
    return float(row["log2C"][int(np.argmax(row["accuracy"][: None if row["stop"] is None else row["stop"] + 1]))])


def distance_rows(one: data.Task, table: dict[str, Any], budget: float) -> list[dict[str, Any]]:
    """Figure 2: the relative distance to the optimum at the best C, one iteration of either solver after the other."""
    known = common.rows_of(table, "newton", data=one.name, loss="LR", warm=True, tol=LOOSE)
    X = one.dense()
    if not known or X is None:
        return []
    exponent = chosen(known[0])
    C, out = 2.0**exponent, []
    search, _, _ = path(one.problem(LOSSES["LR"]), X, one.y, one.folds, C_min=C, C_max=C, stop=None, progress=False)
    phi = book.rows(search.plan.problem, search.plan.hp, search.plan.X)
    hp = search.hp(np.log([C]))
    number = lambda v: jnp.asarray(v, phi.dtype)
    program = compiled(_sweep.step)
    key = jax.random.key(0)

    def made(dual: bool, tol: float, most: int, warm: bool = True) -> _sweep.Sweep:
        return _sweep.Sweep(search.task, phi, number(tol), number(LOOSE), key, dual, False, warm, most)

    exact = made(False, 1e-9, 200)
    half, _ = program(exact, exact.start(), number(C / 2), number(2.0), hp, key)
    best = float(program(exact, half, number(C), number(2.0), hp, key)[1]["primal"].sum())
    for dual in (False, True):
        begin = half if not dual else _sweep.Models(half.w, _alpha(exact, half, number(C / 2)))
        for warm in (True, False):
            one_step = made(dual, 1e-9, 1)
            models, ratio = (begin, 2.0) if warm else (one_step.start(), 2.0)
            jax.block_until_ready(program(one_step, models, number(C), number(ratio), hp, key))
            seconds, distance, met = [0.0], [], None
            for k in range(PASSES):
                before = time.perf_counter()
                models, facts = jax.block_until_ready(
                    program(one_step, models, number(C), number(ratio), hp, jax.random.fold_in(key, k))
                )
                seconds.append(seconds[-1] + time.perf_counter() - before)
                ratio = 1.0
                if k == 0:
                    distance.append(_relative(facts, "start_", dual, best))
                distance.append(_relative(facts, "", dual, best))
                if met is None and (facts["ratio"] <= facts["share"]).all() and k > 0:
                    met = k
                if distance[-1] < 1e-9 or seconds[-1] > budget:
                    break
            out.append(
                {
                    "data": one.name,
                    "inner": "dual" if dual else "newton",
                    "warm": warm,
                    "log2C": exponent,
                    "seconds": np.round(seconds, 5),
                    "distance": distance,
                    "met": met,
                }  # fmt: skip
            )
    return out


def _alpha(sweep_: _sweep.Sweep, models: _sweep.Models, C: Any) -> Any:
    """The dual coefficients of solved models."""
    inner = sweep_.inner(C)
    return jnp.maximum(-inner.y * inner.slope(models.w @ sweep_.phi.T), 0.0)


def _relative(facts: dict[str, Any], when: str, dual: bool, best: float) -> float:
    value = float(facts[f"{when}{'dual' if dual else 'primal'}"].sum())
    return abs(value - best) / abs(best)


def main(argv: list[str] | None = None) -> None:
    parser = common.arguments(__doc__, PARTS, OUTPUT)
    parser.add_argument("--budget", type=float, default=BUDGET, help="most seconds a sweep")
    parser.add_argument("--brief", action="store_true", help="of newton the warm loose sweeps, of dual those of LR")
    options = parser.parse_args(argv)
    names = options.data or (["pcmac"] if options.quick else list(data.NAMES))
    for name in names:
        one = data.task(name, 300 if options.quick else None)
        made = common.settings(
            folds="five stratified, seed 0", loose=LOOSE, tight=TIGHT, budget=options.budget, passes=PASSES,
            quick=options.quick,
        )  # fmt: skip
        about = {"data": name, "shape": one.note, "C_min_LR": _lowest(one, "LR"), "positive": int((one.y > 0).sum())}
        common.merge(options.output, "data", [about], made, ("data",))
        for part in options.only:
            rows = {
                "newton": lambda one=one: newton_rows(one, options.budget, options.brief),
                "dual": lambda one=one: dual_rows(one, options.budget, options.brief),
                "liblinear": lambda one=one: liblinear_rows(one, common.read(options.output)),
                "shared": lambda one=one: shared_rows(one, options.budget),
                "distance": lambda one=one: distance_rows(one, common.read(options.output), options.budget),
            }[part]()
            for row in rows:
                common.merge(options.output, part, [row], made, ("data", "loss", "inner", "warm", "tol", "shared"))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
