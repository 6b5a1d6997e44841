"""What is published: only what is certain, of all who must be in, and never something worse in place of it."""

import numpy as np
import pytest

pytest.importorskip("zenoh")

import adom
from adom.agents.certificate import Certificate
from adom.agents.configuration import Quorum, make_config
from adom.agents.publishing import Publisher, bound_of
from support.agents_made import free_ports
from support.agents_running import make_service, run_all, told

NAMES = ("a", "b", "c")


def config(folder, **more):
    np.savez(folder / "a.npz", features=np.eye(2), labels=np.array([1.0, -1.0]))
    given = {"name": "a", "data": str(folder / "a.npz"), "out": str(folder / "out")}
    return make_config({**given, **more}, {"b": "", "c": ""})


def certificate(distance, names=NAMES, data=7, reach=2.0):
    x = np.array([3.0, -4.0])
    return Certificate(x, distance, distance, reach, 1.0, dict.fromkeys(names, 10), dict.fromkeys(names, data))


def test_who_must_be_in(tmp_path):
    assert config(tmp_path).quorum == Quorum(3, NAMES)
    assert config(tmp_path, require=2).quorum == Quorum(2)
    assert config(tmp_path, require=["c", "b"]).quorum == Quorum(3, NAMES)  # and this one
    named = Quorum(3, NAMES)
    assert [named.missing({"a": 0, "d": 0}), named.lacking(["a", "d"])] == ["b, c", 2]
    assert [Quorum(3).missing({"a": 0}), Quorum(3).lacking(["a"]), Quorum(3).lacking("abcd")] == ["2 of 3 agents", 2, 0]


def test_a_bound_is_in_units_of_the_model():
    found = bound_of(certificate(1e-3), None)
    assert found.coefficients == 1e-3
    assert found.scores == pytest.approx(2e-3)
    assert found.relative == pytest.approx(2e-3)  # the scores': beside the largest coefficient the other is 2.5e-4


def test_a_model_is_replaced_only_by_one_that_is_certain(tmp_path):
    (tmp_path / "out").mkdir()
    made = Publisher(config(tmp_path), None)
    model, candidate = tmp_path / "out" / "model.json", tmp_path / "out" / "model.candidate.json"

    def offer(given, **more):
        before = model.read_bytes() if model.exists() else b""
        why = made.write(np.zeros(2), given, {"agent": "a"}, **more)
        assert bool(why) == candidate.exists()
        assert (before == (model.read_bytes() if model.exists() else b"")) == bool(why)
        return why

    assert offer(None) == "no bound is known for the agents present"
    assert "above publish" in offer(certificate(1e-2))
    assert adom.load_model(candidate).provenance["bound"]["coefficients"] == 1e-2
    assert offer(certificate(1e-8, ("a", "b"))) == "without c"
    assert offer(certificate(1e-6)) == ""
    about = adom.load_model(model).provenance
    assert (about["nodes"], about["samples"], about["data"]) == (list(NAMES), 30, dict.fromkeys(NAMES, 7))
    assert "above that of the published model" in offer(certificate(1e-5))  # good enough, but worse
    assert offer(certificate(1e-5, data=8)) == ""  # of other data
    assert "above publish" in offer(certificate(1e-2, (*NAMES, "d")))  # a newcomer does not spoil it
    assert offer(certificate(1e-2, (*NAMES, "d")), tol=1e-3) == ""  # all have agreed that this is what was asked for
    again = Publisher(config(tmp_path), None)  # after a restart
    assert (again.names, again.bound) == (made.names, made.bound)
    model.write_text("{}")
    assert Publisher(config(tmp_path), None).names == {}


def test_without_a_site_nobody_ends_as_agreed_or_publishes(tmp_path):
    rng, ports = np.random.default_rng(0), dict(zip(NAMES, free_ports(3), strict=True))
    made = {}

    def run(**more):
        for name in NAMES[:2]:  # c is silent
            np.savez(tmp_path / f"{name}.npz", features=rng.standard_normal((20, 3)), labels=rng.choice([-1, 1], 20))
            near = {other: f"tcp/127.0.0.1:{ports[other]}" for other in NAMES if other != name}
            given = {"name": name, "listen": f"tcp/127.0.0.1:{ports[name]}", "data": str(tmp_path / f"{name}.npz")}
            usual = {"out": str(tmp_path / f"out-{name}"), "l2": 0.1, "patience": 2.0, "gather": 0.5, "tol": 1e-10}
            made[name] = make_service({**usual, **given, **more}, near)
        return run_all(made.values())

    assert run(seconds=3) == {"a": "incomplete", "b": "incomplete"}
    assert not (tmp_path / "out-a" / "model.json").exists()
    assert told(made["a"], "quorum lost")[0]["missing"] == told(made["a"], "end")[-1]["missing"] == "c"
    last = told(made["a"], "status")[-1]
    assert (last["missing"], last["required"], last["lacking"]) == ("c", 3, 1)
    assert run(require=2, seconds=60) == {"a": "agreed", "b": "agreed"}
    assert adom.load_model(tmp_path / "out-a" / "model.json").provenance["nodes"] == ["a", "b"]


def test_a_tolerance_is_of_the_sum_over_the_agents(tmp_path):
    (tmp_path / "out").mkdir()
    publisher, four = Publisher(config(tmp_path), None), (*NAMES, "d")
    assert "above publish" in publisher.judge(certificate(2e-2, four), tol=1e-3)  # 4 x 4e-4 is above, one of them below
    assert publisher.judge(certificate(1.5e-2, four), tol=1e-3) == ""
