"""`adom solve --engine mpi`: started by itself, on data that stay home, and refused where it makes no sense."""

import json

import numpy as np
import pytest

import adom as package
from adom.cli import ranks as starting
from adom.run.ranks import on_ranks as distributed
from adom.run.request import Request, Stop
from support.apart import split
from support.ranks import needs_mpi


@pytest.fixture
def shards(tmp_path):
    return split(tmp_path)


@needs_mpi
def test_data_that_stay_home_are_solved_to_a_tolerance_that_the_nodes_agree_on(adom, shards, tmp_path, capfd):
    out = tmp_path / "out"
    words = ["--kappa", 20, "--network", "ring", "--method", "acc-gt", "--engine", "mpi", "--rounds", 20_000, "--json"]
    code = adom("solve", "--shards", shards, *words, "--tol", "1e-8", "--ranks", 2, "--out", out).code
    printed = capfd.readouterr()
    assert code == 0, printed.err
    summary = json.loads(printed.out)
    assert summary["status"] == "converged"
    assert summary["error_bound"] <= 1e-8
    assert summary["wire"]["ranks"] == 2
    two = package.load(out / "result.npz")
    one = distributed.on_one_rank(
        package.Shards(shards, kappa=20.0), package.networks.ring(6), "acc-gt", "auto",
        Request("auto", 20_000, Stop(1e-8), 1, "mpi", "float64", False),
    )  # fmt: skip
    assert two.x.tobytes() == one.x.tobytes()
    assert two.history.drop(columns="seconds").equals(one.history.drop(columns="seconds"))
    whole = package.Shards(shards, kappa=20.0).whole()
    assert two.provenance["problem"]["L"] == whole.L
    assert ((two.x - whole.solution()) ** 2).sum() <= two.provenance["error_bound"]  # the bound is one
    assert list(two.history.columns) == [
        "iteration", "round", "gradients", "floats_sent", "seconds", "gradient_norm", "consensus",
    ]  # fmt: skip
    first = two.history.iloc[0]
    assert first["round"] > first["iteration"]  # the rounds in which mu and L were agreed on are counted
    point = two.x.mean(axis=0)
    import jax

    with jax.enable_x64(True):
        slope = np.asarray(whole.gradient_rows(np.repeat(point[None], 6, axis=0))).mean(axis=0)
    assert two.history["gradient_norm"].iloc[-1] == pytest.approx(np.linalg.norm(slope), abs=1e-12)


@needs_mpi
def test_what_all_ranks_refuse_is_one_line_and_exit_code_2(adom, shards, tmp_path, capfd):
    old = tmp_path / "checkpoints"
    (old / "iteration-000000000020").mkdir(parents=True)
    words = ("--engine", "mpi", "--ranks", 2, "--kappa", 20, "--network", "ring", "--out", tmp_path / "out")
    assert adom("solve", "--shards", shards, *words, "--checkpoints", old).code == 2
    line = f"error: {old} holds checkpoints of an earlier run; go on from them (--resume), or take another folder\n"
    assert tuple(capfd.readouterr()) == ("", line)


def test_shards_are_solved_by_the_local_engine_as_well(adom, shards, tmp_path):
    outcome = adom("solve", "--shards", shards, "--network", "ring", "--rounds", 500, "--out", tmp_path, "--json")
    assert (outcome.code, outcome.json["nodes"]) == (0, 6)


def test_shards_have_their_own_data_and_nodes(refused, shards):
    assert "--samples 3 has no effect on shards" in refused("solve", "--shards", shards, "--samples", 3)
    assert "--nodes 7 does not fit" in refused("solve", "--shards", shards, "--nodes", 7)


def test_without_mpi4py_the_extra_is_named(refused, monkeypatch):
    monkeypatch.setattr(starting, "find_spec", lambda name: None)
    assert "pip install '.[mpi]'" in refused("solve", "--engine", "mpi", "--ranks", 2, "--nodes", 6)


def test_without_mpirun_the_remedy_is_named(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(starting, "find_spec", lambda name: name)
    monkeypatch.setattr(starting.shutil, "which", lambda name: None)
    monkeypatch.setattr(starting.sys, "executable", str(tmp_path / "python"))
    assert "no mpirun was found" in refused("solve", "--engine", "mpi", "--ranks", 2, "--nodes", 6)


def test_a_rank_has_one_thread_unless_told_otherwise(monkeypatch):
    for name in (*starting.RANK_VARIABLES, *starting.ONE_THREAD, "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    starting.prepare()
    assert "OMP_NUM_THREADS" not in starting.os.environ
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "JAX_CPU_ENABLE_ASYNC_DISPATCH", "XLA_FLAGS"):
        monkeypatch.setenv(name, "")  # so that it is taken away again
        monkeypatch.delenv(name)
    starting.prepare()
    assert starting.rank() == 3
    assert starting.os.environ["OMP_NUM_THREADS"] == "1"
    assert starting.os.environ["MKL_NUM_THREADS"] == "2"
    assert "multi_thread_eigen=false" in starting.os.environ["XLA_FLAGS"]


def test_the_output_of_ranks_has_no_colours_where_it_may_end_in_a_file(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    for name in (*starting.ONE_THREAD, "XLA_FLAGS", starting.CODE):
        monkeypatch.setenv(name, "set")
    starting.prepare()
    assert starting.os.environ["TERM"] == "xterm-256color"  # `adom solve --ranks` has looked where it ends
    monkeypatch.delenv(starting.CODE)
    starting.prepare()
    assert starting.os.environ["TERM"] == "dumb"
