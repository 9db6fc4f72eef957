"""Do the estimators keep scikit-learn's rules, and do they end in the models scikit-learn fits at the same values?

Compiling takes nearly all of the time: two folds, few rows and default kernels let the tests share programs.
"""

import pickle

import jax
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import hyperjax as hj
from hyperjax.sklearn import TunedLinearSVC, TunedLinearSVR, TunedMKLClassifier, TunedSVC, TunedSVR
from hyperjax.sklearn.frames import COLUMNS, SMALLEST

SHORT = {"cv": 2, "max_steps": 2}
CHECKED = [
    TunedSVC(**SHORT),
    TunedLinearSVC(**SHORT),
    TunedMKLClassifier(kernels=("linear", "rbf"), loss="squared_hinge", bias=False, **SHORT),
    # a second step would resolve differences of 1e-6 in the criterion: every row of the check with weights has a copy
    # in the other folds, and the best tube is one of no width
    TunedSVR(cv=2, max_steps=1),
    TunedLinearSVR(**SHORT),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(150, noise=0.3, random_state=0)
    return X, np.where(y == 1, "yes", "no")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def tuned(moons):
    return TunedSVC(cv=2, probability=True).fit(*moons)


@pytest.fixture(scope="module")
def tuned_iris(iris):
    return TunedSVC(cv=2, probability=True).fit(*iris)


def twin(model, **kwargs):
    """scikit-learn's SVC at the values found."""
    return SVC(C=model.best_params_["C"], gamma=model.best_params_["gamma"], tol=1e-10, **kwargs)


def close(a, b, tol=1e-6):
    np.testing.assert_allclose(a, b, rtol=0, atol=tol)


def test_the_final_model_is_the_svc_at_the_tuned_values(moons, tuned):
    X, y = moons
    peer = twin(tuned).fit(X, y)
    close(tuned.decision_function(X), peer.decision_function(X))
    assert np.array_equal(tuned.predict(X), peer.predict(X))
    assert np.array_equal(tuned.support_, np.sort(peer.support_))
    assert tuned.score(X, y) == peer.score(X, y)


def test_the_best_score_is_the_cross_validated_accuracy_and_the_search_improved_on_its_start(moons, tuned):
    X, y = moons
    held_out = cross_val_predict(twin(tuned), X, y, cv=StratifiedKFold(2))
    assert tuned.best_score_ == pytest.approx(accuracy_score(y, held_out), abs=1e-12)
    steps = tuned.cv_results_
    assert steps["value"][tuned.best_index_] == steps["value"].min() < 0.95 * steps["value"][0]
    assert steps["mean_test_score"][tuned.best_index_] == tuned.best_score_
    assert steps["param_C"][0] == 1.0 and steps["param_gamma"][0] == pytest.approx(1.0 / (2.0 * X.var()))
    assert steps["params"][tuned.best_index_] == tuned.best_params_
    assert {len(column) for column in steps.values()} == {tuned.n_iter_ + 1}
    assert set(steps["rank_test_score"]) >= {1}


def test_many_classes_are_one_against_the_rest_over_one_kernel(iris, tuned_iris):
    X, y = iris
    peer = OneVsRestClassifier(twin(tuned_iris)).fit(X, y)
    close(tuned_iris.decision_function(X), peer.decision_function(X))
    assert np.array_equal(tuned_iris.predict(X), peer.predict(X))
    held_out = [
        accuracy_score(y == c, cross_val_predict(twin(tuned_iris), X, y == c, cv=StratifiedKFold(2).split(X, y)))
        for c in range(3)
    ]
    assert tuned_iris.best_score_ == pytest.approx(np.mean(held_out), abs=1e-12)


def test_probabilities_are_those_of_platts_sigmoid_on_held_out_outputs(moons, tuned):
    X, y = moons
    peer = CalibratedClassifierCV(twin(tuned), cv=StratifiedKFold(2), ensemble=False).fit(X, y)
    p = tuned.predict_proba(X)
    close(p, peer.predict_proba(X), 1e-4)
    close(np.exp(tuned.predict_log_proba(X)), p, 1e-12)
    order = np.argsort(tuned.decision_function(X))
    assert np.all(np.diff(p[order, 1]) >= 0)


def test_probabilities_of_many_classes_are_normalised(iris, tuned_iris):
    X, y = iris
    one_against_rest = OneVsRestClassifier(twin(tuned_iris))
    peer = CalibratedClassifierCV(one_against_rest, cv=StratifiedKFold(2), ensemble=False).fit(X, y)
    close(tuned_iris.predict_proba(X), peer.predict_proba(X), 1e-4)


def test_probabilities_are_there_only_when_asked_for(moons):
    assert not hasattr(TunedSVC(), "predict_proba")
    assert hasattr(TunedSVC(probability=True), "predict_proba")


def test_class_weights_multiply_sample_weights(moons, rng):
    X, y = moons
    w, factor = rng.uniform(0.5, 2.0, size=len(y)), {"no": 3.0, "yes": 0.5}
    model = TunedSVC(cv=2, class_weight=factor).fit(X, y, sample_weight=w)
    by_hand = TunedSVC(cv=2).fit(X, y, sample_weight=w * np.where(y == "no", 3.0, 0.5))
    # the start width follows the sample weights alone
    by_hand.set_params(init={"gamma": model.result_.start["kernel"]["gamma"]}).fit(
        X, y, sample_weight=w * np.where(y == "no", 3.0, 0.5)
    )
    close(model.decision_function(X), by_hand.decision_function(X), 1e-10)
    peer = twin(model, class_weight=factor).fit(X, y, sample_weight=w)
    close(model.decision_function(X), peer.decision_function(X))


def test_balanced_classes_have_equal_weight(moons):
    X, y = moons
    X, y = X[(y == "no") | (np.arange(150) < 60)], y[(y == "no") | (np.arange(150) < 60)]
    model = TunedSVC(cv=2, class_weight="balanced").fit(X, y)
    close(model.decision_function(X), twin(model, class_weight="balanced").fit(X, y).decision_function(X))


def test_linear_classifiers_are_liblinears(iris):
    X, y = iris
    for classes in (2, 3):
        Xk, yk = X[y < classes], y[y < classes]
        model = TunedLinearSVC(cv=2).fit(Xk[:, :2], yk)
        peer = LinearSVC(C=model.best_params_["C"], dual=False, tol=1e-12, max_iter=10000).fit(Xk[:, :2], yk)
        close(model.coef_, peer.coef_)
        close(model.intercept_, peer.intercept_)
        close(model.decision_function(Xk[:, :2]), peer.decision_function(Xk[:, :2]))


def test_regression_is_the_svr_at_the_tuned_values(rng):
    X = rng.normal(size=(120, 3))
    y = 40.0 * np.sin(2.0 * X[:, 0]) + 100.0 + 15.0 * rng.normal(size=120)
    model = TunedSVR(cv=2).fit(X, y)
    found = model.best_params_
    peer = SVR(C=found["C"], gamma=found["gamma"], epsilon=found["eps"], tol=1e-9).fit(X, y)
    # LIBSVM keeps its kernel in 32 bits: C times their rounding shows
    close(model.predict(X), peer.predict(X), 1e-5 * np.abs(y).max())
    assert model.best_score_ == pytest.approx(r2_score(y, cross_val_predict(peer, X, y, cv=2)), abs=1e-5)
    assert model.best_score_ > cross_val_score(SVR(), X, y, cv=2).mean() + 0.2


def test_linear_regression_is_liblinears(rng):
    X = rng.normal(size=(100, 4))
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 * rng.normal(size=100)
    model = TunedLinearSVR(cv=2, bias="regularised").fit(X, y)
    found = model.best_params_
    peer = LinearSVR(
        C=found["C"], epsilon=found["eps"], loss="squared_epsilon_insensitive", dual=False, tol=1e-12, max_iter=10000
    ).fit(X, y)
    close(model.coef_, peer.coef_)
    close(model.intercept_, peer.intercept_)
    close(model.predict(X), X @ model.coef_ + model.intercept_)


def test_kernel_weights_find_the_kernel_that_helps(rng):
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = TunedMKLClassifier(kernels=("linear", "rbf"), loss="squared_hinge", bias=False, cv=2).fit(X, y)
    assert model.kernel_weights_.shape == (2,)
    assert model.kernel_weights_[1] > 10 * model.kernel_weights_[0]
    assert model.best_score_ > 0.9 and "kernels.1.gamma" in model.best_params_


def test_a_tuned_threshold_moves_the_predictions(rng):
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 1.5).astype(int)
    f = TunedLinearSVC(cv=2, criterion=hj.criteria.FMeasure(threshold="tuned")).fit(X, y)
    threshold = f.best_params_["threshold"]
    assert threshold < -0.1
    assert np.array_equal(f.predict(X), (f.decision_function(X) > 0).astype(int))
    outputs = np.asarray(f.result_.decision(X))
    close(f.decision_function(X), outputs - threshold, 1e-10)
    close(f.decision_function(X), X @ f.coef_[0] + f.intercept_[0], 1e-10)
    peer = LinearSVC(C=f.best_params_["C"], dual=False, tol=1e-12)
    held_out = cross_val_predict(peer, X, y, cv=StratifiedKFold(2), method="decision_function")
    assert f.best_score_ == pytest.approx(f1_score(y, held_out > threshold), abs=1e-12)


def test_a_function_as_criterion_sees_the_rows_given_and_no_others(moons):
    X, y = moons

    def log_loss(o, y):
        return jax.numpy.mean(jax.numpy.logaddexp(0.0, -y * o))

    ours, theirs = (TunedLinearSVC(cv=2, criterion=c).fit(X, y) for c in (hj.criteria.LogLoss(), log_loss))
    close(ours.cv_results_["value"], theirs.cv_results_["value"], 1e-9)
    assert theirs.best_score_ == -theirs.result_.value and ours.best_score_ > 0.8


def test_pipelines_cross_validation_and_clone(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), TunedSVC(cv=2, max_steps=3))
    scores = cross_val_score(pipeline, X, y, cv=3, error_score="raise")
    assert scores.min() > 0.8
    assert clone(pipeline).get_params()["tunedsvc__max_steps"] == 3


def test_kernels_and_losses_as_parameters_survive_clone_and_pickle(moons, tuned):
    X, y = moons
    model = TunedSVC(hj.kernels.RBF(), hj.losses.Hinge(), cv=2)
    copy = clone(model)
    assert isinstance(copy.kernel, hj.kernels.RBF) and copy.kernel is not model.kernel
    assert copy.fit(X, y).best_params_ == tuned.best_params_
    again = pickle.loads(pickle.dumps(copy))
    with jax.enable_x64(False):
        assert np.array_equal(again.decision_function(X), copy.decision_function(X))


def test_64_bits_whatever_jax_is_set_to(moons, tuned):
    X, y = moons
    with jax.enable_x64(False):
        model = TunedSVC(cv=2).fit(X, y)
        assert model.decision_function(X).dtype == np.float64
        assert np.asarray(jax.numpy.ones(1)).dtype == np.float32
    assert model.best_params_ == tuned.best_params_
    assert all(np.asarray(leaf).dtype != np.float32 for leaf in jax.tree.leaves(model.result_.solution))


def test_sparse_rows_are_the_same_rows(moons, tuned):
    X, y = moons
    model = TunedSVC(cv=2).fit(scipy.sparse.csr_matrix(X), y)
    assert np.array_equal(model.decision_function(scipy.sparse.csc_array(X)), tuned.decision_function(X))


def test_data_frames_give_their_column_names(moons):
    pandas = pytest.importorskip("pandas")
    X, y = moons
    frame = pandas.DataFrame(X, columns=["left", "right"])
    model = TunedSVC(cv=2, max_steps=1).fit(frame, pandas.Series(y))
    assert list(model.feature_names_in_) == ["left", "right"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["right", "left"]])


def test_groups_are_never_divided(moons, rng):
    X, y = moons
    groups = rng.integers(0, 12, size=len(y))
    model = TunedSVC(cv=2, max_steps=1).fit(X, y, groups=groups)
    folds = model.result_.folds
    assert all(len(np.unique(folds.test[:, groups == g], axis=1).T) == 1 for g in range(12))
    by_splitter = TunedSVC(cv=GroupKFold(2), max_steps=1).fit(X, y, groups=groups)
    for test, (_train, rows) in zip(by_splitter.result_.folds.test, GroupKFold(2).split(X, y, groups), strict=True):
        assert np.array_equal(np.flatnonzero(test), rows)


def test_small_data_share_one_program(moons, caplog):
    X, y = moons
    model = TunedLinearSVC(cv=2, loss="logistic", max_steps=1)

    def compiled_in_the_frame(X, y):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level("WARNING"):
            model.fit(X, y).predict(X[:50])
        return [line for line in caplog.messages if line.startswith("Compiling") and f"[{SMALLEST},{COLUMNS}]" in line]

    assert compiled_in_the_frame(X, y)
    assert not compiled_in_the_frame(np.c_[X, X, X][:97], y[:97])


def test_bounds_hold_and_init_go_by_short_names(rng):
    X = rng.normal(size=(60, 3))
    y = X.sum(axis=1) + 0.5 * rng.normal(size=60)
    model = TunedLinearSVR(cv=2, max_steps=3, init={"eps": 0.7}, hold=["eps"], bounds={"C": (1e-4, 1e-2)})
    with pytest.warns(RuntimeWarning, match="bounds of loss.C"):
        model.fit(X, y)
    assert model.best_params_["eps"] == pytest.approx(0.7)
    assert model.best_params_["C"] == pytest.approx(1e-2)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (TunedSVC(kernel="gauss"), "no kernel 'gauss'; choose one of .*rbf"),
        (TunedSVC(loss="hnige"), "no loss 'hnige'"),
        (TunedSVC(criterion="accuracy"), "no criterion 'accuracy'"),
        (TunedSVC(init={"gama": 1.0}), r"init names \['gama'\].*gamma"),
        (TunedSVC(init={"gamma": [1.0, 2.0]}), "one number"),
        (TunedSVC(init=3.0), "init is a float"),
        (TunedSVC(hold=["gama"]), "hold names 'gama'"),
        (TunedSVC(cv=1), "at least 2 folds"),
        (TunedSVR(loss="hinge"), "is for classes"),
    ],
)
def test_wrong_parameters_are_named(estimator, message, rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


def test_a_class_of_one_row_cannot_be_cross_validated(rng):
    with pytest.raises(ValueError, match="class 2 has only 1 member"):
        TunedSVC().fit(rng.normal(size=(21, 2)), np.r_[np.arange(20) % 2, 2])


def test_probabilities_cannot_be_asked_of_the_unfitted():
    with pytest.raises(AttributeError, match="predict_proba"):
        TunedSVC().predict_proba(np.zeros((2, 2)))
