"""``kattn generate``: what goes to stdout and what to stderr, without the corpus; text in whole characters; faults."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Said
from command_line import kattn as run_main

from kattn_cli.attention.options import build_attention
from kattn_cli.commands.generate.generate import Sampling, Speaker, TextStream, open_speaker, speak
from kattn_cli.data.vocabulary import Vocabulary, build_vocabulary
from kattn_cli.errors import DataError
from kattn_cli.models import LanguageModel
from kattn_cli.models.generation import generate
from kattn_cli.models.sequence_model import CausalDecoder
from kattn_cli.runs.run import Run

CONTEXT = 16
RECIPE = """\
name: {name}
data: {{name: text, path: {path}, vocabulary: characters, context: 16}}
model: {{name: decoder, dim: 16, depth: 1, heads: 2}}
attention: {{name: {attention}}}
train: {{epochs: 1, batch_size: 32}}
"""
TEXT = "How many roads, said she.\nNone but this one, said he; and so they went.\n" * 60


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run of ``tssa`` and one of ``rpc``, whose corpus is gone. Not to be changed."""
    from kattn_cli.commands.train.train import train

    folder = tmp_path_factory.mktemp("written")
    corpus = folder / "roads.txt"
    corpus.write_text(TEXT, encoding="utf-8")
    recipes = [folder / f"{name}.yaml" for name in ("tssa", "rpc")]
    for recipe in recipes:
        recipe.write_text(RECIPE.format(name=recipe.stem, attention=recipe.stem, path=corpus), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATTN_DATA", str(folder / "data"))
        train([str(one) for one in recipes], [], [], results=folder / "results", device=torch.device("cpu"))
    shutil.rmtree(folder / "data", ignore_errors=True)
    corpus.unlink()
    return folder / "results"


@pytest.fixture
def results(written: Path, tmp_path: Path) -> Path:
    """A copy to write into."""
    return Path(shutil.copytree(written, tmp_path / "results"))


def kattn(capfd: pytest.CaptureFixture[str], results: Path, *arguments: str | int) -> Said:
    return run_main(capfd, "generate", *arguments, "--results", results)


def refused(capfd: pytest.CaptureFixture[str], results: Path, *arguments: str | int) -> str:
    """Its one line, of a command that writes no text."""
    said = kattn(capfd, results, *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    return said.err.strip()


def test_text_is_the_models(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The prompt, what :func:`generate` chooses, a line end; nothing else but on stderr."""
    said = kattn(capfd, written, "tssa", "--prompt", "said", "--tokens", 40, "--seed", 3, "--temperature", "0.7")
    speaker = open_speaker(Run(written / "tssa" / "0"), torch.device("cpu"), "best", print)
    prompt = speaker.vocabulary.encode("said").tolist()
    generator = np.random.default_rng(3)
    new = list(generate(speaker.model, prompt, 40, temperature=0.7, top_k=40, generator=generator))
    assert said.code == 0
    assert said.out == "said" + speaker.vocabulary.decode(np.array(new)) + "\n"
    notice, speed = said.err.splitlines()
    assert notice == "Past the model's context, 16 tokens, it reads on from the last 8 of them."
    assert speed.startswith("40 tokens, ")
    assert speed.endswith(" tokens/s")


def test_without_state(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, written, "rpc", "--prompt", "said", "--tokens", 3)
    assert len(said.out) == len("said") + 3 + 1
    assert said.err.endswith(" tokens/s, each read from the beginning: a mechanism here keeps no state\n")


def test_quiet_leaves_the_text(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    loud = kattn(capfd, written, "tssa", "--prompt", "How", "--tokens", 20)
    assert kattn(capfd, written, "tssa", "--prompt", "How", "--tokens", 20, "--quiet") == (0, loud.out, "")
    assert kattn(capfd, written, "tssa", "--prompt", "How", "--tokens", 20, "--seed", 1, "-q").out != loud.out


def test_how_far_the_context_goes(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The last token generated is not read."""
    for tokens, passes in ((CONTEXT - 2, False), (CONTEXT - 1, True)):
        said = kattn(capfd, written, "tssa", "--prompt", "How", "--tokens", tokens)
        assert ("Past the model's context" in said.err) == passes


def test_empty_prompt(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Begins after a line end, which is not shown."""
    empty = kattn(capfd, written, "tssa", "--tokens", 8, "-q").out
    assert "\n" + empty == kattn(capfd, written, "tssa", "--prompt", "\n", "--tokens", 8, "-q").out
    assert len(empty) == 8 + 1


def test_newest_run_is_named(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(results / "rpc")
    said = kattn(capfd, results, "--tokens", 2)
    assert said.err.startswith(f"The newest run: {results / 'tssa' / '0'}\n")


def test_last_weights_where_there_are_no_best(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = results / "tssa" / "0"
    for path in (folder / "checkpoints").glob("best*"):
        path.unlink()
    best = folder / "checkpoints" / "best.safetensors"
    assert refused(capfd, results, "tssa").startswith(f"{best}: is missing; others can be asked for: --checkpoint last")
    (folder / "metrics.csv").unlink()  # as it is of a run that was stopped in its first epoch
    said = kattn(capfd, results, "tssa", "--tokens", 2)
    assert said.err.startswith(f"{folder}: has no best checkpoint yet; using the last\n")
    assert len(said.out) == 2 + 1


def test_prompts_that_are_refused(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = written / "tssa" / "0"
    assert refused(capfd, written, "tssa", "--prompt", "said" * 5) == (
        f"--prompt: has 20 tokens, and {folder} sees 16 at most; shorten it"
    )
    assert refused(capfd, written, "tssa", "--prompt", "Zoë said\t") == (
        f'--prompt: the vocabulary of {folder} has no "Z", "ë", "\\t"; leave it out'
    )


def test_options_that_are_refused(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    error = "--temperature inf: expected a number, 0 or more"
    assert refused(capfd, written, "tssa", "--temperature", "inf") == error
    assert refused(capfd, written, "tsa") == f'tsa: no such run under {written}/; did you mean "tssa"?'
    for option, value in (("--temperature", "nan"), ("--temperature", "-1"), ("--tokens", "0"), ("--top-k", "-1")):
        said = kattn(capfd, written, "tssa", option, value)
        assert (said.code, said.out, option in said.err) == (2, "", True)


def test_runs_that_are_refused(written: Path, results: Path, trained: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert refused(capfd, trained, "tiny") == (
        f"{trained / 'tiny' / '0'}: is no language model but vit on digits; generating needs a decoder on running text"
    )
    second = results / "tssa" / "1"
    shutil.copytree(results / "tssa" / "0", second)
    manifest = json.loads((second / "manifest.json").read_text(encoding="utf-8"))
    (second / "manifest.json").write_text(json.dumps({**manifest, "seed": 1}), encoding="utf-8")
    assert refused(capfd, results, "tssa") == (
        f"tssa: means 2 runs; give one of them, such as {results / 'tssa' / '0'}"
    )


def test_vocabularies_that_are_refused(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = results / "tssa" / "0"
    path = folder / "vocabulary.json"
    characters = json.loads(path.read_text(encoding="utf-8"))["characters"]

    def write(characters: str) -> None:
        path.write_text(json.dumps({"kind": "characters", "characters": characters}), encoding="utf-8")

    write(characters + "~")
    count = len(characters) + 1
    error = refused(capfd, results, "tssa", "--prompt", "said")
    assert f"embed.weight is ({count}, 16), the model's is ({count + 1}, 16)" in error
    assert error.endswith(f"; vocabulary.json has {count + 1} tokens, so it is of another run")

    write(characters.replace("\n", "~"))
    assert refused(capfd, results, "tssa") == (
        "--prompt: is empty, and the run's vocabulary has no line end to begin after; give some text"
    )
    path.write_text("{", encoding="utf-8")
    assert refused(capfd, results, "tssa").startswith(f"{path}: is no JSON, or was cut short")
    path.unlink()
    assert refused(capfd, results, "tssa") == (
        f"{folder}: has no vocabulary.json, which training writes there; train it again"
    )


def untrained(vocabulary: Vocabulary) -> Speaker:
    attention = build_attention("softmax", {}, dim=8, heads=2, seq_len=CONTEXT, causal=True)
    decoder = CausalDecoder([attention], dim=8, seq_len=CONTEXT, vocabulary=vocabulary.size)
    return Speaker(Path("run"), LanguageModel(decoder).eval(), vocabulary, CONTEXT)


def test_words() -> None:
    """Spaces between them, one piece a word; the unknown word is one only where it is meant."""
    speaker = untrained(build_vocabulary("words", {}, ["to be or not to be"]))
    pieces: list[str] = []
    with pytest.raises(DataError, match='the vocabulary of run has no "Zounds"; leave it out, or write <unk>'):
        speak(speaker, "to Zounds", Sampling(4, 0.0, None, 0), pieces.append, print)
    assert pieces == []
    speak(speaker, "to <unk>", Sampling(4, 1.0, None, 0), pieces.append, print)
    assert pieces[0] == "to <unk>"
    assert len(pieces) == 1 + 4 + 1
    assert pieces[-1] == "\n"
    tokens = generate(speaker.model, [2, 0], 4, temperature=1.0, top_k=None, generator=np.random.default_rng(0))
    assert (
        "".join(pieces) == speaker.vocabulary.decode(np.array([*speaker.vocabulary.encode("to <unk>"), *tokens])) + "\n"
    )


TALE = "naïve — 100 €\n\n😀 to be, or  not\u00a0to be 𝄞"


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe"])
def test_whole_characters_as_they_come(kind: str) -> None:
    """Token by token: together the text, nothing made up, and at most one character held back."""
    vocabulary = build_vocabulary(kind, {"size": 260} if kind == "bpe" else {}, [TALE])
    stream, shown = TextStream(vocabulary), ""
    tokens = vocabulary.encode(TALE)
    for count, token in enumerate(tokens.tolist(), 1):
        shown += stream.add([token])
        assert TALE.startswith(shown)
        assert vocabulary.decode(tokens[:count]).removesuffix("\ufffd") == shown
    assert shown == TALE
    assert stream.rest() == ""


def test_bytes_that_are_no_text() -> None:
    """As the vocabulary shows them all at once, though the last of them might have become a character."""
    vocabulary = build_vocabulary("bytes", {}, [])
    tokens = np.random.default_rng(0).integers(0, 256, 2000)
    stream = TextStream(vocabulary)
    shown = "".join(stream.add([token]) for token in tokens.tolist())
    assert shown + stream.rest() == vocabulary.decode(tokens)
    assert TextStream(vocabulary).add([0xE2, 0x82]) == ""
    stream = TextStream(vocabulary)
    assert [stream.add([byte]) for byte in (0xE2, 0x82, 0x41)] == ["", "", "\ufffdA"]
    assert [stream.add([0xF0]), stream.rest()] == ["", "\ufffd"]
