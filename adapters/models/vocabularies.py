"""Counts exactly with tiktoken, using vocabularies on this machine; nothing is downloaded.

tiktoken would delete a missing or changed vocabulary in its cache folder and download another. So
this module finds, checks and reads the vocabulary itself, and passes it to tiktoken's definition of
the encoding.
"""

import gzip
import os
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import sha1, sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from types import FunctionType
from typing import Any

from ...domain.blocks import AnyBlock
from ...domain.cached_property import cached_property
from ...domain.errors import InvalidSettingError, NotFoundError
from ...domain.image_tokens import count_media_tokens, find_image_rule
from ...domain.token_estimate import CharacterEstimate, TokenCounter, iter_pieces

VOCABULARIES = ("o200k_base", "cl100k_base")
MAX_STRETCH_CHARACTERS = 65_536
"""The most characters per encoding call, since runs without gaps take disproportionate time."""
_LOADER = "load_tiktoken_bpe"
_VOCABULARY_PACKAGES = (
    ("bpe_openai", "data"),
    ("litellm", "litellm_core_utils/tokenizers"),
    ("llama_index", "core/_static/tiktoken_cache"),
)
"""Packages with vocabularies, and the folders in them; none is imported."""

Ranks = dict[bytes, int]


class TiktokenCounter:
    """Counts as OpenAI's models do; for other models it is only proportional."""

    def __init__(self, name: str, model: str | None = None) -> None:
        if name not in VOCABULARIES:
            raise InvalidSettingError(
                f"there is no vocabulary {name!r}; there are {', '.join(VOCABULARIES)}"
            )
        self.name = name
        self._media = find_image_rule(model)

    @cached_property
    def _encode(self) -> Callable[[str], list[int]]:
        encode: Callable[[str], list[int]] = load_encoding(self.name).encode_ordinary
        return encode

    def count(self, block: AnyBlock, /) -> int:
        return max(
            1,
            sum(
                self.count_text(piece)
                if isinstance(piece, str)
                else count_media_tokens(piece, self._media)
                for piece in iter_pieces(block)
            ),
        )

    def count_text(self, text: str, /) -> int:
        if len(text) <= MAX_STRETCH_CHARACTERS:
            return len(self._encode(text))
        return sum(len(self._encode(stretch)) for stretch in split_text(text))


def split_text(text: str) -> Iterator[str]:
    """Yield pieces of a long text, cut at token boundaries: before a newline or a space."""
    start = 0
    while start < len(text):
        end = start + MAX_STRETCH_CHARACTERS
        if end < len(text):
            for gap in ("\n", " "):
                if (found := text.rfind(gap, start + MAX_STRETCH_CHARACTERS // 2, end)) > 0:
                    end = found
                    break
        yield text[start:end]
        start = end


@lru_cache(maxsize=len(VOCABULARIES))
def load_encoding(name: str) -> Any:
    """Return tiktoken's own encoding, made from a vocabulary on this machine.

    Raises NotFoundError with a remedy if there is none.
    """
    tiktoken = import_module("tiktoken")
    defined = getattr(import_module("tiktoken_ext.openai_public"), name)
    if _LOADER not in defined.__code__.co_names:
        raise NotFoundError(
            f"this version of tiktoken ({tiktoken.__version__}) defines {name} in a way that "
            "cutbank does not know: install another version of it, or count by chars/4"
        )
    # tiktoken's own definition, with another source of the vocabulary.
    offline = FunctionType(defined.__code__, {**defined.__globals__, _LOADER: _load_ranks})
    return tiktoken.Encoding(**offline())


def _load_ranks(url: str, expected_hash: str) -> Ranks:
    for path in _vocabulary_paths(url):
        if (content := _read(path)) and sha256(content).hexdigest() == expected_hash:
            return {
                b64decode(token): int(rank)
                for token, rank in (line.split() for line in content.splitlines() if line)
            }
    raise NotFoundError(
        f"the vocabulary {Path(url).stem} is not on this machine, and nothing is downloaded: "
        "pip install 'cutbank[tokens]', or let TIKTOKEN_CACHE_DIR name a folder that holds it"
    )


def _vocabulary_paths(url: str) -> Iterator[Path]:
    """Yield the places where a vocabulary may be: tiktoken's caches, and packages."""
    cached = sha1(url.encode(), usedforsecurity=False).hexdigest()
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if folder := os.environ.get(variable):
            yield Path(folder, cached)
    yield Path(gettempdir(), "data-gym-cache", cached)
    for package, inside in _VOCABULARY_PACKAGES:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(location, inside, cached)
            yield Path(location, inside, f"{Path(url).name}.gz")


def _read(path: Path) -> bytes | None:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                return packed.read()
        return path.read_bytes()
    except (OSError, EOFError, gzip.zlib.error):  # type: ignore[attr-defined]
        return None


def get_counter(name: str, model: str | None = None) -> TokenCounter:
    """Return the counter of that name; `model` decides how images are counted.

    Raises NotFoundError if its vocabulary is not on this machine.
    """
    if name == CharacterEstimate.name:
        return CharacterEstimate()
    if name in VOCABULARIES:
        load_encoding(name)  # report a missing vocabulary now, not at the first block
        return TiktokenCounter(name, model)
    known = ", ".join((CharacterEstimate.name, *VOCABULARIES))
    raise InvalidSettingError(f"there is no counter {name!r}; there are {known}")
