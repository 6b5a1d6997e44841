"""The file of results that a benchmark writes and others submit: its schema and its checks."""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from ..dynamics.endings import LOST
from ..errors import InputError
from ..util.files import atomic
from . import suite

STATUSES = Literal["converged", "max_rounds", "diverged", "growing", "stalled", "refused"]
RESULTS = "results.json"
"""Name of the file of results."""
NEARLY = 1 + 1e-9
"""Factor by which an error may exceed the target through rounding."""


def _line(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError(f"must be a line of text, without blanks around it, got {name!r}")
    return name


Name = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_line)]
Number = Annotated[FiniteFloat, Field(ge=0)] | None
Cost = Annotated[FiniteFloat, Field(ge=1)] | None


class Record(BaseModel):
    """One run: what was solved by which method, how it ended, and its costs to reach the target, null if it did not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    problem: Name
    network: Name
    method: Name
    protocol: Name = Field(description="auto, theory, or how else the parameters were chosen")
    status: STATUSES
    rounds: Annotated[int, Field(ge=0, description="communication rounds in all")]
    relative_error: Number = Field(description="squared error at the end, over that at the start")
    rounds_to_target: Cost
    gradients_to_target: Number = Field(description="per node")
    floats_sent_to_target: Cost = Field(description="over all links")
    seconds_to_target: Number = Field(None, description="of the loop, where they mean something")
    reason: str = Field("", max_length=2000, description="why it did not run")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        suite.check_pair(self.problem, self.network)
        costs = {name: value for name, value in self if name in COSTS and value is not None}
        if self.status == "refused" and (costs or self.rounds or self.relative_error is not None):
            raise ValueError("a run that was refused has no rounds, no error and no costs to the target")
        if self.status in LOST and costs:
            raise ValueError(f"a run that ended as {self.status} has not reached the target, got {min(costs)}")
        if self.status == "converged" and self.rounds_to_target is None:
            raise ValueError("a run that converged has reached the target: rounds_to_target is missing")
        if self.rounds_to_target is None and costs:
            raise ValueError(f"{min(costs)} is given and rounds_to_target is not; give all of them or none")
        if self.rounds_to_target is not None:
            for name in COSTS:
                if name not in costs and type(self).model_fields[name].is_required():
                    raise ValueError(f"rounds_to_target is given and {name} is not; give all of them or none")
            if self.rounds_to_target > self.rounds:
                raise ValueError(f"rounds_to_target {self.rounds_to_target:g} exceeds rounds {self.rounds}")
        return self

    def check(self, rounds: int, target: float) -> None:
        """Refuse a run that contradicts the budget or the target; a run that reached the target must end there."""
        where = f"{self.method} with {self.protocol} on {self.problem} on {self.network}"
        error, reached = self.relative_error, self.rounds_to_target is not None
        if self.rounds > rounds:
            raise ValueError(f"{where}: rounds {self.rounds} exceeds the budget of {rounds}")
        if reached and (error is None or error > NEARLY * target):
            raise ValueError(f"{where}: rounds_to_target is given, and the error at the end is {error}, not {target:g}")
        if not reached and error is not None and error <= target:
            raise ValueError(f"{where}: the error at the end is {error:g}, and rounds_to_target is missing")


COSTS = tuple(name for name in Record.model_fields if name.endswith("_to_target"))
"""The costs to the target that the file has: a part of its format, which others write too."""


class Submission(BaseModel):
    """Results of one or several methods on the suite."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["adom-bench-1"] = "adom-bench-1"
    suite: str = Field(description="version of the suite")
    quick: bool = Field(description="whether it is the small version, with its own budget and target")
    rounds: int = Field(description="the budget of each run")
    target: FiniteFloat = Field(description="the squared error to reach, over that at the start")
    software: Name = Field(description="what made the runs, with its version")
    device: str = Field("", max_length=200)
    runs: Annotated[list[Record], Field(min_length=1, max_length=100_000)]

    @model_validator(mode="after")
    def _of_this_suite(self) -> Self:
        scale = suite.SCALES["quick" if self.quick else "full"]
        if self.suite != suite.VERSION:
            raise ValueError(f"suite {self.suite} differs from {suite.VERSION}; their results cannot be compared")
        if (self.rounds, self.target) != (scale.rounds, scale.target):
            raise ValueError(
                f"the budget must be {scale.rounds} rounds and the target {scale.target:g}, got {self.rounds} and "
                f"{self.target:g}"
            )
        if outside := next((r for r in self.runs if (r.problem, r.network) not in scale.pairs), None):
            raise ValueError(f"{outside.problem} on {outside.network} is not in this version")
        for run in self.runs:
            run.check(scale.rounds, scale.target)
        names = [(r.problem, r.network, r.method, r.protocol) for r in self.runs]
        if len(set(names)) < len(names):
            raise ValueError("a method has two runs of one protocol on one pair")
        return self


def read(path: Path) -> Submission:
    """Read a file of results and check it against the schema."""
    try:
        return Submission.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; give a results.json of a benchmark") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{path} is not a file of results: {where + ': ' if where else ''}{first['msg']}; "
            "`adom bench --schema` prints what it must hold"
        ) from None


def write(submission: Submission, path: Path) -> Path:
    """Write a file of results."""
    with atomic(path) as partial:
        partial.write_text(submission.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return path


def schema() -> str:
    """Return the JSON schema of a file of results."""
    return json.dumps(Submission.model_json_schema(), indent=2)


def check_alike(quick: bool, others: Sequence[tuple[str, Submission]]) -> None:
    """Refuse results of the quick version beside those of the full one, and the reverse."""
    for source, submission in others:
        if submission.quick != quick:
            version = "quick" if submission.quick else "full"
            raise InputError(
                f"{source} is of the {version} version, but these runs are of the other; they cannot be compared"
            )


def called(path: Path) -> str:
    """Return a name for the results in a file: that of the file, or of its folder if the file has its default name.

    Examples
    --------
    >>> called(Path("theirs.json")), called(Path("from_anna/results.json"))
    ('theirs', 'from_anna')
    """
    return (path.resolve().parent.name if path.name == RESULTS else path.stem) or path.stem


def together(own: Submission, others: Sequence[tuple[str, Submission]]) -> list[Record]:
    """Return the records of all files; the name of a file is added to a method whose name is taken."""
    records, taken = list(own.runs), {record.method for record in own.runs}
    for source, submission in others:
        called: dict[str, str] = {}
        for name in dict.fromkeys(record.method for record in submission.runs):
            called[name] = next(text for text in _names(name, source) if text not in taken)
            taken.add(called[name])
        records += [record.model_copy(update={"method": called[record.method]}) for record in submission.runs]
    return records


def _names(name: str, source: str) -> Iterator[str]:
    """Yield a method's name, then with its file added, then with the file and a number."""
    yield from (name, f"{name} ({source})")
    yield from (f"{name} ({source} {number})" for number in count(2))
