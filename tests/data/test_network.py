"""What lies elsewhere is asked once, and an answer that does not come is one line."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants, hf_hub_download
from huggingface_hub.errors import LocalEntryNotFoundError

from kattn_cli.data.reading import network
from kattn_cli.data.reading.storage import downloading
from kattn_cli.data.sets.huggingface import HuggingFace
from kattn_cli.errors import CheckpointError, DataError
from kattn_cli.models import pretrained

UNREACHABLE = network._asked.__wrapped__


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The addresses that were asked for, at a hub that answers everything with 503."""
    paths: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            paths.append(self.path)
            self.send_error(503)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield paths
        server.shutdown()
        thread.join()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a hub that does not answer, as it is really asked."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(network, "unreachable", lambda url: UNREACHABLE(url, 0))
    return endpoint


def test_a_refusal_is_an_answer(asked: list[str]) -> None:
    assert UNREACHABLE(constants.ENDPOINT, 0) == ""
    assert asked == ["/"] or asked == [""]


def test_nobody_there_is_said(silent: str) -> None:
    assert UNREACHABLE(silent, 0) == "Connection refused"


def test_a_name_that_nobody_knows_is_said() -> None:
    assert UNREACHABLE("http://nowhere.invalid", 0) != ""


def test_silence_is_waited_for_no_longer_than_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as dumb:
        begun = time.perf_counter()
        assert UNREACHABLE(f"http://127.0.0.1:{dumb.getsockname()[1]}", 0) == "timed out"
    assert time.perf_counter() - begun < 3


def test_a_place_is_asked_once_a_minute(asked: list[str]) -> None:
    network._asked.cache_clear()
    assert [network._asked(constants.ENDPOINT, 7) for _ in range(3)] == [""] * 3
    assert len(asked) == 1


def test_libraries_of_a_hub_out_of_reach_ask_nothing(silent: str, tmp_path: Path) -> None:
    with network.hub() as reason:
        assert reason == f"{silent} cannot be reached: Connection refused"
        begun = time.perf_counter()
        with pytest.raises(LocalEntryNotFoundError):
            hf_hub_download("us/tiny", "a.txt", cache_dir=tmp_path)
        assert time.perf_counter() - begun < 1
    assert not constants.HF_HUB_OFFLINE


def test_a_hub_that_is_there_is_left_to_its_libraries(asked: list[str]) -> None:
    with network.hub() as reason:
        assert (reason, constants.HF_HUB_OFFLINE) == ("", False)


def test_who_asked_for_no_network_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(network, "unreachable", lambda url: pytest.fail("the network was asked"))
    with network.hub() as reason:
        assert reason == "HF_HUB_OFFLINE is set"


def test_a_data_set_of_a_hub_out_of_reach_is_one_line_at_once(
    silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    begun = time.perf_counter()
    with pytest.raises(DataError) as error:
        HuggingFace(path="us/tiny").fetch()
    assert time.perf_counter() - begun < 3
    assert str(error.value).endswith(f"({silent} cannot be reached: Connection refused)")
    assert len(str(error.value).splitlines()) == 1
    assert not datasets.config.HF_HUB_OFFLINE


def test_timms_weights_of_a_hub_out_of_reach_are_one_line_at_once(
    silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    begun = time.perf_counter()
    with pytest.raises(CheckpointError) as error:
        pretrained._fetch("vit_tiny_patch16_224")
    assert time.perf_counter() - begun < 5
    reason = f"{silent} cannot be reached: Connection refused"
    assert str(error.value) == f"timm's weights of vit_tiny_patch16_224 cannot be fetched: {reason}"


def test_downloaders_give_up_after_a_while(tmp_path: Path) -> None:
    before = socket.getdefaulttimeout()
    with downloading("mnist", tmp_path, "instead, …"):
        assert socket.getdefaulttimeout() == network.PATIENCE
    assert socket.getdefaulttimeout() == before
