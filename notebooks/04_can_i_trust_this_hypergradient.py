# %% [markdown]
# # Can I trust this hypergradient?
#
# Three things spoil the derivative of a validation function: a solve that is not accurate enough, a rule that is wrong,
# and a kink at the very point. Each can be seen.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import hyperjax as hj

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)  # on 40 rows compiling takes longer than computing

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=40) > 0.8, 1.0, -1.0)
problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(), bias=True)
folds = hj.folds.stratified(y, 3, seed=0)
hp = problem.init(X, y)

# %% [markdown]
# ## All ways to the same number
#
# `check_hypergradient` takes a function of the hyperparameters. Where it returns the solution as well, the report knows
# how far the nearest row is from changing sides.


# %%
criterion = hj.criteria.SmoothHingeLoss()


@jax.jit
def validation(hp):
    solution = hj.cross_solve(problem, hp, X, y, folds, tol=1e-10)
    return criterion(solution.held_out(folds), y, folds), solution


print(hj.check_hypergradient(validation, hp))

# %% [markdown]
# Reverse mode, forward mode and differences agree to the digits in the last column. What the differences cannot
# confirm, `hypergradient_info` bounds: the residual of the adjoint system, and what the accuracy of the folds'
# solutions is worth in every entry of the gradient.

# %%
value, gradient, info = hj.hypergradient_info(problem, hp, X, y, folds, criterion)
print("codes", [hj.Code(int(code)).name for code in info.code])
print("adjoint residual", float(info.adjoint_residual.max()))
for part in ("loss", "kernel"):
    for name, slope in gradient[part].items():
        print(f"d / d {name}: {float(slope):.8f}, off by at most about {float(info.error_bound[part][name]):.1e}")

# %% [markdown]
# ## A kink
#
# The hinge has a corner, so rows change between free and bound as `C` moves, and the slope of the validation function
# jumps there. Follow both along `C`:

# %%
costs = np.geomspace(0.3, 6.0, 160)


@jax.jit
def along(costs):
    def one(cost):
        return jax.value_and_grad(lambda cost: validation({**hp, "loss": {"C": cost}})[0])(cost)

    return jax.lax.map(one, costs)


values, slopes = (np.asarray(part) for part in along(jnp.asarray(costs)))
jump = int(np.argmax(np.abs(np.diff(slopes))))

# %% [markdown]
# Halve the interval with the largest jump until it is as narrow as numbers go. That is a point where the gradient of
# the program belongs to one side only.

# %%
low, high = costs[jump], costs[jump + 1]
left, right = slopes[jump], slopes[jump + 1]
for _ in range(3):
    inside = np.linspace(low, high, 160)
    _, found = (np.asarray(part) for part in along(jnp.asarray(inside)))
    at = int(np.argmax(np.abs(np.diff(found))))
    low, high = inside[at], inside[at + 1]
    left, right = found[at], found[at + 1]
print(f"a kink at C = {low:.10f}: the slope jumps from {left:.6f} to {right:.6f}")

# %%
figure, (above, below) = plt.subplots(2, 1, figsize=(6.4, 5.2), sharex=True, layout="constrained")
above.plot(costs, values, color="#0072B2")
below.plot(costs, slopes, color="#009E73", marker=".", markersize=3, linewidth=0.7)
above.set(ylabel="validation function")
below.set(xscale="log", xlabel="C", ylabel="its slope in C")
below.set_xticks([0.3, 0.6, 1, 2, 4], ["0.3", "0.6", "1", "2", "4"])
below.minorticks_off()
for axis in (above, below):
    axis.axvline(low, color="#D55E00", linestyle="--", linewidth=1, label="the largest jump")
    axis.grid(alpha=0.25)
above.legend()
plt.show()

# %% [markdown]
# The function itself is continuous: above one hardly sees a bend. The report does: one-sided slopes that differ, and a
# row that sits on its kink.

# %%
report = hj.check_hypergradient(validation, {**hp, "loss": {"C": low}})
print(report)
print("trusted:", report.trusted)

# %% [markdown]
# What is well defined there is the slope to each side, and the set of gradients between the sides. Its shortest vector
# is what a descent method wants: minus it is the steepest way down, and 0 means that there is none.

# %%
corner = {**hp, "loss": {"C": jnp.asarray(low)}}
still = jax.tree.map(jnp.zeros_like, hp)
for sign, side in ((1.0, "up"), (-1.0, "down")):
    direction = {**still, "loss": {"C": jnp.asarray(sign)}}
    slope = hj.directional_derivative(problem, corner, direction, X, y, folds, criterion, tol=1e-10)
    print(f"C {side}: {float(slope):.6f}")
print(hj.subdifferential(problem, corner, X, y, folds, criterion, tol=1e-10))

# %% [markdown]
# A quasi-Newton search steps over such points, as it rarely stops on one; `hj.tune(..., at_kinks="min-norm")` follows
# the shortest vector where it does. Where kinks are everywhere, smooth the loss (`SmoothHinge`, `SquaredHinge`,
# `Logistic`).
#
# ## How well is the optimum determined?
#
# After a search `result.sensitivity()` differentiates the gradient once more. "alone" is how far one hyperparameter may
# move for 1 % of the objective, "together" how far when the others follow: in logarithms, so 0.1 is a factor of 1.1.

# %%
smooth = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF(), bias=True)
noisy = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * rng.normal(size=40) > 0.8, 1.0, -1.0)
result = hj.tune(smooth, X, noisy, folds=3, criterion=hj.criteria.LogLoss(), max_steps=15, progress=False)
print(result)
print(result.sensitivity())
