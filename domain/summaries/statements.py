"""Splits blocks into statements: the single sentences and lines that a summary may quote."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from ..blocks import AnyBlock, BlockKind, ToolCall, ToolResult
from ..digest import iter_strings, read_arguments
from ..fidelity.generic_keys import GENERIC_PAIRS
from ..fidelity.words import WordPair, WordReader
from .clean_text import NUMBERING_PATTERN, make_printable, tidy_line
from .prose import INTENT_PATTERN, Sentence, iter_sentences, parse_user_message

_BlockT = TypeVar("_BlockT", bound=AnyBlock)
_Args = TypeVarTuple("_Args")
_ResultT = TypeVar("_ResultT")

SPOKEN_KINDS = frozenset({BlockKind.USER, BlockKind.ASSISTANT, BlockKind.THINKING})
MAX_STATEMENT_CHARS = 220
MAX_END_CHARS = 4_000
_MIN_LINE_CHARS, _MIN_SENTENCE_CHARS = 20, 12
_MIN_INTENT_CHARS = 60
"""A shorter announcement, such as `Let me look at it`, says nothing once it is done."""
_MAX_LINE_PARTS = 12
"""How many parts of one very long line are read."""
_MAX_LINES = 100_000
"""After so many different lines, those that were read are forgotten."""
_NO_PAIRS = frozenset[WordPair]()


class Statement(NamedTuple):
    """A contiguous quote of one block."""

    text: str
    facts: tuple[str, ...]
    """The facts that it carries, as fidelity counts them."""
    words: tuple[str, ...]
    """Its plain words."""
    pairs: frozenset[WordPair]
    """Neighboring plain words of prose."""
    sentence: Sentence | None = None
    """For prose: the sentence with the heading above it."""


class BlockContent(NamedTuple):
    statements: tuple[Statement, ...]
    facts: frozenset[str]
    """The facts of all its statements."""


class BlockReader:
    """Reads each block once, for as long as the summarizer that has it.

    Blocks are matched by identity, because comparing their texts would take as long as reading
    them. Too many results are all dropped.
    """

    def __init__(self, max_results: int = 32_768) -> None:
        self._max_results = max_results
        self._results: dict[Any, tuple[AnyBlock, Any]] = {}
        self._words = WordReader()
        self._lines: dict[str, Statement] = {}

    def read(self, block: AnyBlock) -> BlockContent:
        return self.read_once(self._read_block, block)

    def read_once(
        self, function: Callable[[_BlockT, *_Args], _ResultT], block: _BlockT, *args: *_Args
    ) -> _ResultT:
        """Return `function(block, *args)`, a pure function."""
        key = (function, id(block), args)
        known = self._results.get(key)
        if known is None:
            if len(self._results) >= self._max_results:
                self._results.clear()
            # The entry keeps its block alive, so that no other one gets the same id.
            known = self._results[key] = block, function(block, *args)
        result: _ResultT = known[1]
        return result

    def read_line(self, text: str, sentence: Sentence | None = None) -> Statement:
        """Return a line of prose."""
        facts, words = self._read_words(text)
        pairs = {(a, b) if a < b else (b, a) for a, b in pairwise(words)}
        return Statement(text, facts, words, frozenset(pairs - GENERIC_PAIRS), sentence)

    def _read_block(self, block: AnyBlock) -> BlockContent:
        if len(self._lines) > _MAX_LINES:
            self._lines.clear()
            self._words = WordReader()
        if block.kind in SPOKEN_KINDS:
            read = [self.read_line(*one) for one in dict(_iter_sentences(block)).items()]
            statements = tuple(one for one in read if one.facts or one.pairs)
        else:
            lines = map(self._read_tool_line, dict.fromkeys(_iter_lines(block)))
            statements = tuple(one for one in lines if one.facts)
        return BlockContent(statements, frozenset(fact for one in statements for fact in one.facts))

    def _read_tool_line(self, text: str) -> Statement:
        known = self._lines.get(text)
        if known is None:
            known = self._lines[text] = Statement(text, *self._read_words(text), _NO_PAIRS)
        return known

    def _read_words(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the facts and the plain words of a line."""
        facts, words = list[str](), list[str]()
        for piece in self._words.split_pieces(text):
            facts += piece.carried_keys
            words += piece.words
        return tuple(dict.fromkeys(facts)), tuple(words)

    def __reduce__(self) -> tuple[type["BlockReader"], tuple[int]]:
        return BlockReader, (self._max_results,)  # ids mean nothing in another process


def _read_text(block: AnyBlock) -> str:
    """Return what a call says or a result shows; of a long text, both ends."""
    text = (
        "\n".join(iter_strings(read_arguments(block)))
        if isinstance(block, ToolCall)
        else block.text
    )
    if len(text) > 2 * MAX_END_CHARS:
        return f"{text[:MAX_END_CHARS]}\n{text[-MAX_END_CHARS:]}"
    return text


def _iter_sentences(block: AnyBlock) -> Iterator[tuple[str, Sentence]]:
    is_user, text = block.kind is BlockKind.USER, block.text
    if is_user:
        message = parse_user_message(block)
        text = message.said if message.is_request else ""
    for sentence in iter_sentences(make_printable(text)):
        line = tidy_line(sentence.text)
        if not is_user and (lead := INTENT_PATTERN.match(line)):
            line = line[lead.end() :].lstrip(" ,:")
            if len(line) < _MIN_INTENT_CHARS:
                continue
        if _MIN_SENTENCE_CHARS <= len(line) <= 2 * MAX_STATEMENT_CHARS:
            yield line, sentence


def _iter_lines(block: ToolCall | ToolResult | AnyBlock) -> Iterator[str]:
    for raw in make_printable(_read_text(block)).split("\n"):
        numbered = NUMBERING_PATTERN.match(raw)
        line = " ".join((raw[numbered.end() :] if numbered else raw).split())
        if len(line) >= _MIN_LINE_CHARS:
            yield from [line] if len(line) <= MAX_STATEMENT_CHARS else _split_line(line)


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
