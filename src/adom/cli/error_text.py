"""Errors of typer and of the library, worded for the command line: the value, the rule and the remedy."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import InputError, closest
from .ranks import CODE
from .settings import TABLES


def explain(error: Any, words: Sequence[str], commands: Iterable[str]) -> str:
    """Return one line for a usage error of typer; `words` are those typed after `adom`."""
    command = next((word for word in words if word in commands), "")
    where = error.ctx.command_path if error.ctx else f"adom {command}".strip()
    kind, option = type(error).__name__, getattr(error, "option_name", "")
    if kind == "NoSuchOption":
        return _unknown_option(error, option, words, where)
    if kind == "BadOptionUsage":
        if "does not take" in error.message:
            return f"{option} takes no value; leave it out"
        return f"{option} needs a value; {where} --help says which"
    parameter = getattr(error, "param", None)
    if kind == "MissingParameter" and parameter is not None:
        about = (parameter.help or "").rstrip(".")
        about = about if about[:2].isupper() else about[:1].lower() + about[1:]
        return f"missing {_name(parameter)}: {about}; {where} --help has an example"
    if kind == "BadParameter" and error.message.startswith("--"):  # a message of our own parser
        return str(error.message)
    message = error.format_message().rstrip(".")
    closed = re.search(r"[Pp]ath '(.*)' is not readable", message)
    if closed:
        return f"cannot read {closed[1]}: permission denied; check its permissions"
    if message.startswith("Got unexpected extra argument"):
        extra = message.partition("(")[2] if "(s)" not in message else message.partition("(s) (")[2]
        return f"unexpected argument {extra.rstrip(')')!r}; {where} --help lists its arguments"
    return f"{message[:1].lower()}{message[1:]}; {where} --help lists the options"


PYTHON = (
    (r"\w+\.theory\(constants\) gives", "--parameters theory gives"),
    (r"use repair=True", "give --repair"),
    (r"overwrite=True \(--overwrite\)", "--overwrite"),
    (r"give a file that Result\.save wrote", "give one that `adom solve` wrote, such as out/result.npz"),
    (r"or a dict of values, got", "or values as in eta=0.1, got"),
    (r"give parameters='tuned'", "give tuned alone"),
    (r"give parameters='auto'", "give auto alone"),
    (r"tell the two apart by pairs \(label, method\) such as .*", "give `name` in your own class another value"),
    (r"leave `nodes` out", "leave --nodes out"),
    (r"use nodes=(\d+)", r"take --nodes \1"),
    (r"leave folder out", "write it without that, or run it with `adom solve`, which needs no digest"),
    (r"a positive number or None", "a positive number"),
    (r"leave that number out", "leave --dim out"),
    (r"delayed\(network, 2\)", "--delay 2"),
    (r"take feedback=False", "give --no-feedback"),
    (r"leave (feedback|healing)=False out", r"leave --no-\1 out"),
    (r"take lossy\(\.\.\., healing=False\)", "give --no-healing"),
    (r"parameters='(\w+)'", r"--parameters \1"),
    (
        r"verify on the network it was made from",
        "leave --delay, --bits, --keep, --noise, --one-way, --leaving and --joining out",
    ),
    (r"^alpha=", "--alpha "),
    (
        r"give a problem or a network that depends on the seed, e\.g\. .*",
        "take --split shuffled, synthetic data, or a network that is drawn, without --network-seed",
    ),
)
"""Remedies in the library's messages, as patterns, and their wording for the command line."""


def in_settings(message: str, context: Any) -> str:
    """Return a refusal of an argument, named as the call gave it: by its option, or by its name in the file.

    The library says "rounds must be ...; e.g. rounds=100". That is the option --rounds if it was given, else a setting
    in the file, if there is one.
    """
    found = re.match(r"(\w+)(?: of \w+)? must ", message)
    if found is None:
        return message
    name = found[1]
    keys = [name, *(f"{table}_{name}" for table in TABLES)]
    named = [option for option in context.command.params if option.name in keys]
    given = [option for option in named if context.params.get(option.name) is not None]
    if CODE in os.environ:  # a rank: its file holds the options of the call that started it
        given = given or named
    if given:
        flag: str = max(given[-1].opts, key=len)
        return flag + re.sub(rf"\b{name}=", f"{flag} ", message.removeprefix(name))
    file = context.params.get("config")
    return message if file is None else f"{file}: " + re.sub(rf"\b{name}=", f"{name} = ", message)


@contextmanager
def naming(**settings: str) -> Iterator[None]:
    """Let refusals name the setting that an argument of the library comes from, as in ``naming(std="noise")``."""
    try:
        yield
    except InputError as error:
        name, _, rest = str(error).partition(" ")
        if name in settings:
            error.args = (f"{settings[name]} {rest}".replace(f"{name}=", f"{settings[name]}="),)
        raise


def in_flags(message: str) -> str:
    """Return a message of the library with its remedy reworded for the command line.

    Examples
    --------
    >>> in_flags("tau must lie in (0, 1), got 2.0; ADOM.theory(constants) gives a valid one")
    'tau must lie in (0, 1), got 2.0; --parameters theory gives a valid one'
    """
    for pattern, words in PYTHON:
        message = re.sub(pattern, words, message)
    return message


def _unknown_option(error: Any, option: str, words: Sequence[str], where: str) -> str:
    """Name the option as it was typed, also -rounds, which typer calls -r, and suggest the closest."""
    if not option.startswith("--"):
        option = next((word for word in words if word.startswith(option)), option)
    option = option.partition("=")[0]
    params = error.ctx.command.params if error.ctx else []
    known = [name for each in params for name in (*each.opts, *each.secondary_opts) if name.startswith("--")]
    meant = closest(option.strip("-"), [name.strip("-") for name in known])  # dashes would make all alike
    close = f"did you mean --{meant}? " if meant else ""
    return f"unknown option {option}; {close}{where} --help lists the options"


def _name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name) if parameter.param_type_name == "argument" else parameter.opts[0]
