import gc
import subprocess
import sys

import pytest

from adom.util.process import FRESH, loading


def test_the_collector_is_paused_and_goes_on():
    assert gc.isenabled()
    many = [[] for _ in range(FRESH + 1)]  # as in a process that does not only start
    frozen = gc.get_freeze_count()
    with loading():
        with loading():
            assert not gc.isenabled()
        assert not gc.isenabled()
    with pytest.raises(ZeroDivisionError), loading():
        _ = 1 / 0
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen, len(many)


def test_a_fresh_process_sets_its_modules_aside():
    code = "import adom, gc; adom.networks; print(gc.get_freeze_count() > 10_000, gc.isenabled())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_a_run_loads_no_library_that_it_does_not_use():
    code = """
import adom, sys
problem = adom.LogisticRegression([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.2]], [1, -1, 1, -1], nodes=2, l2=0.1)
result = adom.solve(problem, adom.networks.path(2), rounds=20, oracle=("gd", 1))
repr(result), result.status
heavy = ("scipy.sparse", "scipy.linalg", "pandas", "matplotlib", "sklearn", "networkx", "typer", "pydantic")
print(*(name for name in heavy if name in sys.modules))
result.history
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["", "True"]


def test_the_command_loads_no_library_that_it_does_not_use(tmp_path):
    code = """
import atexit, sys
heavy = ("scipy.sparse", "scipy.linalg", "pandas", "sklearn")
atexit.register(lambda: print("loaded:", *(name for name in heavy if name in sys.modules), file=sys.stderr))
sys.argv = ["adom", "solve", "--out", "here"]
from adom.cli.main import run
run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert not done.stderr.split("loaded:")[1].strip()
