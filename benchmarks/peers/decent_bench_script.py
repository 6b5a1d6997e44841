"""The job of numpy_script.py with decent-bench: exact diffusion on one geometric graph, since a graph cannot change."""

import job
import networkx as nx
from decent_array import interoperability as iop
from decent_bench.agents import Agent
from decent_bench.algorithms.p2p import ED
from decent_bench.costs import L2RegularizerCost, LogisticRegressionCost
from decent_bench.networks import P2PNetwork
from numpy_script import constants, draw_graphs, draw_samples, minimiser


def main():
    asked = job.options(__doc__)
    iop.set_backend("numpy")
    features, labels = draw_samples(asked.nodes, asked.samples, asked.dim)
    signed = features * labels[:, :, None]
    L, mu = constants(signed)
    solution = minimiser(signed, mu)
    costs = [
        LogisticRegressionCost([(iop.from_numpy(a), iop.from_numpy(y)) for a, y in zip(A, b, strict=True)])
        + mu * L2RegularizerCost((asked.dim,))
        for A, b in zip(features, (labels[:, :, None] + 1) / 2, strict=True)  # labels 0 and 1
    ]
    (W,), _, _ = draw_graphs(asked.nodes, 1)
    network = P2PNetwork(nx.from_numpy_array(W < 0), [Agent(cost) for cost in costs])

    def solve():
        ED(step_size=1 / L).run(network, asked.rounds)
        return sum(((iop.to_numpy(agent.x) - solution) ** 2).sum() for agent in network.agents()), None

    job.run(asked, solve)


if __name__ == "__main__":
    main()
