"""Studies: a question about attention, what is run to answer it, and the margin, written down before it is run.

:mod:`.study` reads the file, :mod:`.registration` keeps what it said when it began, :mod:`.evidence` finds the numbers
of its arms, :mod:`.judgement` comes to verdicts, :mod:`.page` writes them down. Training and measuring is the work of
``kattn study`` (:mod:`kattn_cli.commands.study`). Never imports torch.
"""
