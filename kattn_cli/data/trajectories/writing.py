"""D4RL's layout in HDF5: one array for each field of :class:`~kattn_cli.data.trajectories.steps.Steps`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kattn_cli.data.trajectories.steps import Steps
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing


def write_steps(path: Path, steps: Steps, attributes: Mapping[str, str | int | float]) -> None:
    """Write ``steps`` whole, with ``attributes`` of the file; equal ones give equal bytes.

    Raises:
        DataError: if it cannot be written; what was there before stays.
    """
    import h5py

    with faults_as(DataError, path), replacing(path) as new, h5py.File(new, "w", track_order=True) as file:
        for name, array in steps._asdict().items():
            file.create_dataset(name, data=array, compression="gzip", shuffle=True)
        for key, value in attributes.items():
            file.attrs[key] = value
