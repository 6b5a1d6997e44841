"""Sparse features against the same made dense: w6a where it is at hand (ADOM_DATA), otherwise its like."""

import os
from pathlib import Path

from common import best_times, finish, one_core, rounds_of, session


def data():
    import numpy as np
    import scipy.sparse as sp

    for folder in filter(None, (os.environ.get("ADOM_DATA"), Path(__file__).parents[2] / "shared" / "data")):
        for place in ("w6a", "libsvm/w6a"):
            file = Path(folder, place)
            if file.exists():
                from adom.data.sample_files import read

                return "w6a", *read(file)
    rng = np.random.default_rng(0)
    features = sp.random_array((17_188, 300), density=0.0389, rng=rng, format="csr")
    features.data[:] = 1.0
    return "synthetic, 17,188 x 300, 3.9 % filled", features, np.where(rng.random(17_188) < 0.5, 1, -1)


def main() -> None:
    one_core()
    import jax
    import numpy as np
    import scipy.sparse as sp

    import adom

    name, features, labels = data()
    features = sp.csr_array(features)
    network = adom.networks.geometric(100, 0.33, graphs=20, seed=0)
    problems = {
        "sparse": adom.LogisticRegression(features, labels, nodes=100, kappa=100.0),
        "dense": adom.LogisticRegression(features.toarray(), labels, nodes=100, kappa=100.0),
    }
    with jax.enable_x64(True):
        works = {}
        for kind, problem in problems.items():
            method = adom.ADOM.theory(adom.constants(problem, network))
            works[kind] = rounds_of(session(problem, network, [method]), 10 if kind == "dense" else 50)
        best = best_times(works)
        halves = []
        for share in (0.5, 1.0):  # the cost against the number of non-zeros, with everything else the same
            fewer = features.copy()
            fewer.data[np.random.default_rng(0).random(fewer.nnz) > share] = 0.0
            fewer.eliminate_zeros()
            problem = adom.LogisticRegression(fewer, labels, nodes=100, kappa=100.0)
            method = adom.ADOM.theory(adom.constants(problem, network))
            halves.append((fewer.nnz, best_times({"one": rounds_of(session(problem, network, [method]), 50)})["one"]))
    (few, short), (all_of_them, long) = halves
    row = {"data": name, "nonzeros": features.nnz, "filled": features.nnz / np.prod(features.shape)}
    row |= {"dense_over_sparse": best["dense"] / best["sparse"], "sparse_us": 1e6 * best["sparse"]}
    row |= {"nonzeros_ratio": all_of_them / few, "time_ratio": long / short}
    finish([row])


if __name__ == "__main__":
    main()
