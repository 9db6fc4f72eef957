"""The campaign: what the library promises, measured on many more cases than the tests have time for.

python -m experiments.campaign.run [--suite random|exactness|objectives|all] [--count N] [--quick] [--only SEED]
"""

import argparse
import csv
import importlib.metadata
import json
import platform
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np

FOLDER = Path(__file__).resolve().parent
GOOD = ("OK", "BIAS_INTERVAL", "DEGENERATE")


def measure(case: Any) -> dict[str, Any]:
    """Solve one random problem and judge it by the independent certificate."""
    import hyperjax as hj

    from . import oracle

    row: dict[str, Any] = {
        name: getattr(case, name) for name in ("seed", "loss", "kernel", "bias", "dtype", "trait", "rows", "C")
    }
    row["size"] = len(case.y)
    begin = time.perf_counter()
    try:
        solution = jax.block_until_ready(hj.solve(case.problem, case.hp, case.X, case.y, weights=case.weights))
    except Exception as error:  # whatever it is, it is a result of this problem and must not end the campaign
        return {**row, "codes": [], "verdict": "exception", "reason": f"{type(error).__name__}: {error}"}
    row["seconds"] = time.perf_counter() - begin
    z, b, o = (np.asarray(v) for v in (solution.z, solution.b, solution.outputs))
    codes = [hj.Code(int(c)).name for c in np.asarray(solution.code)]
    kkt, rounding = oracle.violation(case, z, b)
    tol = 1e-8 if case.dtype == "float64" else 1e-3
    finite = np.isfinite(z).all(axis=1) & np.isfinite(o).all(axis=1) & np.isfinite(b)
    row.update(
        codes=codes,
        iterations=np.asarray(solution.iterations).tolist(),
        kkt_claimed=np.asarray(solution.kkt).tolist(),
        kkt_measured=kkt.tolist(),
        rounding=rounding.tolist(),
    )
    return {**row, **_judge(codes, finite, kkt, rounding, tol)}


def _judge(codes: list[str], finite: Any, kkt: Any, rounding: Any, tol: float) -> dict[str, Any]:
    good = np.array([code in GOOD for code in codes])
    if np.any(good & ~finite):
        return {"verdict": "wrong", "reason": "NaN with a good code"}
    if np.any(good & ~(kkt <= tol)):
        worst = float(np.max(np.where(good, kkt, 0.0)))
        excuse = bool(np.all(~good | (kkt <= tol + rounding)))
        where = "within" if excuse else "beyond"
        return {"verdict": "rounded" if excuse else "wrong", "reason": f"kkt {worst:.1e}, {where} rounding of K z"}
    if good.all():
        return {"verdict": "good", "reason": ""}
    fold = int(np.argmin(good))
    limit = "rounding" if np.all(good | (tol < rounding)) else "search"
    numbers = f"kkt {kkt[fold]:.1e}, rounding {rounding[fold]:.1e}"
    return {"verdict": "failed", "reason": f"{limit}: {codes[fold]}, {numbers}"}


def random_suite(seeds: list[int], show: bool = True) -> list[dict[str, Any]]:
    """One row a seed."""
    from . import problems

    rows = []
    groups: dict[Any, list[int]] = {}
    for seed in seeds:
        groups.setdefault(problems.configuration(seed), []).append(seed)
    for done, group in enumerate(groups.values(), start=1):
        for seed in group:
            rows.append(measure(problems.make(seed)))
            if show and rows[-1]["verdict"] != "good":
                print(line(rows[-1]), flush=True)
        if done % 10 == 0:
            # compiled programs are never reused between groups, and hundreds of them exhaust the process's memory maps
            jax.clear_caches()
            if show:
                print(f"{len(rows)} of {len(seeds)}", flush=True)
    return sorted(rows, key=lambda row: row["seed"])


def line(row: dict[str, Any]) -> str:
    what = " ".join(str(row[k]) for k in ("loss", "kernel", "bias", "dtype", "size", "rows"))
    return f"seed {row['seed']:5d} {row['verdict']:9s} C={row['C']:.1e} {what} [{row['trait']}] {row['reason']}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The shares the library promises, and the counts behind them."""
    moderate = [r for r in rows if r["dtype"] == "float64" and r["C"] <= 1e4]

    def share(some: list[dict[str, Any]]) -> float:
        return sum(r["verdict"] in ("good", "rounded") for r in some) / max(len(some), 1)

    return {
        "problems": len(rows),
        "share_float64_C_to_1e4": share(moderate),
        "share_all": share(rows),
        "share_float64": share([r for r in rows if r["dtype"] == "float64"]),
        "share_float32": share([r for r in rows if r["dtype"] == "float32"]),
        "verdicts": dict(Counter(r["verdict"] for r in rows)),
        "codes": dict(Counter(code for r in rows for code in r["codes"])),
        "slowest_seconds": max((r.get("seconds", 0.0) for r in rows), default=0.0),
    }


def environment(seconds: float) -> dict[str, Any]:
    """What the numbers were measured on."""
    git = ["git", "-C", str(FOLDER), "rev-parse", "HEAD"]
    dirty = ["git", "-C", str(FOLDER), "status", "--porcelain", "--", "../../hyperjax"]
    return {
        "commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip(),
        "changed": bool(subprocess.run(dirty, capture_output=True, text=True, check=False).stdout.strip()),
        "versions": {p: importlib.metadata.version(p) for p in ("jax", "jaxlib", "numpy", "scipy", "scikit-learn")},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "seconds": round(seconds, 1),
    }


def write(name: str, rows: list[dict[str, Any]], totals: dict[str, Any], seconds: float, folder: Path = FOLDER) -> None:
    """NAME.json (summary, environment, rows that are not good) and NAME.csv (every row)."""
    bad = [r for r in rows if r.get("verdict", "good") != "good"]
    report = {"summary": totals, "environment": environment(seconds), "not_good": bad}
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1, default=str) + "\n")
    with open(folder / f"{name}.csv", "w", newline="") as file:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=("random", "exactness", "objectives", "all"), default="random")
    parser.add_argument("--count", type=int, default=1000, help="random problems, seeds 0 to N - 1")
    parser.add_argument("--quick", action="store_true", help="the 60 random problems of the tests")
    parser.add_argument("--only", type=int, help="replay one random problem, printing everything")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the result tables")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    from . import exactness, objectives, problems

    if given.only is not None:
        print(json.dumps(measure(problems.make(given.only)), indent=1, default=str))
        return
    seeds = problems.quick_seeds() if given.quick else list(range(given.count))
    suites = {
        "random": lambda: random_suite(seeds),
        "exactness": exactness.suite,
        "objectives": objectives.suite,
    }
    totals = {"random": summary, "exactness": exactness.summary, "objectives": objectives.summary}
    for name in suites if given.suite == "all" else [given.suite]:
        begin = time.perf_counter()
        rows = suites[name]()
        result = totals[name](rows)
        print(json.dumps(result, indent=1, default=str))
        if not given.quick:
            write(name, rows, result, time.perf_counter() - begin, given.out)


if __name__ == "__main__":
    main()
