"""Splits blocks into statements: the single sentences and lines that a summary may quote."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ..blocks import AnyBlock, Kind, ToolCall, ToolResult
from ..digest import iter_strings, read_arguments
from ..fidelity.generic_keys import GENERIC_PAIRS
from ..fidelity.plain_words import PlainWords, WordPair
from .clean_text import NUMBERING_PATTERN, make_printable, tidy_line
from .findings import read_user_message, remove_inserted_text
from .memo import Memo
from .prose import INTENT_PATTERN, Sentence, iter_sentences

PROSE_KINDS = frozenset({Kind.USER, Kind.ASSISTANT, Kind.THINKING})
MAX_STATEMENT_CHARS = 220
_MIN_LINE_CHARS, _MIN_SENTENCE_CHARS = 20, 12
_MIN_INTENT_CHARS = 60
"""A shorter announcement, such as `Let me look at it`, says nothing once it is done."""
_MAX_LINE_PARTS = 12
"""How many parts of one very long line are read."""
_MAX_BLOCKS = 20_000
"""After so many blocks, the words that were read are forgotten."""


class Statement(NamedTuple):
    """A contiguous quote of one block."""

    text: str
    facts: tuple[str, ...]
    """The facts that it carries, as fidelity counts them."""
    pairs: frozenset[WordPair]
    """Neighboring plain words of prose."""
    word_count: int
    """Its distinct plain words."""
    sentence: Sentence | None = None
    """For prose: the sentence with the heading above it."""


class BlockContent(NamedTuple):
    statements: tuple[Statement, ...]
    facts: frozenset[str]
    """The facts anywhere in the block, in statements or not."""
    words: frozenset[str]
    """The plain words of its statements."""


class StatementReader:
    """Reads blocks once, for as long as the summarizer that has it."""

    def __init__(self) -> None:
        self._memo = Memo()
        self._plain = PlainWords()
        self._count = 0

    def read(self, block: AnyBlock) -> BlockContent:
        return self._memo.read(self._read_block, block)

    def read_line(
        self, text: str, *, is_prose: bool, sentence: Sentence | None = None
    ) -> Statement:
        pieces = self._plain.split_pieces(text)
        words = [word for piece in pieces for word in piece.words]
        pairs = {(a, b) if a < b else (b, a) for a, b in pairwise(words)}
        return Statement(
            text,
            tuple(dict.fromkeys(key for piece in pieces for key in piece.carried_keys)),
            frozenset(pairs - GENERIC_PAIRS) if is_prose else frozenset(),
            len(set(words)),
            sentence,
        )

    def _read_block(self, block: AnyBlock) -> BlockContent:
        self._count += 1
        if self._count % _MAX_BLOCKS == 0:
            self._plain = PlainWords()
        is_prose = block.kind in PROSE_KINDS
        texts = _iter_sentences(block) if is_prose else _iter_lines(block)
        known = dict(texts)
        read = [
            self.read_line(text, is_prose=is_prose, sentence=sentence)
            for text, sentence in known.items()
        ]
        split, facts, words = self._plain.split_pieces, set[str](), set[str]()
        for line in set(_read_text(block).split("\n")):
            for piece in split(line):
                facts.update(piece.carried_keys)
                words.update(piece.words)
        statements = tuple(one for one in read if one.facts or one.pairs)
        return BlockContent(statements, frozenset(facts), frozenset(words))

    def __reduce__(self) -> tuple[type["StatementReader"], tuple[()]]:
        return StatementReader, ()


def _read_text(block: AnyBlock) -> str:
    if isinstance(block, ToolCall):
        return "\n".join(iter_strings(read_arguments(block)))
    return block.text


def _iter_sentences(block: AnyBlock) -> Iterator[tuple[str, Sentence]]:
    is_user = block.kind is Kind.USER
    if is_user and not read_user_message(block).is_request:
        return
    text = remove_inserted_text(block.text) if is_user else block.text
    for sentence in iter_sentences(make_printable(text)):
        line = tidy_line(sentence.text)
        if not is_user and (lead := INTENT_PATTERN.match(line)):
            line = line[lead.end() :].lstrip(" ,:")
            if len(line) < _MIN_INTENT_CHARS:
                continue
        if _MIN_SENTENCE_CHARS <= len(line) <= 2 * MAX_STATEMENT_CHARS:
            yield line, sentence


def _iter_lines(block: ToolCall | ToolResult | AnyBlock) -> Iterator[tuple[str, None]]:
    for raw in make_printable(_read_text(block)).split("\n"):
        numbered = NUMBERING_PATTERN.match(raw)
        line = " ".join((raw[numbered.end() :] if numbered else raw).split())
        if len(line) >= _MIN_LINE_CHARS:
            for part in [line] if len(line) <= MAX_STATEMENT_CHARS else _split_line(line):
                yield part, None


def _split_line(line: str) -> Iterable[str]:
    """Return a long line in parts of whole words; words that are too long are left out."""
    parts, part = list[str](), ""
    for word in line[: 2 * _MAX_LINE_PARTS * MAX_STATEMENT_CHARS].split(" "):
        if len(part) + len(word) >= MAX_STATEMENT_CHARS:
            parts.append(part)
            part = ""
        if len(word) < MAX_STATEMENT_CHARS:
            part = f"{part} {word}" if part else word
    return [one for one in [*parts, part] if one][:_MAX_LINE_PARTS]
