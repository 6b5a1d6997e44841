"""Agents on loopback: rounds a second, bytes against need, memory and threads; and a soak with faults all along.

``python benchmarks/agents.py`` measures 2, 8 and 32 agents for some seconds each; ``--soak 600`` keeps eight for ten
minutes while links are cut and agents killed, stopped and revived, then asks whether they are at the exact answer,
whether the conserved sums are zero, and whether memory has grown.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from adom.agents.testbed.processes import Loopback, Swarm, happen, random_events, random_links, write_samples

DIM = 40
PORT = 19000
REST = 20.0
"""Seconds after the last fault until the sums are looked at: agents answer in different rounds, so they must rest."""
PACE = 0.01
"""Least seconds of a round of the soak."""


def made(folder: Path, count: int, tls: bool, settings: dict) -> Swarm:
    names = [f"n{i}" for i in range(count)]
    write_samples(folder, names, seed=0, dim=DIM)
    return Swarm(folder, names, random_links(names, 0), Loopback(names, range(PORT, PORT + count)), tls, settings)


def memory(swarm: Swarm) -> dict[str, float]:
    """Return megabytes held by each agent."""
    found = {}
    for name in swarm.present():
        text = Path(f"/proc/{swarm.processes[name].pid}/status").read_text()
        found[name] = int(text.split("VmRSS:")[1].split()[0]) / 1024
    return found


def cpu(swarm: Swarm) -> float:
    """Return seconds of processor time that all agents have used."""
    ticks = 0
    for name in swarm.present():
        fields = Path(f"/proc/{swarm.processes[name].pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


def speed(count: int, seconds: float, tls: bool, chi: float | None) -> dict:
    """Return what agents without faults cost, with the chi given (no canaries) or found."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"patience": 10.0, "gone": 60.0, "gather": 60.0} | ({"chi": chi} if chi else {})
        with made(Path(folder), count, tls, settings) as swarm:
            for name in swarm.names:
                swarm.start(name)
            if not swarm.wait(lambda: len(swarm.status) == count, 300):
                raise SystemExit(f"{count} agents did not start")
            time.sleep(1.0)
            before, spent = {n: dict(s) for n, s in swarm.status.items()}, cpu(swarm)
            time.sleep(seconds)
            after, spent = {n: dict(s) for n, s in swarm.status.items()}, cpu(swarm) - spent
            passed = [(after[n]["time"] - before[n]["time"], after[n]["round"] - before[n]["round"]) for n in before]
            rounds = sum(r for _, r in passed)
            sent = sum(after[n]["bytes_sent"] - before[n]["bytes_sent"] for n in before)
            links = sum(len(swarm.neighbours(n)) for n in swarm.names)
            threads = [len(list(Path(f"/proc/{p.pid}/task").iterdir())) for p in swarm.processes.values()]
            held = memory(swarm)
    return {
        "agents": count,
        "tls": tls,
        "canaries": chi is None,
        "links of an agent": round(links / count, 2),
        "rounds a second": round(float(np.median([r / t for t, r in passed])), 1),
        "milliseconds of processor an agent and round": round(1000 * spent / rounds, 3),
        "bytes a message": round(sent / rounds / (links / count)),
        "bytes sent over those of two vectors": round(sent / rounds / (links / count) / (16 * DIM), 2),
        "megabytes an agent": round(float(np.median(list(held.values()))), 1),
        "threads an agent": int(np.median(threads)),
    }


def soak(seconds: float, count: int, tls: bool, seed: int) -> dict:
    """Return how agents are after faults all along."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"patience": 0.5, "gone": 3.0, "gather": 3.0, "pace": PACE}
        with made(Path(folder), count, tls, settings) as swarm:
            for name in swarm.names:
                swarm.start(name)
            waiting = list(random_events(swarm.names, swarm.links, seed, seconds))
            seen: dict[int, list[tuple[float, float]]] = {}
            counted = len(waiting)
            while waiting:
                event = waiting.pop(0)
                time.sleep(max(0.0, event.seconds - (time.monotonic() - swarm.began)))
                happen(swarm, event)
                for name, megabytes in memory(swarm).items():
                    pid = swarm.processes[name].pid
                    seen.setdefault(pid, []).append((time.monotonic() - swarm.began, megabytes))
            reached = swarm.wait_for_error(1e-10, 120)
            swarm.wait(lambda: False, REST)
            return {
                "seconds": seconds,
                "events": counted,
                "all at the exact answer to 1e-10": reached,
                "greatest relative error": max(swarm.errors().values(), default=float("inf")),
                "conserved sums over their parts": swarm.sums(),
                "seconds of a process, megabytes at first and at last": _growth(seen),
                "rounds": max(status["round"] for status in swarm.status.values()),
                "repaired": sum(status["repaired"] for status in swarm.status.values()),
                "restarts from nothing": sum(status["restarts"] for status in swarm.status.values()),
            }


def _growth(seen: dict[int, list[tuple[float, float]]]) -> list[list[float]]:
    """Return, for the processes that lived longest, how long, and their memory ten seconds after the start and last."""
    lives = []
    for looks in seen.values():
        settled = [look for look in looks if look[0] > looks[0][0] + 10]
        if settled:
            lives.append([round(settled[-1][0] - settled[0][0]), round(settled[0][1], 1), round(settled[-1][1], 1)])
    return sorted(lives, reverse=True)[:5]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=int, nargs="*", default=[2, 8, 32])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--soak", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tls", action="store_true")
    chosen = parser.parse_args()
    if chosen.soak:
        print(json.dumps(soak(chosen.soak, 8, chosen.tls, chosen.seed), indent=1))
    else:
        for count in chosen.agents:
            for chi in (20.0, None):
                print(json.dumps(speed(count, chosen.seconds, chosen.tls, chi), indent=1), flush=True)
