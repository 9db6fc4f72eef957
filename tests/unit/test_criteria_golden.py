"""The reference values of Keerthi, Sindhwani & Chapelle through the criteria that ship."""

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from hyperjax.criteria._smoothing import calibrated
from tests.gradients.r30 import ARD, WEIGHTED, Y, arrays, fit, quick

SHARES = {"SmoothError": {}, "WeightedError": {"kappa": 0.1}, "FMeasure": {}}
CRITERIA = [
    getattr(hj.criteria, name)(threshold=threshold, **fields)
    for threshold in ("fixed", "tuned")
    for name, fields in SHARES.items()
]
LOSS = {"C_pos": 1.3, "C_neg": 0.6, "m_pos": 1.2, "m_neg": 0.9}
TABLE = [  # value, C_pos, C_neg, m_pos, m_neg, two gammas
    (0.4570111448, 0.0512536245, -0.0971247045, 0.1165966705, -0.1647454375, 0.0599797488, -0.1368809133),
    (0.3524907627, 0.0050558611, -0.0073599050, 0.0153805560, -0.0229037152, 0.0085614564, -0.0224932797),
    (0.3635009069, 0.0247337609, -0.0459568205, 0.0578617746, -0.0822376959, 0.0300323223, -0.0697524274),
    (0.4297015491, 0.0400052787, -0.0742315209, 0.1088685260, -0.1272233284, 0.0484327319, -0.1147608557),
    (0.3488015121, 0.0008576647, -0.0013612300, 0.0140264998, -0.0157273759, 0.0045654199, -0.0174952612),
    (0.3496016792, 0.0189874651, -0.0351389372, 0.0564015432, -0.0656420398, 0.0244141362, -0.0605502904),
    (6.7298819545, -0.0042585837, 0.0144928081, -0.0015045362, -0.0015045362, 0.0005576990, -0.0103653519),
]
"""F is 1 - F here; the last row is the sum of N_nll with s0 and s1 fitted to the labels themselves."""
SLOPES = (0.0, 0.0, 0.0, -0.2360918543, -0.0297538756, -0.1220435830, 0.0)
"""Derivatives in the tuned threshold."""


def test_keerthi_item_1():
    run = fit(WEIGHTED, ARD, True)

    def values(hp):
        o = run(hp)[1]
        labels = (jnp.asarray(Y) + 1.0) / 2.0
        nll = jnp.sum(jnp.logaddexp(0.0, -Y * calibrated(o, labels, jnp.ones_like(o))))
        found = jnp.stack([*(criterion(o, Y, None, hp) for criterion in CRITERIA), nll])
        return found, found

    hp = arrays({"loss": LOSS, "kernel": {"gamma": np.array([1.5, 0.6])}, "criterion": {"threshold": 0.1}})
    jacobian, found = quick(jax.jacrev(values, has_aux=True))(hp)
    columns = [found, *(jacobian["loss"][name] for name in LOSS), *jacobian["kernel"]["gamma"].T]
    np.testing.assert_allclose(np.stack(columns, axis=1), TABLE, atol=1e-8, rtol=0)
    np.testing.assert_allclose(jacobian["criterion"]["threshold"], SLOPES, atol=1e-8, rtol=0)


def test_keerthi_item_6():
    """The fit to labels makes smoothed false negatives and false positives equal."""
    o = jnp.asarray(np.sin(np.arange(10.0)) + 0.3 * Y)
    wrong = jax.nn.sigmoid(-Y * calibrated(o, (jnp.asarray(Y) + 1.0) / 2.0, jnp.ones_like(o)))
    np.testing.assert_allclose(jnp.sum(wrong[Y > 0]), jnp.sum(wrong[Y < 0]), rtol=1e-8)
