"""The picture of `adom solve`: the same whether another process draws it or this one, and there even if that fails."""

import os
import subprocess
import sys

import pytest

import adom
from adom.cli.picture import Painter

PROGRAM = """
import os, sys
from pathlib import Path
from adom.cli import picture

saved, target, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
here, draw = os.getpid(), picture._draw

def told(result, target):
    if os.getpid() != here and kind == "failing":
        raise RuntimeError("no picture from here")
    if os.getpid() == here:
        print("drawn here")
    draw(result, target)

picture._draw = told
with picture.Painter(beside=True) as painter:
    print("beside" if painter._child else "alone", flush=True)
    import adom
    if kind != "idle":
        painter.begin(saved, target)
        painter.finish(adom.load(saved), target)
"""


@pytest.fixture
def saved(tmp_path):
    problem = adom.Quadratic([[[1.0]], [[2.0]]], [[1.0], [0.0]])
    return adom.solve(problem, adom.networks.path(2), parameters="unit", rounds=20).save(tmp_path / "result.npz")


def painted(saved, kind, target):
    command = [sys.executable, "-c", PROGRAM, str(saved), str(target), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split("\n")[:-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process can be forked here")
def test_another_process_draws_the_same_picture(saved, tmp_path):
    with Painter(beside=False) as painter:
        painter.begin(saved, tmp_path / "here.png")
        painter.finish(adom.load(saved), tmp_path / "here.png")
    expected = (tmp_path / "here.png").read_bytes()
    for kind in ("working", "failing"):
        where, *here = painted(saved, kind, tmp_path / f"{kind}.png")
        assert here == (["drawn here"] if kind == "failing" or where == "alone" else [])
        assert (tmp_path / f"{kind}.png").read_bytes() == expected


def test_a_run_without_a_picture_leaves_none(saved, tmp_path):
    assert len(painted(saved, "idle", tmp_path / "none.png")) == 1
    assert not (tmp_path / "none.png").exists()
