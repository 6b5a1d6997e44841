import jax
import pytest


@pytest.fixture
def double():
    """Double precision in JAX throughout a test."""
    with jax.enable_x64(True):
        yield
