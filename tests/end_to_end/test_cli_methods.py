"""`hyperjax tune --method NAME` for every name there is: what is tuned is what the saved model predicts with."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hyperjax import methods
from hyperjax.cli import main
from tests.end_to_end.cli_data import sample, write_csv

REGRESSION = ("impgrad", "pbp")
ROWS = 40


def machine(name, found):
    """scikit-learn's model of the method's own problem at the tuned values, where there is one."""
    if name in ("grid", "random", "keerthi"):
        return SVC(C=found["loss.C"], gamma=found["kernel.gamma"], tol=1e-8)
    if name == "chu":
        return LogisticRegression(C=found["loss.C"], fit_intercept=False, tol=1e-10)
    return None


@pytest.mark.parametrize("name", methods.names())
def test_every_method_from_the_command_line(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HYPERJAX_CACHE", str(tmp_path / "cache"))
    X, labels = sample(ROWS, 0)
    if name in REGRESSION:
        labels = [repr(float(v)) for v in X[:, 0] + 0.1 * X[:, 1] + 0.05 * np.cos(np.arange(ROWS))]
    path = write_csv(tmp_path / "train.csv", X, labels)
    argv = ["tune", str(path), "--target", "label", "--method", name, "--out", str(tmp_path), "--quiet"]
    argv += ["--max-steps", "3"] if "max_steps" in methods.options(name) else []
    assert main([*argv, "--folds", "3"]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["search"]["method"] == name
    found = {entry["name"]: entry["tuned"] for entry in report["hyperparameters"]}
    assert found["loss.C"] > 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "model.npz"), str(path)]) == 0
    predicted = capsys.readouterr().out.split()
    assert len(predicted) == ROWS
    oracle = machine(name, found)
    if oracle is not None:
        Z = StandardScaler().fit_transform(X)
        assert predicted == oracle.fit(Z, labels).predict(Z).tolist()
