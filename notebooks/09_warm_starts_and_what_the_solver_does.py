# %% [markdown]
# # Warm starts, and what the solver does
#
# A search solves the same problem again and again at hyperparameters close by, so each solution is a start for the next
# one. This notebook walks along `C`, counts iterations with and without that start, and looks at what comes back with
# every solution.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import hyperjax as hj

jax.config.update("jax_enable_x64", True)

X, target = make_moons(120, noise=0.3, random_state=1)
y = np.where(target == 1, 1.0, -1.0)
problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(gamma=1.0), bias=True)
hp = problem.init(X, y)

# %% [markdown]
# A solution carries its own certificate: `kkt` is the violation of the optimality conditions in units of outputs, `gap`
# the relative duality gap, the code says how the solve ended.

# %%
solution = hj.solve(problem, hp, X, y)
print("code", hj.Code(int(solution.code)).name, "after", int(solution.iterations), "iterations")
print(f"kkt {float(solution.kkt):.1e}, relative duality gap {float(solution.gap):.1e}")
print("free rows (on the margin):", int(solution.n_free), "of", len(y))
print(f"nearest row to a change of the active set: {float(solution.distance):.1e} in output units")

# %% [markdown]
# The free rows make up the linear system that the last step of the solver solves, and the same system gives the
# derivative. Its size is the number of free rows, not the number of rows.
#
# ## Along a path
#
# From `C` = 0.03 to 100 in small steps, once from nothing and once from the solution before.

# %%
costs = np.geomspace(0.03, 100.0, 25)
cold, warm, free, bounded = [], [], [], []
before = None
for cost in costs:
    here = {**hp, "loss": {"C": cost}}
    nothing = hj.solve(problem, here, X, y, init=(np.zeros(len(y)), np.zeros(())))
    before = hj.solve(problem, here, X, y, init=nothing if before is None else before)
    np.testing.assert_allclose(before.outputs, nothing.outputs, atol=1e-5)  # the start does not change the solution
    cold.append(int(nothing.iterations))
    warm.append(int(before.iterations))
    size = np.abs(np.asarray(before.z))
    bounded.append(np.sum(size >= cost * (1 - 1e-9)))
    free.append(int(before.n_free))
print("iterations in all:", sum(cold), "from nothing,", sum(warm), "from the solution before")

# %% [markdown]
# On a problem of this size there is little to win: each iteration is a Newton step on the free rows, and two or three
# of them are enough from anywhere. What a warm start spares is the search for the active set at the ends of the path
# and around its difficult middle. Below: which rows carry the solution.

# %%
figure, (above, below) = plt.subplots(2, 1, figsize=(6.4, 5.2), sharex=True, layout="constrained")
above.plot(costs, cold, color="#666666", marker="o", markersize=3.5, label="from nothing")
above.plot(costs, warm, color="#0072B2", marker="o", markersize=3.5, label="from the solution before")
above.set(ylabel="iterations", ylim=(0, None))
above.legend()
below.stackplot(costs, bounded, free, labels=["at the bound C", "free"], colors=["#E69F00", "#009E73"], alpha=0.8)
below.set(xscale="log", xlabel="C", ylabel="support vectors")
below.legend(loc="upper right")
for axis in (above, below):
    axis.grid(alpha=0.25)
plt.show()

# %% [markdown]
# `hj.tune` starts every evaluation from the folds' solutions of the one before. By hand, `init=` of `hj.solve` and
# `hj.cross_solve` takes a solution or a pair `(z, b)`; it never changes the result beyond `tol`, and no derivative goes
# through it.
#
# ## The path of the outputs
#
# Between two changes of the active set each output moves smoothly; where a row enters or leaves, the lines bend. A
# criterion over them bends at the same places: those are the kinks that notebook 04 looks for.

# %%
many = np.geomspace(0.03, 100.0, 60)
outputs = []
for cost in many:
    before = hj.solve(problem, {**hp, "loss": {"C": cost}}, X, y, init=before)
    outputs.append(np.asarray(before.outputs)[:12])
figure, axis = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
lines = np.asarray(outputs)
axis.plot(many, lines[:, y[:12] > 0], color="#0072B2", linewidth=1.2)
axis.plot(many, lines[:, y[:12] < 0], color="#D55E00", linewidth=1.2)
for margin in (-1.0, 1.0):
    axis.axhline(margin, color="#666666", linestyle=":", linewidth=1)
axis.set(xscale="log", xlabel="C", ylabel="outputs of twelve rows")
axis.plot([], [], color="#0072B2", label="y = +1")
axis.plot([], [], color="#D55E00", label="y = -1")
axis.legend(loc="upper left")
plt.show()
