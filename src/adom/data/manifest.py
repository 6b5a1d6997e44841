"""The manifest of a file that was split: the shard of each node, and its checksum.

It is JSON, checked completely when it is read, and the only file that every machine needs. All shards it names lie in
its folder.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    ValidationError,
    model_validator,
)

from ..errors import InputError
from ..problems.checks import LARGEST_DIM
from ..util.files import content, kind

NAME = "manifest.json"
FORMAT: Final = "adom-shards-2"
LARGEST = 2**30
"""Maximum size of a manifest in bytes, enough for several million nodes."""
MOST = 2**48
"""Maximum number of samples or non-zeros of a node, so that sums over nodes fit into 64 bits."""


def _plain(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", name):
        raise ValueError("a shard must have a plain name inside the folder, of letters, digits, '.', '_' and '-'")
    return name


Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=MOST)]
Label = Annotated[int, Field(ge=-(2**53), le=2**53)] | FiniteFloat  # a whole number is written without a point


class _Strict(BaseModel):
    """Base of models that accept exactly their fields, of exactly their types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Shard(_Strict):
    """The shard of one node; the checksum is that of its ``shard.json``, which has those of its arrays."""

    name: Annotated[str, AfterValidator(_plain)]
    samples: Annotated[Count, Field(ge=1)]
    nonzeros: Count
    sha256: Sha256


class Source(_Strict):
    """The file that was split."""

    name: str
    sha256: Sha256


class Manifest(_Strict):
    """The list of shards.

    Attributes
    ----------
    format : str
    nodes, dim : int
    classes : (smaller, larger)
        The two labels; the smaller one counts as -1.
    by : str
        How samples were split, with `seed`, and `alpha` if it is "dirichlet".
    source : Source or None
        None if the samples were never in one file.
    files : tuple of Shard
        One for each node, in order.
    """

    format: Literal["adom-shards-2"]
    nodes: Annotated[int, Field(ge=1)]
    dim: Annotated[int, Field(ge=1, le=LARGEST_DIM)]
    classes: tuple[Label, Label]
    by: str
    seed: Annotated[int, Field(ge=0)] | None = None
    alpha: FiniteFloat | None = None
    source: Source | None = None
    files: tuple[Shard, ...]

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse fields that contradict one another."""
        if len(self.files) != self.nodes:
            raise ValueError(f"nodes is {self.nodes}, but {len(self.files)} files are listed")
        if not self.classes[0] < self.classes[1]:
            raise ValueError(f"classes must be two labels, the smaller first, got {list(self.classes)}")
        name, times = Counter(file.name for file in self.files).most_common(1)[0]
        if times > 1:
            raise ValueError(f"{name} is listed for {times} nodes")
        for file in self.files:
            if file.nonzeros > file.samples * self.dim:
                raise ValueError(f"{file.name} has {file.nonzeros} non-zeros, more than its samples have features")
        return self


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a folder; nothing else is opened."""
    path = folder / NAME
    if kind(path) == "nothing":
        raise InputError(
            f"{folder} holds no {NAME}; give a folder that `adom split DATA --nodes N --out {folder}` wrote"
        )
    try:
        return Manifest.model_validate_json(content(path, "check the path and its permissions", LARGEST))
    except ValidationError as error:
        raise InputError(
            f"{path} is not a manifest of shards: {complaint(error)}; correct it, or split the data again"
        ) from None


def complaint(error: ValidationError) -> str:
    """Return the first error in one line: the field, the rule, and the value if it is text or a number."""
    first: Any = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    rule = first["msg"].removeprefix("Value error, ")
    value = first["input"]
    got = f", got {value!r:.80}" if name and isinstance(value, str | int | float) else ""
    return f"{name}: {rule}{got}" if name else rule
