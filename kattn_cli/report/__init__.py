"""One page from many runs: what it says (a :class:`~kattn_cli.report.page.Page`), and its three renderings.

One file a part of the page; none imports torch, writes a file or draws.
"""
