# %% [markdown]
# # Tune an SVM
#
# Two hyperparameters decide what a support vector machine with an RBF kernel learns: the cost `C` of an error and the
# width `gamma` of the kernel. The usual way is a grid. Here the cross-validation error itself has a gradient, and the
# search walks down.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import hyperjax as hj
from hyperjax import plots

jax.config.update("jax_enable_x64", True)  # before the first array

# %% [markdown]
# 100 noisy rows to learn from, 1000 to look at the end. Margin losses take labels -1 and +1.

# %%
X, target = make_moons(1100, noise=0.3, random_state=2)
y = np.where(target == 1, 1.0, -1.0)
X, X_new, y, y_new = X[:100], X[100:], y[:100], y[100:]

# %% [markdown]
# A problem is a loss, a kernel and a bias. `hj.tune` starts at `C = 1` and the "scale" width of scikit-learn, and
# follows the gradient of the smoothed error rate of five folds. All folds are solved together, and one linear solve a
# fold gives the derivative in every hyperparameter at once.

# %%
problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(), bias=True)
result = hj.tune(problem, X, y, folds=5, progress=False)
print(result)
print("C", float(result.hp["loss"]["C"]), "gamma", float(result.hp["kernel"]["gamma"]))

# %% [markdown]
# `value` is the smoothed error that was made small and `hard` the error rate that people report. `reason` says why the
# search ended. The model trained on all rows comes with it:

# %%
error = np.mean(np.sign(result.decision(X_new)) != y_new)
print(f"error rate: cross-validated {result.hard:.3f}, on new rows {error:.3f}")

# %% [markdown]
# The path, over a map of the validation function. The map costs one cross-validation a point, the path one a dot.
# A descent ends where no further step promises anything, next to where it began: the map has a lower place further up,
# a few of these 100 rows better. `starts=8` evaluates eight points in one batch and goes on from the best.

# %%
plots.PathDisplay.from_result(result, X, y, resolution=13)
plt.show()

# %% [markdown]
# What it learned: the line where the output is 0, and the margin around it.

# %%
a, b = np.meshgrid(np.linspace(-2.2, 3.2, 60), np.linspace(-1.8, 2.2, 60))
outputs = np.asarray(result.decision(np.stack([a.ravel(), b.ravel()], axis=1))).reshape(a.shape)
figure, axis = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
shade = axis.contourf(a, b, outputs, levels=np.linspace(-2, 2, 17), cmap="RdBu", alpha=0.5, extend="both")
axis.contour(a, b, outputs, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"], linewidths=1)
for label, colour in ((-1, "#D55E00"), (1, "#0072B2")):
    axis.scatter(*X[y == label].T, s=22, color=colour, edgecolors="white", linewidths=0.5, label=f"y = {label:+d}")
axis.set(xlabel="first feature", ylabel="second feature")
axis.legend(loc="upper right")
figure.colorbar(shade, ax=axis, label="output", ticks=[-2, -1, 0, 1, 2])
plt.show()
