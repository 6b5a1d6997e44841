"""Completion by the shell: the protocol that bash, zsh and fish speak, quick, and in a real shell."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adom.algorithms import METHODS
from adom.cli import main
from adom.cli.main import app

HOME = str(Path(main.__file__).parents[2])


def completed(line: str, shell: str = "bash") -> list[str]:
    """Return what a shell is offered at the end of a line, as its script asks for it."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
    asked |= {"_ADOM_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    result = CliRunner().invoke(app, [], env=asked, catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("adom sol", ["solve"]),
        ("adom re", ["reproduce", "report"]),
        ("adom --inst", ["--install-completion"]),
        ("adom solve --rou", ["--rounds"]),
        ("adom solve --method d", ["dnm", "diging", "dgd"]),
        ("adom solve --method ", list(METHODS)),
        ("adom solve --network t", ["torus"]),
        ("adom compare --network ring,st", ["ring,star"]),
        ("adom compare --methods adom,ad", ["adom,adom+", "adom,adom+multi"]),
        ("adom solve --parameters ", ["theory", "unit", "auto", "tuned"]),
        ("adom solve --oracle e", ["exact"]),
        ("adom solve --engine ", ["local", "mpi"]),
        ("adom solve --split d", ["dirichlet"]),
        ("adom solve --data a", ["a6a"]),
        ("adom solve --data fil", []),  # then the shell offers files
        ("adom data inf", ["infectious_ct1"]),
        ("adom split a6a --by s", ["shuffled"]),
        ("adom reproduce real_k", ["real_kappa"]),
        ("adom reproduce --protocols theory,", ["theory,unit", "theory,tuned", "theory,auto"]),
        ("adom plot --axis g", ["gradients"]),
        ("adom plot ", []),
    ],
)
def test_bash(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_zsh_and_fish() -> None:
    assert completed("adom solve --engine ", "zsh") == ['_arguments \'*: :(("local"', '"mpi"))\'']
    assert completed("adom solve --data fil", "zsh") == ["_files"]
    assert completed("adom solve --engine ", "fish") == ["local", "mpi"]


def test_nothing_heavy_is_loaded_while_completing(python: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import json, os, sys\n"
        "os.environ.update(_ADOM_COMPLETE='complete_bash', COMP_WORDS='adom solve --method p', COMP_CWORD='3')\n"
        "from adom.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps([name for name in ('jax', 'numpy', 'pandas', 'scipy') if name in sys.modules]))"
    )
    *offered, heavy = python("-c", script).stdout.splitlines()
    assert offered == ["pngd", "panda", "push-pull", "push-diging"]
    assert json.loads(heavy) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_shown_and_installed(shell: str, adom: Any, elsewhere: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(elsewhere))
    script = adom("--show-completion", shell).out
    assert f"_ADOM_COMPLETE=complete_{shell}" in script
    outcome = adom("--install-completion", shell)
    assert outcome.code == 0
    wrote = Path(outcome.out.splitlines()[1].strip())
    assert wrote.is_relative_to(elsewhere)
    assert wrote.read_text().strip() == script.strip()


def test_the_present_shell_is_found_out(adom: Any, refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import shellingham

    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("fish", "/usr/bin/fish"))
    assert adom("--show-completion") == adom("--show-completion", "fish")

    def unknown() -> None:
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr(shellingham, "detect_shell", unknown)
    monkeypatch.setenv("SHELL", "/bin/zsh")
    assert adom("--show-completion") == adom("--show-completion", "zsh")
    monkeypatch.setenv("SHELL", "")
    assert "e.g. adom --install-completion bash" in refused("--install-completion")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_in_a_real_bash(elsewhere: Path) -> None:
    command = elsewhere / "bin" / "adom"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m adom "$@"\n')
    command.chmod(0o755)
    script = (
        "source <(adom --show-completion bash); COMP_WORDS=(adom compare --methods adom,ad); COMP_CWORD=3\n"
        '_adom_completion adom; echo "${COMPREPLY[@]}"; complete -p adom'
    )
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": HOME}
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "adom,adom+ adom,adom+multi\ncomplete -o default -F _adom_completion adom\n"
