"""What every criterion in `hyperjax.criteria.EXAMPLES` promises; the walk needs no list."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras

N, T = 14, 4
CRITERIA = hj.criteria.EXAMPLES
KINDS = {type(criterion).__name__ + str(i): criterion for i, criterion in enumerate(CRITERIA)}
SMOOTH = [name for name, criterion in KINDS.items() if criterion.smooth]
RNG = np.random.default_rng(4)
Y = np.where(np.arange(N) % 3 == 0, 1.0, -1.0)
OUTPUTS = RNG.normal(size=N) + 0.4 * Y
FOLDS = hj.folds.kfold(N - 2, T, seed=1)
FOLDS = FOLDS.replace(train=np.pad(FOLDS.train, ((0, 0), (0, 2))), test=np.pad(FOLDS.test, ((0, 0), (0, 2))))
"""The last two rows are in no test mask."""
WEIGHTS = np.where(np.arange(N) == 4, 0.0, RNG.uniform(0.5, 2.0, size=N))


def quick(f):
    return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


def start(criterion):
    return {"criterion": jax.tree.map(lambda v: jnp.asarray(v + 0.1), criterion.init(Y))}


@functools.cache
def program(name):
    """(outputs (k, N), weights (N,), hp) -> values, hard values and gradients, one row each."""

    def one(criterion, o, y, folds, w, hp):
        value, gradient = jax.value_and_grad(lambda o, hp: criterion(o, y, folds, hp, w), argnums=(0, 1))(o, hp)
        return value, criterion.hard_value(o, y, folds, hp, w), *gradient

    batched = quick(jax.vmap(one, (None, 0, None, None, None, None)))
    return lambda outputs, w, hp, y=Y, folds=FOLDS: batched(KINDS[name], jnp.asarray(outputs), y, folds, w, hp)


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_ones_have_the_derivatives_of_differences(name):
    """First derivatives in the outputs and in the criterion's own hyperparameters, second ones in the outputs."""
    criterion, h = KINDS[name], 1e-5
    run, hp = program(name), start(criterion)
    steps = h * np.eye(N)
    value, _, gradient, _ = run(np.concatenate([OUTPUTS + steps, OUTPUTS - steps]), WEIGHTS, hp)
    _, _, at, own_at = run(OUTPUTS[None], WEIGHTS, hp)
    np.testing.assert_allclose(at[0], (value[:N] - value[N:]) / (2 * h), atol=1e-8)
    assert np.abs(at[0]).max() > 1e-3

    def gradient_of(o, criterion, hp):
        return jax.grad(lambda o: criterion(o, Y, FOLDS, hp, WEIGHTS))(o)

    forward, backward = quick(
        lambda *args: (jax.jacfwd(gradient_of)(*args), jax.jacrev(gradient_of)(*args)),
    )(jnp.asarray(OUTPUTS), criterion, hp)
    np.testing.assert_allclose(forward, (gradient[:N] - gradient[N:]) / (2 * h), atol=1e-7)
    np.testing.assert_allclose(backward, forward, atol=1e-11)
    for key, derivative in own_at["criterion"].items():
        ends = [run(OUTPUTS[None], WEIGHTS, {"criterion": hp["criterion"] | {key: hp["criterion"][key] + s}})[0][0]
                for s in (h, -h)]  # fmt: skip
        np.testing.assert_allclose(derivative[0], (ends[0] - ends[1]) / (2 * h), atol=1e-8)
        assert abs(float(derivative[0])) > 1e-4


@pytest.mark.parametrize("name", KINDS)
def test_blind_to_rows_without_weight(name):
    """Outputs of rows no fold tests, or of weight 0, may be anything, even NaN; they get no gradient."""
    absent = [4, N - 2, N - 1]
    other = OUTPUTS.copy()
    other[absent] = [np.nan, 1e6, -np.inf]
    value, hard, gradient, _ = program(name)(np.stack([OUTPUTS, other]), WEIGHTS, start(KINDS[name]))
    assert np.isfinite(value[0]) and value[0] >= 0.0
    np.testing.assert_allclose(value[1], value[0], rtol=1e-14)
    np.testing.assert_allclose(hard[1], hard[0], rtol=1e-14)
    np.testing.assert_allclose(gradient[1], gradient[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(np.asarray(gradient)[:, absent], 0.0)


@pytest.mark.parametrize("name", KINDS)
def test_a_failed_fold_is_seen(name):
    """NaN outputs of tested rows give a NaN value and a NaN hard value, never a count."""
    failed = np.where(np.asarray(FOLDS.test[1]) > 0, np.nan, OUTPUTS)
    value, hard, _, _ = program(name)(failed[None], WEIGHTS, start(KINDS[name]))
    assert np.isnan(value[0]) and np.isnan(hard[0])


@pytest.mark.parametrize("name", KINDS)
def test_order_of_rows_and_folds_does_not_matter(name):
    p = np.random.default_rng(5).permutation(N)
    turned = FOLDS.replace(train=FOLDS.train[::-1, p], test=FOLDS.test[::-1, p])
    hp, run = start(KINDS[name]), program(name)
    there = run(OUTPUTS[None], WEIGHTS, hp)
    back = run(OUTPUTS[None, p], WEIGHTS[p], hp, Y[p], turned)
    for a, b in zip(there[:2], back[:2], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11)
    np.testing.assert_allclose(back[2][0], there[2][0][p], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", KINDS)
def test_whole_weights_are_repeated_rows(name):
    """Weight 2 counts a row twice, in the value and in the hard value."""
    run, hp = program(name), start(KINDS[name])
    everything = hj.folds.kfold(N, T)
    twice = np.r_[0 : N - 5, 0:5]
    weighted = np.repeat([2.0, 1.0, 0.0], [5, N - 10, 5])
    plain, once = np.ones(N), np.repeat([1.0, 0.0], [N - 5, 5])
    repeated = run(OUTPUTS[None, twice], plain, hp, Y[twice], everything)
    found = run(OUTPUTS[None], weighted, hp, Y, everything)
    np.testing.assert_allclose(found[0], repeated[0], rtol=1e-10)
    np.testing.assert_allclose(found[1], repeated[1], rtol=1e-10)
    assert abs(float(found[0][0]) - float(run(OUTPUTS[None], once, hp, Y, everything)[0][0])) > 1e-4


@pytest.mark.parametrize("criterion", [hj.criteria.FMeasure(), hj.criteria.PlattLoss(), hj.criteria.AUC()])
def test_repeats_are_averaged(criterion):
    """Two splits into folds: the mean of the values of each, each with its own tested rows."""
    second = np.roll(FOLDS.test, 3, axis=1)
    both = hj.Folds(np.tile(FOLDS.train, (2, 1)), np.concatenate([FOLDS.test, second]), repeats=2)
    outputs = np.stack([OUTPUTS, OUTPUTS[::-1]])
    call = quick(lambda o, folds: (criterion(o, Y, folds, {}, WEIGHTS), criterion.hard_value(o, Y, folds, {}, WEIGHTS)))
    parts = [call(outputs[0], FOLDS), call(outputs[1], FOLDS.replace(test=second))]
    assert abs(float(parts[0][0]) - float(parts[1][0])) > 1e-6
    np.testing.assert_allclose(call(outputs, both), np.mean(parts, axis=0), rtol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_domains_lie_beside_its_hyperparameters(name):
    criterion = KINDS[name]
    own = criterion.init(Y)
    domains = criterion.domain_tree(own)
    assert domains.keys() == own.keys()
    for key, value in own.items():
        assert domains[key].problem_with(np.asarray(value)) is None
    assert criterion.problem_with(Y) is None


def test_every_criterion_has_an_example():
    shipped = {value for value in vars(hj.criteria).values() if isinstance(value, type)} - {hj.criteria.Criterion}
    assert {type(criterion) for criterion in CRITERIA} == {c for c in shipped if issubclass(c, hj.criteria.Criterion)}
