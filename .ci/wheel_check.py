"""Is the installed wheel whole?  For `python -I`, in an environment of core dependencies, outside the repository."""

import importlib.util
import pathlib
import sys

import jax.numpy as jnp
import numpy as np

import hyperjax as hj

environment = pathlib.Path(sys.argv[1]).resolve()
package = pathlib.Path(hj.__file__).resolve().parent
assert environment in package.parents, f"hyperjax was imported from {package}, not from {environment}"
assert (package / "py.typed").is_file(), "the wheel lacks py.typed"
for optional in ("sklearn", "matplotlib", "optuna"):
    assert importlib.util.find_spec(optional) is None, f"{optional} is installed: this leg is to run without it"

# The widest margin between -1 and 1 on the line: f(x) = x, each coefficient 1/2.
X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
problem = hj.Problem(loss=hj.losses.Hinge(), kernel=hj.kernels.Linear(), bias=True)
solution = hj.solve(problem, problem.init(X, y), X, y)
assert np.allclose(solution.z, [-0.5, 0.5], atol=1e-3), solution.z
outputs = solution.decision(jnp.array([[0.25], [-3.0]]))
assert np.allclose(outputs, [0.25, -3.0], atol=1e-2), outputs
print(f"{package.name} from the wheel: a solve, py.typed, no optional packages")
