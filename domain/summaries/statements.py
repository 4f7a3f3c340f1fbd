"""Reads blocks for a summary: the facts that they carry, and the statements that it may quote."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from ..blocks import AnyBlock, BlockKind, ToolCall
from ..digest import iter_strings, read_arguments
from ..fidelity.generic_keys import GENERIC_PAIRS
from ..fidelity.words import WordPair, WordReader
from ..shell_edits import is_script, read_patch, read_script_texts, read_shell_command
from .clean_text import DECORATION_PATTERN, NUMBERING_PATTERN, make_printable, tidy_line
from .prose import INTENT_PATTERN, Sentence, iter_sentences
from .user_message import parse_user_message

_BlockT = TypeVar("_BlockT", bound=AnyBlock)
_Args = TypeVarTuple("_Args")
_ResultT = TypeVar("_ResultT")

SPOKEN_KINDS = frozenset({BlockKind.USER, BlockKind.ASSISTANT, BlockKind.THINKING})
MAX_STATEMENT_CHARS = 220
MIN_CONTEXT_WORDS = 2
"""How many plain words say what a fact is about."""
_MIN_SENTENCE_CHARS = 12
_MIN_BARE_CHARS = 25
"""A shorter sentence of the agent without a fact, such as `Still empty.`, says nothing alone."""
_REMARK = re.compile(
    r"(?:good|great|perfect|excellent|okay|thanks|thank you|sure|understood|got it|hmm)\b[,.! ]"
    r"|now i (?:have|see|understand|can)\b|i.ll help\b",
    re.IGNORECASE,
)
_MIN_REMARK_CHARS = 90
"""A shorter remark, such as `Good, now I have the picture`, says nothing."""
_MIN_INTENT_CHARS = 60
"""A shorter announcement, such as `Let me look at it`, says nothing once it is done."""
_TERM = re.compile(r"[^\W\d_]{2,}")
_MIN_TERMS = 3
_BOILERPLATE = re.compile(
    r"</?[\w-]+>$|Here's the result of running |File created successfully|The file \S+ has been "
    r"|Requirement already satisfied|Successfully (?:un)?installed|Collecting |Downloading "
    r"|Command: /bin/"
)
_MAX_LINES_OF_FACT = 2
"""How many lines of one block are quoted for one fact."""
_MAX_WORDS = 200_000
"""After so many different words, those that were read are forgotten."""


class Statement(NamedTuple):
    """A contiguous quote of one block."""

    text: str
    facts: tuple[str, ...]
    """The facts that it carries, as fidelity counts them."""
    words: tuple[str, ...]
    """Its plain words."""
    pairs: frozenset[WordPair] = frozenset()
    """Neighboring plain words of prose."""
    sentence: Sentence | None = None
    """For prose: the sentence with the heading above it."""
    is_telling: bool = True
    """Whether a line of a tool is worth quoting for what it says."""
    place: int = 0
    """Where a line of a tool begins in the block's text, in characters."""


class BlockContent(NamedTuple):
    facts: frozenset[str]
    """All facts that the whole block carries."""
    written: frozenset[str]
    """Those of them that it writes out, and not only as a part of something longer."""
    sentences: tuple[Statement, ...]
    """What is said in it, if it is prose."""


class BlockReader:
    """Reads each block once, for as long as the summarizer that has it.

    Blocks are matched by identity, because comparing their texts would take as long as reading
    them. Too many results are all dropped.
    """

    def __init__(self, max_results: int = 32_768) -> None:
        self._max_results = max_results
        self._results: dict[Any, tuple[AnyBlock, Any]] = {}
        self._words = WordReader()

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

    def list_lines_with(self, block: AnyBlock, fact: str) -> tuple[Statement, ...]:
        """Return the first lines of a tool's block that carry a fact; of a long line, a part.

        A line without plain words is quoted with the line before or after it, too.
        """
        shown = self.read_once(_read_tool_text, block)
        lines = shown.known.get(fact)
        if lines is None:
            lines = shown.known[fact] = tuple(self._iter_lines_with(shown, fact))
        return lines

    def _iter_lines_with(self, shown: "_ToolText", fact: str) -> Iterator[Statement]:
        text = shown.text
        at = found = 0
        while found < _MAX_LINES_OF_FACT and (at := text.find(fact, at)) >= 0:
            begin, end = shown.find_line(at)
            statement = self._quote(shown, begin, end)
            if fact in statement.facts:
                found += 1
                yield statement
                if len(statement.words) < MIN_CONTEXT_WORDS:
                    before, _ = shown.find_line(max(begin - 2, 0))
                    _, after = shown.find_line(min(end + 1, len(text)))
                    for first, last in ((before, end), (begin, after)):
                        if end - begin < last - first <= MAX_STATEMENT_CHARS:
                            yield self._quote(shown, first, last)
            at = max(end, at + len(fact))

    def _quote(self, shown: "_ToolText", begin: int, end: int) -> Statement:
        known = shown.quotes.get((begin, end))
        if known is None:
            lines = make_printable(shown.text[begin:end]).split("\n")
            bare = (
                line[n.end() :] if (n := NUMBERING_PATTERN.match(line)) else line for line in lines
            )
            line = DECORATION_PATTERN.sub("", " ".join(" ".join(bare).split()))
            facts, words = self._read_words(line)
            is_telling = _says_something(line)
            known = Statement(line, facts, words, is_telling=is_telling, place=begin)
            shown.quotes[begin, end] = known
        return known

    def _read_block(self, block: AnyBlock) -> BlockContent:
        if len(self._words) > _MAX_WORDS:
            self._words = WordReader()
        pieces = self._words.list_fact_pieces(read_text(block))
        return BlockContent(
            frozenset([key for piece in pieces for key in piece.carried_keys]),
            frozenset([fact.key for piece in pieces for fact in piece.facts]),
            tuple(self._iter_statements(block)) if block.kind in SPOKEN_KINDS else (),
        )

    def _iter_statements(self, block: AnyBlock) -> Iterator[Statement]:
        for text, sentence in dict(_iter_sentences(block)).items():
            statement = self.read_line(text, sentence)
            is_telling = len(text) >= _MIN_BARE_CHARS or block.kind is BlockKind.USER
            if statement.facts or (statement.pairs and is_telling):
                yield statement

    def _read_words(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the facts and the plain words of a line."""
        facts, words = list[str](), list[str]()
        for piece in self._words.split_pieces(text):
            facts += piece.carried_keys
            words += piece.words
        return tuple(dict.fromkeys(facts)), tuple(words)

    def __reduce__(self) -> tuple[type["BlockReader"], tuple[int]]:
        return BlockReader, (self._max_results,)  # ids mean nothing in another process


def read_text(block: AnyBlock) -> str:
    """Return what a block says; of a call, the texts among its arguments, one a line.

    Of a script that calls tools, the commands that it runs and the patch that it holds, or else
    its string literals.
    """
    if not isinstance(block, ToolCall):
        return block.text
    arguments = read_arguments(block)
    text = "\n".join(iter_strings(arguments))
    told = [read_shell_command(arguments)] if is_script(text) else []
    told.append(read_patch(arguments))
    return "\n".join(told).strip() or read_script_texts(text)


class _ToolText(NamedTuple):
    """The text of a tool's block, with the lines that were searched in it by their facts."""

    text: str
    known: dict[str, tuple[Statement, ...]]
    quotes: dict[tuple[int, int], Statement]

    def find_line(self, at: int) -> tuple[int, int]:
        """Return the span of the line at a place; of a long one, of whole words around it."""
        text = self.text
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = len(text) if end < 0 else end
        if end - begin > MAX_STATEMENT_CHARS:
            before = at - MAX_STATEMENT_CHARS // 3
            if before > begin:
                begin = text.find(" ", before, at) + 1 or at
            if end - begin > MAX_STATEMENT_CHARS:
                end = text.rfind(" ", at, begin + MAX_STATEMENT_CHARS)
                end = max(end, at)
        return begin, end


def _read_tool_text(block: AnyBlock) -> _ToolText:
    return _ToolText(read_text(block), {}, {})


def _says_something(line: str) -> bool:
    """Check whether a line of a tool is more than punctuation, markup or what tools always say."""
    return len({*_TERM.findall(line)}) >= _MIN_TERMS and not _BOILERPLATE.match(line)


def _iter_sentences(block: AnyBlock) -> Iterator[tuple[str, Sentence]]:
    is_user, text = block.kind is BlockKind.USER, block.text
    if is_user:
        message = parse_user_message(block)
        text = message.said if message.is_request else ""
    for sentence in iter_sentences(make_printable(text)):
        line = tidy_line(sentence.text)
        if not is_user and (
            (len(line) < _MIN_INTENT_CHARS and INTENT_PATTERN.match(line))
            or (len(line) < _MIN_REMARK_CHARS and _REMARK.match(line))
        ):
            continue
        if _MIN_SENTENCE_CHARS <= len(line) <= 2 * MAX_STATEMENT_CHARS:
            yield line, sentence
