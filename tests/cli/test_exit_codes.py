"""How a command ends: its exit code, what it says then, and which stream that goes to."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import adom as package
from adom.cli import main, output, ranks
from adom.cli.exit_codes import MEANING, Ending, Exit
from adom.cli.main import app

HOME = str(Path(main.__file__).parents[2])
ENTER = "from adom.cli.main import run; run()"


def start(*words: str, before: str = "", **options: Any) -> "subprocess.Popen[str]":
    """Start the command in a process of its own, after a line of Python."""
    environment = {**os.environ, "PYTHONPATH": HOME, **options.pop("env", {})}
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment, **options}
    return subprocess.Popen([sys.executable, "-c", f"{before}\n{ENTER}", *words], **given)


def test_the_help_says_every_code(adom: Any) -> None:
    text = " ".join(adom("--help").out.split())
    for code, meaning in MEANING.items():
        assert f"{int(code)} {meaning}" in text
    assert list(MEANING) == list(Exit)


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    for words in (("methods", "--json"), ("--help",), ("methods",)):
        process = start(*words, before="import time, sys; sys.stdin.read()", stdin=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.close()  # before a word was written
        process.stdout = None
        _, err = process.communicate("")
        assert (process.returncode, err) == (Exit.UNREAD, ""), words


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_that_cannot_be_written_is_said_in_one_line() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123  # a device
        process = start("methods", "--json", stdout=full)
        _, err = process.communicate()
    assert process.returncode == Exit.REFUSED
    assert err.startswith("error: cannot write the output: No space left on device")
    assert err.count("\n") == 1


def test_a_bug_keeps_its_traceback_and_asks_for_a_report() -> None:
    broken = "import adom.cli.output as o; o.table = lambda *a, **k: 1 / 0"
    process = start("methods", before=broken)
    out, err = process.communicate()
    assert (process.returncode, out) == (Exit.BUG, "")
    lines = err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-2] == "ZeroDivisionError: division by zero"
    assert lines[-1].startswith("error: a bug in adom ")
    assert lines[-1].endswith("this call: adom methods")


def test_a_device_that_is_not_there_is_no_bug() -> None:
    line = "import jax; jax.devices()"
    broken = f"import adom.cli.output as o; o.table = lambda *a, **k: exec({line!r})"
    process = start("methods", before=broken, env={"JAX_PLATFORMS": "cuda"})
    _, err = process.communicate()
    assert process.returncode == Exit.REFUSED
    last = err.splitlines()[-1]
    assert last == "error: JAX_PLATFORMS=cuda names no device of this machine; unset it, or take JAX_PLATFORMS=cpu"


def test_no_character_is_the_end_of_it(python: Any) -> None:
    Path("data.svm").write_text("1 1:1\n-1 1:2\n1 1:3\n-1 1:4\n")
    process = start("split", "data.svm", "--nodes", "2", "--out", "ünï", env={"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate()
    assert (process.returncode, err) == (Exit.DONE, "")
    assert "\\xfcn\\xef/manifest.json" in out


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), Exit.INTERRUPTED, "interrupted\n"),
        (BrokenPipeError(), Exit.UNREAD, ""),
        (MemoryError("8 TB"), Exit.REFUSED, "error: not enough memory (8 TB); take fewer nodes, samples or features\n"),
        (
            OSError(28, "No space left", "x"),
            Exit.REFUSED,
            "error: cannot read or write x: No space left; choose another place\n",
        ),
    ],
)
def test_what_is_neither_bad_input_nor_a_bug(
    error: BaseException, code: Exit, said: str, adom: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **extra: Any) -> None:
        raise error

    monkeypatch.setattr(output, "as_json", fail)
    outcome = adom("methods", "--json")
    assert (outcome.code, outcome.out, outcome.err) == (code, "", said)


def test_an_error_of_the_machine_that_is_not_known_stays_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **extra: Any) -> None:
        raise FileNotFoundError(2, "No such file", "internal")

    monkeypatch.setattr(output, "as_json", fail)
    with pytest.raises(FileNotFoundError):
        app(["methods", "--json"], standalone_mode=False)


def test_only_rank_0_says_that_it_was_interrupted(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **extra: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "as_json", fail)
    monkeypatch.setattr(main.ranks, "rank", lambda: 1)
    assert adom("methods", "--json")[::2] == (Exit.INTERRUPTED, "")


LAUNCHER = """\
#!{python}
import os, signal, sys, time
if "--version" in sys.argv:
    sys.exit(print("a launcher"))
def asked(number, frame):
    open(os.environ["{code}"], "w").write("130")
    print("asked", flush=True)
    sys.exit(0)
signal.signal(signal.SIGUSR1, asked)
if "{signal}":
    os.kill(os.getppid(), getattr(signal, "{signal}"))
    time.sleep(20)
open(os.environ["{code}"], "w").write("1")
print(os.environ["TERM"], os.getsid(0) == os.getpid(), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "getsid"), reason="signals and sessions as POSIX has them")
@pytest.mark.parametrize(
    ("name", "said", "code"), [("SIGINT", "asked\n", 130), ("SIGTERM", "asked\n", 130), ("", "dumb True\n", 1)]
)
def test_ctrl_c_asks_the_ranks_to_stop_and_their_code_is_handed_on(
    name: str, said: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text(LAUNCHER.format(python=sys.executable, code=ranks.CODE, signal=name))
    launcher.chmod(0o755)
    monkeypatch.setattr(ranks, "_launcher", lambda: str(launcher))
    monkeypatch.setattr(ranks, "find_spec", lambda name: name)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    ended = signal.getsignal(signal.SIGTERM)
    ending = Ending()
    try:
        ending.listen()
        assert ranks.start(2, ["solve"], tmp_path) == code
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, ended)
    assert ending.code(code) == (Exit.ENDED if name == "SIGTERM" else code)
    assert capfd.readouterr().out == said


ENDING = """
import os, signal
from adom.run.progress import Progress
def update(self, done, note=""):
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
Progress.update = update
"""


def test_sigterm_is_ctrl_c_that_may_come_twice(tmp_path: Path, adom: Any) -> None:
    table = [f"{x},{x % 3},{2 * x + x % 5}" for x in range(24)]
    for node in range(3):
        own = tmp_path / f"{node}.csv"
        own.write_text("\n".join(["a,b,y", *table[node::3]]))
        assert adom("shard", own, "--node", str(node), "--target", "y", "--out", tmp_path / "shards").code == 0
    words = ("--shards", "shards", "--model", "ridge", "--network", "ring", "--rounds", "1000000")
    process = start("solve", *words, "--tol", "1e-30", before=ENDING, cwd=tmp_path)
    out, err = process.communicate()
    assert process.returncode == Exit.ENDED, err
    assert "what was done so far is saved, and the model is unfinished" in err
    assert "interrupted" in out
    assert package.load_model(tmp_path / "out" / "model.json").provenance["status"] == "interrupted"
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    predicted = adom("predict", tmp_path / "out" / "model.json", tmp_path / "new.csv")
    assert predicted.code == 0
    assert "model.json is unfinished: its fit was interrupted" in predicted.err


def test_sigterm_before_the_run_and_where_ctrl_c_is_ignored(tmp_path: Path) -> None:
    before = "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    before += "import adom.cli.output as o\no.table = lambda *a, **k: os.kill(os.getpid(), signal.SIGTERM)"
    process = start("methods", before=before)
    assert process.communicate() == ("", "interrupted\n")
    assert process.returncode == Exit.ENDED


def test_a_launcher_keeps_its_files_where_no_other_ones_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint('Open MPI')\n"
        "open(os.environ['TMPDIR'] + '/seen', 'w').write(' '.join(sys.argv[1:4]))\n"
    )
    launcher.chmod(0o755)
    monkeypatch.setattr(ranks, "_launcher", lambda: str(launcher))
    monkeypatch.setattr(ranks, "find_spec", lambda name: name)
    monkeypatch.setenv("TMPDIR", str(tmp_path.parent))
    assert ranks.start(2, ["solve"], tmp_path) == 0
    assert (tmp_path / "seen").read_text() == "-n 2 --bind-to"


def test_a_rank_leaves_its_code_to_the_one_that_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranks.leave(Exit.FAILED) == Exit.FAILED
    monkeypatch.setenv(ranks.CODE, str(tmp_path / "code"))
    monkeypatch.setattr(ranks, "rank", lambda: 1)
    assert ranks.leave(Exit.FAILED) == Exit.DONE
    assert not (tmp_path / "code").exists()
    monkeypatch.setattr(ranks, "rank", lambda: 0)
    assert ranks.leave(Exit.FAILED) == Exit.DONE
    assert (tmp_path / "code").read_text() == "1"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux")
def test_a_refusal_that_cannot_be_printed_keeps_its_code() -> None:
    call = [sys.executable, "-m", "adom", "solve", "nowhere.toml"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(call, stderr=full, check=False, env={**os.environ, "PYTHONPATH": HOME})
    assert done.returncode == 2
