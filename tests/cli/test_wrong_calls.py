"""Wrong calls as a newcomer makes them: one line that says the value, the rule and the remedy, and nothing done."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adom.cli import ranks

TOML = {
    "syntax.toml": "[problem]\nnodes = \n",
    "negative.toml": "[run]\nrounds = -3\n",
    "small.toml": "[problem]\nnodes = 4\nsamples = 5\ndim = 4\n[network]\nkind = 'ring'\n[sweep]\nkappas = [3]\n",
    "ranks.toml": "[mpi]\nranks = 2\n",
    "sweep.toml": "[sweep.factors]\neta = [0.5, 1]\n",
    "swept.toml": "[sweep]\nfactor = {eta = [1]}\n",
    "list.toml": "[sweep]\nmethods = 3\n",
    "twice.toml": "[run]\nrounds = 3\nrounds = 4\n",
    "digits.toml": f"[run]\nrounds = {'9' * 5000}\n",
    "deep.toml": f"[run]\nrounds = {'[' * 5000}\n",
    "zero.toml": '[problem]\ndata = "a\\u0000b.svm"\n',
    "oracles.toml": "[sweep]\noracles = ['gd']\n",
    "far.toml": "[run]\nengine = 'mpi'\n[sweep]\nkappas = [3]\n",
    "typo.toml": "[compare]\nmethod = 'adom'\n",
    "none.toml": "[run]\nrounds = 3\n",
}
SAMPLES = {
    "bad.svm": "1 1:2\n-1 2:x\n",
    "three.svm": "1 1:1\n2 1:1\n3 1:1\n",
    "good.csv": "a,b,y\n" + "".join(f"{k},{k % 5},{k % 2}\n" for k in range(8)),
    "nan.csv": "a,b,y\n1,2,0\n1,nan,1\n",
    "text.csv": "a,b,y\n1,2,no\n1,3,yes\n",
    "one.csv": "a,b,y\n1,2,1\n2,3,1\n3,3,1\n4,4,1\n",
    "few.csv": "a,b,y\n1,2,0\n2,1,1\n3,1,1\n",
}


@pytest.fixture(autouse=True)
def files(elsewhere: Path) -> None:
    others = {"blocked": "", "empty.npz": "", "met.txt": "0 1 2\n0 2 3\n5 1 2\n"}
    for name, text in {**TOML, **SAMPLES, **others}.items():
        (elsewhere / name).write_text(text)
    (elsewhere / "folder").mkdir()
    os.mkfifo(elsewhere / "pipe.toml")
    (elsewhere / "loop").symlink_to("loop")
    np.save(elsewhere / "array.npy", np.ones(3))
    np.savez(elsewhere / "other.npz", a=np.ones(3))


# Refused before anything is built, and before JAX is loaded; " ... " stands for any words.
EARLY = [
    ("sovle", "unknown command 'sovle'; did you mean 'solve'? known: solve, compare"),
    ("Solve", "did you mean 'solve'?"),
    ("--versio", "unknown option --versio; did you mean --version? adom --help lists the options"),
    ("solve --rouns 5", "unknown option --rouns; did you mean --rounds? adom solve --help"),
    ("solve -rounds 5", "unknown option -rounds; did you mean --rounds?"),
    ("solve --rounds", "--rounds needs a value; adom solve --help"),
    ("solve --json=yes", "--json takes no value"),
    ("solve --rounds ten", "--rounds must be a whole number, got 'ten'; e.g. --rounds 5000"),
    ("solve --rounds 1e3", "got '1e3'; e.g. --rounds 1000"),
    ("solve --rounds 0 --json", "--rounds must be a whole number of at least 1, got 0; e.g. --rounds 100"),
    ("solve --rounds 99999999999999999999", "--rounds must be at most 4611686018427387904"),
    ("solve --method adm", "unknown method 'adm'; did you mean 'adom'? known: adom, pngd"),
    ("solve --method adom,pngd", "--method takes one method ... `adom compare --methods adom,pngd`"),
    ("solve --parameters theroy", "or values as in eta=0.1, got 'theroy'; did you mean 'theory'?"),
    ("solve --parameters unit,eat=0.1", "ADOM has no parameter 'eat'; did you mean 'eta'? it has alpha"),
    ("solve --parameters eta=nan", "with finite numbers, got 'eta=nan'; e.g. unit,eta=0.1"),
    ("solve --parameters tuned,eta=1", "tuned parameters cannot be combined with values ... give tuned alone"),
    ("solve --network rng", "unknown network 'rng'; did you mean 'ring'?"),
    ("solve --network ring --chi 30", "--chi 30 has no effect on network ring; it belongs to geometric: leave it"),
    ("solve --chi inf", "--chi must be a finite number, got inf; e.g. --chi 30"),
    ("solve --chi 30 --radius 0.3", "--radius 0.3 and --chi 30 exclude each other; give one"),
    ("solve --tol 1e-3 --rtol 1e-3", "--tol 0.001 and --rtol 0.001 exclude each other; give one"),
    ("solve --oracle gd", "unknown oracle 'gd' ... on the command line exact, auto, gd:T or agd:T"),
    ("solve --oracle gd:1 --method diging", "DIGing uses gradients, not a dual oracle; leave the oracle 'gd:1' out"),
    ("solve --engine mip", "unknown engine 'mip'; did you mean 'mpi'?"),
    ("solve --ranks 4", "--ranks has no effect on engine local; give --engine mpi"),
    ("solve --engine mpi --ranks 4 --nodes 3", "--ranks 4 cannot share 3 nodes ... take --ranks 3 or fewer"),
    ("solve --engine mpi --resume", "--resume needs a folder; give one with --checkpoints DIR"),
    ("solve --engine mpi --ranks 2 --checkpoints blocked", "blocked: it is a file; choose another --checkpoints"),
    ("solve --engine mpi --parameters tuned", "--parameters tuned runs many settings ... --engine local"),
    ("solve --engine mpi --no-monitor", "--no-monitor has no effect without --shards; leave it out"),
    ("solve --label y", "--label y names a column of a file; give the file with --data"),
    ("solve --data none.csv", "cannot read none.csv: No such file or directory; check the path"),
    ("solve --data a7a", "cannot read a7a ... as a data set: did you mean 'a6a'? known: a6a, w6a, ijcnn1"),
    ("solve --data infectious_ct1", "is a network, not samples; give --network infectious"),
    ("solve ring", "'ring' was taken for a file of settings: give it with --network"),
    ("solve good.csv", "it was taken for a file of settings: give samples with --data good.csv"),
    ("solve a6a", "give it with --data a6a"),
    ("solve 20", "cannot read 20: No such file ... expected a file of settings, such as the config.toml"),
    ("solve folder", "cannot read folder: Is a directory"),
    ("solve syntax.toml", "syntax.toml is not a TOML file: Invalid value (at line 2 ... a line reads `name = value`"),
    ("solve negative.toml", "negative.toml: rounds must be a whole number of at least 1, got -3; e.g. rounds = 100"),
    ("solve ranks.toml", "--ranks has no effect on engine local"),
    ("solve twice.toml", "is not a TOML file: Cannot overwrite a value (at line 3 ... may appear once in its table"),
    ("solve digits.toml", "a number in it has thousands of digits; write 1e12"),
    ("solve deep.toml", "deep.toml is not a TOML file: it is nested too deeply"),
    ("solve pipe.toml", "cannot read pipe.toml: it is not a regular file; expected a file of settings"),
    ("solve /dev/zero", "cannot read /dev/zero: it is not a regular file"),
    (f"solve --out {'x' * 300}", "cannot make the folder xxx ... xxx: File name too long; choose another --out"),
    (f"solve {'x' * 300}", "cannot read xxx ... xxx: File name too long; expected a file of settings"),
    (f"plot other.npz -o {'x' * 300}.png", "cannot write xxx ... x.png: File name too long; choose another --out"),
    ("solve --out blocked/below", "cannot make the folder blocked/below: a file stands where a folder is needed"),
    ("solve --out pipe.toml", "cannot make the folder pipe.toml: it is a file; choose another --out"),
    ("solve --dtype float16", "unknown dtype 'float16'; did you mean 'float64'?"),
    ("solve --tol -1", "--tol must be a positive number, got -1.0; it bounds the squared error"),
    ("solve --kappa x", "--kappa must be a number, got 'x'"),
    ("solve --split lable", "unknown split 'lable'; did you mean 'label'?"),
    ("solve --checkpoints here", "--checkpoints has no effect on engine local; give --engine mpi"),
    ("solve --engine mpi --ranks 0", "--ranks must be a whole number of at least 1, got 0; e.g. --ranks 4"),
    ("solve --out blocked", "cannot make the folder blocked: it is a file; choose another --out"),
    ("compare --methods adom pngd", "'pngd' was taken for a file ... several with commas and no spaces"),
    ("compare --methods adom,adom", "--methods names 'adom' twice; leave one out"),
    ("compare --parameters eta=1", "DNM has no parameter 'eta' ... it has theta, beta; name the methods that have"),
    ("compare --method adom", "did you mean --methods?"),
    ("compare --methods pngd,adm", "unknown method 'adm'; did you mean 'adom'?"),
    ("compare --seeds 0", "--seeds must be a whole number of at least 1, got 0; e.g. --seeds 5"),
    ("compare --methods ,", "--methods ',' names no method; known: adom"),
    ("compare far.toml", "comparisons run on engine local only, got 'mpi'; use --engine local"),
    ("compare typo.toml", "unknown key 'method'; did you mean 'methods'?"),
    ("compare --oracle gd", "unknown oracle 'gd'"),
    ("compare --out blocked/out", "cannot make the folder blocked/out"),
    ("sweep", "a sweep needs a table [sweep] with lists, but no file of settings was given; e.g. [sweep"),
    ("sweep none.toml", "a sweep needs a table [sweep] with lists, but none.toml has none"),
    ("sweep far.toml", "sweeps run on engine local only, got 'mpi'; use --engine local"),
    ("sweep sweep.toml --out blocked/out", "cannot make the folder blocked/out"),
    ("sweep swept.toml", "[sweep]: unknown key 'factor'; did you mean 'factors'?"),
    ("sweep list.toml", "methods must be a list of texts in quotes, got 3"),
    ("sweep oracles.toml", "unknown oracle 'gd'"),
    ("sweep sweep.toml --batch x", "--batch must be a whole number, got 'x'; e.g. --batch 64"),
    ("sweep sweep.toml --fresh yes", "unexpected argument 'yes'; adom sweep --help"),
    ("verify --out x", "unknown option --out; did you mean --count? adom verify --help lists the options"),
    ("network --contacts met.txt --network ring", "--contacts met.txt has no effect on network ring"),
    ("network --network contacts", "needs a contact list; give one with --contacts FILE"),
    ("methods adom", "unexpected argument 'adom'; adom methods --help"),
    ("data a5a", "no data set is called 'a5a'; did you mean 'a6a'?"),
    ("split", "missing DATA: LIBSVM ... adom split --help has an example"),
    ("split good.csv", "missing --nodes: number of nodes"),
    ("split good.csv --nodes many", "--nodes must be a whole number, got 'many'; e.g. --nodes 100"),
    ("split none.svm --nodes 3", "cannot read none.svm"),
    ("split infectious_ct1 --nodes 3", "is a network, not samples"),
    ("split good.csv --nodes 3 --by raws", "cannot be split by 'raws'; did you mean 'rows'? known: rows"),
    ("split good.csv --nodes 3 --alpha nan", "--alpha must be a finite number, got nan; e.g. --alpha 0.5"),
    ("reproduce kapa", "no figure is called 'kapa'; did you mean 'kappa'? known: network, slow2, kappa"),
    ("reproduce --protocols best", "unknown protocol 'best'; known: theory, unit, tuned"),
    ("reproduce --protocols ,", "protocols names none; give some of theory, unit, tuned"),
    ("plot", "missing RESULT.npz...: files that runs saved"),
    ("report", "missing RESULTS...: result files, or folders"),
    ("ledger", "missing FOLDER: folder that `adom reproduce` filled"),
    ("plot none.npz --axis rounds", "unknown axis 'rounds'; did you mean 'round'?"),
    ("plot other.npz -o x.jpg", "cannot write x.jpg: its suffix must be one of .png, .pdf, .svg; e.g. --out x.png"),
    ("plot other.npz -o blocked/x.png", "cannot make the folder blocked: it is a file; choose another --out"),
    ("--install-completion tcsh", "cannot complete for the shell 'tcsh' ... known: bash, zsh, fish"),
]

# Refused by the library, with remedies worded for the command line.
LATE = [
    ("network --network ring --every 0 --nodes 4", "--every must be a whole number of at least 1, got 0"),
    (f"network --nodes 1{'0' * 400}", "--nodes must be at most 200000000, got 1000"),
    ("network --network ring --network-seed -1 --nodes 4", "--network-seed must be a whole number of at least 0, got"),
    ("network --network erdos-renyi --probability 2 --nodes 4", "--probability must be a finite number at least 0"),
    ("network --network ring --failing -0.1 --nodes 4", "--failing must be ... it is the chance of a link to fail"),
    ("network --network ring --delay -1 --nodes 4", "--delay must be a whole number ... got -1; e.g. --delay 2"),
    ("network --network ring --noise -1 --nodes 4", "--noise must be ... overflow; e.g. --noise 1e-3"),
    ("solve --network ring --nodes 4 --kappa 1", "--kappa must be a finite number above 1 and at most 1e+15, got 1.0;"),
    ("solve --dim 3", "--dim must be a whole number of at least 4, got 3; two features of synthetic data inform"),
    ("solve --seed -1", "--seed must be a whole number of at least 0, got -1; e.g. --seed 0"),
    ("solve --samples 0", "--samples must be a whole number of at least 1, got 0; e.g. --samples 100"),
    ("solve --nodes 100000000", "10000000000 samples x 40 features take 3200 GB; take fewer nodes, samples"),
    ("solve --engine mpi --ranks 2 --checkpoints here --checkpoint-rounds 0", "--checkpoint-rounds of checkpoints"),
    ("sweep small.toml --batch 0", "--batch must be a whole number of at least 1, got 0; e.g. --batch 100"),
    ("split good.csv --nodes 0", "--nodes must be a whole number of at least 1, got 0"),
    ("split good.csv --nodes 3 --by dirichlet --alpha 0", "--alpha must be positive and at most 1e+06, got 0.0"),
    ("reproduce --workers 0", "--workers must be a whole number of at least 1, got 0; e.g. --workers 100"),
    ("solve zero.toml", "cannot read 'a\\x00b.svm': it is not a possible file name"),
    ("solve --data pipe.toml", "cannot read pipe.toml: it is a pipe or a device; write its content to a file"),
    ("network --contacts pipe.toml", "cannot read pipe.toml: it is not a regular file; expected a file of lines"),
    ("network --contacts loop", "cannot read loop: Too many levels of symbolic links"),
    (f"solve --data {'x' * 300}", "cannot read xxx ... xxx: File name too long;"),
    (f"report {'x' * 300}", "there is no file or folder xxx"),
    (f"ledger {'x' * 300}", "is not a folder of a reproduction ... File name too long"),
    ("report pipe.toml", "no results can be read from the pipe or device pipe.toml"),
    ("plot pipe.toml", "cannot read pipe.toml: it is not a regular file; give one that `adom solve` wrote"),
    ("solve --network ring --nodes 4 --data nan.csv", "nan.csv, line 3, column 2 (b): 'nan' is not a finite number"),
    ("solve --network ring --nodes 4 --data text.csv", "line 2, column 3 (y): 'no' is not a finite number; map it"),
    ("solve --network ring --nodes 4 --data one.csv", "labels must be of exactly two classes, got 1"),
    ("solve --network ring --nodes 4 --data few.csv", "4 nodes cannot share 3 ... take --nodes 3 or fewer"),
    ("solve --network ring --nodes 4 --data good.csv --dim 7", "has 2 features beside the label, not 7; leave --dim"),
    ("solve --network ring --nodes 4 --data array.npy", "or a file whose name ends in .csv or .npz"),
    ("solve --network ring --nodes 4 --data other.npz", "has no array features or X; it has a: save one with"),
    ("solve --nodes 4 --network ring --l2 1e-100", "makes kappa = ... take a larger --l2, or give --kappa"),
    ("solve --shards folder", "folder holds no manifest.json; give a folder that `adom split"),
    ("network --contacts met.txt --nodes 4", "together leave 2 components, {0} and {1, 2, 3} ... or give --repair"),
    ("network --contacts met.txt --nodes 2", "names node 2, but nodes=2 allows 0 to 1; leave --nodes out"),
    ("network --network ring --nodes 1000000000", "nodes must be at most 200000000, got 1000000000"),
    ("solve --shards nowhere", "nowhere"),
    ("solve --network ring --nodes 4 --data bad.svm", "bad.svm, line 2: value 'x'"),
    ("split good.csv --nodes 9", "9 nodes cannot share 8 samples"),
    ("split good.csv --nodes 3 --alpha 0.3", "--alpha 0.3 has no effect"),
    ("split three.svm --nodes 3", "exactly two classes, got 3: 1, 2, 3"),
    ("split good.csv --nodes 3 --out good.csv", "cannot write"),
    ("reproduce kappa/d7", "figure kappa has no panel 'd7'"),
    ("report other.npz -o page.png", "its suffix must be one of .html, .htm; e.g. --out page.html"),
    ("ledger folder", "folder is not a folder of a reproduction ... `adom reproduce --quick --out DIR` fills one"),
    ("ledger folder --claim over-kappa", "there is no claim 'over-kappa'; did you mean 'best-over-kappa'?"),
    ("report none", "there is no file or folder none; give result files"),
    ("report good.csv", "good.csv is not a whole result file"),
    ("report folder", "the folder folder has no results; give one that `adom solve`"),
    ("plot folder", "cannot read folder: Is a directory; give one that `adom solve` wrote"),
    ("plot empty.npz", "empty.npz is not a whole result file"),
    ("plot array.npy", "array.npy is not a whole result file"),
    ("plot none.npz", "cannot read none.npz: No such file or directory; give one that `adom solve` wrote"),
]


@pytest.mark.parametrize(("line", "words"), [*EARLY, *LATE], ids=[line for line, _ in (*EARLY, *LATE)])
def test_one_line_says_what_is_wrong(line: str, words: str, refused: Any, elsewhere: Path) -> None:
    before = sorted(elsewhere.rglob("*"))
    message = refused(*line.split())
    for fragment in words.split(" ... "):
        assert fragment in message
    left = [path for path in sorted(elsewhere.rglob("*")) if path not in before]
    assert not [path for path in left if path.is_file()], "nothing is written"


def test_what_can_be_refused_early_is_refused_before_jax_is_loaded(python: Any) -> None:
    script = (
        "import json, sys, typer\n"
        "from adom.cli.main import app\n"
        "command = typer.main.get_command(app)\n"
        "codes = [command(line.split(), standalone_mode=False) for line in json.loads(sys.argv[1])]\n"
        "print(json.dumps([codes, 'jax' in sys.modules, 'matplotlib' in sys.modules]))"
    )
    done = python("-c", script, json.dumps([line for line, _ in EARLY]))
    assert json.loads(done.stdout) == [[2] * len(EARLY), False, False], done.stderr


def test_a_rank_names_the_options_of_the_call_that_started_it(refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ranks.CODE, "code")
    assert refused("solve", "negative.toml").startswith("error: --rounds must be a whole number of at least 1, got -3")


def test_wrong_values_of_a_method_are_refused_in_flags(refused: Any) -> None:
    small = ["--nodes", 4, "--samples", 5, "--dim", 4, "--network", "ring", "--oracle", "gd:1"]
    message = refused("solve", *small, "--parameters", "unit,tau=2")
    assert "tau must lie in (0, 1), got 2.0; --parameters theory gives a valid one" in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("solve --bits 8 --noise 0.1", "copies that feedback keeps at both ends; give --no-feedback"),
        ("solve --bits 8 --one-way 0.1", "differ for ever; give --no-feedback, or no loss"),
        ("solve --delay 1 --one-way 0.1", "come late or with noise; give --no-healing"),
        (
            "solve --bits 8",
            "--parameters auto needs links that deliver messages unchanged ... take 'theory', 'unit' or 'tuned'",
        ),
        ("verify --bits 8", "got a quantised network; leave --delay, --bits, --keep, --noise, --one-way"),
    ],
)
def test_what_links_cannot_do_is_refused_in_flags(line: str, words: str, refused: Any) -> None:
    message = refused(*line.split(), "--nodes", 4, "--samples", 5, "--dim", 4, "--network", "ring")
    for fragment in words.split(" ... "):
        assert fragment in message


def test_a_flag_of_the_relative_tolerance_wins_over_the_files_absolute_one(adom: Any) -> None:
    Path("tight.toml").write_text("[run]\ntol = 1e-12\n")
    small = ["--nodes", 4, "--samples", 5, "--dim", 4, "--kappa", 10, "--network", "ring", "--oracle", "gd:1", "--json"]
    loose = adom("solve", "tight.toml", *small, "--rtol", 1e-2).json
    assert loose["status"] == "converged"
    assert loose["error"] > 1e-12


def test_a_sweep_that_is_refused_keeps_what_the_folder_holds(adom: Any, refused: Any) -> None:
    Path("small.toml").write_text(
        "[problem]\nnodes = 4\nsamples = 5\ndim = 4\nkappa = 10.0\n[network]\nkind = 'ring'\n"
        "[run]\nrounds = 5\noracle = 'gd:1'\n[sweep.factors]\neta = [0.5, 1]\n"
    )
    assert adom("sweep", "small.toml", "--out", "swept").code == 0
    before = {path: path.read_bytes() for path in Path("swept").rglob("*") if path.is_file()}
    assert "cannot read none.csv" in refused("sweep", "small.toml", "--data", "none.csv", "--fresh", "--out", "swept")
    assert {path: path.read_bytes() for path in Path("swept").rglob("*") if path.is_file()} == before
