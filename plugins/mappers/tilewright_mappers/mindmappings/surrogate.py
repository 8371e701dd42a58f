"""The surrogate: a multilayer perceptron from relaxed mappings to the logarithms of energy and cycles, in JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
Layers = list[tuple[Any, Any]]
"""(weights [in, out], biases [out]) of each layer."""

HIDDEN = 3
"""Number of hidden layers."""
BATCH = 512
"""Mappings per step."""
CHUNK = 32
"""Steps that are compiled as one function; the clock is read between them."""
RATE = 2e-3
"""First learning rate of the training; it falls to 0 along a cosine."""
MIN_DEVIATION = np.float32(0.1)
"""Smallest deviation by which inputs and outputs are divided."""
FIRST, SECOND = 0.9, 0.999
"""Decay rates of Adam (Kingma and Ba, 2015)."""


@dataclass(frozen=True)
class Surrogate:
    """Trained layers, with mean, deviation, minimum and maximum of the inputs [4, in], and mean and deviation of the outputs [2, 2].

    The outputs are log2 of energy and of cycles over their lower bounds.
    """

    layers: Layers
    inputs: Floats32
    outputs: Floats32

    def predict(self, vectors: Floats32) -> Floats32:
        """Return the outputs for vectors, [n, 2]."""
        values = _forward(self.layers, (vectors - self.inputs[0]) / self.inputs[1])
        return np.asarray(values * self.outputs[1] + self.outputs[0])

    def descend(self, vectors: Floats32, descent: Descent, steps: int, rate: float) -> Floats32:
        """Return vectors after `steps` steps of gradient descent within the relaxed space, [n, in]."""
        # beyond the training set, predictions mean nothing
        descent = replace(
            descent,
            lowest=np.maximum(descent.lowest, self.inputs[2]),
            highest=np.minimum(descent.highest, self.inputs[3]),
        )
        parts = (self.layers, self.inputs, self.outputs[1] * descent.weights)
        return np.asarray(_descend(*parts, vectors, *descent.arrays, rate, steps))


@dataclass(frozen=True)
class Descent:
    """Relaxed space of a descent.

    Attributes:
        weights: Weight of both outputs in the objective, [2].
        lowest, highest: Bounds of every input, [in]; equal for inputs that stay.
        groups: Index of the dimension of every trip count, [in]; -1 for other inputs. The trips of
            one dimension keep their product.
    """

    weights: Floats32
    lowest: Floats32
    highest: Floats32
    groups: NDArray[np.int32]

    @property
    def arrays(self) -> tuple[Floats32, Floats32, Floats32]:
        """Bounds, and the matrix [in, in] that averages over the open trips of one dimension."""
        is_open = (self.groups >= 0) & (self.highest > self.lowest)
        same = (self.groups[:, None] == self.groups[None]) & is_open[:, None] & is_open[None]
        return self.lowest, self.highest, (same / np.maximum(1, same.sum(axis=1, keepdims=True))).astype(np.float32)


def train(
    vectors: Floats32,
    targets: Floats32,
    width: int,
    epochs: int,
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> Surrogate | None:
    """Return a surrogate trained on vectors [n, in] and targets [n, 2], or None if `stop` returns true."""
    inputs = np.stack([*_scale(vectors), vectors.min(axis=0), vectors.max(axis=0)])
    outputs = np.stack(_scale(targets))
    data = (vectors - inputs[0]) / inputs[1], (targets - outputs[0]) / outputs[1]
    layers = _initial([vectors.shape[1], *[width] * HIDDEN, targets.shape[1]], rng)
    state = layers, (jax.tree.map(jnp.zeros_like, layers),) * 2, jnp.zeros(())
    chunks = math.ceil(epochs * len(vectors) / (CHUNK * BATCH))
    for _ in range(chunks):
        if stop():
            return None
        rows = rng.integers(0, len(vectors), (CHUNK, BATCH))
        state = _fit(state, chunks * CHUNK, data[0][rows], data[1][rows])
    layers = state[0]
    return Surrogate([(np.asarray(w), np.asarray(b)) for w, b in layers], inputs, outputs)


def _scale(values: Floats32) -> tuple[Floats32, Floats32]:
    """Return mean and deviation; the latter is at least MIN_DEVIATION, so that rare values do not dominate."""
    return values.mean(axis=0), np.maximum(values.std(axis=0), MIN_DEVIATION)


def _initial(sizes: list[int], rng: np.random.Generator) -> Layers:
    """Return random layers, scaled as by He et al., 2015."""
    return [
        (jnp.asarray(rng.normal(0, np.sqrt(2 / a), (a, b)), dtype=jnp.float32), jnp.zeros(b, dtype=jnp.float32))
        for a, b in zip(sizes[:-1], sizes[1:], strict=True)
    ]


def _forward(layers: Layers, values: Any) -> Any:
    for weights, biases in layers[:-1]:
        values = jax.nn.silu(values @ weights + biases)
    weights, biases = layers[-1]
    return values @ weights + biases


def _adam(values: Any, moments: Any, gradient: Any, number: Any, rate: Any) -> tuple[Any, Any]:
    """Return values and moments after step `number` of Adam, counted from 0."""
    first = jax.tree.map(lambda m, g: FIRST * m + (1 - FIRST) * g, moments[0], gradient)
    second = jax.tree.map(lambda m, g: SECOND * m + (1 - SECOND) * g**2, moments[1], gradient)
    scale = rate * jnp.sqrt(1 - SECOND ** (number + 1)) / (1 - FIRST ** (number + 1))
    values = jax.tree.map(lambda x, m, v: x - scale * m / (jnp.sqrt(v) + 1e-8), values, first, second)
    return values, (first, second)


def _fit_batches(state: Any, total: Any, vectors: Any, targets: Any) -> Any:
    """Return layers, moments and number of steps after one step per batch; smooth L1 loss, as published."""

    def loss(layers: Layers, x: Any, y: Any) -> Any:
        error = jnp.abs(_forward(layers, x) - y)
        return jnp.where(error < 1, error**2 / 2, error - 0.5).mean()

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        layers, moments, number = state
        rate = RATE * (1 + jnp.cos(jnp.pi * number / total)) / 2
        return (*_adam(layers, moments, jax.grad(loss)(layers, *batch), number, rate), number + 1), None

    return lax.scan(step, state, (vectors, targets))[0]


def _descend_steps(
    layers: Layers, inputs: Any, weights: Any, vectors: Any, lowest: Any, highest: Any, mean: Any, rate: Any, steps: int
) -> Any:
    """Descend with Adam on the inputs; after each step, trips of one dimension get their product back."""
    begin = vectors @ mean
    is_free = highest > lowest

    def objective(x: Any) -> Any:
        return (_forward(layers, (x - inputs[0]) / inputs[1]) @ weights).sum()

    def step(state: Any, number: Any) -> tuple[Any, None]:
        x, moments = state
        gradient = jax.grad(objective)(x)
        x, moments = _adam(x, moments, jnp.where(is_free, gradient - gradient @ mean, 0.0), number, rate)
        for _ in range(4):
            x = jnp.where(is_free, jnp.clip(x + (begin - x @ mean), lowest, highest), vectors)
        return (x, moments), None

    state = vectors, (jnp.zeros_like(vectors),) * 2
    return lax.scan(step, state, jnp.arange(steps, dtype=jnp.float32))[0][0]


_fit = jax.jit(_fit_batches)
_descend = jax.jit(_descend_steps, static_argnames="steps")
