"""The fields of a model file, and their types."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from ..util.checked_json import Damaged
from .manifest import complaint

FORMAT: Final = "adom-model-1"
Number = FiniteFloat | int
Vector = list[Number]


class ModelFile(BaseModel):
    """The content of a model file: exactly these fields, of exactly these types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: Literal["adom-model-1"]
    kind: str
    coefficients: Annotated[list[Vector], Field(min_length=1)]
    intercept: Annotated[Vector, Field(min_length=1)]
    features: Annotated[list[str], Field(min_length=1)]
    classes: list[str | bool | Number] = []
    means: Vector | None = None
    scales: Vector | None = None
    target: str = ""
    penalty: dict[str, Any] = {}
    provenance: dict[str, Any] = {}


def read_fields(content: dict[str, Any]) -> dict[str, Any]:
    """Return the checked fields of a model, or raise `Damaged`."""
    try:
        fields = ModelFile.model_validate(content).model_dump()
    except ValidationError as error:
        raise Damaged(complaint(error)) from None
    if len({len(vector) for vector in fields["coefficients"]}) > 1:
        raise Damaged("coefficients: its vectors have different lengths")
    del fields["format"]
    return fields
