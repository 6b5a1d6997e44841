"""Agents as processes, in network namespaces where root may make them: faults of every kind, and the exact answer."""

import numpy as np
import pytest

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

from adom.agents.testbed.processes import (
    Event,
    Loopback,
    Namespaces,
    Swarm,
    happen,
    missing,
    random_events,
    random_links,
    read_script,
    write_samples,
)
from adom.errors import InputError
from support.agents_made import free_ports

QUICK = {"patience": 0.4, "gone": 1.5, "gather": 2.0, "pace": 0.005}


def swarm(folder, count, tls, extra=0.5):
    names = [f"n{i}" for i in range(count)]
    write_samples(folder, names, seed=1, dim=6)
    links = random_links(names, seed=1, extra=extra)
    wires = Loopback(names, free_ports(count)) if missing() or not tls else Namespaces(names, links)
    return Swarm(folder, names, links, wires, tls, QUICK, l2=0.5)


def log(s):
    return f"{s.events} {s.errors()} { {name: (v['round'], v['chi'], v['links']) for name, v in s.status.items()} }"


def test_faults_of_every_kind_with_tls(tmp_path):
    with swarm(tmp_path, 8, tls=True, extra=0.75) as s:
        for name in s.names[:7]:
            s.start(name)
        assert s.wait(lambda: len(s.status) == 7, 60), log(s)
        rng = np.random.default_rng(5)
        for deed in (lambda: s.kill("n2"), lambda: s.pause("n5"), lambda: s.start("n7"), lambda: s.go_on("n5")):
            link = s.links[int(rng.integers(len(s.links)))]
            s.set_link(link, down=True)
            deed()
            s.wait(lambda: False, 0.5)
            s.set_link(link, down=False)
        s.kill("n4")
        s.wait(lambda: False, 0.5)
        s.start("n2")
        left, right = ["n0", "n1", "n2", "n3"], ["n5", "n6", "n7"]
        across = [link for link in s.links if len(set(link) & set(left)) == 1]
        for link in across:
            s.set_link(link, down=True)
        exact = {name: s.exact(half) for half in (left, right) for name in half}

        def apart():
            known = [(s.answers.get(name), x) for name, x in exact.items()]
            return all(a is not None and np.linalg.norm(a - x) <= 1e-8 * np.linalg.norm(x) for a, x in known)

        assert s.wait(apart, 90), log(s)
        for link in across:
            s.set_link(link, down=False)
        assert s.wait_for_error(1e-8, 90), log(s)
        assert s.present() == [*left, *right]
        assert not any(status["refused"] for status in s.status.values())


def test_three_agents_on_loopback_a_checkpoint_other_data_and_a_goodbye(tmp_path):
    with swarm(tmp_path, 3, tls=False) as s:
        for name in s.names:
            s.start(name)
        assert s.wait_for_error(1e-8, 60), log(s)
        s.kill("n0")
        s.start("n0", forget=False)
        s.change_data("n1", seed=7)
        assert s.wait_for_error(1e-8, 60), log(s)
        s.leave("n2")
        assert s.processes["n2"].returncode == 0
        assert (tmp_path / "out-n2" / "model.json").exists()
        assert s.wait_for_error(1e-8, 60), log(s)
        assert s.wait(lambda: s.status["n0"]["present"] == ["n0", "n1"], 10)


def test_a_script_is_read_and_checked(tmp_path):
    script = tmp_path / "faults.txt"
    script.write_text("3 kill n1  # early\n\n1.5 cut n0 n1\n")
    assert read_script(script, ["n0", "n1"]) == [Event(1.5, "cut", ("n0", "n1")), Event(3.0, "kill", ("n1",))]
    for text, words in (
        ("soon kill n1", "line 1: expected SECONDS"),
        ("1 kil n1", "unknown event 'kil'; did you mean 'kill'"),
        ("1 kill n9", "kill takes 1 of n0, n1"),
        ("1 cut n0", "cut takes 2"),
    ):
        script.write_text(text)
        with pytest.raises(InputError, match=words):
            read_script(script, ["n0", "n1"])


def test_random_events_leave_everything_restored():
    names = [f"n{i}" for i in range(8)]
    events = list(random_events(names, random_links(names, 0), 3, 60.0))
    assert {event.what for event in events} == {"cut", "restore", "kill", "start", "pause", "continue"}
    for before, after in (("cut", "restore"), ("kill", "start"), ("pause", "continue")):
        done = [event.names for event in events if event.what == before]
        assert sorted(done) == sorted(event.names for event in events if event.what == after)
    assert events == list(random_events(names, random_links(names, 0), 3, 60.0))


def test_events_happen(tmp_path):
    class Fake:
        def __getattr__(self, name):
            return lambda *given, **more: done.append((name, given, more))

    done = []
    happen(Fake(), Event(0.0, "cut", ("a", "b")))
    happen(Fake(), Event(0.0, "pause", ("a",)))
    assert done == [("set_link", (("a", "b"),), {"down": True}), ("pause", ("a",), {})]
