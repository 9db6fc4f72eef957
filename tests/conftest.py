"""The strict setting every test runs in: 64-bit floats, no silent promotion, no silent broadcasting."""

import atexit
import os
import shutil
import tempfile

FLOAT32 = os.environ.get("HYPERJAX_TEST_FLOAT32") == "1"

# Workers side by side, each with threads for every processor, spend their time waiting for each other: one worker, one
# processor.  XLA counts those it may use when it starts.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if _worker and hasattr(os, "sched_setaffinity"):
    _processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {_processors[int(_worker.removeprefix("gw")) % len(_processors)]})

# The suite compiles far more than it computes, and most of that goes into making code fast.  The float32 leg keeps the
# compiler as people have it, and an option that is set already stays as it is.
QUICK_COMPILE = {"--xla_backend_optimization_level": "0", "--xla_cpu_use_fusion_emitters": "false"}
_given = os.environ.get("XLA_FLAGS", "")
if not FLOAT32 and not any(option in _given for option in QUICK_COMPILE):
    _added = [f"{option}={value}" for option, value in QUICK_COMPILE.items()]
    os.environ["XLA_FLAGS"] = " ".join([_given, *_added]).strip()

# Every module drops its programs, and many ask for the same ones again, in this process or in one they start: what took
# long to compile is kept in a folder.  One a worker, gone at the end: JAX's files are not written in one piece.
_kept = tempfile.mkdtemp(prefix="hyperjax-tests-")
atexit.register(shutil.rmtree, _kept, ignore_errors=True)
os.environ["JAX_COMPILATION_CACHE_DIR"] = _kept
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")

import importlib.util

import jax
import jaxtyping

# In these rooms every annotation is checked at every call, shapes included.  The doors people come in by take more than
# they name, and answer what they cannot take in words of their own.
INSIDE = "faces implicit operators solvers.envelope solvers.loop solvers.newton".split()
if importlib.util.find_spec("beartype"):
    jaxtyping.install_import_hook([f"hyperjax.{name}" for name in INSIDE], "beartype.beartype")

# Before anything else imports hyperjax or makes an array.
jax.config.update("jax_enable_x64", not FLOAT32)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _seeded():
    """The legacy numpy state is the same for every test; tests that draw should take `rng`."""
    np.random.seed(0)


@pytest.fixture(autouse=True, scope="module")
def _compiled_code_is_dropped():
    """A process holds only so many memory maps, and every compiled program takes some of them."""
    yield
    jax.clear_caches()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
