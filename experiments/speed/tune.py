"""From the default start to good hyperparameters: how good and how fast, against grid search and Optuna.

    python -m experiments.speed.tune [--quick] [--only PART ..] [--data NAME ..] [--output FILE]

Standardised columns, five stratified folds, the same rows and folds for everybody; hyperjax in float32, peers as
shipped with n_jobs=2.  Repeats draw fresh rows and alternate who goes first; compilation is timed apart, by
a first search on other rows of the same shape.

search    C and gamma: GridSearchCV 15 x 15 (C = 2^-5 .. 2^9, gamma = 2^-12 .. 2^2) and 50 trials of Optuna's TPE
ard       C and one gamma a feature against C and gamma alone
fmeasure  the threshold tuned with C and gamma against C and gamma alone, on a9a
samples   one C a row with 20 % of the labels flipped; cost of 10,000 C_i against one C
"""

import statistics
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments import common
from experiments.speed.peers import GRID, fitted_test_error, grid_search, tpe

PARTS = ("search", "ard", "fmeasure", "samples")
SETS = {"ijcnn1": 2000, "a9a": 2000, "magic04": 2000, "splice": 1000}
TEST_ROWS = 10000
SEED = 0


def rows_of(name, seed, rows=None):
    """(X, y, X_test, y_test) standardised by the training rows, in float32."""
    data = common.arrays(name)
    X = data["X"].toarray() if hasattr(data["X"], "toarray") else data["X"]
    y = np.asarray(data["y"], float)
    if name == "splice":  # a training part of its own: all 1,000 rows, in another order each time
        test = data["X_test"] if "X_test" in data else data["test_X"]
        test = test.toarray() if hasattr(test, "toarray") else test
        order = np.random.default_rng(seed).permutation(len(y))[:rows]
        train, labels, X_test, y_test = X[order], y[order], test, data["y_test"] if "y_test" in data else data["test_y"]
    else:
        order = np.random.default_rng(seed).permutation(len(y))
        count = rows or SETS[name]
        train, labels = X[order[:count]], y[order[:count]]
        rest = order[count : count + TEST_ROWS]
        X_test, y_test = X[rest], y[rest]
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    scaled = (((part - mean) / spread).astype(np.float32) for part in (train, X_test))
    return *(next(scaled), labels.astype(np.float32)), next(scaled), np.asarray(y_test, np.float32)


def error(result, X, y):
    """Test error in percent."""
    return 100.0 * float(np.mean(np.where(np.asarray(result.decision(X)) >= 0, 1.0, -1.0) != y))


def timed(work):
    """(seconds, result)."""
    begun = time.perf_counter()
    out = work()
    return time.perf_counter() - begun, out


def search(options):
    """One row a data set."""
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    for name in options.data or SETS:
        rows, repeats = (200, 1) if options.quick else (None, options.seeds or 3)
        warm = rows_of(name, 1000, rows)
        folds = hj.folds.stratified(warm[1], 5, seed=0)
        first = {kind: ours(problem, warm, folds, kind)["seconds"] for kind in ("full", "quick")}
        found = {"ours": [], "grid": [], "tpe": [], "quick": []}
        for repeat in range(repeats):
            data = rows_of(name, repeat, rows)
            folds = hj.folds.stratified(data[1], 5, seed=repeat)
            order = list(found) if repeat % 2 == 0 else list(found)[::-1]
            for kind in order:
                compilation = {"ours": "full", "quick": "quick"}.get(kind)
                done = peer(kind, data, folds, options.quick, repeat) if compilation is None else None
                found[kind].append(done or ours(problem, data, folds, compilation))
        row = {"data": name, "rows": len(warm[1]), **{f"first_{kind}": seconds for kind, seconds in first.items()}}
        for kind, facts in found.items():
            row |= {f"{kind}_{what}": [fact[what] for fact in facts] for what in facts[0]}
        for kind in ("grid", "tpe"):
            pairs = zip(row[f"{kind}_seconds"], row["ours_seconds"], strict=True)
            row[f"{kind}_ratio"] = statistics.median(theirs / own for theirs, own in pairs)
        keep(options, "search", row, "data")
        say(
            f"{name}: CV {mean(row['ours_cv']):.2f} (grid {mean(row['grid_cv']):.2f}), "
            f"test {mean(row['ours_test']):.2f} ({mean(row['grid_test']):.2f}), "
            f"{row['grid_ratio']:.0f} x grid, {row['tpe_ratio']:.1f} x TPE"
        )


def ours(problem, data, folds, compilation):
    """Seconds and what was found by `tune`."""
    X, y, X_test, y_test = data
    t, r = timed(lambda: hj.tune(problem, X, y, folds, progress=False, compilation=compilation))
    found = {"seconds": t, "cv": 100 * r.hard, "test": error(r, X_test, y_test), "evaluations": r.n_evaluations}
    return found | {"C": float(r.hp["loss"]["C"]), "gamma": float(r.hp["kernel"]["gamma"])}


def peer(kind, data, folds, quick, seed):
    """The same by grid search or by TPE."""
    X, y, X_test, y_test = data
    if kind == "grid":
        grid = tuple(axis[::5] for axis in GRID) if quick else GRID
        t, (cv, C, gamma, count) = timed(lambda: grid_search(X, y, folds, grid))
    else:
        t, (cv, C, gamma, count) = timed(lambda: tpe(X, y, folds, 3 if quick else 50, seed))
    test = fitted_test_error(X, y, X_test, y_test, C, gamma)
    return {"seconds": t, "cv": 100 * cv, "test": test, "evaluations": count, "C": C, "gamma": gamma}


def ard(options):
    """Splice over fold seeds, ijcnn1 over random subsets with the nested estimate."""
    one, many = (hj.Problem(hj.losses.Hinge(), kernel) for kernel in (hj.kernels.RBF(), hj.kernels.ARD()))
    for name in options.data or ("splice", "ijcnn1"):
        facts = []
        for seed in range(1 if options.quick else options.seeds or 5):
            rows = 150 if options.quick else None
            X, y, X_test, y_test = rows_of(name, 0 if name == "splice" else seed, rows)
            folds = hj.folds.stratified(y, 5, seed=seed)
            steps = 2 if options.quick else 50
            plain, relevant = (hj.tune(p, X, y, folds, progress=False, max_steps=steps) for p in (one, many))
            fact = {"seed": seed, "iso_test": error(plain, X_test, y_test), "ard_test": error(relevant, X_test, y_test)}
            fact |= {"iso_cv": 100 * plain.hard, "ard_cv": 100 * relevant.hard, "seconds": relevant.seconds}
            if name == "ijcnn1":
                nested = hj.nested_score(many, X, y, 5, 5, seed=seed, progress=False, max_steps=steps)
                fact["ard_nested"] = 100 * nested.hard
            facts.append(fact)
        row = {"data": name, **{key: [fact.get(key) for fact in facts] for key in facts[0]}}
        keep(options, "ard", row, "data")
        say(f"{name}: test {mean(row['iso_test']):.2f} isotropic, {mean(row['ard_test']):.2f} ARD")


def fmeasure(options):
    """Test F with and without the threshold, ten splits of a9a."""
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    rows = []
    for seed in range(1 if options.quick else options.seeds or 10):
        X, y, X_test, y_test = rows_of("a9a", seed, 200 if options.quick else 2000)
        folds = hj.folds.stratified(y, 5, seed=seed)
        row = {"seed": seed}
        for threshold in ("fixed", "tuned"):
            criterion = hj.criteria.FMeasure(threshold=threshold)
            result = hj.tune(problem, X, y, folds, criterion, progress=False, max_steps=2 if options.quick else 50)
            o = jnp.asarray(result.decision(X_test))
            row[threshold] = 1.0 - float(criterion.hard_value(o, jnp.asarray(y_test), hp=result.hp))
        rows.append(row)
    keep(options, "fmeasure", {"data": "a9a", **{key: [row[key] for row in rows] for key in rows[0]}}, "data")
    say(f"a9a: test F {mean([r['fixed'] for r in rows]):.4f}, with threshold {mean([r['tuned'] for r in rows]):.4f}")


def samples(options):
    """One C a row: how many flipped labels end below the median of the clean ones, and what a gradient costs."""
    generator = np.random.default_rng(SEED)
    count = 150 if options.quick else 2000
    X, y, _, _ = rows_of("ijcnn1", 0, count)
    flipped = generator.permutation(count)[: count // 5]
    y[flipped] *= -1
    problem = hj.Problem(hj.losses.PerSample(hj.losses.Hinge()), hj.kernels.RBF())
    row = {"data": "ijcnn1", "rows": count}
    folds = hj.folds.stratified(y, 5, seed=0)
    result = hj.tune(problem, X, y, folds, hj.criteria.LogLoss(), progress=False, max_steps=3 if options.quick else 50)
    C = np.asarray(result.hp["loss"]["C"])
    clean = np.setdiff1d(np.arange(count), flipped)
    row["caught"] = float(np.mean(C[flipped] < np.median(C[clean])))
    row["seconds"] = result.seconds
    big = 200 if options.quick else 10000
    X, y, _, _ = rows_of("ijcnn1", 0, big)
    row["cost_rows"], row["cost_ratio"] = big, cost_ratio(X, y, 1 if options.quick else 3)
    keep(options, "samples", row, "data")
    say(f"flipped labels caught: {row['caught']:.2f}; {big} C_i cost {row['cost_ratio']:.2f} times one C")


def cost_ratio(X, y, repeats):
    """Seconds of one value and gradient in `len(y)` C_i over those in one C, both cold, compiled before."""
    folds = hj.folds.stratified(y, 5, seed=0)
    runs = []
    for loss in (hj.losses.Hinge(), hj.losses.PerSample(hj.losses.Hinge())):
        problem = hj.Problem(loss, hj.kernels.RBF())

        @jax.jit
        def value(hp, X, y, folds, problem=problem):
            return hj.criteria.SmoothError()(hj.cross_decision(problem, hp, X, y, folds), y, folds)

        hp = problem.init(X, y)
        run = jax.jit(jax.value_and_grad(value))
        args = hp, jnp.asarray(X), jnp.asarray(y), folds
        jax.block_until_ready(run(*args))
        runs.append((run, args))

    def seconds(run, args):
        return timed(lambda: jax.block_until_ready(run(*args)))[0]

    pairs = [[seconds(*each) for each in runs] for _ in range(repeats)]
    return statistics.median(many / one for one, many in pairs)


def mean(values):
    return float(np.mean(values))


def say(line):
    print(line, flush=True)


def keep(options, part, row, key):
    common.merge(options.output, part, [row], common.settings(seed=SEED, quick=options.quick), (key,))


def main(argv=None):
    parser = common.arguments(__doc__, PARTS, Path(__file__).with_name("tune.json"))
    options = parser.parse_args(argv)
    for part in options.only:
        {"search": search, "ard": ard, "fmeasure": fmeasure, "samples": samples}[part](options)


if __name__ == "__main__":
    main(sys.argv[1:])
