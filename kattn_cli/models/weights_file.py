"""Files of weights, as they are found."""

from __future__ import annotations

from pathlib import Path

import timm
from torch import Tensor

from kattn_cli.errors import CheckpointError

FILE_TYPES = (".safetensors", ".pth", ".pt")

Tensors = dict[str, Tensor]


def read_tensors(file: str | Path) -> Tensors:
    """The tensors in ``file`` by name, on the CPU: of a training's state its model's, averaged ones if there are any.

    Raises:
        CheckpointError: if there is no such file, or it cannot be read, or holds no tensors.
    """
    if not Path(file).is_file():
        raise CheckpointError(f"{file}: there is no such file")
    try:
        state = timm.models.load_state_dict(str(file), weights_only=True)
    except Exception as error:
        why = "it is cut short, damaged, or not a file of tensors; copy it again, or name another"
        raise CheckpointError(f"{file}: cannot be read ({type(error).__name__}); {why}") from None
    tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
    if not tensors:
        raise CheckpointError(f"{file}: holds no tensors")
    return tensors
