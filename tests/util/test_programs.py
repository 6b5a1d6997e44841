import os
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from adom.util import programs as module
from adom.util.programs import kept_programs

SETTINGS = ("jax_compilation_cache_dir", *module.SETTINGS)
SOLVE = """
import adom
problem = adom.Quadratic([[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [0.0]])
print(adom.solve(problem, adom.networks.ring(3), rounds=50).x.tobytes().hex())
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Let programs be kept below a temporary folder, whatever cache this process was started with."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    reset_cache()
    monkeypatch.setenv("ADOM_CACHE", str(tmp_path))
    monkeypatch.delenv("ADOM_COMPILE_CACHE", raising=False)
    module._folder.cache_clear()
    yield tmp_path
    module._folder.cache_clear()
    reset_cache()
    jax.config.update("jax_compilation_cache_dir", before)


def compiled(number):
    """Compile a program that no other test has, and run it."""
    jax.clear_caches()
    return float(jax.jit(lambda x: x * number + 1)(jnp.float32(2)))


def programs(folder):
    return sorted(folder.glob("programs-*/*-cache"))


def test_programs_are_kept_and_used_again(home):
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    with kept_programs():
        assert compiled(3.5) == 8.0
    first = {path: path.stat().st_mtime_ns for path in programs(home)}
    assert first
    assert {name: getattr(jax.config, name) for name in SETTINGS} == before
    hits = []
    jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
    with kept_programs():
        assert compiled(3.5) == 8.0
    assert "/jax/compilation_cache/cache_hits" in hits
    assert {path: path.stat().st_mtime_ns for path in programs(home)} == first
    compiled(4.5)  # outside, nothing is kept
    assert {path: path.stat().st_mtime_ns for path in programs(home)} == first


def test_one_setting_switches_it_off(home, monkeypatch):
    monkeypatch.setenv("ADOM_COMPILE_CACHE", "0")
    with kept_programs():
        compiled(5.5)
    assert not list(home.iterdir())


def test_a_cache_of_the_users_own_is_used(home):
    own = home / "own"
    jax.config.update("jax_compilation_cache_dir", str(own))
    with kept_programs():
        compiled(6.5)
        assert jax.config.jax_compilation_cache_dir == str(own)
    assert not programs(home)


def test_a_folder_that_cannot_be_made_is_done_without(home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("ADOM_CACHE", str(home / "file"))
    with kept_programs():
        assert compiled(7.5) == 16.0


@pytest.mark.parametrize("damage", [b"", b"no program", None])
def test_files_cut_short_are_removed_without_a_word(home, damage):
    with kept_programs():
        compiled(8.5)
    for path in programs(home):
        path.write_bytes(path.read_bytes()[:-20] if damage is None else damage)
    with kept_programs():  # warnings are errors here
        assert compiled(8.5) == 18.0
    assert not programs(home)
    with kept_programs():
        compiled(8.5)
    assert programs(home)


def test_other_warnings_are_shown(home):
    with pytest.warns(UserWarning, match="of the user"), kept_programs():
        warnings.warn("a warning of the user's", stacklevel=1)


def test_it_stays_small(home, monkeypatch):
    monkeypatch.setitem(module.SETTINGS, "jax_compilation_cache_max_size", 5000)
    with kept_programs():
        for number in range(6):
            compiled(10.5 + number)
    sizes = [path.stat().st_size for path in programs(home)]
    assert sizes
    assert sum(sizes) <= 5000


def test_several_processes_share_it(tmp_path):
    left_out = ("JAX_COMPILATION_CACHE_DIR", "ADOM_COMPILE_CACHE")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"ADOM_CACHE": str(tmp_path), "ADOM_NATIVE": "0", "JAX_PLATFORMS": "cpu"}
    texts = set()
    for _ in range(2):
        running = [
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", SOLVE],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        for process in running:
            out, complaints = process.communicate(timeout=300)
            assert (process.returncode, complaints) == (0, "")
            texts.add(out.strip())
    assert programs(tmp_path)
    (rows,) = texts
    assert np.isfinite(np.frombuffer(bytes.fromhex(rows))).all()
