"""GPT-2's own BPE of 50,257 tokens (Radford et al., 2019), from the two files that ``tiktoken`` fetches and keeps."""

from __future__ import annotations

import json

from tokenizers import models

from kattn_cli.data.vocabulary.bpe import Bpe, byte_level
from kattn_cli.errors import DataError

INSTEAD = "give a tokenizer.json of GPT-2's instead"
END_OF_TEXT = "<|endoftext|>"
_FOLDER = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main"
_MERGES = (f"{_FOLDER}/vocab.bpe", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5")
_TOKENS = (f"{_FOLDER}/encoder.json", "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783")


def gpt2() -> Bpe:
    """Return the vocabulary; ``<|endoftext|>`` in a text is its token of that name.

    Raises:
        DataError: in one line, if ``tiktoken`` is not installed, or its files are not here and cannot be downloaded.
    """
    try:
        from tiktoken.load import read_file_cached
    except ModuleNotFoundError:
        raise DataError(f"gpt2: needs tiktoken: pip install tiktoken; or {INSTEAD}") from None
    try:
        tokens = json.loads(read_file_cached(*_TOKENS))
        lines = read_file_cached(*_MERGES).decode("utf-8").splitlines()
    except Exception as error:  # tiktoken lets through whatever the network, the disk or a wrong sum raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"gpt2: cannot be downloaded: {reason}; {INSTEAD}") from None
    merges = [(left, right) for left, right in (line.split() for line in lines[1:] if line)]
    tokenizer = byte_level(models.BPE(vocab=tokens, merges=merges))
    tokenizer.add_special_tokens([END_OF_TEXT])
    return Bpe(tokenizer.to_str())
