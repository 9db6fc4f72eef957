"""What once passed without a word: failures that had a gradient, losses that bend far out, criteria of another task."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.4 * RNG.normal(size=40) > 0.2, 1.0, -1.0)


class Given(hj.losses.Loss):
    def init(self, X, y):
        return {"C": 1.0}


class Truncated(Given):
    def phi(self, o, y, hp):
        return hp["C"] * jnp.minimum((o - y) ** 2, 25.0)


class Bounded(Given):
    labels = True

    def phi(self, o, y, hp):
        return hp["C"] * jnp.minimum(jnp.maximum(1.0 - y * o, 0.0), 9.0)


class Shifted(hj.losses.Loss):
    def phi(self, o, y, hp):
        return hp["C"] * jnp.logaddexp(0.0, o - y) + jnp.logaddexp(0.0, y - o) + hp["shift"]

    def init(self, X, y):
        return {"C": 1.0, "shift": 1.0}


def test_an_unfinished_solve_has_no_gradient():
    problem = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF())
    folds = hj.folds.kfold(40, 4, seed=0)

    def loss(solver):
        def value(hp):
            o = hj.cross_decision(problem, hp, X, Y, folds, solver=solver)
            return jnp.mean(jax.nn.softplus(-Y * o))

        return value

    hp, short = problem.init(X, Y), loss(hj.solvers.Newton(max_steps=1))
    assert all(np.isnan(leaf) for leaf in jax.tree.leaves(jax.grad(short)(hp)))
    assert all(np.isnan(leaf) for leaf in jax.tree.leaves(jax.jacfwd(short)(hp)))
    assert all(np.isfinite(leaf) for leaf in jax.tree.leaves(jax.grad(loss(None))(hp)))
    report = hj.check_hypergradient(short, hp)
    assert not report.trusted and "not solved" in report.advice()


def test_one_failed_fold_leaves_the_others_their_derivative():
    """Rows that a failed fold trained on and others test keep theirs."""
    problem, hp = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF()), {"loss": {"C": 1.0}, "kernel": {"gamma": 0.3}}
    folds = hj.folds.kfold(40, 4, seed=0)
    solution = hj.cross_solve(problem, hp, X, Y, folds)
    broken = solution.replace(code=solution.code.at[1].set(hj.Code.MAX_STEPS))
    mine = np.asarray(folds.test[1]) > 0

    def total(outputs, rows):
        return jnp.sum(jnp.where(rows, broken.replace(outputs=outputs).held_out(folds), 0.0))

    others = jax.grad(total)(solution.outputs, ~mine)
    assert np.all(np.isfinite(np.asarray(others)[[0, 2, 3]])) and np.any(np.asarray(others)[0] == 1.0)
    assert np.any(np.isnan(jax.grad(total)(solution.outputs, mine)[1]))


@pytest.mark.parametrize("loss", [Truncated(), Bounded()], ids=["squares", "hinge"])
def test_a_loss_that_bends_down_far_out_is_not_convex(loss):
    y = None if loss.labels else 100.0 + X[:12, 0]
    (found,) = (f for f in hj.check_loss(loss, X[:12], y, verbose=False).findings if f.what.startswith("convex"))
    assert not found.holds and "slope falls" in found.detail


def test_a_constant_is_no_effect():
    report = hj.check_loss(Shifted(), verbose=False)
    (found,) = (f for f in report.findings if "effect" in f.what)
    assert found.detail == "nothing moves with ['shift']"


@pytest.mark.parametrize("make", [hj.criteria.SmoothError, hj.criteria.LogLoss, hj.criteria.AUC, hj.criteria.ErrorRate])
def test_criteria_of_two_classes_refuse_a_regression(make):
    problem = hj.Problem(hj.losses.EpsilonInsensitive(), hj.kernels.RBF())
    with pytest.raises(ValueError, match="it judges two classes, -1 and \\+1, and y holds"):
        hj.methods.grid(problem, X, X[:, 0], 3, make(), {"loss.C": [1.0]}, progress=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": Y[:, None]}, "y.ravel()"),
        ({"weights": np.where(Y > 0, 0.0, 1.0)}, "one class only"),
        ({"criterion": lambda o, y: (o - y) ** 2}, r"criterion returned shape \(40,\)"),
        ({"callback": 3}, "callback=3"),
        ({"stages": [[]]}, "stages holds"),
        ({"inner_tol": 1e-30}, "inner_tol=1e-30 cannot be reached in float64: give at least 4.4e-15$"),
    ],
)
def test_arguments_of_tune(changes, words):
    given = {"problem": hj.Problem(), "X": X, "y": Y, "folds": 3, "progress": False, "max_steps": 1} | changes
    with pytest.raises(ValueError, match=words):
        hj.tune(**given)


def test_a_nested_score_says_what_it_cannot_take():
    with pytest.raises(ValueError, match="several searches"):
        hj.nested_score(hj.Problem(), X, Y, 2, 2, checkpoint="run.npz")
    with pytest.raises(ValueError, match="one value a row"):
        hj.nested_score(hj.Problem(), X, np.stack([Y, -Y]), 2, 2)
    with pytest.raises(ValueError, match="rows of features"):
        hj.nested_score(hj.Problem(kernel=hj.kernels.Precomputed()), X @ X.T, Y, 2, 2)


def test_phi_that_asks_for_what_init_does_not_give():
    class Asking(Given):
        def phi(self, o, y, hp):
            return hp["D"] * (o - y) ** 2

    with pytest.raises(ValueError, match=r"asks for hp\['D'\], which `init` does not give"):
        hj.solve(hj.Problem(Asking()), {"loss": {"C": 1.0}, "kernel": {"gamma": 1.0}}, X, X[:, 0])
    with pytest.raises(ValueError, match="hyperjax.multiclass"):
        hj.solve(hj.multiclass.CrammerSinger(classes=2), {}, X, Y)


def test_a_step_of_zero_and_no_numbers_are_refused():
    for given, words in (({"step": 0.0}, "step=0.0"), ({"directions": 0}, "directions=0")):
        with pytest.raises(ValueError, match=words):
            hj.check_hypergradient(lambda x: x**2, 1.0, **given)
    with pytest.raises(ValueError, match="holds no numbers"):
        hj.check_hypergradient(lambda x: jnp.zeros(()), {})


def test_what_runs_on_the_host_says_so_under_jit():
    for call, words in (
        (lambda X: hj.nested_score(hj.Problem(), X, Y).value, "a nested score is several searches"),
        (lambda X: hj.check_kernel(hj.kernels.RBF(), X).passed, "call check_kernel, outside jit"),
        (lambda X: hj.check_loss(hj.losses.Hinge(), X, Y).passed, "call check_loss, outside jit"),
        (lambda X: hj.check_hypergradient(jnp.sum, X).value, "call check_hypergradient, outside jit"),
    ):
        with pytest.raises(ValueError, match=f"is being traced: .*{words}"):
            jax.jit(call)(jnp.asarray(X))


def test_start_values_are_a_dict():
    class Bare(Given):
        def init(self, X, y):
            return [1.0]

        def phi(self, o, y, hp):
            return (o - y) ** 2

    with pytest.raises(ValueError, match="init of Bare returned a list: return a dict"):
        hj.solve(hj.Problem(Bare()), {"loss": [1.0], "kernel": {"gamma": 1.0}}, X, X[:, 0])


@pytest.mark.parametrize(
    "f",
    [
        lambda hp: hp["a"] if hp["a"] > 0 else 0.0,
        lambda hp: jnp.asarray(float(hp["a"])),
        lambda hp: np.sin(hp["a"]),
    ],
)
def test_a_function_that_looks_at_numbers_is_told_so(f):
    with pytest.raises(ValueError, match=r"f looks at the numbers .*jnp\.where"):
        hj.check_hypergradient(f, {"a": jnp.asarray(1.0)})


def test_a_criterion_that_looks_at_numbers_is_told_so():
    def mine(o, y):
        return np.mean(np.maximum(0.0, 1.0 - o * y))

    with pytest.raises(ValueError, match="criterion mine looks at the numbers"):
        hj.tune(hj.Problem(), X, Y, criterion=mine, progress=False)


def test_kinks_are_chosen_outside_jit():
    problem = hj.Problem()

    def norm(hp):
        return hj.subdifferential(problem, hp, X, Y, 4, hj.criteria.SmoothError()).norm

    with pytest.raises(ValueError, match="hp is being traced: .*outside jit"):
        jax.jit(norm)(problem.init(X, Y))


class ProxOffFarOut(Given):
    """Its prox forgets the slope beyond 20."""

    def phi(self, o, y, hp):
        return hp["C"] * jnp.abs(o - y)

    def prox(self, v, y, ts, hp):
        right = y + jnp.sign(v - y) * jnp.maximum(jnp.abs(v - y) - ts * hp["C"], 0.0)
        return jnp.where(jnp.abs(v) > 20.0, v, right)


def test_a_prox_is_looked_at_far_out():
    report = hj.check_loss(ProxOffFarOut(), verbose=False)
    assert [f.what for f in report.findings if not f.holds][0] == "the prox is the minimum it claims to be"


@pytest.mark.parametrize("share", ["a", True, 0.0, 1.0, None])
def test_a_share_that_is_none(share):
    result = hj.tune(hj.Problem(), X, Y, max_steps=1, progress=False)
    with pytest.raises(ValueError, match="share=.*between 0 and 1"):
        result.sensitivity(share)


def test_several_classes_need_two():
    problem = hj.multiclass.CrammerSinger(classes=3, kernel=hj.kernels.Linear())
    labels = np.ones(40, int)
    with pytest.raises(ValueError, match=r"one class only \(1\)"):
        hj.multiclass.solve(problem, problem.init(X, labels), X, labels)


@pytest.mark.filterwarnings("ignore:the optimum sits")
def test_a_search_that_ends_on_a_constant_prediction_says_so():
    rng = np.random.default_rng(3)
    rows, y = rng.normal(size=(60, 2)), np.where(np.arange(60) % 6 == 0, 1.0, -1.0)  # nothing to learn
    with pytest.warns(RuntimeWarning, match="no better than one prediction for every row"):
        result = hj.tune(hj.Problem(), rows, y, init={"loss": {"C": 1e-3}}, progress=False)
    assert result.hard >= 1 / 6 - 1e-6


@pytest.mark.parametrize(
    ("criterion", "right"),
    [
        (hj.criteria.SmoothError(), 0.25),
        (hj.criteria.BalancedError(), 0.5),
        (hj.criteria.WeightedError(kappa=0.1), 0.1 * 30 / 13.0),
        (hj.criteria.FMeasure(), 1.0 - 2 * 10 / (10 + 40)),
    ],
)
def test_the_value_of_a_constant_prediction(criterion, right):
    y = np.repeat([1.0, -1.0], [10, 30])
    assert criterion.constant(y, np.ones(40)) == pytest.approx(right)
    both = [float(criterion.hard_value(np.full(40, o), y)) for o in (-1.0, 1.0)]
    assert criterion.constant(y, np.ones(40)) == pytest.approx(min(both), abs=1e-7)


@pytest.mark.filterwarnings("ignore:the optimum sits")
def test_start_values_outside_their_bounds_are_told():
    bounds = {"loss.C": (0.1, 10.0)}
    with pytest.warns(RuntimeWarning, match=r"init: loss\.C = 100 lies outside its bounds"):
        hj.tune(hj.Problem(), X, Y, init={"loss": {"C": 100.0}}, bounds=bounds, max_steps=1, progress=False)


@pytest.mark.filterwarnings("ignore:the optimum sits", "ignore:held out")
def test_a_warning_names_the_entries_that_are_outside_and_not_all_of_many():
    problem = hj.Problem(hj.losses.PerSample(hj.losses.Hinge()), hj.kernels.RBF())
    C = np.where(np.arange(40) < 7, 50.0, 2.0)
    with pytest.warns(RuntimeWarning, match=r"init: loss\.C\[0\] = 50, .*loss\.C\[4\] = 50 and 2 more lies outside"):
        hj.tune(problem, X, Y, init={"loss": {"C": C}}, bounds={"loss.C": (0.1, 10.0)}, stages="full", max_steps=0)


@pytest.mark.filterwarnings("ignore:the optimum sits")
def test_own_start_values_move_into_bounds_quietly():
    result = hj.tune(hj.Problem(), X, Y, bounds={"loss.C": (5.0, 10.0)}, max_steps=1, progress=False)
    assert 5.0 - 1e-9 <= float(result.history[0]["hp"]["loss"]["C"]) <= 10.0


@pytest.mark.filterwarnings("ignore:the optimum sits")
def test_a_threshold_with_bounds_is_cut_within_them():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(80, 2))
    y = np.where(rows[:, 0] + rng.normal(size=80) > 1.5, 1.0, -1.0)
    criterion = hj.criteria.FMeasure(threshold="tuned")
    bounds = {"criterion.threshold": (-0.9, -0.1)}
    result = hj.tune(hj.Problem(), rows, y, criterion=criterion, bounds=bounds, max_steps=3, progress=False)
    assert -0.9 <= float(result.hp["criterion"]["threshold"]) <= -0.1
    first, second = (float(record["hp"]["criterion"]["threshold"]) for record in result.history[:2])
    assert first == pytest.approx(-0.1) and second != first
