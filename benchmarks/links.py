"""Late, coarse, partial and noisy messages: every method on each kind of link, the table of docs/links.md, its picture.

Run: ``make bench-links`` or ``python benchmarks/links.py [--picture FILE]``. The setting is that of
`benchmarks/loss.py`: twenty nodes walk about; f_i are quadratics with kappa 30, in five dimensions.
"""

import argparse
from pathlib import Path

import numpy as np

import adom
from adom.algorithms import method_class
from loss import NODES, ROUNDS, TARGET, quadratic, relative, walking

OTHERS = 20_000
"""Rounds of methods that are not in the table of loss."""
EXTRA = 4
"""Rounds, as a multiple of those that a method may take where messages are lost."""


def links(network):
    """Return the network with each kind of link, by name; feedback where there is a choice."""
    n = adom.networks
    return {
        "perfect": network,
        "2 rounds late": n.delayed(network, 2),
        "0 to 2 rounds late": n.delayed(network, 2, varying=True),
        "8 bits": n.quantised(network, 8),
        "2 bits": n.quantised(network, 2),
        "largest 40%": n.sparsified(network, 0.4),
        "random 40%": n.sparsified(network, 0.4, "random"),
        "random 40%, no feedback": n.sparsified(network, 0.4, "random", feedback=False),
    }


def stalling(network):
    """Return links with which methods do not reach the answer."""
    n = adom.networks
    return {
        "8 bits, no feedback": n.quantised(network, 8, feedback=False),
        "largest 40%, no feedback": n.sparsified(network, 0.4, feedback=False),
        "noise 1e-3": n.noisy(network, 1e-3),
    }


def rounds_to_target(problem, network, method, most):
    """Return the rounds to the target and the floats sent; or the error at the end."""
    tol = TARGET * NODES * float((problem.solution() ** 2).sum())
    try:
        result = adom.solve(problem, network, method, "unit", rounds=most, tol=tol, record_every=10)
    except adom.InputError:
        return "refused"
    if result.status == "converged":
        return f"{int(result.history['round'].iloc[-1]):,}"
    return "diverges" if result.status == "diverged" else f"{relative(result)[-1]:.0e}"


def ends_at(problem, network, method, rounds):
    """Return the geometric mean of the error over the last tenth of a run."""
    result = adom.solve(problem, network, method, "unit", rounds=rounds, record_every=10)
    errors = relative(result)
    return "diverges" if result.status == "diverged" else f"{np.exp(np.log(errors[-len(errors) // 10 :]).mean()):.0e}"


def table(problem, network, methods):
    kinds, others = links(network), stalling(network)
    print("| method | " + " | ".join([*kinds, *others]) + " |")
    print("| --- |" + " --: |" * (len(kinds) + len(others)))
    for method in methods:
        rounds = ROUNDS.get(method, OTHERS)
        most = rounds if method == "panda" else EXTRA * rounds
        cells = [rounds_to_target(problem, kind, method, most) for kind in kinds.values()]
        cells += [ends_at(problem, kind, method, min(5_000, rounds)) for kind in others.values()]
        print(f"| {method_class(method).title} | " + " | ".join(cells) + " |", flush=True)


def picture(problem, network, path):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    kinds = {**links(network), **stalling(network)}
    shown = ("perfect", "2 rounds late", "8 bits", "2 bits", "largest 40%", "random 40%, no feedback")
    for number, name in enumerate(shown):
        run = adom.solve(problem, kinds[name], "adom", "unit", rounds=2500, record_every=5)
        left.semilogy(run.history["round"], relative(run), color=f"C{number}", label=name)
        right.semilogy(run.history["floats_sent"], relative(run), color=f"C{number}")
    for number, name in ((2, "8 bits, no feedback"), (4, "largest 40%, no feedback"), (6, "noise 1e-3")):
        run = adom.solve(problem, kinds[name], "adom", "unit", rounds=2500, record_every=5)
        left.semilogy(run.history["round"], relative(run), ":", color=f"C{number}", label=name)
        right.semilogy(run.history["floats_sent"], relative(run), ":", color=f"C{number}")
    left.set(xlabel="rounds", ylabel="error, relative to the start", ylim=(1e-27, 10), title="ADOM on imperfect links")
    right.set(xlabel="floats sent", title="the same, by what was sent")
    left.legend(fontsize=7)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="write the picture to this file, and no table")
    parser.add_argument("--methods", nargs="+", default=list(ROUNDS), help="some methods only")
    arguments = parser.parse_args()
    setting = quadratic(), walking()
    print(f"chi {setting[1].chi:.1f}, {adom.__version__}")
    if arguments.picture:
        picture(*setting, arguments.picture)
    else:
        table(*setting, arguments.methods)
