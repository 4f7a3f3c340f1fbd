"""Finds what else is at stake: word pairs, the rules that users stated, and touched files."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..blocks import ToolCall
from ..cached_property import cached_property
from ..digest import SHELL_TOOLS, find_touched_files, normalize_tool_name, parse_names
from ..summaries.user_message import remove_inserted_text
from .anchors import AnchorKind
from .generic_keys import GENERIC_PAIRS
from .rows import AGENT_KINDS, FidelityRow, RowKind, SessionRows
from .words import WordPair, WordReader

MAX_PAIR_DISTANCE = 3
"""How many plain words apart the two words of a pair may be in a summary."""


@dataclass(frozen=True)
class SummaryContent:
    """What a text carries, computed on first access."""

    text: str
    reader: WordReader
    asked: frozenset[WordPair]
    """The pairs to look for."""

    @cached_property
    def carried_keys(self) -> frozenset[str]:
        return self.reader.find_carried_keys(self.text)

    @cached_property
    def facts(self) -> frozenset[str]:
        return frozenset(self.reader.find_facts(self.text))

    @cached_property
    def pairs(self) -> frozenset[WordPair]:
        """The wanted pairs whose words are close together in a line."""
        return frozenset(
            pair
            for words in self.reader.iter_line_words(self.text)
            for pair in find_pairs_within(words, MAX_PAIR_DISTANCE)
            if pair in self.asked
        )

    @cached_property
    def words(self) -> frozenset[str]:
        return self.reader.collect_words(self.text)


def find_pairs_within(words: Sequence[str], apart: int) -> set[WordPair]:
    """Return the pairs of different words that are at most `apart` words apart."""
    return {
        (a, b) if a < b else (b, a)
        for distance in range(1, apart + 1)
        for a, b in zip(words, words[distance:], strict=False)
        if a != b
    }


PROSE_KINDS = frozenset({RowKind.USER, RowKind.ASSISTANT, RowKind.THINKING})


class RepeatedPair(NamedTuple):
    """A pair of words in the agent's prose that prose before the call contained already."""

    call: int
    pair: WordPair
    newest: int
    """Position of the newest row before the call that has it."""


@dataclass(frozen=True)
class ProsePairs:
    """Pairs of adjacent plain words in a session's prose, without generic ones."""

    places: Mapping[WordPair, Sequence[int]]
    """The indices of the rows with each pair, ascending."""
    repeated: Sequence[RepeatedPair]
    """In the order of the calls."""


def find_prose_pairs(
    rows: SessionRows, words: WordReader, seen_by: Callable[[int], int]
) -> ProsePairs:
    """Read all prose once; `seen_by` returns how many rows came before a call."""
    places: dict[WordPair, list[int]] = {}
    again: list[RepeatedPair] = []
    for index, row in enumerate(rows.rows):
        if row.kind not in PROSE_KINDS:
            continue
        pairs = _collect_pairs(row.text, words)
        if row.kind in AGENT_KINDS:
            below = seen_by(row.call)
            for pair in pairs:
                before = places.get(pair)
                if before and before[0] < below:
                    newest = before[bisect_left(before, below) - 1]
                    again.append(RepeatedPair(row.call, pair, rows.rows[newest].position))
        for pair in pairs:
            places.setdefault(pair, []).append(index)
    again.sort()
    return ProsePairs(places, again)


def _collect_pairs(text: str, words: WordReader) -> set[WordPair]:
    found: set[WordPair] = set()
    for line in words.iter_line_words(text):
        found |= find_pairs_within(line, 1)
    return found - GENERIC_PAIRS


_SURVIVAL_SHARE = 0.8
"""The share of a sentence's plain words that must remain."""

_CONSTRAINT = re.compile(
    r"""\b(?:
        must | mustn['\u2019]t | should | shouldn['\u2019]t | do\ not | don['\u2019]?t | cannot
        | can['\u2019]t | never | always | only | please | avoid | ensure | make\ sure | without
        | instead | require[ds]? | at\ least | at\ most | no\ more | not\ allowed | forbidden
        | prefer | keep | important
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?])\s+|\n+")
_MAX_SENTENCE_CHARS = 600
"""A longer text without an end is pasted, not a sentence."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A user's sentence that states a rule."""

    text: str
    words: frozenset[str]
    indices: tuple[int, ...]
    """The rows that contain it, ascending."""

    def is_kept_in(self, words: frozenset[str]) -> bool:
        return len(self.words & words) >= _SURVIVAL_SHARE * len(self.words)


def find_constraints(rows: SessionRows, words: WordReader) -> tuple[Constraint, ...]:
    """Return each distinct sentence once, in the order of first occurrence."""
    said: dict[str, list[int]] = {}
    for index, row in enumerate(rows.rows):
        if row.kind is RowKind.USER:
            for sentence in _split_sentences(remove_inserted_text(row.text)):
                said.setdefault(sentence, []).append(index)
    return tuple(
        Constraint(sentence, plain, tuple(dict.fromkeys(indices)))
        for sentence, indices in said.items()
        if (plain := words.collect_words(sentence))
    )


def _split_sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        if len(sentence) <= _MAX_SENTENCE_CHARS and _CONSTRAINT.search(sentence):
            yield " ".join(sentence.split())


_VIEW_COMMANDS = parse_names("bat cat head less more nl sed tail")
"""Commands that agents use to read files if they have no tool for it."""
_PARTS = re.compile(r"&&|\|\||[;|\n]")


class FileTouch(NamedTuple):
    """A successful call that read or modified a file."""

    call: int
    position: int
    key: str
    """The file's path as a fact's key: without a session's roots."""
    modifies: bool


def find_file_touches(rows: SessionRows, words: WordReader) -> tuple[FileTouch, ...]:
    """Return file touches by position, without paths that are not facts, such as `Makefile`."""
    failed = _find_failed_calls(rows.rows)
    return tuple(
        FileTouch(row.call, row.position, key, modifies)
        for index, row in enumerate(rows.rows)
        if row.kind is RowKind.TOOL_CALL and index not in failed
        for key, modifies in dict.fromkeys(
            (*_iter_argument_files(row, words), *_iter_shell_files(row, words))
        )
    )


def _iter_argument_files(row: FidelityRow, words: WordReader) -> Iterator[tuple[str, bool]]:
    """Yield the files that arguments name, by the rule of the digest."""
    if row.tool is None or not row.arguments:
        return
    call = ToolCall(tool_call_id=row.call_id or "-", name=row.tool, arguments=row.arguments)
    touch = find_touched_files(call)
    for path in touch.paths:
        # White space splits a path into several facts; the last one names the file.
        for key in _find_paths(path, words)[-1:]:
            yield key, touch.modifies


def _iter_shell_files(row: FidelityRow, words: WordReader) -> Iterator[tuple[str, bool]]:
    if row.tool is None or normalize_tool_name(row.tool) not in SHELL_TOOLS:
        return
    for part in _PARTS.split(row.text.partition("\n")[2]):
        command, _, target = part.partition(">")
        said = command.split()
        if said and said[0] in _VIEW_COMMANDS:
            is_edit = said[0] == "sed" and any(word.startswith(("-i", "--in-p")) for word in said)
            yield from ((key, is_edit) for key in _find_files(command, words))
            yield from ((key, True) for key in _find_files(target, words)[:1])


def _find_files(text: str, words: WordReader) -> list[str]:
    """Return the paths in a text that have an extension; others may be folders or patterns."""
    return [key for key in _find_paths(text, words) if "." in key.rpartition("/")[2]]


def _find_paths(text: str, words: WordReader) -> list[str]:
    return [fact.key for fact in words.find_anchors(text) if fact.kind is AnchorKind.PATH]


def _find_failed_calls(rows: Sequence[FidelityRow]) -> frozenset[int]:
    asked: dict[str, int] = {}
    failed: set[int] = set()
    for index, row in enumerate(rows):
        if row.call_id is None:
            continue
        if row.kind is RowKind.TOOL_CALL:
            asked[row.call_id] = index
        elif row.kind is RowKind.TOOL_RESULT and row.is_error and row.call_id in asked:
            failed.add(asked[row.call_id])
    return frozenset(failed)
