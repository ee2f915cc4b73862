"""One folder for each command; each takes parsed values and raises :class:`~kattn_cli.errors.KattnError`."""
