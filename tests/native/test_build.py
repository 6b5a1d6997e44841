"""Building the kernels, and doing without them."""

import os
import shutil
import subprocess
import sys

import pytest

from adom import native

SOLVE = """
import adom, numpy as np, sys
rng = np.random.default_rng(0)
problem = adom.LogisticRegression(rng.standard_normal((40, 3)), np.arange(40) % 2, nodes=8, kappa=10.0)
request = dict(parameters="unit", oracle=("gd", 2), rounds=50, dtype=sys.argv[1])
result = adom.solve(problem, adom.networks.ring(8), **request)
print(result.provenance["native"], repr(float(result.history["error"].iloc[-1])))
"""


def solve(tmp_path, dtype="float64", **environment):
    variables = {**os.environ, "ADOM_CACHE": str(tmp_path), **environment}
    done = subprocess.run(
        [sys.executable, "-c", SOLVE, dtype], env=variables, capture_output=True, text=True, check=True
    )
    used, error = done.stdout.split()
    return used == "True", float(error), done.stderr


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    """The number where kernels are switched off."""
    used, error, _ = solve(tmp_path_factory.mktemp("pure"), ADOM_NATIVE="0")
    assert not used
    return error


def test_without_a_compiler_jax_does_it_all(tmp_path, pure):
    used, error, _ = solve(tmp_path, PATH="", CXX="")
    assert not used
    assert error == pure


def test_a_build_is_kept_and_gives_the_same_numbers(tmp_path, pure):
    """By a compiler in a hurry; as they are always built, kernels are used in all other tests."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        pytest.skip("no C++ compiler here")
    hasty = tmp_path / "c++"
    hasty.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
    hasty.chmod(0o755)
    used, error, messages = solve(tmp_path, CXX=str(hasty))
    assert used
    assert "compiling" in messages
    assert sorted(file.name.split("-")[0] for file in tmp_path.glob("*.so")) == ["graphs", "kernels"]
    _, again, messages = solve(tmp_path, CXX=str(hasty))
    assert "compiling" not in messages
    assert again == error
    assert pure == pytest.approx(error, rel=1e-9)
    _, single, messages = solve(tmp_path, "float32", CXX=str(hasty))  # whose kernels nobody has asked for so far
    assert "compiling" in messages
    assert single == pytest.approx(error, rel=1e-3)
    assert single != error


def test_a_compiler_that_refuses_is_quoted(tmp_path):
    refusing = tmp_path / "cxx"
    refusing.write_text("#!/bin/sh\necho 'kernels.cc:1: error: no' >&2\nexit 1\n")
    refusing.chmod(0o755)
    recipe = native.Recipe(native.Path(native.__file__).with_name("kernels.cc"), str(refusing), (), "")
    with pytest.raises(native.BuildError, match=r"could not compile the kernels: kernels\.cc:1: error: no"):
        native.build(recipe, tmp_path / "cache" / "kernels.so")
    assert not list((tmp_path / "cache").iterdir())


def test_a_cache_that_cannot_be_written_is_a_reason_to_do_without(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    used, _, _ = solve(blocked)
    assert not used
