"""A search that is killed and resumed ends where it would have; a file that does not belong is refused."""

import os
import signal
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.checkpoint import fingerprint

pytestmark = pytest.mark.no_extras

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.6 * RNG.normal(size=60) > 0.8, 1.0, -1.0)
PROBLEM = hj.Problem(hj.losses.Logistic(), hj.kernels.ARD())


def search(path=None, X=X, y=Y, problem=PROBLEM, **settings):
    given = {"criterion": hj.criteria.LogLoss(), "progress": False, "max_steps": 5, "tol": 1e-6, **settings}
    return hj.tune(problem, X, y, 3, checkpoint=path, **given)


def same(one, other):
    assert one.value == other.value
    np.testing.assert_array_equal(one.hp["loss"]["C"], other.hp["loss"]["C"])
    np.testing.assert_array_equal(one.hp["kernel"]["gamma"], other.hp["kernel"]["gamma"])
    assert len(one.history) == len(other.history)
    for a, b in zip(one.history, other.history, strict=True):
        assert (a["value"], a["objective"], a["evaluations"], a["stage"]) == (
            b["value"], b["objective"], b["evaluations"], b["stage"],
        )  # fmt: skip


class Killed(Exception):
    """Ends a search like a kill: nothing of it runs any further."""


def test_several_starts_go_on_to_the_same_bits(tmp_path):
    whole = search(starts=3, max_steps=2)
    assert {record["start"] for record in whole.history} == {0, 1, 2}

    def end(record):
        if record["start"] == 1:
            raise Killed

    with pytest.raises(Killed):
        search(tmp_path / "run.npz", callback=end, starts=3, max_steps=2)
    same(search(tmp_path / "run.npz", starts=3, max_steps=2), whole)


@pytest.mark.parametrize("step", [0, 3, 7])
def test_a_search_that_ended_anywhere_goes_on_to_the_same_bits(tmp_path, step):
    whole = search()

    def end(record):
        if record["step"] == step:
            raise Killed

    path = tmp_path / "run.npz"
    with pytest.raises(Killed):
        search(path, callback=end)
    seen = []
    same(search(path, callback=lambda record: seen.append(record["evaluations"]) and None), whole)
    assert seen[0] == 1


@pytest.mark.parametrize("step", [0, 1, 3])
def test_a_search_that_began_at_a_cut_goes_on_to_the_same_bits(tmp_path, step):
    settings = {"y": np.where(X[:, 0] > 0.9, 1.0, -1.0), "criterion": hj.criteria.FMeasure(threshold="tuned")}
    whole = search(stages=["full"], **settings)
    assert whole.history[0]["hp"]["criterion"]["threshold"] == 0.0 != whole.history[1]["hp"]["criterion"]["threshold"]

    def end(record):
        if record["step"] == step:
            raise Killed

    with pytest.raises(Killed):
        search(tmp_path / "run.npz", callback=end, stages=["full"], **settings)
    same(search(tmp_path / "run.npz", stages=["full"], **settings), whole)


def test_a_resumed_search_computes_nothing_twice(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    whole = search(path)
    import hyperjax.objective as objective

    monkeypatch.setattr(objective, "differentiate", lambda *_: pytest.fail("an evaluation was computed again"))
    same(search(path), whole)


def test_a_finished_search_can_be_given_more_steps(tmp_path):
    path = tmp_path / "run.npz"
    search(path, stages=["full"], max_steps=3)
    same(search(path, stages=["full"], max_steps=6), search(stages=["full"], max_steps=6))


SCRIPT = """
import os, signal, sys
import jax
jax.config.update("jax_enable_x64", True)
import jax
import numpy as np
import hyperjax as hj
from hyperjax.checkpoint import fingerprint
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1.0, -1.0)
def callback(record):
    if record["step"] == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
r = hj.tune(hj.Problem(hj.losses.Logistic(), hj.kernels.RBF()), X, y, 2, hj.criteria.LogLoss(), progress=False,
            checkpoint=sys.argv[1], callback=callback, tol=1e-6)
print(float(r.hp["loss"]["C"]).hex(), float(r.hp["kernel"]["gamma"]).hex())
"""


def test_kill_9_and_resume_gives_the_same_bits(tmp_path):
    program = tmp_path / "search.py"
    program.write_text(textwrap.dedent(SCRIPT))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(file, step):
        command = [sys.executable, str(program), str(tmp_path / file), str(step)]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    whole = run("whole.npz", -1)
    assert whole.returncode == 0, whole.stderr
    assert run("killed.npz", 2).returncode == -signal.SIGKILL
    resumed = run("killed.npz", -1)
    assert resumed.stdout == whole.stdout != ""


OF_FUNCTIONS = """
import os, signal, sys
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpy as np, optax
import hyperjax as hj
from hyperjax.checkpoint import fingerprint
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1.0, -1.0)
rate = float(sys.argv[2])
near = lambda x, z: jnp.exp(-jnp.sum((x - z) ** 2))
criterion = lambda o, y: jnp.mean(jnp.logaddexp(0.0, -y * o))
r = hj.tune(hj.Problem(hj.losses.Logistic(), near), X, y, 2, criterion, progress=False, optimizer=optax.adam(rate),
            checkpoint=sys.argv[1], tol=1e-6, max_steps=2)
print(float(r.hp["loss"]["C"]).hex())
"""


def test_functions_are_known_again_in_another_process(tmp_path):
    """By what they do and hold, not by where in memory they lie: a kernel, a criterion and an optax optimiser."""
    program = tmp_path / "search.py"
    program.write_text(OF_FUNCTIONS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(rate):
        command = [sys.executable, str(program), str(tmp_path / "run.npz"), str(rate)]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    first, again, other = run(0.1), run(0.1), run(0.2)
    assert first.returncode == 0, first.stderr
    assert again.stdout == first.stdout != "", again.stderr
    assert "it differs in settings" in other.stderr


def test_an_edited_function_is_another_search(tmp_path):
    def scaled(by):
        return lambda o, y: by * jax.numpy.mean(jax.numpy.logaddexp(0.0, -y * o))

    path = tmp_path / "run.npz"
    settings = {"max_steps": 0, "stages": ["isotropic"]}
    search(path, criterion=scaled(1.0), **settings)
    same(search(path, criterion=scaled(1.0), **settings), search(criterion=scaled(1.0), **settings))
    with pytest.raises(ValueError, match=r"differs in problem"):
        search(path, criterion=scaled(2.0), **settings)


def test_an_edited_loss_is_told_from_the_old_one():
    def problem(power):
        class Mine(hj.losses.Loss):
            def phi(self, o, y, hp):
                return hp["C"] * abs(o - y) ** power

        return hj.Problem(Mine(), hj.kernels.RBF())

    old, same_again, new = (fingerprint(problem=problem(power)) for power in (2.0, 2.0, 4.0))
    assert old == same_again != new


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    search(path, max_steps=1)
    whole = path.read_bytes()
    for position in (50, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            search(path, max_steps=1)
        except ValueError as error:
            assert "damaged" in str(error) and "remove the file" in str(error)
    for cut in (whole[: len(whole) // 2], b"", b"no archive at all"):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match=r"damaged or no checkpoint.*remove the file"):
            search(path, max_steps=1)
    assert path.read_bytes() == cut


def test_a_changed_number_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    search(path, max_steps=1)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["value"] = arrays["value"] + 1e-3
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="do not match its digest"):
        search(path, max_steps=1)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"X": X + 1e-9}, "data"),
        ({"y": -Y}, "data"),
        ({"problem": PROBLEM.replace(loss=hj.losses.SquaredHinge())}, "problem"),
        ({"init": {"loss": {"C": 2.0}}}, "problem"),
        ({"criterion": hj.criteria.SmoothError()}, "problem"),
        ({"tol": 1e-5}, "settings"),
        ({"seed": 1}, "data"),
        ({"hold": ["loss.C"]}, "settings"),
    ],
)
def test_the_file_of_another_search_is_refused(tmp_path, change, what):
    path = tmp_path / "run.npz"
    search(path, max_steps=0, stages=["isotropic"])
    with pytest.raises(ValueError, match=rf"belongs to another search: it differs in .*{what}"):
        search(path, **{"max_steps": 0, "stages": ["isotropic"], **change})


def test_other_files_and_folders_are_refused(tmp_path):
    model = tmp_path / "model.npz"
    search(max_steps=0, stages=["isotropic"]).solution.save(model)
    with pytest.raises(ValueError, match="another file of hyperjax"):
        search(model)
    with pytest.raises(ValueError, match="is a folder"):
        search(tmp_path)
    with pytest.raises(ValueError, match="does not exist, make it first"):
        search(tmp_path / "nowhere" / "run.npz")
