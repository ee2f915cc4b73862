"""One file a subcommand; each takes parsed values and raises :class:`~kattn_cli.errors.KattnError`."""
