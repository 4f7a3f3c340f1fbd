"""Exact counts come from what is on this machine; nothing is fetched, and no file is touched."""

import gzip
import socket
import sys
from collections.abc import Iterator
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path

import pytest

from cutbank import Block, InvalidSettingError, NotFoundError, SessionStore, ToolCall, ToolResult
from cutbank.adapters.models import vocabularies
from cutbank.adapters.models.vocabularies import (
    MAX_STRETCH_CHARACTERS,
    VOCABULARIES,
    TiktokenCounter,
    get_counter,
    load_encoding,
    split_text,
)
from cutbank.domain.blocks import Media, Text

URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
PACKAGES = vocabularies._VOCABULARY_PACKAGES
CACHED = sha1(URL.encode(), usedforsecurity=False).hexdigest()


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    load_encoding.cache_clear()
    yield
    load_encoding.cache_clear()


@pytest.fixture
def carried() -> Path:
    """The vocabulary cl100k_base as the extra `tokens` carries it."""
    spec = find_spec("bpe_openai")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("bpe-openai is not installed: it carries the vocabularies to test with")
    return Path(spec.submodule_search_locations[0], "data", "cl100k_base.tiktoken.gz")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any vocabulary; the folder is the one that TIKTOKEN_CACHE_DIR names."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(vocabularies, "_VOCABULARY_PACKAGES", ())
    monkeypatch.setattr(vocabularies, "gettempdir", lambda: str(tmp_path / "nowhere"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    return folder


@pytest.mark.usefixtures("carried")
def test_texts_have_the_tokens_that_openai_says() -> None:
    # OpenAI's cookbook; the last but one is prose, and no command.
    texts = ("tiktoken is great!", "お誕生日おめでとう", "<|endoftext|>", "")
    for name, counts in {"cl100k_base": [6, 9, 7, 0], "o200k_base": [6, 8, 7, 0]}.items():
        assert [TiktokenCounter(name).count_text(text) for text in texts] == counts, name


@pytest.mark.usefixtures("carried")
def test_a_block_is_all_that_a_model_reads_of_it() -> None:
    counter = TiktokenCounter("o200k_base", model="claude-haiku-4-5")
    one = counter.count_text("one two three")
    picture = Media(type="image", mime="image/png", data=b"no header")
    parts = (Text(text="one two three"), picture, Text(text="one two three"))

    assert counter.count(Block.user("one two three")) == one
    assert counter.count(Block.thinking("")) == 1
    assert counter.count(ToolResult(tool_call_id="c", content=parts)) == 2 * one + 1_369
    call = ToolCall(tool_call_id="c", name="bash", arguments='{"command": "ls"}')
    assert counter.count(call) == counter.count_text("bash") + counter.count_text(call.arguments)


@pytest.mark.usefixtures("carried")
def test_a_text_of_any_length_can_be_counted() -> None:
    """tiktoken itself gives up on a million spaces, and takes minutes where they are letters."""
    counter = TiktokenCounter("o200k_base")
    for run, times in {" ": 1_000_000, "a": 300_000, "\ud800": 100_000}.items():
        assert counter.count_text(run * times) > 0, run
    whole = "".join(
        f"{number}: the quick brown fox jumps over the dog\n" for number in range(9_000)
    )
    exact = len(load_encoding("o200k_base").encode_ordinary(whole))
    stretches = len(whole) // MAX_STRETCH_CHARACTERS
    assert stretches > 5
    assert counter.count_text(whole) == pytest.approx(exact, abs=2 * stretches)


def test_stretches_are_the_text() -> None:
    for text in ("a" * 300_000, "a b " * 80_000, "line\n" * 70_000, "\n" * 140_000):
        parts = list(split_text(text))

        assert "".join(parts) == text
        assert all(0 < len(part) <= MAX_STRETCH_CHARACTERS for part in parts)


def test_a_vocabulary_in_the_user_s_own_cache_is_used_and_none_that_is_broken(
    carried: Path, bare: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good = gzip.decompress(carried.read_bytes())
    (bare / CACHED).write_bytes(good)
    assert TiktokenCounter("cl100k_base").count_text("tiktoken is great!") == 6

    load_encoding.cache_clear()
    broken, folder, last = tmp_path / carried.name, tmp_path / "folder", tmp_path / CACHED
    broken.write_bytes(carried.read_bytes()[:1_000])
    folder.mkdir()
    last.write_bytes(good)
    places = [folder, broken, last]
    monkeypatch.setattr(vocabularies, "_vocabulary_paths", lambda _: iter(places))
    assert TiktokenCounter("cl100k_base").count_text("tiktoken is great!") == 6


@pytest.mark.usefixtures("bare")
def test_a_counter_that_cannot_be_had_is_answered_by_what_to_do() -> None:
    for name in ["", "p50k", "o200k"]:
        with pytest.raises(InvalidSettingError, match=r"chars/4, o200k_base, cl100k_base"):
            get_counter(name)
    with pytest.raises(NotFoundError, match=r"o200k_base is not on this machine.*\[tokens\]") as no:
        get_counter("o200k_base")
    assert "\n" not in str(no.value)


@pytest.mark.usefixtures("carried")
def test_nobody_is_asked_for_a_vocabulary(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a vocabulary was asked for")

    for what in ("socket", "getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, what, refuse)
    (bare / CACHED).write_bytes(b"not a vocabulary")
    loaded = set(sys.modules)
    for name in VOCABULARIES:
        with pytest.raises(NotFoundError):
            TiktokenCounter(name).count_text("tiktoken is great!")

        monkeypatch.setattr(vocabularies, "_VOCABULARY_PACKAGES", PACKAGES)
        assert TiktokenCounter(name).count_text("tiktoken is great!") == 6, name
        monkeypatch.setattr(vocabularies, "_VOCABULARY_PACKAGES", ())
    assert {path.name: path.read_bytes() for path in bare.iterdir()} == {
        CACHED: b"not a vocabulary"
    }
    assert not {"bpe_openai", "litellm", "llama_index", "requests"} & (set(sys.modules) - loaded)


@pytest.mark.usefixtures("carried")
def test_equal_blocks_are_counted_once_and_not_while_they_are_appended(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set_tokenizer("cl100k_base")
    session = store.session("s")
    counted: list[str] = []
    count = TiktokenCounter.count_text

    def count_and_tell(self: TiktokenCounter, text: str) -> int:
        counted.append(text)
        return count(self, text)

    monkeypatch.setattr(TiktokenCounter, "count_text", count_and_tell)

    session.append(Block.user("tiktoken is great!"), Block.user("tiktoken is great!"))

    assert counted == []
    reader = session.log.reader("main")
    for _ in range(3):
        history = reader.read_history()[0]
        calibration = history.usage_tracker.find_calibration()
        sizes = history.usage_tracker.list_sizes(calibration, tuple(history.entries.values()))
        assert sizes == (6, 6)
    assert counted.count("tiktoken is great!") <= 2
