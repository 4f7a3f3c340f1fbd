"""Chooses the statements of a summary: the greatest need served by the fewest characters."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush, nlargest
from operator import attrgetter
from typing import NamedTuple

from ..blocks import BlockKind, ToolCall
from ..digest import map_results_by_call
from ..fidelity.words import WordPair
from ..item import WindowItem
from ..ranges import Ranges
from .actions import name_edited_file, name_source
from .clean_text import mark_code
from .findings import classify_statement
from .layout import SummaryLine, SummarySection
from .needs import NeedCounts, ReadItem
from .page import SummaryPage
from .prose import INTENT_PATTERN, find_stems
from .statements import MIN_CONTEXT_WORDS, SPOKEN_KINDS, BlockReader, Statement
from .summarizer import Material

MAX_BLOCKS = 300
"""How many of the blocks that left earlier are read again; older ones count by the last summary."""
_MAX_FACTS = 600
"""For how many of the likeliest facts the lines of tools are searched."""
_CONTEXT_WORTH, _PAIR_WORTH = 1.5, 1.0
"""The worth of a fact's context, and of a pair of words, next to that of the fact itself."""
_ELSEWHERE = 0.6
"""The worth of a context in an older block than the newest with the fact, next to that in this one.
"""
_KIND_WORTH = {BlockKind.TOOL_RESULT: 0.6, BlockKind.TOOL_CALL: 0.75}
"""Prose says why; a line of code or output is read less easily."""
_RECENT, _RECENT_WORTH = 6, 4.0
"""How many of the agent's last texts say where it stands, and their worth next to older ones."""
_ANNOUNCEMENT_WORTH = 0.6
"""What an agent was about to do says less than what it found, and half of that without a fact."""
_LINE_WORTH = (
    (
        re.compile(
            r"[+-]?\s*(?:import\b|use [\w:]+|export \*|#include|(?:\} ?)?from \S+(?: import|;?$)"
            r"|require\b|const .*\brequire\()"
        ),
        0.6,
    ),
    (
        re.compile(
            r"[+-]?\s*(?:(?:export|pub(?:\([^()]*\))?|async|static|private|public|default) )*"
            r"(?:def|class|function|func|fn|struct|type|interface|enum|impl|trait|const|module"
            r"|defmodule)\b"
        ),
        1.3,
    ),
    (
        re.compile(
            r"[+-]?\s*(?:\}|(?:if|for|while|return|elif|else|switch|case|try|catch|except|with|break)\b)"
        ),
        0.7,
    ),
)
"""Of lines of code, imports name what exists elsewhere, definitions what exists here, and branches
hardly anything."""
_CARRIED_SECTIONS = frozenset(
    {
        SummarySection.DONE,
        SummarySection.DECISIONS,
        SummarySection.CONTEXT,
        SummarySection.SEEN,
        SummarySection.TURN,
    }
)
"""What an earlier summary says that stays true; requests and plans are carried apart."""
_LEAST_GAIN = 0.0001
"""A statement that serves less need for each character is not worth its tokens."""
_COMMON_TIMES = 20
"""A word of the user's instructions that more statements have counts less in each."""
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|[^\s=:]*\d[^\s=:]*")
_MAX_ALIKE = 2
"""How many lines of a block may differ in numbers and quoted values only, as those of a log do."""
_MIN_ROOM_CHARS = 40
_SOURCE_CHARS = 36, 60
"""The most characters of what was read or run, above the lines of its output: in a small summary,
and in one of some 1,500 tokens."""
_FRAME_CHARS = 16
"""What a line takes in addition to its words: its mark and its handle."""


class _Candidate(NamedTuple):
    statement: Statement
    newest: int
    """The position that it quotes; for a line of an earlier summary, its newest handle."""
    worth: float
    item: WindowItem | None
    line: SummaryLine | None = None
    """The line of an earlier summary."""
    wish: float = 0.0
    """The worth of the words that it shares with the user's instructions."""


def add_statements(
    material: Material,
    earlier: Sequence[SummaryLine],
    page: SummaryPage,
    reader: BlockReader,
    root: str = "",
) -> None:
    """Fill the rest of a page with the lines that serve the most need.

    Each is a contiguous quote of one block, whole; nothing that the page says counts again.
    """
    items = _list_items(material)
    begin = items[0].position if items else 0
    removed = [ReadItem(item, reader.read(item.block)) for item in items]
    candidates = [
        _Candidate(reader.read_line(line.text), line.newest, 1.0, None, line)
        for line in earlier
        if line.newest < begin and line.section in _CARRIED_SECTIONS
    ]
    kept = [reader.read(item.block) for item in material.kept_items]
    counts = NeedCounts(removed, kept, [one.statement for one in candidates])
    facts, pairs = counts.estimate()
    spoken = [item.position for item in items if item.kind is BlockKind.ASSISTANT]
    recent = frozenset(spoken[-_RECENT:])
    candidates += (
        _Candidate(one, item.position, _weigh_prose(one, item, recent), item)
        for item, content in removed
        for one in content.sentences
        if not one.text.endswith(":")  # it says what the next lines are about
    )
    candidates += _iter_lines_of_facts(counts, facts, reader)
    if wanted := find_stems(material.instructions or ""):
        candidates = list(_weigh_by_instructions(candidates, wanted))
    newest = {item.position: index for index, (item, _) in enumerate(removed)}
    gains = _Gains(facts, pairs, counts.last, newest)
    for said in page.text.split("\n"):
        gains.take(reader.read_line(said))
    answers = map_results_by_call(items)
    calls = {
        answers[item.position].position: item.block
        for item in items
        if item.position in answers and isinstance(item.block, ToolCall)
    }
    least, most = _SOURCE_CHARS
    room = max(least, min(most, page.room // 100))
    alike = Counter[tuple[int, str]]()
    for index in _choose(candidates, gains, page.left):
        if page.left < _MIN_ROOM_CHARS:
            break
        candidate = candidates[index]
        pattern = candidate.newest, _VALUE.sub("", candidate.statement.text)
        if len(candidate.statement.text) > page.left or alike[pattern] >= _MAX_ALIKE:
            continue
        call = calls.get(candidate.newest)
        source = reader.read_once(name_source, call, root, room) if call else ""
        if candidate.item and isinstance(candidate.item.block, ToolCall):
            source = reader.read_once(name_edited_file, candidate.item.block, root)
        line = candidate.line or _make_line(candidate, material.prefix, source)
        if page.add_whole(replace(line, place=index)):
            alike[pattern] += 1
            gains.take(candidate.statement)
            if line.source:
                gains.take(reader.read_line(line.source))


def _weigh_prose(statement: Statement, item: WindowItem, recent: frozenset[int]) -> float:
    said = statement.sentence.text if statement.sentence else ""
    is_announced = item.kind is not BlockKind.USER and INTENT_PATTERN.match(said)
    worth = _ANNOUNCEMENT_WORTH if is_announced else 1.0
    if item.position in recent:
        return worth * _RECENT_WORTH
    return worth if statement.facts or not is_announced else worth / 2


def _weigh_code(statement: Statement, kind: BlockKind) -> float:
    worths = (worth for pattern, worth in _LINE_WORTH if pattern.match(statement.text))
    return _KIND_WORTH.get(kind, 1.0) * next(worths, 1.0)


def _iter_lines_of_facts(
    counts: NeedCounts, facts: Mapping[str, float], reader: BlockReader
) -> Iterator[_Candidate]:
    """Yield the lines of tools in which the likeliest facts were last written."""
    wanted = set(nlargest(_MAX_FACTS, facts, key=lambda fact: (facts[fact], fact)))
    for item, content in reversed(counts.removed):
        found = wanted & content.facts
        if found and item.kind not in SPOKEN_KINDS:
            wanted -= found
            lines = {
                one.text: one
                for fact in found
                for one in reader.list_lines_with(item.block, fact)
                if one.is_telling
            }
            in_order = sorted(lines.values(), key=attrgetter("place", "text"))
            yield from (
                _Candidate(one, item.position, _weigh_code(one, item.kind), item)
                for one in in_order
            )


def _weigh_by_instructions(
    candidates: Sequence[_Candidate], wanted: frozenset[str]
) -> Iterator[_Candidate]:
    """Yield the candidates with their wishes: a rare word that the user named counts as a fact."""
    shared = [wanted & find_stems(one.statement.text) for one in candidates]
    times = Counter(stem for stems in shared for stem in stems)
    for candidate, stems in zip(candidates, shared, strict=True):
        wish = sum(min(1.0, _COMMON_TIMES / times[stem]) for stem in stems)
        yield candidate._replace(wish=wish) if wish else candidate


def _list_items(material: Material) -> tuple[WindowItem, ...]:
    """Return the blocks to read: those that leave now, and before them the newest that left."""
    removed = material.removed_items
    begin = removed[0].position if removed else 0
    before = (
        material.covers & Ranges.span(max(1, begin - MAX_BLOCKS), begin - 1) if begin > 1 else None
    )
    if material.originals is None or not before:
        return removed
    return (*material.originals(before), *removed)


def _make_line(candidate: _Candidate, prefix: Ranges, source: str) -> SummaryLine:
    """Return the line that quotes a statement of a block."""
    item, statement = candidate.item, candidate.statement
    kind = item.kind if item else BlockKind.ASSISTANT
    text = statement.text if kind in SPOKEN_KINDS else mark_code(statement.text)
    if kind is BlockKind.USER:
        section = SummarySection.CONTEXT  # requests are found by rule
    elif kind not in SPOKEN_KINDS:
        section = SummarySection.SEEN
    elif candidate.newest in prefix:
        section = SummarySection.TURN
    elif statement.sentence:
        section = classify_statement(statement.sentence)
    else:
        section = SummarySection.CONTEXT
    handles = Ranges.of([candidate.newest])
    shown = SummaryLine(SummarySection.SEEN, source).wording if source else ""
    return SummaryLine(section, text, handles, is_quote=kind is BlockKind.USER, source=shown)


def _choose(candidates: Sequence[_Candidate], gains: "_Gains", longest: int) -> Iterator[int]:
    """Yield the index of the candidate with the greatest gain for its characters, repeatedly."""
    heap = [
        (-gain, -candidate.newest, index)
        for index, candidate in enumerate(candidates)
        if len(candidate.statement.text) < longest
        and (gain := gains.measure(candidate)) > _LEAST_GAIN
    ]
    heapify(heap)
    while heap:
        _, newest, index = heappop(heap)
        gain = gains.measure(candidates[index])
        if gain > _LEAST_GAIN and heap and gain < -heap[0][0]:
            heappush(heap, (-gain, newest, index))
        elif gain > _LEAST_GAIN:
            yield index


class _Gains:
    """What each statement adds to those taken so far."""

    def __init__(
        self,
        facts: Mapping[str, float],
        pairs: Mapping[WordPair, float],
        last: Mapping[str, int],
        indices: Mapping[int, int],
    ) -> None:
        self._facts = dict(facts)
        self._contexts = dict(facts)
        self._pairs = dict(pairs)
        self._last, self._indices = last, indices
        self._texts = set[str]()

    def measure(self, candidate: _Candidate) -> float:
        """Return the need that a statement serves, for each character."""
        one, gain = candidate.statement, 0.0
        if one.text in self._texts:
            return 0.0
        if one.facts:
            facts, contexts = self._facts, self._contexts
            has_context = len(one.words) >= MIN_CONTEXT_WORDS
            at = self._indices.get(candidate.newest, 0)
            for fact in one.facts:
                gain += facts.get(fact, 0.0)
                if has_context and fact in contexts:
                    sure = 1.0 if self._last[fact] == at else _ELSEWHERE
                    gain += _CONTEXT_WORTH * contexts[fact] * sure
        if one.pairs:
            pairs = self._pairs
            for pair in one.pairs:
                gain += _PAIR_WORTH * pairs.get(pair, 0.0)
        return (candidate.worth * gain + candidate.wish) / (len(one.text) + _FRAME_CHARS)

    def take(self, statement: Statement) -> None:
        self._texts.add(statement.text)
        for fact in statement.facts:
            self._facts.pop(fact, None)
            if len(statement.words) >= MIN_CONTEXT_WORDS:
                self._contexts.pop(fact, None)
        for pair in statement.pairs:
            self._pairs.pop(pair, None)
