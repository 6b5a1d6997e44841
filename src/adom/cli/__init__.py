"""The command `adom`: one file per subcommand; each loads heavy libraries only when it needs them."""
