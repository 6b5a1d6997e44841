"""Agents over Zenoh on loopback, each in a thread: against the local engine, their files, their ends."""

import io
import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("zenoh")

import adom
from adom.agents.configuration import AgentConfig
from adom.agents.service import Service
from adom.agents.wire import Member, Message, most_bytes, pack
from adom.agents.zenoh_links import ZenohLinks
from adom.errors import InputError
from support.agents_made import free_ports, near, ring
from support.agents_running import make_service, run_all, start, stop, told, wait_for

NODES, DIM, CHI = 5, 6, 20.0
NAMES = [f"n{i}" for i in range(NODES)]
LINKS = ring(NAMES, [("n0", "n2")])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, rng, made = tmp_path_factory.mktemp("data"), np.random.default_rng(3), []
    for name in NAMES:
        features, labels = rng.standard_normal((20, DIM)), np.sign(rng.standard_normal(20))
        np.savez(folder / f"{name}.npz", features=features, labels=labels)
        made.append((features, labels))
    return folder, adom.LogisticRegression.from_nodes(made, l2=0.02)


def services(folder, out, names=NAMES, **more):
    ports = dict(zip(NAMES, free_ports(NODES), strict=True))
    made = []
    for name in names:
        given = {"name": name, "listen": f"tcp/127.0.0.1:{ports[name]}", "data": str(folder / f"{name}.npz")}
        usual = {"out": str(out / name), "l2": 0.02, "count": "nodes", "patience": 5.0, "gather": 30.0}
        neighbours = {other: f"tcp/127.0.0.1:{ports[other]}" for other in near(name, LINKS) if other in names}
        made.append(make_service({**usual, **given, **more}, neighbours))
    return made


def test_without_faults_a_run_is_that_of_the_local_engine(data, tmp_path):
    folder, problem = data
    constants = {"chi": CHI, "mu": problem.mu, "L": problem.L}
    made = services(folder, tmp_path, rounds=300, exact=True, **constants)
    assert set(run_all(made).values()) == {"rounds"}
    degrees = {name: sum(name in link for link in LINKS) for name in NAMES}
    W = np.zeros((NODES, NODES))
    for a, b in LINKS:
        i, j = NAMES.index(a), NAMES.index(b)
        W[i, j] = W[j, i] = -1 / (2 * max(degrees[a], degrees[b]))
    W -= np.diag(W.sum(axis=1))
    method = adom.ADOM.unit(adom.Constants(problem.mu, problem.L, 1 / CHI, 1.0, NODES))
    local = adom.solve(problem, adom.networks.from_matrices([W]), method, oracle="exact", rounds=300)
    x = np.stack([service.agent.x for service in made])
    assert np.abs(x - local.x).max() <= 1e-9 * np.abs(local.x).max()
    assert np.abs(x - problem.solution()).max() > 1e-6  # it is not the end alone that agrees
    counted = [(s.agent.counters.lost, s.agent.counters.repaired, s.agent.counters.jumps) for s in made]
    assert set(counted) == {(0, 0, 0)}


def test_they_stop_by_agreement_and_write_their_models(data, tmp_path):
    folder, problem = data
    made = services(folder, tmp_path, tol=1e-3, every=1.0)
    assert set(run_all(made).values()) == {"agreed"}
    models = [adom.load_model(tmp_path / name / "model.json") for name in NAMES]
    error = sum(np.linalg.norm(model.coefficients[0] - problem.solution()) ** 2 for model in models)
    assert error <= 1e-3
    assert models[0].provenance["agent"] == "n0"
    status = told(made[0], "status")[-1]
    assert status["bound"] <= 1e-3
    assert status["present"] == NAMES
    assert told(made[0], "end")[0]["why"] == "agreed"
    picture = made[0].picture()
    assert [agent["name"] for agent in picture["agents"]] == NAMES
    assert sorted(link[1] for link in picture["links"]) == sorted(made[0].config.neighbours)


def test_an_agent_without_neighbours_is_done_at_once(data, tmp_path):
    folder, _ = data
    made = services(folder, tmp_path, NAMES[:1], tol=1e-12)
    assert set(run_all(made).values()) == {"agreed"}
    with np.load(folder / "n0.npz") as file:
        alone = adom.LogisticRegression.from_nodes([(file["features"], file["labels"])], l2=0.02)
    assert np.abs(made[0].agent.x - alone.solution()).max() < 1e-9


def test_a_restart_goes_on_from_the_checkpoint(data, tmp_path):
    folder, _ = data
    names = NAMES[:2]
    run_all(services(folder, tmp_path, names, rounds=150))
    again = services(folder, tmp_path, names, rounds=160)
    assert all(service.resumed and service.agent.round == 150 for service in again)
    ends = [service.agent.x.copy() for service in again]
    assert set(run_all(again).values()) == {"rounds"}
    fresh = services(folder, tmp_path / "fresh", names, rounds=10)
    run_all(fresh)
    for s, x, other in zip(again, ends, fresh, strict=True):  # it begins where it was
        assert np.linalg.norm(s.agent.x - x) < 0.2 * np.linalg.norm(x) < np.linalg.norm(other.agent.x - x)
    (tmp_path / "n0" / "checkpoint.npz").write_bytes(b"PK rubbish")
    with pytest.raises(InputError, match="is not a valid checkpoint of an agent"):
        services(folder, tmp_path, names)
    run_all(services(folder, tmp_path / "other", names, rounds=3))
    with pytest.raises(InputError, match="belongs to another agent, problem or method"):
        services(folder, tmp_path / "other", names, l2=0.03)


def test_changed_data_are_read_again(data, tmp_path):
    folder, _ = data
    own = tmp_path / "n0.npz"
    own.write_bytes((folder / "n0.npz").read_bytes())
    for name in NAMES[1:2]:
        os.link(folder / f"{name}.npz", tmp_path / f"{name}.npz")
    made = services(tmp_path, tmp_path, NAMES[:2], watch=0.05, tol=1e-14)
    made[0].tell = lambda event, **more: events.append(event)
    events = []
    rng = np.random.default_rng(8)
    features, labels = rng.standard_normal((10, DIM)), np.sign(rng.standard_normal(10))
    between = made[0]._between

    def changing(now):
        if made[0].agent.round == 20:
            np.savez(own, features=features, labels=labels)
        ending = between(now)
        return ending if "data read" in events else ""

    made[0]._between = changing
    assert set(run_all(made).values()) == {"agreed"}
    with np.load(tmp_path / "n1.npz") as other:
        both = adom.LogisticRegression.from_nodes([(features, labels), (other["features"], other["labels"])], l2=0.02)
    assert np.abs(made[0].agent.x - both.solution()).max() < 1e-6


def test_a_neighbour_with_another_problem_is_refused(data, tmp_path):
    folder, _ = data
    made = services(folder, tmp_path, NAMES[:2], gather=0.3, seconds=60.0)
    made[1].links.close()
    port = made[0].config.neighbours["n1"]
    given = {"name": "n1", "listen": port, "data": str(folder / "n1.npz"), "out": str(tmp_path / "x"), "l2": 0.7}
    more = {"count": "nodes", "gather": 0.3, "seconds": 60.0}
    made[1] = make_service({**given, **more}, {"n0": made[0].config.listen})
    threads, _ = start(made)
    wait_for(lambda: made[0].agent.counters.refused)
    stop(made, threads)
    assert set(made[0].agent.counters.refused) == {"problem"}
    why = [line["why"] for line in told(made[0], "refused")]
    assert 1 <= len(why) <= 2  # of messages of the rounds and of the board
    assert all("another problem" in line or "another [problem]" in line for line in why)


def test_bad_messages_are_refused_counted_and_disturb_nothing(data, tmp_path):
    folder, _ = data
    honest = services(folder, tmp_path, NAMES[:1], gather=0.0, patience=0.2, seconds=120.0, chi=2.0)[0]
    where = f"tcp/127.0.0.1:{free_ports(1)[0]}"
    given = {**honest.config.__dict__, "neighbours": {"n1": where}}
    honest.links.close()
    honest = Service(AgentConfig(**given), io.StringIO())
    fake, form = ZenohLinks("n1", where, {"n0": honest.config.listen}), honest.agent.form
    good = pack(Message(0, members=[Member("n1", 1, 1, 0.02, 1.0)]), form)
    bad = {
        "truncated": good[:20],
        "version": good[:4] + b"\x09\0" + good[6:],
        "dimension": pack(Message(0), replace(form, dim=DIM + 1)),
        "trailing": good + b"x",
        "foreign": b"?" * 99,
        "oversized": good + b"\0" * (most_bytes(form) + 1),
    }
    threads, _ = start([honest])

    def all_are_counted():
        for message in bad.values():
            fake.send("n0", message)
        return set(honest.agent.counters.refused) == set(bad)

    wait_for(all_are_counted)
    fake.send("n0", b"\0" * (4 * most_bytes(form)))  # too much even to be counted
    stop([honest], threads)
    fake.close()
    assert set(honest.agent.counters.refused) == set(bad)
    assert {line["why"].split(":")[0] for line in told(honest, "refused")} == {"n1"}
    assert len(told(honest, "refused")) == len(bad)
    assert honest.agent.counters.received == 0
    assert honest.agent.rows.entries == {}


def test_whatever_a_message_makes_go_wrong_is_logged_and_ends_nobody(data, tmp_path, monkeypatch):
    made = services(data[0], tmp_path, NAMES[:1])[0]
    made.links.close()

    def fail(sender, message, now):
        raise (ValueError if message.startswith(b"v") else KeyError)(message)

    monkeypatch.setattr(made.agent, "hear", fail)
    with pytest.raises(ValueError, match="v"):  # the tests see every bug
        made._hear("n1", b"v")
    monkeypatch.delenv("ADOM_STRICT")
    for message in (b"v", b"v", b"k", b"k", b"v"):
        made._hear("n1", message)
    counted = made.agent.counters.refused
    assert {kind.split()[0]: count for kind, count in counted.items()} == {"ValueError": 3, "KeyError": 2}
    assert [line["why"].split()[1] for line in told(made, "fault")] == ["ValueError", "KeyError"]


def test_messages_wait_within_limits_for_each_neighbour():
    where = f"tcp/127.0.0.1:{free_ports(1)[0]}"
    links = ZenohLinks("a", where, {"b": "", "c": ""}, largest=1000)
    try:
        links._share = 2000

        def say(sender, size):
            payload = SimpleNamespace(to_bytes=lambda: bytes(size))
            links._take(SimpleNamespace(key_expr=f"adom/{sender}/a", payload=payload))

        for _ in range(5):
            say("b", 900)
            for stranger in ("x", "y", "z"):
                say(stranger, 900)
        say("c", 900)
        heard = [links.receive(0.0)[0] for _ in range(5)]
        assert sorted(heard) == ["b", "b", "c", "x", "y"]
        assert links.receive(0.0) is None
        assert links.dropped == 16
        say("b", 900)  # there is room again
        assert links.receive(0.0)[0] == "b"
    finally:
        links.close()


@pytest.mark.parametrize("method", ["diging", "adom+"])
def test_methods_without_a_bound_of_their_own_stop_within_the_tolerance(data, tmp_path, method):
    folder, problem = data
    made = services(folder, tmp_path, method=method, tol=1e-6)
    assert set(run_all(made).values()) == {"agreed"}
    errors = [np.linalg.norm(service.agent.x - problem.solution()) for service in made]
    assert 0 < sum(error**2 for error in errors) <= 1e-6
    assert told(made[0], "status")[-1]["bound"] <= 1e-6
    assert len(made[0].board.rows) <= 3  # checks that are over are forgotten
