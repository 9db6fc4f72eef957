"""The episodes of experiments/speed in small: both sides solve the same QPs."""

import json

import jax
import pytest

pytest.importorskip("qpax")
pytest.importorskip("sklearn")

from experiments.speed import episodes


@pytest.mark.skipif(not jax.config.jax_enable_x64, reason="the table is in float64")
def test_episodes_in_small(tmp_path):
    path = tmp_path / "episodes.json"
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        episodes.main(["--quick", "--output", str(path)])
    table = json.loads(path.read_text())
    (row,) = table["rows"]
    assert len(row["ours"]) == len(row["peer"]) == 2 and row["ratio"] > 0
    assert max(row["violation"].values()) < 1e-7
    assert row["gradients_differ"] < 0.2 and table["settings"]["versions"]["qpax"]
