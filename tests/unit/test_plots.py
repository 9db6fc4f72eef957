"""The displays draw what the result says: data on the axes, labels, scales, and clear words for what does not fit."""

import dataclasses
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.svm import SVC

import hyperjax as hj
from hyperjax import plots
from hyperjax.history import History


@pytest.fixture(autouse=True)
def _closed():
    with mpl.rc_context():
        plt.switch_backend("Agg")
        yield
        plt.close("all")


@dataclasses.dataclass
class Result:
    """A search made up for the pictures."""

    problem: hj.Problem
    hp: dict
    start: dict
    history: History
    folds: object
    solution: object
    criterion: object = dataclasses.field(default_factory=hj.criteria.SmoothError)


def records(hps, stages=None, hard=0.1):
    values = np.linspace(0.5, 0.3, len(hps))
    return History(
        {
            "step": i, "stage": "full" if stages is None else stages[i], "hp": hp, "value": values[i], "hard": hard,
            "objective": values[i], "gradient_norm": 0.1 ** (i + 1), "evaluations": 2 * i + 1,
        }
        for i, hp in enumerate(hps)
    )  # fmt: skip


def tree(C, gamma):
    return {"loss": {"C": np.asarray(C)}, "kernel": {"gamma": np.asarray(gamma)}}


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    hps = [tree(1.0, 0.5), tree(3.0, 0.4), tree(10.0, 0.2)]
    folds = hj.folds.stratified(y, 3, seed=0)
    solution = SimpleNamespace(X=X, z=np.zeros(24))
    return Result(hj.Problem(), hps[-1], hps[0], records(hps), folds, solution), X, y


def test_path(plane):
    result, X, y = plane
    display = plots.PathDisplay.from_result(result, X, y, resolution=4)
    axis = display.axes_[0]
    assert display.figure_ is axis.figure and (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("C", "gamma")
    np.testing.assert_array_equal(display.path, [[1.0, 0.5], [3.0, 0.4], [10.0, 0.2]])
    steps = next(line for line in axis.lines if line.get_label() == "steps")
    np.testing.assert_array_equal(steps.get_xydata(), display.path)
    np.testing.assert_allclose(display.xs[[0, -1]], [0.1, 100.0])
    np.testing.assert_allclose(display.ys[[0, -1]], [0.02, 5.0])
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert texts == ["steps", "start", "end"]
    assert display.values[1, 2] == pytest.approx(_error(result, X, y, display.xs[2], display.ys[1]), abs=1e-6)


def _error(result, X, y, C, gamma):
    """The smoothed error of LIBSVM's held-out outputs: mean sigmoid(-10 y o / std(o))."""
    o = np.zeros(len(y))
    for test in np.asarray(result.folds.test) > 0:
        o[test] = SVC(C=C, gamma=gamma, tol=1e-10).fit(X[~test], y[~test]).decision_function(X[test])
    return np.mean(1.0 / (1.0 + np.exp(10.0 * y * o / np.std(o))))


def test_path_of_several_starts(plane):
    """Each start has a path of its own, and the star stands at the result, wherever in the history it was found."""
    result, X, y = plane
    history = History([{**record, "start": start} for record, start in zip(result.history, (0, 1, 1), strict=True)])
    told = dataclasses.replace(result, history=history, hp=result.history[1]["hp"])
    display = plots.PathDisplay.from_result(told, X, y, function=lambda points: points[:, 0])
    lines = [line.get_xdata().tolist() for line in display.axes_[0].lines if line.get_marker() == "o"]
    assert lines == [[1.0], [3.0, 10.0]]
    squares, star = (part.get_offsets() for part in display.axes_[0].collections[-2:])
    np.testing.assert_allclose(squares, [[1.0, 0.5], [3.0, 0.4]])
    np.testing.assert_allclose(star, [[3.0, 0.4]])
    marked = plots.ConvergenceDisplay.from_result(told).axes_[0].texts
    assert [text.get_text() for text in marked] == ["full", "start 2"]


def test_path_with_a_function_of_ones_own(plane):
    result, X, y = plane
    display = plots.PathDisplay.from_result(result, X, y, resolution=5, function=lambda points: points[:, 0])
    np.testing.assert_allclose(display.values, np.tile(display.xs, (5, 1)))


def test_path_shows_where_solves_failed(plane):
    result, X, y = plane
    display = plots.PathDisplay.from_result(
        result, X, y, resolution=5, function=lambda p: np.where(p[:, 0] > 10.0, np.nan, p[:, 0])
    )
    display.figure_.canvas.draw()
    assert np.isnan(display.values).any()


def test_path_refuses_vectors_and_unknown_names(plane):
    result, X, y = plane
    several = dataclasses.replace(result, hp=tree(1.0, [0.1, 0.2]), problem=hj.Problem(kernel=hj.kernels.ARD()))
    with pytest.raises(ValueError, match=r"kernel.gamma has 2 entries"):
        plots.PathDisplay.from_result(several, X, y)
    with pytest.raises(ValueError, match=r"no hyperparameter 'loss.D'; there are loss.C, kernel.gamma"):
        plots.PathDisplay.from_result(result, X, y, names=("loss.D", "loss.C"))
    with pytest.raises(ValueError, match="pass the same rows"):
        plots.PathDisplay.from_result(result, X[:5], y[:5])


def test_convergence():
    hps = [tree(1.0, 0.5)] * 5
    result = SimpleNamespace(
        history=records(hps, ["isotropic", "isotropic", "full", "full", "full"]), criterion=hj.criteria.SmoothError()
    )
    display = plots.ConvergenceDisplay.from_result(result)
    above, below = display.axes_
    np.testing.assert_allclose(above.lines[0].get_xydata(), [[1, 0.5], [3, 0.45], [5, 0.4], [7, 0.35], [9, 0.3]])
    np.testing.assert_allclose(above.lines[1].get_ydata(), 0.1)
    np.testing.assert_allclose(below.lines[0].get_ydata(), 0.1 ** np.arange(1, 6))
    assert below.get_yscale() == "log"
    assert [text.get_text() for text in above.texts] == ["isotropic", "full"]
    marks = [line for line in above.lines if line.get_linestyle() == ":"]
    assert [line.get_xdata()[0] for line in marks] == [5]


def test_convergence_without_a_hard_counterpart():
    result = SimpleNamespace(history=records([tree(1.0, 0.5)] * 3, hard=None), criterion=lambda o, y: 0.0)
    display = plots.ConvergenceDisplay.from_result(result)
    assert len(display.axes_[0].lines) == 1


def test_relevance():
    gamma, start = np.array([0.1, 3.0, 0.5, 1e-4]), np.full(4, 0.25)
    result = SimpleNamespace(hp=tree(1.0, gamma), start=tree(1.0, start))
    display = plots.RelevanceDisplay.from_result(result, ["a", "b", "c", "d"], top=3)
    axis = display.axes_[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["b", "c", "a"]
    tuned = next(part for part in axis.collections if part.get_label() == "tuned")
    np.testing.assert_allclose(tuned.get_offsets(), [[3.0, 0], [0.5, 1], [0.1, 2]])
    assert axis.get_xscale() == "log" and axis.yaxis_inverted() and display.left_out == 1
    assert "3 largest of 4" in axis.get_title(loc="left")
    plain = plots.RelevanceDisplay.from_result(result)
    assert plain.names == ["feature 1", "feature 2", "feature 0", "feature 3"]


def test_relevance_refuses_what_it_cannot_show():
    result = SimpleNamespace(hp=tree(1.0, 0.5), start=tree(1.0, 0.5))
    with pytest.raises(ValueError, match="need an ARD kernel"):
        plots.RelevanceDisplay.from_result(result)
    result = SimpleNamespace(hp=tree(1.0, [0.5, 0.1]), start=tree(1.0, [0.5, 0.5]))
    with pytest.raises(ValueError, match="features has 3 names, and kernel.gamma has 2"):
        plots.RelevanceDisplay.from_result(result, ["a", "b", "c"])


def test_kernel_weights():
    kernel = hj.kernels.Weighted([hj.kernels.Linear(), hj.kernels.RBF(columns=(1,)), hj.kernels.RBF(columns=(0, 2))])
    hp = {"loss": {"C": 1.0}, "kernel": {"beta": np.array([0.7, 0.0, 0.2]), "kernels": [{}, {}, {}]}}
    start = {"loss": {"C": 1.0}, "kernel": {"beta": np.full(3, 1 / 3), "kernels": [{}, {}, {}]}}
    result = SimpleNamespace(problem=hj.Problem(kernel=kernel), hp=hp, start=start)
    display = plots.KernelWeightsDisplay.from_result(result)
    assert display.names == ["linear", "rbf (column 1)", "rbf (2 columns)"]
    np.testing.assert_allclose([bar.get_width() for bar in display.axes_[0].patches], [0.7, 0.0, 0.2])
    with pytest.raises(ValueError, match="names has 2 entries"):
        plots.KernelWeightsDisplay.from_result(result, ["a", "b"])
    with pytest.raises(ValueError, match="no kernel.beta"):
        plots.KernelWeightsDisplay.from_result(SimpleNamespace(hp=tree(1.0, 0.5)))


def test_curves(plane):
    result, X, y = plane
    criteria = [hj.criteria.SmoothError(), hj.criteria.LogLoss()]
    display = plots.CurvesDisplay.from_result(result, X, y, criteria=criteria, resolution=5)
    assert list(display.values) == ["smooth error", "log loss"] and len(display.axes_) == 2
    np.testing.assert_allclose(display.grid, 10.0 ** np.linspace(-1, 3, 5))
    for C, value in zip(display.grid[2:4], display.values["smooth error"][2:4], strict=True):
        assert value == pytest.approx(_error(result, X, y, C, 0.2), abs=1e-6)
    assert [axis.get_title() for axis in display.axes_] == ["smooth error", "log loss"]
    assert all(axis.get_xscale() == "log" and axis.get_xlabel() == "C" for axis in display.axes_)
    guide = next(line for line in display.axes_[0].lines if line.get_label() == "tuned")
    assert guide.get_xdata()[0] == 10.0
    display.figure_.canvas.draw()


def test_all_criteria_that_suit_the_targets_are_taken(plane):
    _, _, y = plane
    chosen = {type(criterion).__name__ for criterion in plots.curves.suitable(True, y)}
    assert {"SmoothError", "FMeasure", "AUC", "LogLoss", "HingeLoss"} <= chosen
    assert not {"R2", "SquaredError", "AbsoluteError"} & chosen
    chosen = {type(criterion).__name__ for criterion in plots.curves.suitable(False, np.linspace(0.0, 1.0, 9))}
    assert chosen == {"R2", "SquaredError", "AbsoluteError"}


def test_pictures_go_on_axes_of_ones_own():
    figure, axes = plt.subplots(1, 2)
    result = SimpleNamespace(hp=tree(1.0, [0.5, 0.1]), start=tree(1.0, [0.5, 0.5]))
    display = plots.RelevanceDisplay.from_result(result, ax=axes[1])
    assert display.axes_[0] is axes[1] and display.figure_ is figure
    history = SimpleNamespace(history=records([tree(1.0, 0.5)] * 3), criterion=hj.criteria.SmoothError())
    with pytest.raises(ValueError, match="1 axes, and this picture has 2 panels"):
        plots.ConvergenceDisplay.from_result(history, ax=axes[0])
