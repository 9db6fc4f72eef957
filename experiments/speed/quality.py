"""How good is what the search finds?  Beside the best of a grid over C and gamma; widths, thresholds, one cost a row.

    python -m experiments.speed.quality [--quick] [--only PART ..] [--data NAME ..] [--output FILE]

Standardised columns, five stratified folds; hyperjax in float32.  The seconds of searches stand in run.py's table.

search    C and gamma on the speed table's rows in several orders, beside the best of the 15 x 15 grid on the same folds
ard       C and one gamma a feature against C and gamma alone
fmeasure  the threshold tuned with C and gamma against C and gamma alone, on a9a
samples   one C a row with 20 % of the labels flipped, judged by the noisy labels alone
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments import common
from experiments.speed import peers, search_rows
from experiments.speed.task import low, permuted

PARTS = ("search", "ard", "fmeasure", "samples")
OUTPUT = Path(__file__).with_name("quality.json")
ROWS = 2000
TEST_ROWS = 10000
SEED = 0
UNTRUSTED = hj.criteria.ZeroOne(mu=1.0)
"""Judges rows whose labels are wrong as well: s(m) + s(-m) is constant, so flips at random cancel in its gradient."""


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
        count = rows or ROWS
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


def search(options):
    """Both answers scored by LIBSVM on the same folds, and trained on all rows for the test rows."""
    sizes = {"ijcnn1": 2000, "a9a": 2000, "magic04": 2000, "splice": 1000}
    for name in options.data or sizes:
        X, y, *test = search_rows.sample("svc", name, 150 if options.quick else sizes[name])
        facts = []
        for order in range(1 if options.quick else options.seeds or 5):
            A, labels, folds = permuted(X, y, SEED + order)
            given = "svc", A, labels, folds
            found = search_rows.ours("svc", "full", *low(A, labels), folds)
            fact = {"order": order, "evaluations": found.pop("evaluations")}
            for who, answer in {"ours": found, "grid": peers.grid(*given, 7 if options.quick else 1)}.items():
                scores = {"cv": peers.cv_score(*given, answer), "test": peers.score(*given[:3], *test, answer)}
                fact |= {f"{who}_{key}": float(value) for key, value in (scores | answer).items()}
            facts.append(fact)
            say(f"{name} {fact}")
        keep(options, "search", {"data": name, **{key: [fact[key] for fact in facts] for key in facts[0]}}, "data")


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
    count = 150 if options.quick else 10000
    X, y, X_test, y_test = rows_of("ijcnn1", 0, count)
    flipped = generator.permutation(count)[: count // 5]
    y[flipped] *= -1
    problem = hj.Problem(hj.losses.PerSample(hj.losses.Hinge()), hj.kernels.RBF())
    row = {"data": "ijcnn1", "rows": count}
    folds = hj.folds.stratified(y, 5, seed=0)
    result = hj.tune(problem, X, y, folds, UNTRUSTED, progress=False, max_steps=3 if options.quick else 50)
    C = np.asarray(result.hp["loss"]["C"])
    clean = np.setdiff1d(np.arange(count), flipped)
    row["caught"] = float(np.mean(C[flipped] < np.median(C[clean])))
    row |= {"seconds": result.seconds, "test": error(result, X_test, y_test), "value": result.value}
    keep(options, "samples", row, "data")
    say(f"flipped labels caught: {row['caught']:.2f}")


def mean(values):
    return float(np.mean(values))


def say(line):
    print(line, flush=True)


def keep(options, part, row, key):
    common.merge(options.output, part, [row], common.settings(seed=SEED, quick=options.quick), (key,))


def markdown(found):
    """A line a claim of the search: what is asked for, and what was found."""
    body = []
    off = {"cv": [], "test": []}
    for row in common.rows_of(found, "search"):
        told = {}
        for kind, differences in off.items():
            ours, grid = (mean(row[f"{who}_{kind}"]) for who in ("ours", "grid"))
            differences.append(ours - grid)
            told[kind] = f"{ours:.2f} % beside {grid:.2f} %, {ours - grid:+.2f}"
        what = f"{row['data']}: CV error, C and gamma, beside the grid's best, mean of {len(row['order'])} orders"
        body.append([what, "0.5 more at most", told["cv"], off["cv"][-1] <= 0.5])
        body.append([f"{row['data']}: test error of both", "-", told["test"], "-"])
    for kind, differences in off.items():
        if differences:
            told = f"{mean(differences):+.2f}"
            body.append([f"the same, mean of the sets, {kind}", "0.3 more at most", told, mean(differences) <= 0.3])
    for row in common.rows_of(found, "ard"):
        one, many = mean(row["iso_test"]), mean(row["ard_test"])
        body.append([f"{row['data']}: test error, one width", "-", f"{one:.2f} %", "-"])
        splice = row["data"] == "splice"
        asked = "below 6.5 %" if splice else "no worse than one width"
        body.append(["the same, one width a feature", asked, f"{many:.2f} %", many < 6.5 if splice else many <= one])
        if "ard_nested" in row:
            off = abs(mean(row["ard_nested"]) - many)
            told = f"{mean(row['ard_nested']):.2f} %"
            body.append(["its nested estimate", "within 1 point of the test error", told, off <= 1.0])
    for row in common.rows_of(found, "fmeasure"):
        gain = mean(row["tuned"]) - mean(row["fixed"])
        told = f"{mean(row['fixed']):.4f} to {mean(row['tuned']):.4f}"
        body.append([f"{row['data']}: test F, threshold tuned too", "0.015 more", told, gain >= 0.015])
    for row in common.rows_of(found, "samples"):
        told = f"{100 * row['caught']:.0f} %"
        what = f"{row['data']}, {row['rows']} rows, one C a row: flipped labels below the clean ones' median"
        body.append([what, "80 %", told, row["caught"] >= 0.8])
    marks = {True: "green", False: "RED"}
    return common.markdown(("what", "asked", "found", "mark"), [[*row[:3], marks.get(row[3], "-")] for row in body])


def main(argv=None):
    parser = common.arguments(__doc__, PARTS, OUTPUT)
    options = parser.parse_args(argv)
    for part in options.only:
        {"search": search, "ard": ard, "fmeasure": fmeasure, "samples": samples}[part](options)


if __name__ == "__main__":
    main(sys.argv[1:])
