# %% [markdown]
# # Support vector regression with groups of different quality
#
# Measurements from three instruments, one of them good, one fair, one poor. A regression with one cost and one tube
# for all rows has to choose whom to believe. `Grouped` gives each group hyperparameters of its own, six in place of
# two, and the gradient finds them from the validation error.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import hyperjax as hj

jax.config.update("jax_enable_x64", True)

NOISE = {"fair": 0.3, "good": 0.05, "poor": 1.2}
COLOURS = {"fair": "#E69F00", "good": "#009E73", "poor": "#D55E00"}

rng = np.random.default_rng(0)
x = rng.uniform(-3.0, 3.0, 120)
instrument = np.array(["good", "fair", "poor"])[np.arange(120) % 3]
truth = np.sin(2.0 * x) + 0.3 * x
y = truth + np.array([NOISE[name] for name in instrument]) * rng.normal(size=120)
X = x[:, None]

# %% [markdown]
# The validation error weighs the rows of the good instrument only: the curve is wanted, not the noise of the others.
# `folds` splits all rows; the criterion is a function of held-out outputs and targets.

# %%
good = instrument == "good"


def error_where_good(o, y):
    return (((o - y) ** 2) * good).sum() / good.sum()


folds = hj.folds.stratified(np.arange(120) % 3, 4, seed=0)  # as much of each instrument in each
one = hj.Problem(hj.losses.SquaredEpsilonInsensitive(), hj.kernels.RBF(), bias=True)
plain = hj.tune(one, X, y, folds=folds, criterion=error_where_good, max_steps=20, progress=False)
print("one for all:", plain)

# %%
loss = hj.losses.Grouped(hj.losses.SquaredEpsilonInsensitive(), instrument)
problem = hj.Problem(loss, hj.kernels.RBF(), bias=True)
result = hj.tune(problem, X, y, folds=folds, criterion=error_where_good, max_steps=20, progress=False)
print("by group:   ", result)

# %% [markdown]
# The groups are in sorted order of their labels. Cost and tube are two ways to believe a group less, and the search
# took the tube here: it is narrow for the good instrument, and wider than nearly all of the noise for the others, so
# that only their far rows have a say.

# %%
names = sorted(NOISE)
costs, tubes = (np.asarray(result.hp["loss"][key]) for key in ("C", "eps"))
for name, cost, tube in zip(names, costs, tubes, strict=True):
    print(f"{name}: noise {NOISE[name]:.2f}  C {cost:9.4f}  eps {tube:.4f}")
line = np.linspace(-3.0, 3.0, 200)
right = np.sin(2.0 * line) + 0.3 * line
curves = {"one for all": plain, "by group": result}
for label, found in curves.items():
    off = np.asarray(found.decision(line[:, None])) - right
    print(f"{label}: root mean squared error against the truth {np.sqrt(np.mean(off**2)):.4f}")

# %%
figure, (left, other) = plt.subplots(1, 2, figsize=(9.6, 4.0), width_ratios=(2, 1), layout="constrained")
for name in names:
    mine = instrument == name
    left.scatter(x[mine], y[mine], s=14, color=COLOURS[name], label=name)
left.plot(line, right, color="#666666", linestyle=":", label="truth")
left.plot(line, plain.decision(line[:, None]), color="#56B4E9", label="one for all")
left.plot(line, result.decision(line[:, None]), color="#0072B2", label="by group")
left.set(xlabel="x", ylabel="y")
left.legend(ncols=2, fontsize="small")
rows = sorted(names, key=NOISE.get)
other.bar(rows, [tubes[names.index(name)] for name in rows], color=[COLOURS[name] for name in rows])
other.set(yscale="log", xlabel="instrument", ylabel="eps, half the width of the tube")
plt.show()
