"""`adom methods`: the table of methods."""

from .exit_codes import Exit
from .options import AsJson


def methods(json: AsJson = False) -> int:
    """List the methods with their costs and sources.

    Give a name to `adom solve --method`, several to `adom compare --methods`.
    A dual method needs an oracle for grad F*, a primal one gradients.
    """
    from ..algorithms import METHODS, NEEDS, method_class
    from . import output

    classes = {name: method_class(name) for name in METHODS}
    if json:
        fields = ("title", "oracle", "vectors_per_round", "rounds_per_step", "needs", "complexity", "reference")
        output.as_json({name: {field: getattr(cls, field) for field in fields} for name, cls in classes.items()})
        return Exit.DONE
    needs = "; ".join(f"{word}, {text}" for word, text in NEEDS.items())
    output.table(
        f"network: what the proof asks for ({needs})",
        ("name", "oracle", "vectors per round", "rounds to error eps (network)", "source"),
        [
            (name, cls.oracle, cls.vectors_per_round, f"{cls.complexity} ({cls.needs})", cls.reference.split()[-1])
            for name, cls in classes.items()
        ],
    )
    return Exit.DONE
