"""BLAS is kept to one thread while somebody asks for it, and no longer."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import hyperjax as hj
from hyperjax import threads

pools = pytest.importorskip("threadpoolctl")


def found():
    return [pool["num_threads"] for pool in pools.threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def two(monkeypatch):
    """Two threads and few cores, whatever the machine has."""
    monkeypatch.setattr(threads, "FEW_CORES", 10**6)
    scipy.linalg.cholesky(np.eye(2))
    with pools.threadpool_limits(limits=2, user_api="blas"):
        if found() != [2] * len(found()):
            pytest.skip("this BLAS has one thread only")
        yield


def test_one_thread_inside_and_as_many_as_before_outside(two):
    with hj.one_blas_thread():
        assert set(found()) == {1}
        with hj.one_blas_thread():
            assert set(found()) == {1}
        assert set(found()) == {1}
    assert set(found()) == {2}
    with pytest.raises(KeyError), hj.one_blas_thread():
        raise KeyError
    assert set(found()) == {2}


def test_the_one_that_came_first_undoes_it(two):
    """Limits that another thread sets or undoes were seen to change nothing."""
    first, second = threading.Event(), threading.Event()

    def outlives():
        with hj.one_blas_thread():
            first.set()
            second.wait(10)

    thread = threading.Thread(target=outlives)
    with hj.one_blas_thread():
        thread.start()
        assert first.wait(10)
    assert set(found()) == {2}
    second.set()
    thread.join()
    assert set(found()) == {2}


def test_many_cores_are_left_alone(two, monkeypatch):
    monkeypatch.setattr(threads, "FEW_CORES", 0)
    with hj.one_blas_thread():
        assert set(found()) == {2}


def test_a_search_is_inside_and_leaves_nothing_behind(two):
    rng, seen = np.random.default_rng(0), []
    X = jnp.asarray(rng.normal(size=(40, 2)))
    y = jnp.where(X[:, 0] > 0, 1.0, -1.0)
    problem = hj.Problem(hj.losses.SquaredHinge(), hj.kernels.RBF())
    for search in (hj.tune, hj.methods.grid):
        search(problem, X, y, 2, hj.criteria.LogLoss(), progress=False, callback=lambda record: seen.append(found()))
        assert set(seen.pop()) == {1} and set(found()) == {2}
    jax.clear_caches()
