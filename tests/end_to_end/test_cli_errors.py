"""Every way a command can be refused: its exit code, one line on standard error, no traceback, nothing written."""

import json

import jax
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.cli import main
from hyperjax.cli.model import Model, save
from hyperjax.cli.scaling import fit
from tests.end_to_end.cli_data import NAMES, sample, write_csv

pytestmark = pytest.mark.no_extras


@pytest.fixture(autouse=True)
def _no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPERJAX_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path):
    return write_csv(tmp_path / "train.csv", *sample(40, 0))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model file made without a search."""
    X, labels = sample(40, 0)
    scaling = fit("standard", X)
    problem = hj.Problem()
    hp = problem.init(scaling(X), np.where(labels == "yes", 1.0, -1.0))
    solution = hj.solve(problem, hp, scaling(X), np.where(labels == "yes", 1.0, -1.0))
    path = tmp_path_factory.mktemp("model") / "model.npz"
    columns = {"target": "label", "groups": None}
    save(Model(solution, scaling, "classification", ["no", "yes"], list(NAMES), columns, "smooth_error"), path)
    return path


def refused(capsys, code, *argv):
    """Run, check the exit code and that one line was said; the line."""
    assert main([str(part) for part in argv]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("hyperjax: ") and said.err.count("\n") == 1, said.err
    return said.err


def test_no_such_file(capsys, tmp_path, trained):
    for argv in (("tune", tmp_path / "missing.csv"), ("predict", trained, tmp_path / "missing.csv")):
        assert "missing.csv" in refused(capsys, 3, *argv)
    assert "missing.npz: no such file" in refused(capsys, 3, "info", tmp_path / "missing.npz")
    assert "missing.npz" in refused(capsys, 3, "score", tmp_path / "missing.npz", tmp_path / "missing.csv")


def test_a_name_that_is_no_data_set(capsys):
    assert "no data set is called 'brest_cancer': did you mean breast_cancer" in refused(
        capsys, 3, "tune", "brest_cancer"
    )


def test_a_test_file_that_is_not_there(capsys, data, tmp_path):
    assert "missing.csv" in refused(capsys, 3, "tune", data, "--target", "label", "--test", tmp_path / "missing.csv")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.csv", "x,y\n1,2\n3,4\n5,oops,6\n", "line 4"),
        ("a.csv", "x,z,y\n1,2,0\nwrong,4,1\n", "line 3"),
        ("a.csv", "label,x,y\nno,2,0\nyes,4,1\n", "or name it as the target"),
        ("a.svm", "1 1:0.5 2:1\n-1 1:0.25 2\n", "line 2"),
        ("a.svm", "1 1:0.5\n-1 2:1 1:3\n", "line 2"),
    ],
)
def test_a_broken_line_is_named(capsys, tmp_path, name, text, line):
    (tmp_path / name).write_text(text)
    assert line in refused(capsys, 3, "tune", tmp_path / name)


def test_one_class(capsys, tmp_path):
    X, _ = sample(20, 0)
    path = write_csv(tmp_path / "one.csv", X, ["yes"] * 20)
    assert "one class only, 'yes'" in refused(capsys, 3, "tune", path, "--target", "label")


def test_three_classes_and_how_to_choose_one(capsys, tmp_path):
    X, _ = sample(21, 0)
    path = write_csv(tmp_path / "three.csv", X, ["a", "b", "c"] * 7)
    said = refused(capsys, 3, "tune", path, "--target", "label")
    assert "3 classes" in said and "--positive" in said and "hyperjax.sklearn.TunedSVC" in said
    said = refused(capsys, 2, "tune", path, "--target", "label", "--positive", "d")
    assert "a, b, c" in said


def test_words_are_no_regression(capsys, data):
    assert "needs numbers" in refused(capsys, 3, "tune", data, "--target", "label", "--task", "regression")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--criterion", "foo", "no criterion 'foo'; choose one of absolute_error"),
        ("--criterion", "f_measure:threshold=wrong", "threshold"),
        ("--criterion", "f_measure:height=2", "no field 'height'"),
        ("--loss", "foo", "no loss 'foo'"),
        ("--kernel", "rbf,foo", "no kernel 'foo'"),
        ("--kernel", "rbf:gamma", "NAME:FIELD=VALUE"),
        ("--method", "foo", "foo"),
        ("--hold", "loss.D", "loss.D"),
        ("--bounds", "kernel.gama=1:2", "kernel.gama"),
        ("--folds", "30", "--folds 30: the rarer class has"),
        ("--groups", "nosuch", "nosuch"),
        ("--stages", "nosuch", "nosuch"),
    ],
)
def test_names_and_values_that_do_not_exist(capsys, data, option, value, said):
    assert said in refused(capsys, 2, "tune", data, "--target", "label", option, value)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("tune",),
        ("fly", "x.csv"),
        ("tune", "x.csv", "--folds", "1"),
        ("tune", "x.csv", "--folds", "many"),
        ("tune", "x.csv", "--bounds", "kernel.gamma=3"),
        ("tune", "x.csv", "--bounds", "kernel.gamma=3:1"),
        ("tune", "x.csv", "--test", "y.csv", "--test-fraction", "0.5"),
        ("tune", "x.csv", "--test-fraction", "1.5"),
        ("tune", "x.csv", "--prior", "strong"),
        ("export", "model.npz"),
    ],
)
def test_options_that_make_no_sense(capsys, argv):
    assert main(list(argv)) == 2
    said = capsys.readouterr()
    assert said.err.startswith("usage: hyperjax") and "Traceback" not in said.err


def test_pictures_need_a_folder(capsys, data):
    assert "--out" in refused(capsys, 2, "tune", data, "--target", "label", "--plots")


def test_a_place_nothing_can_be_written_to(capsys, data, tmp_path, trained):
    (tmp_path / "file").write_text("")
    assert "file" in refused(capsys, 2, "tune", data, "--target", "label", "--out", tmp_path / "file")
    below = tmp_path / "file" / "p.csv"
    assert str(below) in refused(capsys, 2, "predict", trained, data, "--out", below)


def test_files_of_python_objects_are_refused_in_words_of_our_own(capsys, tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, X=np.asarray([{}, {}], dtype=object), y=np.ones(2))
    said = refused(capsys, 3, "tune", path)
    assert "Python objects" in said and "pickle" not in said
    path.write_bytes(b"no archive")
    assert "pickle" not in refused(capsys, 3, "tune", path) and "pickle" not in refused(capsys, 3, "info", path)


def test_unseen_columns(capsys, tmp_path, trained):
    X, labels = sample(10, 1)
    path = write_csv(tmp_path / "other.csv", X, labels, names=("length", "width", "weight"))
    assert "lacks the column 'noise'" in refused(capsys, 3, "predict", trained, path)
    (tmp_path / "narrow.csv").write_text("1,2\n3,4\n")
    assert "3 are expected" in refused(capsys, 3, "predict", trained, tmp_path / "narrow.csv")


def test_an_unseen_class(capsys, tmp_path, trained):
    X, labels = sample(10, 1)
    labels[3] = "may"
    said = refused(capsys, 3, "score", trained, write_csv(tmp_path / "a.csv", X, labels))
    assert "class may" in said and "no and yes" in said


def test_no_labels_to_score(capsys, tmp_path, trained):
    path = write_csv(tmp_path / "bare.csv", sample(10, 1).X)
    assert "no column of labels" in refused(capsys, 3, "score", trained, path)


def test_no_probabilities(capsys, tmp_path, trained):
    path = write_csv(tmp_path / "bare.csv", sample(10, 1).X)
    assert "--probabilities" in refused(capsys, 2, "predict", trained, path, "--probabilities")


def rewritten(trained, path, **changes):
    """The model with some entries of its header changed."""
    with np.load(trained) as stored:
        arrays = dict(stored)
    header = {**json.loads(str(arrays["model"])), **changes}
    np.savez(path, **{**arrays, "model": np.asarray(json.dumps(header))})
    return path


def test_a_model_of_a_newer_version(capsys, trained, tmp_path):
    path = rewritten(trained, tmp_path / "new.npz", version=99, library="9.9")
    said = refused(capsys, 3, "info", path)
    assert "version 99" in said and "9.9" in said and "install a newer one" in said


def test_a_damaged_model(capsys, trained, tmp_path):
    whole = trained.read_bytes()
    for number, content in enumerate((whole[: len(whole) // 2], b"", b"no model at all", _flipped(whole))):
        path = tmp_path / f"damaged{number}.npz"
        path.write_bytes(content)
        assert "is damaged" in refused(capsys, 3, "info", path)
    with np.load(trained) as stored:
        np.savez(tmp_path / "parts.npz", **{name: v for name, v in stored.items() if name != "model.centre"})
    assert "scaling is missing" in refused(capsys, 3, "info", tmp_path / "parts.npz")


def _flipped(content):
    """One byte in the middle of the largest array is another."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def test_a_bare_solution_is_no_model(capsys, trained, tmp_path):
    hj.Solution.load(trained).save(tmp_path / "bare.npz")
    assert "no model of `hyperjax tune`" in refused(capsys, 3, "info", tmp_path / "bare.npz")


def test_settings_of_the_process_are_put_back(trained, capsys):
    names = ("jax_enable_x64", "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [jax.config.values[name] for name in names]
    assert main(["info", str(trained)]) == 0
    assert [jax.config.values[name] for name in names] == before
    assert "support vectors" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["tune", "predict", "score", "export", "info"])
def test_help_names_the_exit_codes(capsys, command):
    assert main([command, "--help"]) == 0
    said = capsys.readouterr().out
    assert "exit codes:" in said and "130" in said
    assert command != "tune" or "scaling:" in said


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hyperjax {hj.__version__}\n"
