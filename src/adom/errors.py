"""The one kind of error that bad input raises.

Every message says the value, the rule and the remedy in one line. The command line prints that line and
exits with code 2; anything else that is raised is a bug and keeps its traceback.
"""


class InputError(ValueError):
    """A value that a caller gave breaks a rule; the message says which value, which rule, and what to do."""


class InputTypeError(InputError, TypeError):
    """A value is of the wrong kind altogether."""


NEEDS_MPI = "engine 'mpi' needs mpi4py and an MPI: pip install 'adom-opt[mpi]'"
"""What is said where several processes are asked for and there is nothing to connect them."""
