"""The experiments of Keerthi et al. and of Klatzer & Pock in small, and every finding about their papers."""

import numpy as np
import pytest

from tests.data import load


def test_the_experiment_of_keerthi_runs(tmp_path):
    """`--quick`, and a second run merges into the same table."""
    from experiments.common import read
    from experiments.keerthi import run

    load("heart")
    path = tmp_path / "table.json"
    run.main(["--quick", "--only", "table1", "--output", str(path)])
    single, full = read(path)["table1"]["rows"]
    assert (single["method"], full["method"]) == ("grad", "ard")
    assert full["value"] <= single["value"] and 5.0 < single["error"] < 35.0
    assert read(path)["table1"]["settings"]["versions"]["jax"]


def test_letters_of_splice_in_another_order():
    """The codes 1 to 4 are A, G, C, T in the file: in the order A, C, T, G they become 1, 4, 2, 3."""
    from experiments.keerthi import task

    load("splice")
    (X, y), (Z, again) = task.rows("splice"), task.rows("splice-ACTG")
    assert [set(Z[X == code]) for code in (1.0, 2.0, 3.0, 4.0)] == [{1.0}, {4.0}, {2.0}, {3.0}]
    np.testing.assert_array_equal(y, again)


@pytest.mark.filterwarnings("ignore:held out, the tuned machine")
def test_errata_of_keerthi():
    """Every finding has the numbers that section 4 of its page gives."""
    from experiments.errata import keerthi as errata

    # the flat start has a test of its own beside the method
    found = {check.__name__: check() for check in errata.FINDINGS if check is not errata.flat_start}
    equal, moved = found["margins_are_redundant"]
    assert equal < 1e-12 < 0.1 < moved
    np.testing.assert_allclose(*found["fitted_thresholds_balance_errors"], rtol=1e-5)
    assert found["likelihood_may_have_no_minimum"][1] < 1e-40
    assert found["likelihood_may_turn_the_sign"][1] == pytest.approx(-0.124, abs=5e-4)
    unscaled, scaled = found["unscaled_first_step"]
    assert unscaled < 1e-3 < scaled
    assert found["speed_a_point"][1] > 9.0 and found["step_at_the_threshold"] == (0.0, 4.0)
    assert found["pooled_or_averaged"][0] != found["pooled_or_averaged"][1]
    below, above = found["partitions_put_kinks_into_V"]
    assert abs(below - above) > 1e-3
    np.testing.assert_allclose(*found["direct_sigmoid_becomes_a_step"], rtol=1e-3)
    np.testing.assert_allclose(found["twins_make_the_system_singular"], 0.0047436476, atol=1e-9)
    np.testing.assert_allclose(found["bias_may_be_an_interval"], (-0.8165018557, 0.7726861692), atol=1e-9)
    fitted, wrong = found["widths_fit_the_folds"]
    assert fitted < wrong


def test_the_experiment_of_klatzer_pock_runs(tmp_path):
    """`--quick`: one machine of table 1."""
    from experiments.common import read
    from experiments.klatzer_pock import run

    load("heart")
    path = tmp_path / "table.json"
    run.main(["--quick", "--only", "table1", "--output", str(path)])
    (row,) = read(path)["table1"]["rows"]
    assert (row["data"], row["method"]) == ("heart", "Ker01loss")
    assert row["cv"] < 25.0 and row["test"] < 25.0 and row["trials"] <= 40


def test_errata_of_klatzer_pock():
    """Every finding has the numbers that section 4 of its page gives."""
    from experiments.errata import klatzer_pock as errata

    found = {check.__name__: check() for check in errata.FINDINGS}
    np.testing.assert_allclose(found["bias_in_or_out"], (0.936768477844, 0.935392825209), atol=1e-8)
    np.testing.assert_allclose(found["redundant_weights"], 0.968914100207, atol=1e-9)
    assert found["a_width_without_a_gradient"][0] == pytest.approx(2.0 * 0.979606439302, abs=1e-9)
    assert found["a_width_without_a_gradient"][1] == pytest.approx(2.0 * 0.979606439302, abs=1e-9)
    np.testing.assert_allclose(found["condition_of_the_hessian"], (2.0e5, 36.0), rtol=0.03)
    assert found["twins_break_the_full_form"] == (20.0, 21.0)
    assert found["percentages_give_the_sizes_away"][1] == 1.0
    assert found["sums_and_means"][0] == pytest.approx(10.0 * found["sums_and_means"][1])
    np.testing.assert_allclose(found["smoothing_fades_slowly"], (-0.00271350, -0.000277313), rtol=2e-4)
    assert found["minima_along_the_width"][1] >= 2.0
    np.testing.assert_allclose(*found["digits_that_changed_places"], atol=0.09)
    assert found["one_split_is_one_draw"][1] > found["one_split_is_one_draw"][0]
