"""Methods and problems of the user's own on the command line: module:name, found here, refused in one line."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import adom as package

MINE = Path(__file__).parents[1] / "support" / "own_method.py"
SMALL = ["--nodes", 5, "--network", "ring", "--parameters", "unit", "--rounds", 40]


@pytest.fixture(autouse=True)
def mine() -> Iterator[None]:
    """Put the file into the working folder, under a name of its own."""
    Path("own_method.py").write_text(MINE.read_text())
    Path("broken.py").write_text("x = 1\ny = x / 0\n")
    Path("typo.py").write_text("def f(:\n    pass\n")
    Path("needy.py").write_text("import a_package_that_nobody_has\n")
    Path("needless.py").write_text("from adom import DIGing, Quadratic\n")
    before = list(sys.path)
    yield
    sys.path[:] = before
    for name in ("own_method", "broken", "typo", "needy", "needless", "faulty"):
        sys.modules.pop(name, None)


def test_a_method_and_a_problem_run_as_in_python(adom: Any) -> None:
    said = adom(
        "solve",
        "--problem",
        "own_method:make",
        "--method",
        "own_method:Mine",
        "--dim",
        3,
        "--seed",
        7,
        *SMALL,
        "--json",
    ).json
    import own_method

    problem = own_method.make(5, 7, 3)
    tol = 1e-10 * 5 * float((problem.solution() ** 2).sum())
    alone = package.solve(problem, package.networks.ring(5), own_method.Mine, "unit", rounds=40, tol=tol)
    assert (said["method"], said["dim"], said["rounds"]) == ("mine", 3, int(alone.last["round"]))
    assert said["error"] == alone.last["error"]
    assert 'own = "own_method:make"' in Path("out/config.toml").read_text()
    again = adom("solve", "out/config.toml", "--json", "--out", "again").json
    assert again["error"] == said["error"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--method own_method:Mime", "--method own_method:Mime: own_method has no 'Mime'; did you mean 'Mine'"),
        ("--method own_methods:Mine", "there is no own_methods.py in "),
        ("--method own_method:State", "--method own_method:State does not derive from adom.Method; docs/add-a-method"),
        (
            "--method own_method:make",
            "--method own_method:make is a function, and does not derive from adom.Method; do",
        ),
        ("--method own_method.py:Mine", "must read module:name, e.g. --method own_method:Mine"),
        (
            "--method broken:X",
            "broken cannot be loaded: ZeroDivisionError: division by zero (broken.py, line 2); fix it",
        ),
        ("--method typo:X", "typo cannot be loaded: SyntaxError: invalid syntax (typo.py, line 1); fix it"),
        ("--method needy:X", "No module named 'a_package_that_nobody_has' (needy.py, line 1); install it"),
        ("--problem own_method:number", "--problem own_method:number is a int; name a function or class"),
        ("--problem own_method:State", "--problem own_method:State fails: TypeError: "),
        (
            "--problem own_method:mak",
            "own_method has no 'mak'; did you mean 'make'? it has State, make, ready\n",
        ),
        ("--method needless:Mine", "needless has no 'Mine'; nor anything similar; define it there\n"),
        ("--problem own_method:make --kappa 9", "kappa = 9.0 has no effect on own_method:make, which takes no kappa"),
        ("--problem own_method:make --data a6a", "--data a6a has no effect on --problem own_method:make; leave it out"),
        ("--problem own_method:ready", "the problem has 4 nodes and the network 5"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(refused: Any, words: str, message: str) -> None:
    assert message in refused("solve", *words.split(), *SMALL)


STEP = "        x, y = gossip"
THEORY = "        return cls("
ENDS = "return State(x, y + g - state.g, g), x"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (STEP, f"        1 / 0\n{STEP}", "fails: ZeroDivisionError: division by zero (faulty.py, line 44); fix it"),
        (
            THEORY,
            f"        [][0]\n{THEORY}",
            "fails: IndexError: list index out of range (faulty.py, line 33); fix it",
        ),
        (
            'name, title, oracle, vectors_per_round = "mine",',
            "title, oracle, vectors_per_round =",
            "Mine has no name; w",
        ),
        (
            "@dataclass(frozen=True)\n",
            "",
            "the method Mine is not a dataclass; write @dataclass(frozen=True) above its",
        ),
        (
            "complexity, ref",
            'needs = "banana"\n    complexity, ref',
            "must be one of fixed, connected, windows, comple",
        ),
        (
            '"primal", 2',
            '"primal", 0',
            "vectors_per_round of the method Mine must be a whole number of at least 1, got",
        ),
        ("unit = theory", "", "the method Mine has no unit(cls, constants); docs/add-a-method has an example of one"),
        (
            "oracle, gossip",
            "oracle",
            "Mine.step must accept (self, state, oracle, gossip), got (self, state, oracle)",
        ),
        (ENDS, "return x", "Mine.step must return (State(x=float64[5, 4], y=float64[5, 4], g=float64[5, 4]), float64["),
        (
            STEP,
            "        x, y = state[:2]  # gossip",
            "Mine.step never uses the network, so the run would have no rounds",
        ),
    ],
    ids=["step", "theory", "name", "dataclass", "needs", "vectors", "unit", "signature", "returned", "alone"],
)
@pytest.mark.parametrize(
    "command",
    [["solve", "--method"], ["compare", "--methods"], ["compare", "--seeds", "2", "--methods"]],
    ids=["solve", "compare", "seeds"],
)
def test_a_method_that_fails_is_refused_in_one_line(
    refused: Any, command: list[str], old: str, new: str, message: str
) -> None:
    text = MINE.read_text()
    assert old in text
    Path("faulty.py").write_text(text.replace(old, new))
    sys.modules.pop("faulty", None)
    small = [*SMALL, "--dim", 4, "--samples", 6]
    assert message in refused(*command, "faulty:Mine", *small)


AN_IF = "with shape bool[]. (faulty.py, line 44); steps are compiled: use jnp.where instead of `if`\n"
NUMPY = " float64[5,2] (faulty.py, line 44); steps are compiled: use jax.numpy instead of NumPy\n"
BACK = "jax.pure_callback(lambda v: np.asarray(v), g, g, vmap_method='sequential')"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (f"        1 / 0\n{STEP}", "Mine fails: ZeroDivisionError: division by zero (faulty.py, line 44); fix it"),
        (
            f"        if state.x.sum() > 0:\n            pass\n{STEP}",
            AN_IF,
        ),
        (f"        np.asarray(state.x)\n{STEP}", NUMPY),
        (
            f"        import jax\n\n        g = state.g\n        {BACK}\n{STEP}",
            "error: a run's file is named by a digest of its code, and Mine has code that no digest can hold (pure_call"
            "back); write it without that, or run it with `adom solve`, which needs no digest\n",
        ),
    ],
    ids=["typo", "if", "numpy", "callback"],
)
@pytest.mark.parametrize("words", [["compare", "--methods", "faulty:Mine", "--seeds", 2], ["sweep", "sweep.toml"]])
def test_what_keeps_its_runs_says_what_is_wrong_with_a_step(
    refused: Any, words: list[Any], new: str, message: str
) -> None:
    Path("faulty.py").write_text(MINE.read_text().replace(STEP, new))
    Path("sweep.toml").write_text('[sweep]\nmethods = ["faulty:Mine"]\n[sweep.factors]\na = [0.5, 1]\n')
    sys.modules.pop("faulty", None)
    line = refused(*words, "--problem", "own_method:make", *SMALL)
    assert message in line
    assert "callback" in new or "(faulty.py, line 4" in line


def test_a_fault_that_is_not_the_users_stays_a_bug(adom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **more: Any) -> None:
        raise ValueError("of ours")

    monkeypatch.setattr(package, "solve", broken)
    with pytest.raises(ValueError, match="of ours"):
        adom("solve", "--problem", "own_method:make", "--method", "own_method:Mine", *SMALL)


def test_two_methods_of_one_name_are_told_what_to_change(refused: Any) -> None:
    Path("faulty.py").write_text(MINE.read_text().replace('"mine", "Mine"', '"adom", "Mine"'))
    sys.modules.pop("faulty", None)
    line = refused("compare", "--methods", "adom,faulty:Mine", *SMALL)
    assert "the label 'adom' occurs twice; leave one out, or give `name` in your own class another value" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "--methods", "adom,own_method:Mime"], "--methods own_method:Mime: own_method has no 'Mime'; did"),
        (["sweep", "sweep.toml"], "[sweep] methods own_method:Mime: own_method has no 'Mime'; did you mean 'Mine'"),
        (["bench", "--methods", "own_method:Mime"], "--methods own_method:Mime: own_method has no 'Mime'; did you me"),
        (["bench", "--method", "own_method:Mime"], "--method own_method:Mime: own_method has no 'Mime'; did you mean"),
        (["bench", "--method", "nids"], "--method nids is among the others already; leave it out"),
        (["bench", "--methods", "adom,nids", "--method", "nids"], "--method nids is among the others already; leave i"),
        (["bench", "--methods", "nids,nids"], "--methods names 'nids' twice; leave one out"),
        (["bench", *["--method", "own_method:Mine"] * 2], "--method names 'own_method:Mine' twice; leave one out"),
    ],
)
def test_a_mistake_in_a_name_is_said_of_the_option_that_has_it(refused: Any, words: list[str], message: str) -> None:
    Path("sweep.toml").write_text('[sweep]\nmethods = ["own_method:Mime"]\n')
    assert message in refused(*words)


def test_a_function_gets_the_defaults_that_the_help_has(adom: Any, refused: Any) -> None:
    Path("faulty.py").write_text(
        f"{MINE.read_text()}\n\ndef all_of_it(nodes, samples, *, dim, kappa, split, extra=1):\n"
        "    print(samples, dim, kappa, split)\n    return make(nodes, 0, dim)\n"
        "def regularised(nodes, dim, l2):\n    return make(nodes, 0, dim)\n"
    )
    words = ["--method", "own_method:Mine", *SMALL]
    assert adom("solve", "--problem", "faulty:all_of_it", *words).out.startswith("100 40 100.0 contiguous\n")
    assert "samples = 100\ndim = 40\n" in Path("out/config.toml").read_text().replace('split = "contiguous"\n', "")
    assert adom("solve", "out/config.toml", "--dim", 7).out.startswith("100 7 100.0 contiguous\n")
    adom("solve", "--problem", "own_method:make", *words)  # whose dim has a default there
    assert "dim" not in Path("out/config.toml").read_text()
    line = "--problem faulty:regularised takes l2, which was not given; add --l2, or give it a default there"
    assert line in refused("solve", "--problem", "faulty:regularised", *words)


def test_a_function_that_ignores_its_seed_is_told_so(refused: Any) -> None:
    Path("faulty.py").write_text(f"{MINE.read_text()}\n\ndef same(nodes, seed):\n    return make(nodes, 0)\n")
    Path("sweep.toml").write_text("[sweep]\nseeds = 2\n")
    for words in (["compare", "--methods", "diging", "--seeds", 2], ["sweep", "sweep.toml"]):
        line = refused(*words, "--problem", "faulty:same", *SMALL)
        assert "--problem faulty:same gives the same problem for every seed, and the network is the same too; " in line
        assert "let it use an argument `seed`, or take a network that is drawn, without --network-seed" in line
        assert "--split" not in line


def test_ranks_load_it_too(adom: Any) -> None:
    words = ["--problem", "own_method:make", "--method", "own_method:Mine", *SMALL]
    alone = adom("solve", *words, "--json").json
    ranks = adom("solve", *words, "--engine", "mpi", "--ranks", 2, "--out", "ranks")
    assert ranks.code == 0
    there = package.load("ranks/result.npz")
    assert there.provenance["method"]["name"] == "mine"
    assert there.last["error"] == pytest.approx(alone["error"], rel=1e-9)


def test_sweeps_take_it(adom: Any) -> None:
    Path("sweep.toml").write_text('[sweep]\nmethods = ["own_method:Mine"]\n[sweep.factors]\na = [0.5, 1]\n')
    said = adom("sweep", "sweep.toml", "--problem", "own_method:make", *SMALL, "--json").json
    assert [row["label"] for row in said["rows"]] == ["mine", "mine"]
