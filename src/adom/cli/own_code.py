"""The user's own methods and problems, named ``module:name``; modules in the working folder are found too."""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..algorithms import Method, method_class
from ..algorithms.base import check_class
from ..errors import InputError, nearest
from ..util.own_code import files_of, in_words, place, remedy
from .settings import ProblemTable

if TYPE_CHECKING:
    from ..problems.base import Problem

PASSED = ("nodes", "samples", "dim", "kappa", "l2", "split", "concentration", "seed")
"""Settings that a function that makes a problem may take as arguments."""
ALWAYS = ("nodes", "seed")
"""Settings that have a value even if the user gave none; a function need not take them."""
_loaded: dict[str, Any] = {}  # what this call has loaded, by "--method mine:Mine"


def method_of(text: str, flag: str = "--method") -> type[Method]:
    """Return the method with a name, or the class that ``module:Class`` names; `flag` is the option that gave it."""
    if ":" not in text:
        return method_class(text)
    found = _load(flag, text, _is_method)
    if not _is_method(found):
        what = f"{text} is {_kind(found)}, and" if not isinstance(found, type) else text
        raise InputError(f"{flag} {what} does not derive from adom.Method; docs/add-a-method has an example")
    check_class(found)
    chosen: type[Method] = found
    return chosen


def forget() -> None:
    """Forget what earlier commands of this process have loaded."""
    _loaded.clear()


def explain(error: Exception) -> None:
    """Turn an error in the user's own code into a refusal of one line; leave others, which may be bugs."""
    if isinstance(error, InputError):
        _explain_seeds(error)
    if isinstance(error, InputError | MemoryError):
        return
    for called, found in _loaded.items():
        if at := place(error, files_of(found)):
            raise InputError(f"{called} fails: {in_words(error, at)}; {remedy(error)}") from None


def _explain_seeds(error: InputError) -> None:
    """Refuse the user's own problem by name if the seed changes nothing."""
    problem = next((called for called in _loaded if called.startswith("--problem ")), None)
    if problem is None:
        return
    from ..study.instances import NothingDrawnError

    if isinstance(error, NothingDrawnError):
        raise InputError(
            f"{problem} gives the same problem for every seed, and the network is the same too; let it use an argument "
            "`seed`, or take a network that is drawn, without --network-seed"
        ) from None


def name_of(text: str) -> str:
    """Return the name of a method in lower case; keep ``module:Class`` unchanged."""
    return text if ":" in text else text.lower()


def required(text: str) -> list[str]:
    """Return the settings that the function or class of the user's own problem requires."""
    arguments = _arguments(_makes(text))
    return [name for name, each in arguments.items() if name in PASSED and each.default is each.empty]


def _makes(text: str) -> Any:
    """Return what ``module:name`` names: a problem, or a function or class that makes one."""
    from ..problems.base import Problem

    def fits(value: Any) -> bool:
        return isinstance(value, Problem) or (callable(value) and not _is_method(value))

    return _load("--problem", text, fits)


def _arguments(found: Any) -> Mapping[str, inspect.Parameter]:
    """Return the arguments of a function or a class by name; none if it has no signature."""
    try:
        return inspect.signature(found).parameters
    except (TypeError, ValueError):
        return {}


def problem_of(table: ProblemTable, nodes: int) -> "Problem":
    """Return the problem that ``module:name`` names, or that its class or function makes from the settings."""
    from ..problems.base import Problem

    text = str(table.own)
    found = _makes(text)
    if isinstance(found, Problem):
        return found
    if not callable(found):
        raise InputError(f"--problem {text} is {_kind(found)}; name a function or class that makes an adom problem")
    given = {**{name: getattr(table, name) for name in PASSED}, "nodes": nodes}
    given = {name: value for name, value in given.items() if value is not None}
    taken = _arguments(found)
    everything = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    idle = next((name for name in given if name not in {*taken, *ALWAYS} and not everything), None)
    if idle is not None:
        raise InputError(f"{idle} = {given[idle]!r} has no effect on {text}, which takes no {idle}; leave it out")
    missing = next((name for name in required(text) if name not in given), None)
    if missing is not None:
        raise InputError(
            f"--problem {text} takes {missing}, which was not given; add --{missing}, or give it a default there"
        )
    try:
        made = found(**{name: value for name, value in given.items() if name in taken or everything})
    except InputError:
        raise
    except Exception as error:
        at = place(error, files_of(found))
        raise InputError(f"--problem {text} fails: {in_words(error, at)}; fix it") from None
    if not isinstance(made, Problem):
        raise InputError(f"--problem {text} gives {_kind(made)}, not an adom problem; e.g. adom.Quadratic(H, c)")
    return made


def _is_method(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Method) and value is not Method


def _load(flag: str, text: str, fits: Callable[[Any], bool]) -> Any:
    """Return what ``module:name`` names; `fits` selects the names to suggest if there is none."""
    module, _, name = text.partition(":")
    if module.endswith(".py") or not all(part.isidentifier() for part in (*module.split("."), name)):
        stem = Path(module).stem
        hint = f"{stem}:{name}" if stem.isidentifier() and name.isidentifier() else "mymodule:MyClass"
        raise InputError(f"{flag} {text!r} must read module:name, e.g. {flag} {hint}")
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)  # last: a file here must not stand in for a package
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise InputError(f"{flag} {text}: {_at_import(error, module)}; install it, or fix the import") from None
        raise InputError(
            f"{flag} {text}: there is no {module.replace('.', '/')}.py in {folder} and no package of that name; "
            "change to its folder, or install it"
        ) from None
    except Exception as error:
        raise InputError(f"{flag} {text}: {module} cannot be loaded: {_at_import(error, module)}; fix it") from None
    if not hasattr(loaded, name):
        public = {known: value for known, value in vars(loaded).items() if not known.startswith("_") and fits(value)}
        own = [known for known, value in public.items() if _is_of(value, module)]
        there = nearest(name, own, "it has") if own else "nor anything similar; define it there"
        raise InputError(f"{flag} {text}: {module} has no {name!r}; {there}")
    _loaded[f"{flag} {text}"] = found = getattr(loaded, name)
    return found


def _is_of(value: Any, module: str) -> bool:
    """Return whether a value belongs to the package of a module, and was not imported from another."""
    home = value.__module__ if hasattr(value, "__qualname__") else module
    return str(home).partition(".")[0] == module.partition(".")[0]


def _at_import(error: Exception, module: str) -> str:
    """Return the error of a failed import in words, with the line of the module's file."""
    return in_words(error, place(error, [f"{module.rpartition('.')[2]}.py"]))


def _kind(value: Any) -> str:
    return "a class" if isinstance(value, type) else f"a {type(value).__name__}"
