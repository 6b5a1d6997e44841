"""adom: decentralized convex optimization over changing networks.

Each of n nodes holds a private function f_i and talks only to its current neighbours. Together they find
the x that minimises the sum of the f_i.

>>> import adom
>>> problem = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]])
>>> result = adom.solve(problem, adom.networks.path(2), rounds=200)
>>> [round(float(v), 6) for v in result.x[:, 0]]
[0.333333, 0.333333]

Heavy packages (JAX, pandas, matplotlib) are loaded when a name that needs them is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .util.process import loading

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import algorithms, data, networks
    from .algorithms import Constants, Method
    from .algorithms.adom import ADOM
    from .algorithms.pngd import PNGD
    from .data.model import Model, load_model
    from .data.node_data import NodeData
    from .data.shards import Shards
    from .errors import InputError
    from .problems.linear_model import LeastSquares, LogisticRegression, SoftmaxRegression
    from .problems.loss import from_loss
    from .problems.quadratic import Quadratic
    from .run.calls.solve import solve, solve_many
    from .run.calls.theory import verify
    from .run.cite import cite
    from .run.constants import constants
    from .run.ranks.checkpoints import Checkpoints
    from .run.result import Result, load
    from .study.compare import Comparison, Comparisons, compare
    from .study.replay import replay
    from .study.sweep import Sweep, sweep

_HOME = {
    "ADOM": "algorithms.adom",
    "Checkpoints": "run.ranks.checkpoints",
    "Comparison": "study.compare",
    "Comparisons": "study.compare",
    "Constants": "algorithms",
    "InputError": "errors",
    "LeastSquares": "problems.linear_model",
    "LogisticRegression": "problems.linear_model",
    "Method": "algorithms",
    "Model": "data.model",
    "NodeData": "data.node_data",
    "PNGD": "algorithms.pngd",
    "Quadratic": "problems.quadratic",
    "Result": "run.result",
    "Shards": "data.shards",
    "SoftmaxRegression": "problems.linear_model",
    "Sweep": "study.sweep",
    "algorithms": "algorithms",
    "cite": "run.cite",
    "from_loss": "problems.loss",
    "compare": "study.compare",
    "constants": "run.constants",
    "data": "data",
    "load": "run.result",
    "load_model": "data.model",
    "networks": "networks",
    "replay": "study.replay",
    "solve": "run.calls.solve",
    "solve_many": "run.calls.solve",
    "sweep": "study.sweep",
    "verify": "run.calls.theory",
}

__all__ = [
    "ADOM",
    "PNGD",
    "Checkpoints",
    "Comparison",
    "Comparisons",
    "Constants",
    "InputError",
    "LeastSquares",
    "LogisticRegression",
    "Method",
    "Model",
    "NodeData",
    "Quadratic",
    "Result",
    "Shards",
    "SoftmaxRegression",
    "Sweep",
    "__version__",
    "algorithms",
    "cite",
    "compare",
    "constants",
    "data",
    "from_loss",
    "load",
    "load_model",
    "networks",
    "replay",
    "solve",
    "solve_many",
    "sweep",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name) or _method_files().get(name)
    if home is None:
        raise AttributeError(f"module 'adom' has no attribute {name!r}")
    with loading():
        module = import_module(f".{home}", __name__)
    value = module if home == name else getattr(module, name)
    globals()[name] = value
    return value


def _method_files() -> dict[str, str]:
    """Return the module of every method class, by class name."""
    from .algorithms import METHODS

    homes = (home.split(":") for home in METHODS.values())
    return {cls: f"algorithms.{file}" for file, cls in homes}


def __dir__() -> list[str]:
    return sorted({*__all__, *_method_files()})
