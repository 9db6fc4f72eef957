# %% [markdown]
# # Imbalanced data
#
# One row in eight is positive, and the positive ones are what is looked for. A small error rate is then easy and says
# little: always "no" has 12 % errors and finds nothing. Ask for what is meant, the F-measure, and give the model the
# means to reach it: a threshold, and a cost and a margin for each class.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score, precision_recall_curve

import hyperjax as hj

jax.config.update("jax_enable_x64", True)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 8 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) + np.where(y > 0, 1.6, 0.0)[:, None] * np.array([1.0, 0.6])
    return X, y


X, y = draw(144, 0)
X_new, y_new = draw(4000, 1)
folds = hj.folds.stratified(y, 4, seed=0)
KERNEL = hj.kernels.RBF()

# %% [markdown]
# ## The error rate

# %%
plain = hj.tune(hj.Problem(hj.losses.Hinge(), KERNEL, True), X, y, folds=folds, max_steps=15, progress=False)
print(plain)

# %% [markdown]
# ## F, a tuned threshold, class-wise costs and margins
#
# `FMeasure(threshold="tuned")` has a hyperparameter of its own, the output from which a row counts as positive. It is
# tuned together with everything else and comes back in `hp["criterion"]`. `WeightedHinge` has two costs and two
# margins.

# %%
problem = hj.Problem(hj.losses.WeightedHinge(), KERNEL, True)
criterion = hj.criteria.FMeasure(threshold="tuned")
result = hj.tune(problem, X, y, folds=folds, criterion=criterion, max_steps=15, progress=False)
print(result)
for part, values in result.hp.items():
    print(part, {name: round(float(value), 3) for name, value in values.items()})

# %% [markdown]
# ## On new rows
#
# The threshold belongs to the model: compare outputs with it, not with 0.

# %%
threshold = float(result.hp["criterion"]["threshold"])
outputs = {"error rate": np.asarray(plain.decision(X_new)), "F-measure": np.asarray(result.decision(X_new))}
cuts = {"error rate": 0.0, "F-measure": threshold}
for name, o in outputs.items():
    said = o > cuts[name]
    print(
        f"tuned for the {name}: F {f1_score(y_new > 0, said):.3f}, errors {np.mean(said != (y_new > 0)):.3f}, "
        f"found {np.mean(said[y_new > 0]):.2f} of the positive rows"
    )

# %%
figure, axis = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
recalls = np.linspace(0.01, 1.0, 200)
for level in (0.3, 0.4, 0.5, 0.6):
    right = recalls > level / (2.0 - level)
    axis.plot(recalls[right], level * recalls[right] / (2 * recalls[right] - level), color="#cccccc", linewidth=0.8)
    axis.annotate(f"F = {level}", (0.99, level / (2.0 - level)), ha="right", va="bottom", color="#666666", fontsize=8)
for (name, o), colour in zip(outputs.items(), ("#D55E00", "#0072B2"), strict=True):
    precision, recall, _ = precision_recall_curve(y_new > 0, o)
    axis.plot(recall, precision, color=colour, label=f"tuned for the {name}")
    said = o > cuts[name]
    found, sure = np.mean(said[y_new > 0]), np.mean(y_new[said] > 0) if said.any() else 1.0
    axis.scatter(found, sure, s=70, color=colour, edgecolors="black", zorder=3)
axis.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1))
axis.legend(loc="upper right")
plt.show()

# %% [markdown]
# The dots are the points at which each model works. The curves hardly differ: much of the gain is in where to cut,
# which is why the threshold is a hyperparameter here and not an afterthought.
