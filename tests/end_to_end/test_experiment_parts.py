"""Every part of the five papers' experiments in its small form, and the tables that are made of it."""

import numpy as np
import pytest

from experiments import common
from experiments.chu import report as chu_report
from experiments.chu import run as chu_run
from experiments.jiang_siddiqui import report as jiang_report
from experiments.jiang_siddiqui import run as jiang_run
from experiments.keerthi import report as keerthi_report
from experiments.keerthi import run as keerthi_run
from experiments.klatzer_pock import report as klatzer_report
from experiments.klatzer_pock import run as klatzer_run
from experiments.moore import report as moore_report
from experiments.moore import run as moore_run
from tests.data import load


def small_forms(run, tmp_path, parts):
    path = tmp_path / "table.json"
    run.main(["--quick", "--only", *parts, "--output", str(path)])
    table = common.read(path)
    assert set(parts) <= set(table) and all(table[part]["rows"] for part in parts)
    return table


def test_keerthi(tmp_path):
    load("heart")
    table = small_forms(keerthi_run, tmp_path, ("grid", "tune", "figure1", "cost", "f_measure", "table3"))
    assert [row["evaluations"] for row in table["grid"]["rows"]] == [9]
    surface, path = table["figure1"]["rows"]
    assert len(surface["test"]) == 9 and min(path["value"]) == path["value"][-1]
    assert all(row["cold_gradient"] > 0 for row in table["cost"]["rows"])
    fixed, tuned = table["f_measure"]["rows"]
    assert all(row["test_best_cut"] <= row["test"] + 1e-6 for row in (fixed, tuned))
    full, image = table["table3"]["rows"]
    # 4.6: the image of the full hinge has its outputs, up to shift and scale, so the search starts at its V
    assert image["start"] == pytest.approx(full["value"], rel=1e-2)
    assert "| full, tuned | 0.0357 |" in keerthi_report.table3(table)
    assert "| heart |" in keerthi_report.cost(table) and "| tuned |" in keerthi_report.f_measure(table)


def test_klatzer_pock(tmp_path):
    for name in ("heart", "parkinsons"):
        load(name)
    table = small_forms(klatzer_run, tmp_path, ("table2", "table3", "images", "figure2", "figure3", "figure4"))
    assert table["table2"]["rows"][0]["method"] == "widths 01loss" and table["table2"]["rows"][0]["cv"] < 25.0
    assert sum(table["table3"]["rows"][0]["beta"]) == pytest.approx(1.0, rel=1e-4)
    assert np.mean(np.diag(table["images"]["rows"][0]["confusion"])) > 90.0
    for part in ("figure3", "figure4"):
        assert len(table[part]["rows"][0]["cv"]) == len(table[part]["rows"][0]["mse"]) == 3
    assert "| 3 |" in klatzer_report.images(table)


def test_moore(tmp_path):
    for name in ("esol", "pyrim"):
        load(name)
    table = small_forms(moore_run, tmp_path, ("table3", "figure4", "figure9", "scaling"))
    assert {row["groups"] for row in table["figure9"]["rows"]} == {1, 5}
    assert "| pyrim |" in moore_report.small(table)


def test_chu_and_jiang_siddiqui(tmp_path):
    for name in ("pcmac", "pima"):
        load(name)
    table = small_forms(chu_run, tmp_path, ("dual", "shared"))
    assert {row["shared"] for row in table["shared"]["rows"]} == {False, True}
    assert "| 2^9 |" in chu_report.table3(table)
    rows = small_forms(jiang_run, tmp_path, ("tune",))["tune"]["rows"]
    assert all(60.0 < row["accuracy"] <= 100.0 for row in rows)
    assert "| pima | tune |" in jiang_report.accuracies({"tune": {"rows": rows}})
