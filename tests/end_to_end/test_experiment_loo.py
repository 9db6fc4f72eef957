"""The leave-one-out experiment in small."""

import json

from experiments.loo import run
from tests.data import load


def test_quick_run(tmp_path):
    load("heart")
    path = tmp_path / "results.json"
    run.main(["--quick", "--data", "heart", "--output", str(path)])
    rows = {row["loss"]: row for row in json.loads(path.read_text())["outputs"]["rows"]}
    assert set(rows) == {"Squared", "Hinge"} and all(row["rows"] == 60 for row in rows.values())
    assert rows["Squared"]["off"]["largest"] < 1e-5 < rows["Squared"]["off"]["training"]
    for row in rows.values():
        assert row["off"]["mean"] < 0.3 * row["off"]["training"]
        # a row that moves others to another piece is only roughly right: 2 of 60 may change sides
        assert abs(row["error"]["formula"] - row["error"]["true"]) <= 2.5 / 60
    assert "| heart | 60 | Hinge | 1 |" in run.report(json.loads(path.read_text()))
