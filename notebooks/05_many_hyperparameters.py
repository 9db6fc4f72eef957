# %% [markdown]
# # Many hyperparameters
#
# A gradient costs one linear solve a fold, whether there are two hyperparameters or two hundred. That is where a grid
# ends and this begins: a width for each feature, a weight for each kernel, a cost for each row.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import hyperjax as hj
from hyperjax import plots

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 6))
y = np.where(X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=120) > 0.8, 1.0, -1.0)
NAMES = ["curved", "straight", "noise 1", "noise 2", "noise 3", "noise 4"]

# %% [markdown]
# ## A width for each feature
#
# Two of six columns decide, four are noise. The ARD kernel has one `gamma` a feature; the search first moves them as
# one, then each by itself.

# %%
problem = hj.Problem(hj.losses.SquaredHinge(), hj.kernels.ARD(), bias=True)
result = hj.tune(problem, X, y, folds=4, max_steps=15, progress=False)
print(result)
shared = [record for record in result.history if record["stage"] == "isotropic"][-1]
print(f"error rate with one width {shared['hard']:.3f}, with one a feature {result.hard:.3f}")

# %%
plots.RelevanceDisplay.from_result(result, features=NAMES)
plt.show()

# %% [markdown]
# ## A weight for each kernel
#
# A sum of kernels, each on columns of its own. A weight may go all the way to 0: then the kernel is out.

# %%
kernel = hj.kernels.Weighted(
    [hj.kernels.RBF(columns=(0,)), hj.kernels.Linear(columns=(1,)), hj.kernels.RBF(columns=(2, 3, 4, 5))]
)
problem = hj.Problem(hj.losses.SquaredHinge(), kernel, bias=True)
result = hj.tune(problem, X, y, folds=4, stages=["full"], max_steps=15, progress=False)
print(result)
print("weights", np.round(np.asarray(result.hp["kernel"]["beta"]), 4))

# %%
plots.KernelWeightsDisplay.from_result(result, ["RBF of `curved`", "linear of `straight`", "RBF of the noise"])
plt.show()

# %% [markdown]
# ## A cost for each row
#
# 80 rows to train on, 16 of which carry the wrong label, and 40 rows somebody has checked. `PerSample` gives each row
# its own `C`; the validation set is the 40 clean rows, so the search lowers the cost of rows that make it worse. This
# is one `Folds`: trained on the first 80, tested on the rest. The costs of the rows that are never trained on have no
# effect.

# %%
train = (np.arange(120) < 80).astype(float)
wrong = np.zeros(120, bool)
wrong[rng.choice(80, 16, replace=False)] = True
labels = np.where(wrong, -y, y)
split = hj.Folds(train[None, :], 1.0 - train[None, :])

problem = hj.Problem(hj.losses.PerSample(hj.losses.SquaredHinge()), hj.kernels.RBF(columns=(0, 1)), bias=True)
criterion = hj.criteria.SmoothHingeLoss()
result = hj.tune(problem, X, labels, folds=split, criterion=criterion, stages=["full"], max_steps=25, progress=False)
print(result)
cost = np.asarray(result.hp["loss"]["C"])[:80]
bad = wrong[:80]
print(f"median cost of rows with a right label {np.median(cost[~bad]):.3f}, a wrong one {np.median(cost[bad]):.3f}")
pairs = cost[~bad][:, None] > cost[bad][None, :]
print(f"a right row costs more than a wrong one in {100 * pairs.mean():.0f} % of pairs")

# %%
figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
bins = np.geomspace(cost.min() * 0.9, cost.max() * 1.1, 24)
style = {"color": ["#0072B2", "#D55E00"], "label": ["right label", "wrong label"]}
axis.hist([cost[~bad], cost[bad]], bins=bins, stacked=True, **style)
axis.axvline(float(np.ravel(result.start["loss"]["C"])[0]), color="#666666", linestyle="--", label="start")
axis.set(xscale="log", xlabel="C of a row", ylabel="rows")
axis.legend()
plt.show()

# %% [markdown]
# With more than ten hyperparameters a prior pulls the logarithms towards the start (`prior=`), which is what keeps 80
# costs from fitting 40 validation rows by heart.
