"""What lies elsewhere: whether it can be reached, asked once, before a library asks again and again."""

from __future__ import annotations

import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

PATIENCE = 10.0
"""Seconds without an answer after which a place counts as out of reach."""


def unreachable(url: str) -> str:
    """Return why nothing answers at ``url``, or an empty string; one attempt a minute."""
    return _asked(url, int(time.monotonic() // 60))


@lru_cache(maxsize=8)
def _asked(url: str, minute: int) -> str:
    try:
        with urlopen(Request(url, method="HEAD"), timeout=PATIENCE):
            return ""
    except HTTPError:
        return ""  # a refusal is an answer
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return ""  # what Python does not trust may be trusted by the library that asks next
        return " ".join(str(getattr(reason, "strerror", None) or reason).split()) or type(reason).__name__


@contextmanager
def patient() -> Iterator[None]:
    """Let a downloader that sets no time-out of its own give up after :data:`PATIENCE` seconds of silence."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


@contextmanager
def hub() -> Iterator[str]:
    """Yield why the Hugging Face hub cannot be asked, or an empty string.

    Where it cannot, its libraries take what is in their caches: left alone they would ask a dozen times, and wait
    longer after each.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        yield "HF_HUB_OFFLINE is set"
        return
    if not (reason := unreachable(constants.ENDPOINT)):
        yield ""
        return
    # They read the environment when they are imported, and these afterwards.
    modules = [constants, *([sys.modules["datasets"].config] if "datasets" in sys.modules else [])]
    before = [module.HF_HUB_OFFLINE for module in modules]
    try:
        for module in modules:
            module.HF_HUB_OFFLINE = True
        yield f"{constants.ENDPOINT} cannot be reached: {reason}"
    finally:
        for module, value in zip(modules, before, strict=True):
            module.HF_HUB_OFFLINE = value
