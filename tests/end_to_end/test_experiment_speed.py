"""The speed table in small: cells in processes of their own, marks, budgets, and judges that agree with the peers."""

import json

import numpy as np
import pytest

from experiments import common
from experiments.speed import cells, peers, plot, profiles, quality, run, table
from experiments.speed.cells import Cell, Row
from experiments.speed.task import Options, Race, options, permuted, slope
from tests.data import load

ROW = Row("fit", "work", "peer", 2.0, 1.0)
CELL = Cell("a cell", "none", "none", (), (ROW,), 1.0)


def marked(row=ROW, **facts):
    return table.finished(CELL, row, facts)


def test_marks():
    seconds = {"ours": [1.0, 0.5, 3.0], "theirs": [2.0, 4.0, 1.0]}
    good = marked(**seconds, first=5.0)
    assert (good["value"], good["green"], good["compile"]) == (2.0, True, 4.0)
    assert marked(ours=[1.0], theirs=[1.9])["short"] == ["value"]
    assert marked(**seconds, gap=2e-3, peer_gap=1e-3, objective_excess=0.0)["short"] == ["gap"]
    assert marked(**seconds, gap=1e-4, peer_gap=1e-3, objective_excess=1e-2)["short"] == ["objective"]
    assert marked(**seconds, score=[5.3, 9.9], peer_score=[5.0], margin=0.1)["short"] == ["score"]
    assert marked(**seconds, score=[5.05], peer_score=[5.0], margin=0.1)["green"] is True
    limit = Row("fit", "work", "", 1.3, unit="share")
    assert marked(limit, value=1.4)["green"] is False and marked(limit, value=1.2)["green"] is True
    assert marked(Row("fit", "work", unit="exponent"), value=2.0)["green"] is None
    assert marked(Row("fit", "work", "", None, 0.3, "s"), ours=[0.2])["green"] is True
    assert table.line(marked(**seconds, gap=2e-3, peer_gap=1e-3))[8] == "RED (gap)"
    assert "1 green, 1 red, 1 not measured, 3 rows" in table.text(
        [good, marked(ours=[1.0], theirs=[1.0]), *table.missing(CELL, "not run")]
    )


def test_every_row_of_the_table_is_there_once():
    everything = cells.everything()
    names = [cell.name for cell in everything]
    assert len(set(names)) == len(names) and all(cell.rows for cell in everything)
    assert [cell.rank for cell in everything] == sorted(cell.rank for cell in everything)
    quick = sum(cell.seconds for cell in everything if cell.quick)
    assert 0 < quick < 60 * 4


def test_slow_peers_are_not_repeated_for_ever():
    race = Race(Options(patience=30.0))
    cases = ([], True), ([119.0], True), ([121.0], False), ([31.0] * 2, False), ([9.0] * 3, True), ([11.0] * 3, False)
    for spent, wanted in cases:
        race.seconds["peer"] = spent
        assert race.wanted("peer") is wanted
    order = []
    for repeat in range(2):
        race.round(repeat, {"ours": lambda: order.append("ours"), "quick": lambda: order.append("peer")})
    assert order == ["ours", "peer", "peer", "ours"] and len(race.seconds["ours"]) == 2
    assert options(small=True).repeats == 2 and options(small=False).repeats == 5
    assert slope([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]) == pytest.approx(2.0)


def test_who_is_quick_works_on_other_rows_before_its_turn():
    race, order = Race(Options()), []
    calls = {"ours": lambda: order.append("ours"), "peer": lambda: order.append("peer")}
    others = {"ours": lambda: order.append("ours, untimed"), "peer": lambda: order.append("peer, untimed")}
    race.round(0, calls, others)
    assert order == ["ours", "peer"]  # how long a turn takes is known from the second on
    race.seconds["peer"] = [2.0]
    order.clear()
    race.round(1, calls, others)
    assert order[0] == "peer" and order[-1] == "ours" and set(order[1:-1]) == {"ours, untimed"}
    assert len(race.seconds["ours"]) == 2


def test_judges_agree_with_tight_peers():
    """At LIBSVM's and LIBLINEAR's own optimum every gap vanishes, and nothing is better."""
    pytest.importorskip("liblinear")
    from sklearn.svm import SVC

    from experiments.speed import kernel_rows, linear_rows

    data = load("heart")
    A, signs, folds = permuted(np.asarray(data["X"], float), np.asarray(data["y"], float), 3)
    models = [SVC(C=1.0, gamma=0.1, tol=1e-8).fit(*task[:2]) for task in peers.tasks(A, signs, folds, 1.0, 0.1)]
    primal, dual = kernel_rows.quality(*kernel_rows.coefficients(models, folds), 1.0, 0.1, A, signs, folds)
    np.testing.assert_allclose(dual, primal, rtol=1e-7)
    worse, lower = kernel_rows.quality(*kernel_rows.coefficients(models, folds), 1.0, 0.11, A, signs, folds)
    assert np.all(worse > lower)

    padded = np.c_[A, np.ones(len(A))]
    for loss, kind in (("squared hinge", 2), ("logistic", 0), ("hinge", 3)):
        found = peers.liblinear(peers.folded(A, signs, folds), f"-s {kind} -c 1 -B 1 -e 1e-7 -q")
        w = peers.weights(found)
        value = linear_rows.objective(loss, w, padded, signs, folds)
        assert np.all(value < linear_rows.objective(loss, 1.01 * w, padded, signs, folds))
        if loss != "hinge":
            np.testing.assert_allclose(linear_rows.implied(loss, w, padded, signs, folds), value, rtol=1e-6)
    for t, rows in enumerate(np.asarray(folds.train) > 0):  # the hinge's dual value from LIBSVM's coefficients
        model = SVC(kernel="precomputed", C=1.0, tol=1e-9).fit(padded[rows] @ padded[rows].T, signs[rows])
        z = np.zeros((len(folds.train), len(signs)))
        z[t, np.flatnonzero(rows)[model.support_]] = model.dual_coef_[0]
        assert linear_rows.dual("hinge", z, padded, signs, folds)[t] <= value[t] * (1 + 1e-6)


def test_cells_run_fail_and_are_cut(tmp_path, capsys):
    """Two cells in small, one that fails, one that is cut, one without time; every row ends in one table."""
    pytest.importorskip("liblinear")
    load("magic04")
    path = tmp_path / "results.json"
    run.main(["--small", "--only", "linear-magic04-logistic", "import", "--output", str(path)])
    rows = {row["cell"]: row for row in common.rows_of(common.read(path), "speed")}
    fit = rows["linear-magic04-logistic"]
    assert len(fit["ours"]) == len(fit["theirs"]) == 2 and fit["value"] > 0
    assert fit["gap"] < 1e-4 < fit["memory"] and abs(fit["objective_excess"]) < 1e-3 and fit["codes"] == [0]
    assert rows["import"]["green"] is not None and fit["commit"]
    assert {"versions", "commit", "minutes"} <= set(common.read(path)["speed"]["settings"])

    run.main(["--only", "linear-magic04-*", "--minutes", "1e-9", "--output", str(path)])
    table_of = {row["cell"]: row for row in common.rows_of(common.read(path), "speed")}
    assert table_of["linear-magic04-logistic"] == json.loads(json.dumps(fit))  # what was measured stays
    assert table_of["linear-magic04-hinge"]["status"] == "not run"
    assert "4 rows" in capsys.readouterr().out

    (failed,) = run.measure(CELL, True, 60.0)
    assert failed["status"].startswith("error: StopIteration") and failed["green"] is None
    (cut,) = run.measure(cells.everything()[0], True, 0.01)[:1]
    assert cut["status"].startswith("cut after")
    with pytest.raises(SystemExit, match="no cell has such a name"):
        run.main(["--only", "nothing", "--output", str(path)])

    plot.main([str(path)])
    assert {"ratios.png", "memory.png"} <= {each.name for each in tmp_path.iterdir()}


def test_a_profile_names_the_functions_that_take_the_time(tmp_path, capsys):
    load("magic04")
    path = tmp_path / "profiles.json"
    profiles.main(["--small", "--only", "linear-magic04-squared-hinge", "--output", str(path)])
    (row,) = common.rows_of(common.read(path), "profiles")
    named = [part for part in row["parts"] if part["where"] != "?"]
    assert any(part["where"].startswith("operators/") for part in named)
    inside = sum(part["seconds"] for part in row["parts"]) + row["rest"]
    assert 0 < row["busy"] <= inside * 1.001 and row["busy"] + row["host"] == pytest.approx(row["traced"])
    assert row["cold"]["programs"] >= 1 and 0 < row["cold"]["compile"] < row["cold"]["first"]
    assert "linear-magic04-squared-hinge" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no profile has such a name"):
        profiles.main(["--only", "nothing", "--output", str(path)])


def test_own_time_and_covered_time_of_nested_operations():
    events = [(0.0, 10.0, 1, "loop"), (1.0, 4.0, 1, "a"), (5.0, 2.0, 1, "b"), (12.0, 1.0, 1, "c")]
    assert list(profiles._own(events)) == [(4.0, 1, "loop"), (4.0, 1, "a"), (2.0, 1, "b"), (1.0, 1, "c")]
    assert profiles._covered([(0.0, 10.0), (1.0, 5.0), (12.0, 13.0)]) == 11.0


def test_the_projection_given_to_jaxopt():
    """The nearest point of box and plane, and its derivative, against central differences."""
    import jax
    import jax.numpy as jnp

    from experiments.speed.implicit_rows import onto_the_plane

    generator = np.random.default_rng(0)
    x, width, w = generator.normal(size=(3, 9))
    ends = np.sign(width) * 0.6
    box = np.minimum(ends, 0.0), np.maximum(ends, 0.0)
    nearest = np.asarray(onto_the_plane(jnp.asarray(x), jax.tree.map(jnp.asarray, box)))
    assert abs(nearest.sum()) < 1e-10 and np.all(nearest >= box[0]) and np.all(nearest <= box[1])
    free = (nearest > box[0]) & (nearest < box[1])
    shift = (x - nearest)[free]
    assert 2 <= free.sum() < 9 and np.ptp(shift) < 1e-10
    pull = x - nearest - shift[0]
    assert np.all(pull[nearest == box[1]] >= 0) and np.all(pull[nearest == box[0]] <= 0)

    @jax.jit
    def value(x, ends):
        return jnp.asarray(w) @ onto_the_plane(x, (jnp.minimum(ends, 0.0), jnp.maximum(ends, 0.0)))

    for argument, exact in enumerate(jax.grad(value, argnums=(0, 1))(jnp.asarray(x), jnp.asarray(ends))):
        for j in range(9):
            step = 1e-6 * np.eye(9)[j]
            up, down = ((x + sign * step, ends) if argument == 0 else (x, ends + sign * step) for sign in (1, -1))
            change = float(value(*map(jnp.asarray, up))) - float(value(*map(jnp.asarray, down)))
            assert float(exact[j]) == pytest.approx(change / 2e-6, abs=1e-6)


def test_how_good_the_answers_are(tmp_path):
    for name in ("splice", "a9a", "ijcnn1"):
        load(name)
    path = tmp_path / "quality.json"
    quality.main(["--quick", "--only", "search", "fmeasure", "samples", "--data", "splice", "--output", str(path)])
    found = common.read(path)
    row = found["search"]["rows"][0]
    assert row["data"] == "splice" and row["ours_cv"][0] <= row["grid_cv"][0] + 10.0
    text = quality.markdown(found)
    assert "splice: CV error, C and gamma" in text and "flipped labels" in text
