"""The job of numpy_script.py with adom: its network, its solution and its rounds."""

import job
from numpy_script import draw_samples

import adom


def main():
    asked = job.options(
        __doc__,
        oracle={"default": "gd:1", "help": "gd:1 (the default), auto or exact"},
        parameters={"default": "theory", "help": "theory (the default) or auto"},
    )
    kind, _, steps = asked.oracle.partition(":")
    features, labels = draw_samples(asked.nodes, asked.samples, asked.dim)
    problem = adom.LogisticRegression(
        features.reshape(-1, asked.dim), labels.ravel(), nodes=asked.nodes, kappa=job.KAPPA
    )
    network = adom.networks.geometric(asked.nodes, job.RADIUS, graphs=asked.graphs, seed=0)

    def solve():
        chosen = (kind, int(steps)) if steps else kind
        result = adom.solve(problem, network, "adom", asked.parameters, chosen, rounds=asked.rounds)
        return result.last["error"], result.last["seconds"]

    job.run(asked, solve)


if __name__ == "__main__":
    main()
