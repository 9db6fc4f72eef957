# %% [markdown]
# # Your own loss
#
# A loss is one convex function of an output. Nobody writes a derivative, a dual or a solver for it: the proximal map,
# the kinks and the hypergradient follow from the formula. This notebook derives a robust quantile loss, and lets
# `hj.check_loss` object on the way.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import hyperjax as hj

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## A first try
#
# Outliers should not pull the fit: truncate the squared residual at a width. The class takes two methods, `phi` row by
# row and `init` for start values.


# %%
class Truncated(hj.losses.Loss):
    def phi(self, o, y, hp):
        return hp["C"] * jnp.minimum((o - y) ** 2, hp["width"] ** 2)

    def init(self, X, y):
        return {"C": 1.0, "width": 0.5}


report = hj.check_loss(Truncated())

# %% [markdown]
# It is not convex, and the report says where: at the residual where the parabola breaks off, `width` from the target. A
# problem with several minima has no solution to differentiate: its solve fails, and the hypergradient at the bottom is
# NaN, not a wrong number.
#
# ## Convex, with a quantile in it
#
# Go on with the tangent in place of the constant: far residuals then pull with a bounded force and no longer with a
# growing one. That is Huber's loss,
#
# $$ h(r) = r^2 / (2w) \text{ for } |r| \le w, \qquad |r| - w/2 \text{ beyond}. $$
#
# The pinball loss weighs residuals above and below the fit by $\tau$ and $1 - \tau$, and its minimum leaves a share
# $\tau$ of the targets below. The product of both is convex, has no kink, and the width says how much of it is pinball.
# `tau` lives in (0, 1) and is not something to tune on the data: it says which question is asked, so it is `held`.


# %%
class RobustQuantile(hj.losses.Loss):
    domains = {"tau": hj.domains.Interval(0.0, 1.0)}
    held = ("tau",)

    def phi(self, o, y, hp):
        r, w = y - o, hp["width"]
        size = jnp.abs(r)
        huber = jnp.where(size <= w, r**2 / (2.0 * w), size - w / 2.0)
        return hp["C"] * jnp.where(r > 0, hp["tau"], 1.0 - hp["tau"]) * huber

    def init(self, X, y):
        return {"C": 10.0, "width": 0.2, "tau": 0.5}


report = hj.check_loss(RobustQuantile())

# %% [markdown]
# Everything holds, the hypergradient included. Tune `C`, the width and the kernel at the median, on a curve with one
# target in ten thrown upwards. The criterion is a function of outputs and targets; an absolute value keeps the outliers
# from deciding the validation as well.

# %%
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3.0, 3.0, 80))
truth = np.sin(1.5 * x)
y = truth + 0.25 * rng.normal(size=80)
y[rng.choice(80, 8, replace=False)] += 3.0
X = x[:, None]


def absolute(o, y):
    return jnp.mean(jnp.sqrt((o - y) ** 2 + 1e-4))


problem = hj.Problem(RobustQuantile(), hj.kernels.RBF(), bias=True)
result = hj.tune(problem, X, y, folds=4, criterion=absolute, max_steps=15, progress=False)
print(result)
print({name: round(float(value), 3) for name, value in result.hp["loss"].items()})

# %% [markdown]
# With the rest as tuned, other quantiles are one solve each: the band between 0.1 and 0.9 holds most of the targets,
# and the outliers move the upper edge, not the middle.

# %%
line = np.linspace(-3.0, 3.0, 200)
curves = {}
for tau in (0.1, 0.5, 0.9):
    hp = {**result.hp, "loss": {**result.hp["loss"], "tau": jnp.asarray(tau)}}
    curves[tau] = np.asarray(hj.solve(problem, hp, X, y).raise_if_failed().decision(line[:, None]))

figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
axis.fill_between(line, curves[0.1], curves[0.9], color="#0072B2", alpha=0.15, label="0.1 to 0.9")
axis.plot(line, curves[0.5], color="#0072B2", label="median")
axis.plot(line, np.sin(1.5 * line), color="#666666", linestyle=":", label="truth")
axis.scatter(x, y, s=14, color="#D55E00", label="targets")
axis.set(xlabel="x", ylabel="y")
axis.legend(loc="upper left", ncols=2)
plt.show()
