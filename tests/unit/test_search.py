"""The quasi-Newton search on functions of one line: what it evaluates, what it accepts, and when it gives up."""

import numpy as np
import pytest

from hyperjax.run import Point
from hyperjax.search import Rules, quasi_newton

pytestmark = pytest.mark.no_extras


class Recorder:
    """Stands in for a Run: a function theta -> (value, gradient, solved), every call and accepted point kept."""

    kinked = False

    def __init__(self, function):
        self.function, self.points, self.accepted = function, [], []

    def __call__(self, theta):
        theta = np.array(theta, float)
        value, gradient, solved = self.function(theta)
        nothing, value = np.zeros(1), value if solved else np.nan
        point = Point(theta, value, value, value, np.asarray(gradient, float), *(nothing,) * 4)
        self.points.append(point)
        return point

    def note(self, point):
        self.accepted.append(point)

    def search(self, start, tol=1e-3, max_steps=50, **rules):
        far = np.full(len(start), np.inf)
        point = self(start)
        return quasi_newton(self, point, -far, far, tol, max_steps, rules=Rules(**rules))


def test_a_point_without_a_way_down_need_not_be_an_optimum():
    # the gradient of one side promises a way down from the edge at 0, where there is none
    run = Recorder(lambda t: (1.0 + 2e-3 * float(abs(t[0])), [2e-3 if t[0] >= 0 else -2e-3], True))
    assert run.search([0.0]) == "no_progress"
    assert len(run.points) - 1 == Rules().trials


def test_a_first_step_too_long_is_cut_as_often_as_it_takes():
    run = Recorder(lambda t: (1.0 + 5e3 * float(t[0] ** 2), [1e4 * t[0]], True))
    assert run.search([0.01]) in ("tolerance", "gradient")
    assert abs(run.accepted[-1].objective - 1.0) < 1e-3


def test_an_accepted_point_is_one_evaluation_and_never_an_unsolved_one():
    def bowl(theta):
        """Rosenbrock's valley, unsolved beyond a line."""
        a, b = theta
        value = 1.0 + (1 - a) ** 2 + 5 * (b - a * a) ** 2
        return value, [-2 * (1 - a) - 20 * a * (b - a * a), 10 * (b - a * a)], a < 1.5 and b > -1.5

    run = Recorder(bowl)
    assert run.search([-1.0, 1.0], tol=1e-8) in ("tolerance", "gradient")
    assert all(any(point is seen for seen in run.points) for point in run.accepted)
    for point in run.accepted:
        value, gradient, solved = bowl(point.theta)
        assert solved and point.objective == value and np.array_equal(point.gradient, gradient)
    np.testing.assert_allclose(run.accepted[-1].theta, [1.0, 1.0], atol=1e-3)


@pytest.mark.parametrize("steep", [0.3, 1.0])
@pytest.mark.parametrize("width", [0.01, 0.05])
def test_one_steep_coordinate_does_not_end_the_search_of_the_others(steep, width):
    # as a tube's width has it: a near kink in one coordinate beside a wide shallow bowl in another
    def valley(t):
        """The bowl's bottom lies at 3, the crease at 0.3; the least value is 1."""
        u = t[1] - 0.3
        root = np.hypot(u, width)
        return 1.0 + 0.01 * (t[0] - 3.0) ** 2 + steep * (root - width), [0.02 * (t[0] - 3.0), steep * u / root], True

    for start in np.linspace(-0.5, 0.5, 9):
        run = Recorder(valley)
        run.search([0.0, start])
        assert run.accepted[-1].objective < 1.005


def rippled(bottom, fall):
    """A curved valley towards (bottom, -bottom) that falls by `fall` a unit, ripples along it as steep."""

    def at(t):
        along, across = t[0] - t[1] - 2.0 * bottom, t[0] + t[1]
        value = 1.0 + fall * np.hypot(along, 1.0) + 1e-3 * np.sin(4.0 * along) + 0.1 * across**2
        slope = fall * along / np.hypot(along, 1.0) + 4e-3 * np.cos(4.0 * along)
        return value, [slope + 0.2 * across, -slope + 0.2 * across], True

    return at


def test_a_shallow_valley_is_looked_along_before_the_search_ends():
    # 1.004 at the bottom and 1.028 where the searches begin; the first ripple stops most of those that do not look
    found = {}
    for valley in (False, True):
        runs = [Recorder(rippled(3.0, 4e-3)) for _ in range(40)]
        for run, start in zip(runs, np.random.default_rng(0).normal(size=(40, 2)), strict=True):
            run.search(start, valley=valley)
        found[valley] = np.mean([run.accepted[-1].objective < 1.012 for run in runs])
        assert np.mean([len(run.points) for run in runs]) < 10
    assert found[True] >= 0.5 and found[True] >= 4 * found[False]


def test_a_look_that_finds_nothing_costs_one_evaluation_and_a_steep_bowl_none():
    for bend, more in ((0.01, 1), (1.0, 0)):
        bowl = lambda t, bend=bend: (1.0 + bend * float(t @ t), list(2 * bend * t), True)  # noqa: E731
        runs = [Recorder(bowl), Recorder(bowl)]
        for run, valley in zip(runs, (False, True), strict=True):
            assert run.search([1.0, -0.3], tol=1e-2, valley=valley) == "tolerance"
        assert len(runs[1].points) == len(runs[0].points) + more
        assert runs[1].accepted[-1].objective == runs[0].accepted[-1].objective
