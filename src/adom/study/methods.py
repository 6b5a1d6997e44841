"""The methods of a comparison or a sweep, each with its label, parameters and oracle."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..algorithms import METHODS, Method
from ..errors import InputError, InputTypeError, nearest
from ..run.request import AUTO, method_type, parse_oracle
from ..run.result import Result


@dataclass(frozen=True)
class LabelledMethod:
    """A method, given by name, class or instance, with a label and the settings for `adom.solve`."""

    label: str
    method: Any
    cls: type[Method]
    parameters: Any = AUTO
    oracle: Any = "auto"

    @property
    def is_instance(self) -> bool:
        """Whether the method is an instance, which has its own parameters."""
        return isinstance(self.method, Method)

    @property
    def parameter_names(self) -> list[str]:
        """The names of the method's parameters."""
        return [*self.cls.__dataclass_fields__]  # type: ignore[attr-defined]  # every method is a dataclass

    def own(self, settings: Mapping[str, Any], default: Any) -> Any:
        """Return the entry of this method in settings whose keys are labels or names of methods."""
        return settings.get(self.label, settings.get(self.cls.name, default))


def title(label: str, result: Result) -> str:
    """Return the name of a method in figures and tables: its label, or its title if the label is its name."""
    return result.label if label == result.provenance["method"]["name"] else label


def under_its_title(result: Result, cls: type[Method]) -> Result:
    """Return a result with the current title of its method, which may have changed since it was saved."""
    method = result.provenance["method"]
    if method["title"] == cls.title:
        return result
    return replace(result, provenance={**result.provenance, "method": {**method, "title": cls.title}})


def read_methods(methods: Any) -> list[LabelledMethod]:
    """Read names, classes, instances or pairs (label, method); several instances of one class are numbered."""
    if isinstance(methods, str | Method | type):
        methods = [methods]
    if not isinstance(methods, Iterable):
        raise InputTypeError(f"methods must be a list of names or instances, got {methods!r}; e.g. ['adom', 'pngd']")
    methods = list(methods)
    instances = Counter(method.name for method in methods if isinstance(method, Method))
    number = Counter[str]()
    labelled: dict[str, LabelledMethod] = {}
    for entry in methods:
        pair = isinstance(entry, tuple | list) and len(entry) == 2
        label, method = entry if pair else ("", entry)
        if not isinstance(method, str | Method) and not (isinstance(method, type) and issubclass(method, Method)):
            raise InputTypeError(
                f"a method must be a name, an instance or a pair (label, method), got {entry!r}; e.g. 'adom'"
            )
        cls = method_type(method)
        if not pair:
            label = cls.name
            if isinstance(method, Method) and instances[label] > 1:
                number[label] += 1
                label = f"{label} {number[label]}"
        if not isinstance(label, str) or not label.strip():
            raise InputTypeError(
                f"a label must be text, and not empty, got {label!r}; e.g. ('my {cls.name}', '{cls.name}')"
            )
        if label in labelled:
            raise InputError(
                f"the label {label!r} occurs twice; leave one out, or tell the two apart by pairs (label, method) "
                f"such as ('{label} 2', '{cls.name}')"
            )
        labelled[label] = LabelledMethod(label, method, cls)
    if not labelled:
        raise InputError(f"got no methods to compare; name some of {', '.join(METHODS)}, or 'all'")
    return list(labelled.values())


def with_settings(methods: list[LabelledMethod], parameters: Any, oracle: Any) -> list[LabelledMethod]:
    """Return the methods with their parameters and oracles, which are given for all or by method."""
    known = {name for entry in methods for name in (entry.label, entry.cls.name)}
    by_method = isinstance(parameters, dict) and any(
        name in known or (name != "protocol" and isinstance(value, str | dict)) for name, value in parameters.items()
    )
    if by_method:
        check_names("parameters", parameters, methods)
        for entry in methods:
            if entry.is_instance and entry.label in parameters:
                raise InputError(
                    f"parameters names {entry.label!r}, an instance that has its own; leave it out there, "
                    f"or compare ('{entry.label}', '{entry.cls.name}')"
                )
    if isinstance(oracle, dict):
        check_names("oracle", oracle, methods)
    else:
        parse_oracle(oracle)
    completed = []
    for entry in methods:
        own = entry.own(parameters, AUTO) if by_method else parameters
        if isinstance(oracle, dict):
            own_oracle = entry.own(oracle, "auto")
        else:
            own_oracle = oracle if entry.cls.oracle == "dual" else "auto"
        completed.append(replace(entry, parameters=AUTO if entry.is_instance else own, oracle=own_oracle))
    return completed


def check_names(argument: str, given: Mapping[Any, Any], methods: list[LabelledMethod]) -> None:
    """Refuse settings for a method that is not among those given."""
    known = list(dict.fromkeys(name for entry in methods for name in (entry.label, entry.cls.name)))
    for name in given:
        if name not in known:
            raise InputError(f"{argument} names {name!r}, which is not among the methods; {nearest(name, known)}")
