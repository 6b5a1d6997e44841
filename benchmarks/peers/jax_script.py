"""The job of numpy_script.py with its rounds as one compiled scan of JAX, in float64."""

import jax
import jax.numpy as jnp
import job
import numpy as np
from numpy_script import constants, draw_graphs, draw_samples, minimiser, parameters

jax.config.update("jax_enable_x64", True)


@jax.jit
def scan(signed, laplacians, order, solution, L, mu, alpha, eta, theta, sigma, tau):
    """Return the squared error after every round."""
    nodes, samples, dim = signed.shape

    def step(state, k):
        z, z_f, m, x = state
        z_g = tau * z + (1 - tau) * z_f
        margins = jnp.einsum("nsd,nd->ns", signed, x)
        slopes = -1 / (1 + jnp.exp(margins)) / samples
        gradient = jnp.einsum("ns,nsd->nd", slopes, signed) + mu * x
        x = x - (gradient - z_g) / L
        W = laplacians[k]
        moved = m - eta * x
        delta = sigma * (W @ moved)
        z = z + eta * alpha * (z_g - z) + delta
        return (z, z_g - theta * (W @ x), moved - delta, x), ((x - solution) ** 2).sum()

    zeros = jnp.zeros((nodes, dim))
    return jax.lax.scan(step, (zeros, zeros, zeros, zeros), order)[1]


def main():
    asked = job.options(__doc__)
    features, labels = draw_samples(asked.nodes, asked.samples, asked.dim)
    signed = features * labels[:, :, None]
    laplacians, least, largest = draw_graphs(asked.nodes, asked.graphs)
    L, mu = constants(signed)
    order = np.arange(asked.rounds) % asked.graphs
    arrays = [jnp.asarray(array) for array in (signed, np.stack(laplacians), order, minimiser(signed, mu))]
    numbers = (L, mu, *parameters(L, mu, least, largest))
    job.run(asked, lambda: (float(scan(*arrays, *numbers)[-1]), None))


if __name__ == "__main__":
    main()
