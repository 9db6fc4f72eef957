# %% [markdown]
# # An SVM inside a neural network
#
# `hj.solve` is differentiable in its data. So the features of an SVM may be made by a network, and the network is
# trained through the solution: an SVM is fitted on the features of some rows in every step, its outputs on other rows
# are judged, and the gradient goes through the fit. Plain JAX and optax; any library of pytrees fits in the same way.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import hyperjax as hj

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# Two spirals: no line separates them, and the head below is linear. The network has to unroll them.


# %%
def spirals(n, seed):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    angle = rng.uniform(0.6, 5.5, n)
    centre = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (angle * y / 4.0)[:, None]
    return jnp.asarray(centre + 0.04 * rng.normal(size=(n, 2))), jnp.asarray(y)


X, y = spirals(120, 0)
X_new, y_new = spirals(1000, 1)

# %% [markdown]
# The model: a small network, and an SVM on what it gives. The cost of the SVM is trained as well, as a
# logarithm.

# %%
WIDTHS = (2, 32, 32, 2)


def init(key):
    keys = jax.random.split(key, len(WIDTHS) - 1)
    layers = [
        {"W": jax.random.normal(key, (a, b)) * jnp.sqrt(2.0 / a), "b": jnp.zeros(b)}
        for key, a, b in zip(keys, WIDTHS[:-1], WIDTHS[1:], strict=True)
    ]
    return {"layers": layers, "log_C": jnp.zeros(())}


def features(params, X):
    *hidden, last = params["layers"]
    for layer in hidden:
        X = jnp.tanh(X @ layer["W"] + layer["b"])
    return X @ last["W"] + last["b"]


problem = hj.Problem(hj.losses.SquaredHinge(), hj.kernels.Linear(), bias="regularised")


def fit(params, X, y):
    return hj.solve(problem, {"loss": {"C": jnp.exp(params["log_C"])}, "kernel": {}}, features(params, X), y)


# %% [markdown]
# One step: a random half of the rows is the training set of the SVM, the other half judges it. Everything runs in one
# `jit`.

# %%
optimiser = optax.adam(1e-2)


def loss(params, mix, X, y):
    inside, outside = mix[:60], mix[60:]
    head = fit(params, X[inside], y[inside])
    return jnp.mean(jax.nn.softplus(-3.0 * y[outside] * head.decision(features(params, X[outside]))))


@jax.jit
def step(params, state, key, X, y):
    value, slope = jax.value_and_grad(loss)(params, jax.random.permutation(key, len(y)), X, y)
    updates, state = optimiser.update(slope, state, params)
    return optax.apply_updates(params, updates), state, value


params = init(jax.random.key(0))
state = optimiser.init(params)
before = params
history = []
for key in jax.random.split(jax.random.key(1), 300):
    params, state, value = step(params, state, key, X, y)
    history.append(float(value))

# %%
for name, model in (("untrained", before), ("trained", params)):
    head = fit(model, X, y)
    error = np.mean(np.sign(head.decision(features(model, X_new))) != y_new)
    print(f"{name} features: error rate on new rows {error:.3f}, code {hj.Code(int(head.code)).name}")
print("cost", float(jnp.exp(params["log_C"])))

# %% [markdown]
# On the left what the model says in the plane, on the right the same rows as the network hands them to the SVM.

# %%
head = fit(params, X, y)
a, b = np.meshgrid(np.linspace(-1.7, 1.7, 60), np.linspace(-1.7, 1.7, 60))
plane = jnp.asarray(np.stack([a.ravel(), b.ravel()], axis=1))
outputs = np.asarray(head.decision(features(params, plane))).reshape(a.shape)
inside = np.asarray(features(params, X))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained")
left.contourf(a, b, outputs, levels=np.linspace(-2, 2, 17), cmap="RdBu", alpha=0.5, extend="both")
left.contour(a, b, outputs, levels=[0], colors="black", linewidths=1)
normal = np.asarray(head.z @ inside)
for label, colour in ((-1, "#D55E00"), (1, "#0072B2")):
    mine = np.asarray(y) == label
    left.scatter(*np.asarray(X)[mine].T, s=16, color=colour, label=f"y = {label:+d}")
    right.scatter(*inside[mine].T, s=16, color=colour)
foot = tuple(-float(head.b) * normal / (normal @ normal))
right.axline(foot, slope=-normal[0] / normal[1], color="black", linewidth=1)
left.set(title="the plane", xlabel="first feature", ylabel="second feature")
right.set(title="features made by the network", xlabel="first output", ylabel="second output")
left.legend(loc="upper right")
plt.show()

# %%
figure, axis = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
axis.plot(history, color="#0072B2", linewidth=0.8)
axis.set(xlabel="step", ylabel="loss on the other half", yscale="log")
axis.grid(alpha=0.25)
plt.show()

# %% [markdown]
# ## Several classes, several tasks
#
# `hj.multiclass` fits the outputs of all classes together. Below, every task is a triple of blobs whose places are
# drawn anew, hidden among six columns of noise by a mixing that all tasks share: six labelled rows a task, and the
# mixing is learned over tasks. Eight tasks are one `vmap`.

# %%
WAYS, SHOTS, ASKED = 3, 2, 8
mixing = jnp.asarray(np.linalg.qr(np.random.default_rng(5).normal(size=(8, 8)))[0])
machine = hj.multiclass.CrammerSinger(WAYS)


def tasks(seed, count=8):
    draw = np.random.default_rng(seed)
    labels = np.repeat(np.arange(WAYS), SHOTS + ASKED)
    centres = 2.0 * draw.normal(size=(count, WAYS, 2))
    plane = centres[:, labels] + 0.5 * draw.normal(size=(count, len(labels), 2))
    noise = 2.0 * draw.normal(size=(count, len(labels), 6))
    known = np.tile(np.arange(SHOTS + ASKED) < SHOTS, WAYS)
    X = jnp.asarray(np.concatenate([plane, noise], axis=2)) @ mixing
    return X[:, known], X[:, ~known]


KNOWN, NEW = np.repeat(np.arange(WAYS), SHOTS), np.repeat(np.arange(WAYS), ASKED)


def outputs(W, known, new):
    head = hj.multiclass.solve(machine, {"loss": {"C": 1.0}, "kernel": {}}, known @ W, KNOWN)
    return head.decision(new @ W)


def task_loss(W, known, new):
    scores = jax.vmap(outputs, in_axes=(None, 0, 0))(W, known, new)
    chosen = jax.nn.log_softmax(scores)[:, jnp.arange(len(NEW)), NEW]
    return -jnp.mean(chosen), jnp.mean(jnp.argmax(scores, axis=2) == NEW)


judge = jax.jit(jax.value_and_grad(task_loss, has_aux=True))
W = jnp.eye(8)
state = optimiser.init(W)
right = []
for seed in range(150):
    (_, accuracy), slope = judge(W, *tasks(seed))
    updates, state = optimiser.update(slope, state, W)
    W = optax.apply_updates(W, updates)
    right.append(float(accuracy))
print(f"right on new rows: first 20 steps {np.mean(right[:20]):.2f}, last 20 {np.mean(right[-20:]):.2f}")

# %%
figure, axis = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
axis.plot(right, color="#56B4E9", linewidth=0.8, label="eight tasks")
mean = np.convolve(right, np.ones(15) / 15, mode="valid")
axis.plot(np.arange(14, len(right)), mean, color="#0072B2", label="mean of fifteen steps")
axis.set(xlabel="step", ylabel="share of new rows right")
axis.legend(loc="lower right")
axis.grid(alpha=0.25)
plt.show()
