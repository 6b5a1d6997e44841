"""The command `adom`: one file a command; heavy libraries are loaded by the command that needs them."""
