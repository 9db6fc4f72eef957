"""`hyperjax tune` and what is done with its model: every number against scikit-learn on the same rows and folds."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import hyperjax as hj
from hyperjax import libsvm_model
from hyperjax.cli import main, parser, progress
from hyperjax.cli.job import prepare
from hyperjax.cli.sigmoid import fit as fit_sigmoid
from tests.end_to_end.cli_data import NAMES, sample, write_csv

TIGHT = {"atol": 2e-6, "rtol": 0}


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPERJAX_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run for all that only look: files, report, and what was printed."""
    folder = tmp_path_factory.mktemp("run")
    train = write_csv(folder / "train.csv", *sample(60, 0))
    test = write_csv(folder / "test.csv", *sample(40, 1))
    argv = ["tune", str(train), "--target", "label", "--test", str(test), "--max-steps", "4"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYPERJAX_CACHE", str(folder / "cache"))
        assert main([*argv, "--out", str(folder), "--probabilities", "--seed", "3"]) == 0
    return {"folder": folder, "argv": argv, "report": json.loads((folder / "report.json").read_text())}


def tuned(report):
    return {entry["name"]: entry["tuned"] for entry in report["hyperparameters"]}


def machine(report):
    found = tuned(report)
    return SVC(C=found["loss.C"], gamma=found["kernel.gamma"], tol=1e-8)


def training():
    X, labels = sample(60, 0)
    return StandardScaler().fit(X), X, labels


def cross_validated(make, X, labels, seed=3):
    """Error rate of held-out predictions on the folds of this seed."""
    folds = hj.folds.stratified(np.where(labels == "yes", 1.0, -1.0), 5, seed=seed)
    wrong = 0
    for test in np.asarray(folds.test) > 0:
        wrong += np.sum(make().fit(X[~test], labels[~test]).predict(X[test]) != labels[test])
    return wrong / len(labels)


def test_validation_and_test_errors_are_those_of_libsvm(run):
    report = run["report"]
    scaler, X, labels = training()
    X_test, labels_test = sample(40, 1)
    rows, rows_test = scaler.transform(X), scaler.transform(X_test)
    for make, column in ((lambda: machine(report), report["validation"]["tuned"]), (SVC, report["peer"]["validation"])):
        assert column["hard"] == pytest.approx(cross_validated(make, rows, labels))
    for model, column in ((machine(report), report["test"]["tuned"]), (SVC(), report["peer"]["test"])):
        wrong = np.mean(model.fit(rows, labels).predict(rows_test) != labels_test)
        assert column["error"] == column["hard"] == pytest.approx(wrong)


def test_repeated_divisions_are_those_of_both_machines(tmp_path):
    X, labels = sample(40, 0)
    argv = ["tune", str(write_csv(tmp_path / "train.csv", X, labels)), "--target", "label", "--repeats", "2"]
    assert main([*argv, "--folds", "3", "--max-steps", "1", "--out", str(tmp_path), "--seed", "5"]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    rows = StandardScaler().fit_transform(X)
    folds = hj.folds.stratified(np.where(labels == "yes", 1.0, -1.0), 3, seed=5, repeats=2)
    for make, column in ((lambda: machine(report), report["validation"]["tuned"]), (SVC, report["peer"]["validation"])):
        wrong = [
            np.sum(make().fit(rows[~test], labels[~test]).predict(rows[test]) != labels[test])
            for test in np.asarray(folds.test) > 0
        ]
        assert column["hard"] == pytest.approx(np.sum(wrong) / (2 * len(labels)))


def test_a_process_that_cannot_be_started_costs_the_comparison_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.executable", str(tmp_path / "nowhere"))
    train = write_csv(tmp_path / "train.csv", *sample(30, 0))
    assert main(["tune", str(train), "--target", "label", "--max-steps", "1", "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "report.json").read_text())["peer"] is None
    assert "no comparison with scikit-learn's SVC: " in capsys.readouterr().err


def test_the_report(run):
    report = run["report"]
    assert report["format"] == "hyperjax.report" and report["versions"]["hyperjax"] == hj.__version__
    assert report["data"]["features"] == list(NAMES) and report["data"]["target"] == "label"
    assert (report["data"]["rows"], report["data"]["test_rows"], report["data"]["classes"]) == (60, 40, ["no", "yes"])
    assert report["model"] == {
        "loss": "hinge", "kernel": "rbf", "bias": True, "scaling": "standard", "dtype": "float64",
    }  # fmt: skip
    starts = {entry["name"]: entry["start"] for entry in report["hyperparameters"]}
    assert starts["loss.C"] == 1.0 and starts["kernel.gamma"] == pytest.approx(1 / 3)
    assert report["validation"]["tuned"]["smooth_error"] < report["validation"]["start"]["smooth_error"]
    assert report["search"]["steps"] == len(report["history"]["value"]) <= report["search"]["evaluations"]
    assert report["search"]["reason"] in ("max_steps", "tolerance")
    assert report["certificate"]["code"] in ("OK", "DEGENERATE") and report["certificate"]["kkt"] < 1e-8
    assert 0 < report["seconds"]["search"] < report["seconds"]["total"]
    assert report["options"]["seed"] == 3 and report["options"]["max_steps"] == 4


def test_the_table_shows_what_the_report_says(run, capsys, tmp_path):
    assert main([*run["argv"], "--seed", "3", "--out", str(tmp_path / "new" / "folder")]) == 0
    said = capsys.readouterr()
    report = run["report"]
    for text in ("start", "tuned", "scikit-learn SVC", "loss.C", "kernel.gamma", "validation", "test error"):
        assert text in said.out
    assert "folder/model.npz" in said.out
    assert f"{tuned(report)['loss.C']:.4g}" in said.out and f"{report['test']['tuned']['error']:.4g}" in said.out
    assert f"{report['search']['evaluations']} solves" in said.out
    assert "step" not in said.err, "no progress line where nobody looks"


def test_quiet_says_nothing(run, capsys):
    assert main([*run["argv"], "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_the_same_seed_gives_the_same_and_another_does_not(run, tmp_path):
    reports = []
    for seed in ("3", "4"):
        assert main([*run["argv"], "--seed", seed, "--quiet", "--out", str(tmp_path)]) == 0
        reports.append(json.loads((tmp_path / "report.json").read_text()))
    assert tuned(reports[0]) == tuned(run["report"]) != tuned(reports[1])


def predicted(capsys, run, data, *options):
    assert main(["predict", str(run["folder"] / "model.npz"), str(data), *options]) == 0
    return capsys.readouterr().out.split()


def test_predictions_on_raw_columns_in_any_order_are_those_of_libsvm(run, capsys, tmp_path):
    scaler, X, labels = training()
    X_new, _ = sample(25, 7)
    oracle = machine(run["report"]).fit(scaler.transform(X), labels)
    shuffled = write_csv(tmp_path / "new.csv", X_new[:, [2, 0, 1]], None, ("noise", "length", "width"))
    assert predicted(capsys, run, shuffled) == oracle.predict(scaler.transform(X_new)).tolist()
    outputs = np.array(predicted(capsys, run, shuffled, "--decision"), float)
    np.testing.assert_allclose(outputs, oracle.decision_function(scaler.transform(X_new)), **TIGHT)
    out = tmp_path / "predictions.txt"
    assert predicted(capsys, run, shuffled, "--out", str(out)) == []
    assert out.read_text().split() == oracle.predict(scaler.transform(X_new)).tolist()


def test_the_scaling_comes_from_the_training_rows_alone(run):
    _, X, _ = training()
    with np.load(run["folder"] / "model.npz") as stored:
        np.testing.assert_allclose(stored["model.centre"], X.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(stored["model.spread"], X.std(axis=0), rtol=1e-12)


def test_score(run, capsys):
    assert main(["score", str(run["folder"] / "model.npz"), str(run["folder"] / "test.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rows": 40, "error": run["report"]["test"]["tuned"]["error"]}


def test_probabilities(run, capsys):
    outputs = np.array(predicted(capsys, run, run["folder"] / "test.csv", "--decision"), float)
    found = np.array(predicted(capsys, run, run["folder"] / "test.csv", "--probabilities"), float)
    assert np.all((found > 0) & (found < 1)) and np.all(np.diff(found[np.argsort(outputs)]) >= 0)
    odds = np.log(found / (1 - found))
    slope, offset = np.polyfit(outputs, odds, 1)
    np.testing.assert_allclose(odds, slope * outputs + offset, atol=1e-6)


def test_the_sigmoid_is_the_most_likely_one(rng):
    outputs = 50.0 * rng.normal(size=200)
    y = np.where(outputs + 40.0 * rng.normal(size=200) > 10.0, 1.0, -1.0)
    slope, offset = fit_sigmoid(outputs, y)
    n_pos, n_neg = np.sum(y > 0), np.sum(y < 0)
    target = np.where(y > 0, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    p = 1 / (1 + np.exp(-(slope * outputs + offset)))
    assert slope > 0
    assert abs(np.mean(p - target)) < 1e-6 and abs(np.mean((p - target) * outputs / 50.0)) < 1e-6


def test_export_with_its_ranges_decides_as_libsvm_does(run, capsys, tmp_path):
    path = tmp_path / "out.model"
    assert main(["export", str(run["folder"] / "model.npz"), "--out", str(path)]) == 0
    assert "svm-scale -r out.model.range" in capsys.readouterr().out
    scaler, X, labels = training()
    X_new, _ = sample(25, 7)
    oracle = machine(run["report"]).fit(scaler.transform(X), labels).decision_function(scaler.transform(X_new))
    np.testing.assert_allclose(libsvm_model.read(path).decision(svm_scale(f"{path}.range", X_new)), oracle, **TIGHT)


def svm_scale(path, X):
    """What svm-scale -r does: each column from [low, high] to [-1, 1]."""
    first, ends, *lines = Path(path).read_text().splitlines()
    assert (first, ends) == ("x", "-1 1")
    low, high = np.array([line.split()[1:] for line in lines], float).T
    return -1.0 + 2.0 * (X - low) / (high - low)


def test_info(run, capsys):
    assert main(["info", str(run["folder"] / "model.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["classes"] == ["no", "yes"] and found["features"] == list(NAMES) and found["probabilities"] is True
    assert found["loss.C"] == tuned(run["report"])["loss.C"]
    _, X, labels = training()
    oracle = machine(run["report"]).fit(StandardScaler().fit_transform(X), labels)
    assert found["support vectors"] == len(oracle.support_)


def test_ctrl_c_writes_the_best_so_far(run, tmp_path, monkeypatch, capsys):
    def interrupt(self, record):
        if record["step"] == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Line, "__call__", interrupt)
    assert main([*run["argv"], "--seed", "3", "--out", str(tmp_path)]) == 130
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["search"]["reason"] == "interrupted" and report["search"]["steps"] == 2
    assert tuned(report)["loss.C"] == run["report"]["history"]["loss.C"][1]
    assert "interrupted" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "model.npz")]) == 0


def test_ctrl_c_before_the_search(run, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("hyperjax.tables.read_table", interrupt)
    assert main(run["argv"]) == 130
    assert capsys.readouterr().err == "hyperjax: interrupted\n"


def test_a_checkpoint_goes_on_where_it_was(run, tmp_path, capsys):
    argv = [*run["argv"][:-2], "--seed", "3", "--quiet", "--out", str(tmp_path), "--checkpoint", str(tmp_path / "c")]
    reports = []
    for steps in ("2", "4"):
        assert main([*argv, "--max-steps", steps]) == 0
        reports.append(json.loads((tmp_path / "report.json").read_text()))
    assert reports[0]["search"]["steps"] == 3
    assert tuned(reports[1]) == tuned(run["report"])


def test_bounds_and_hold(run, tmp_path, capsys):
    argv = [*run["argv"], "--out", str(tmp_path), "--bounds", "loss.C=0.9:1.1", "--hold", "kernel.gamma"]
    assert main(argv) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    entries = {entry["name"]: entry for entry in report["hyperparameters"]}
    assert 0.9 * (1 - 1e-9) <= entries["loss.C"]["tuned"] <= 1.1 * (1 + 1e-9)
    assert entries["kernel.gamma"]["tuned"] == entries["kernel.gamma"]["start"]
    if entries["loss.C"]["at_bound"]:
        assert "hyperjax: warning: the optimum sits on the bounds of loss.C" in capsys.readouterr().err


def test_a_tuned_threshold_is_part_of_the_model(run, tmp_path, capsys):
    argv = [*run["argv"], "--out", str(tmp_path), "--criterion", "f_measure:threshold=tuned"]
    assert main(argv) == 0
    capsys.readouterr()
    report = json.loads((tmp_path / "report.json").read_text())
    threshold = tuned(report)["criterion.threshold"]
    assert threshold != 0.0
    scaler, X, labels = training()
    X_test, labels_test = sample(40, 1)
    outputs = machine(report).fit(scaler.transform(X), labels).decision_function(scaler.transform(X_test))
    oracle = np.where(outputs >= threshold, "yes", "no")
    model = {"folder": tmp_path}
    assert predicted(capsys, model, run["folder"] / "test.csv") == oracle.tolist()
    assert main(["score", str(tmp_path / "model.npz"), str(run["folder"] / "test.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    f = f1_score(labels_test, oracle, pos_label="yes")
    assert found["f_measure"] == report["test"]["tuned"]["hard"] == pytest.approx(1 - f)
    assert found["error"] == pytest.approx(np.mean(oracle != labels_test))


def test_a_method_takes_its_own_options_only(run, tmp_path, capsys):
    assert main([*run["argv"], "--method", "grid", "--starts", "2"]) == 2
    assert "--starts: the method grid has no such option" in capsys.readouterr().err


def test_regression(tmp_path, capsys):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3)) * [1.0, 10.0, 0.1]
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.05 * rng.normal(size=60)
    path = write_csv(tmp_path / "train.csv", X, [repr(float(v)) for v in y], title="price")
    argv = ["tune", str(path), "--target", "price", "--test-fraction", "0.25", "--out", str(tmp_path)]
    assert main([*argv, "--max-steps", "4"]) == 0
    report, said = json.loads((tmp_path / "report.json").read_text()), capsys.readouterr().out
    assert report["data"]["task"] == "regression" and "scikit-learn SVR" in said and "test r2" in said
    assert (report["data"]["rows"], report["data"]["test_rows"]) == (45, 15)
    options = parser.build().parse_args(argv)
    job = prepare(options)
    found = tuned(report)
    oracle = SVR(C=found["loss.C"], gamma=found["kernel.gamma"], epsilon=found["loss.eps"], tol=1e-8)
    X_test, y_test = job.test
    outputs = oracle.fit(job.X, job.y).predict(X_test)
    assert report["test"]["tuned"]["mse"] == pytest.approx(np.mean((outputs - y_test) ** 2), rel=1e-4)
    assert report["test"]["tuned"]["r2"] == pytest.approx(oracle.score(X_test, y_test), rel=1e-4)
    default = SVR().fit(job.X, job.y)
    assert report["peer"]["test"]["r2"] == pytest.approx(default.score(X_test, y_test))
    assert main(["predict", str(tmp_path / "model.npz"), str(path)]) == 0
    raw = np.array(capsys.readouterr().out.split(), float)
    np.testing.assert_allclose(raw, oracle.predict(job.scaling(X)), atol=1e-5)
