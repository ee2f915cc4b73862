"""``python -m kattn_cli``, the same as ``kattn``."""

from kattn_cli.cli import main

main()
