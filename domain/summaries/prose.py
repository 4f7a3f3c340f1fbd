"""Reads prose: its sentences, and what the words of one say it is."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple


class SentenceCue(StrEnum):
    """What a sentence of an agent is likely to be."""

    DECISION = "decision"
    DONE = "done"
    INTENT = "intent"
    NEXT = "next"


class Sentence(NamedTuple):
    """A sentence or a list item, with the heading above it."""

    text: str
    heading: str = ""


def _parse_vocabulary(words: str) -> frozenset[str]:
    """Return words and word pairs; pairs are written with an underscore."""
    return frozenset(word.replace("_", " ") for word in words.split())


# Words of the most common languages; other languages only lose this emphasis.
_CONSTRAINT = _parse_vocabulary(
    """must mustn't never always don't do_not dont doesn't_need should shouldn't only no_need
    no_more not_allowed prefer preferred preferably avoid make_sure ensure stick_to instead_of
    without at_least at_most require required requires forbidden important keep please_use
    please_keep please_make please_be please_stick please_follow please_write please_run
    please_leave muss müssen soll sollen sollte sollten darf dürfen nie niemals immer nur kein
    keine keinen bitte stattdessen ohne jamais toujours seulement doit doivent évite évitez
    nunca siempre debe deben solo evita evitar por_favor"""
)
# Scripts that put no space between words.
_CONSTRAINT_UNSPACED = re.compile(
    "必须|必須|不要|不能|禁止|务必|请勿|只能|总是|必ず|しないで|ください|반드시"
)
_CUES = {
    SentenceCue.DECISION: _parse_vocabulary(
        """decide decided decides deciding decision decisions chose chosen choose choosing choice
        because instead rather_than opt_for opted_for opting_for opt_to opted_to root_cause
        turns_out turned_out tradeoff trade-off trade-offs deliberate deliberately by_design so_that
        in_favor in_favour caused_by due_to approach better_to issue_is problem_is fix_is reason_is
        cause_is bug_is solution_is issue_was problem_was fix_was reason_was cause_was bug_was
        weil stattdessen entschieden ursache parce_que porque en_lugar"""
    ),
    SentenceCue.DONE: _parse_vocabulary(
        """done complete completed finished succeeds succeeded successfully ready resolved all_pass
        tests_pass checks_pass now_pass now_passes all_passed tests_passed all_passing tests_passing
        test_passes passes_now works now_works now_working all_green now_uses now_has now_have
        now_supports now_handles now_returns ✅ ✓ ✔ fertig erledigt behoben hinzugefügt umgesetzt
        implementiert abgeschlossen corrigé ajouté terminé listo añadido"""
    ),
    SentenceCue.NEXT: _parse_vocabulary(
        """next todo todos to-do remaining remains still_need still_needs still_to still_missing
        still_open still_left still_have left_to not_yet after_that follow-up follow-ups pending
        plan_to planned_to need_to needs_to would_you want_me shall_i should_i als_nächstes
        noch_offen noch_zu prochaine siguiente"""
    ),
}
# Before a noun these only describe it (`deleted files`); after one of the actors below they report
# an action.
_PAST_ACTIONS = _parse_vocabulary(
    """added built changed committed confirmed converted created deleted extracted fixed implemented
    installed merged migrated moved pushed refactored removed renamed replaced rewrote switched
    tested updated verified wrote"""
)
_ACTORS = _parse_vocabulary(
    "i i've we we've have has been was were is are now also just already and"
)
_CUE_OF = {word: cue for cue, words in _CUES.items() for word in words} | {
    f"{doer} {deed}": SentenceCue.DONE for doer in _ACTORS for deed in _PAST_ACTIONS
}
_BEGIN_PAIRS = frozenset(word.partition(" ")[0] for word in {*_CUE_OF, *_CONSTRAINT} if " " in word)
_CUE_WORD = re.compile(r"[\w'-]+|[✅✓✔]")
_OPENING = r"""(?:(?:ok(?:ay)?|now|next|good|great|perfect|first|then|so|and|alright|right|also|but
    |however|actually|hmm|wait|finally)\b[,.!:]?\s+)*"""
"""Words before what a sentence says."""
INTENT_PATTERN = re.compile(
    rf"""{_OPENING}(?:let.s|let\ me|i.ll|i\ will|i.m\ (?:now|going\ to|\w+ing)
    |i\ am\ going\ to|i\ need\ to|i\ should
    |we\ need\ to|i\ can\ now|time\ to|going\ to|ich\ werde|lass\ mich|je\ vais|voy\ a)\b""",
    re.IGNORECASE | re.VERBOSE,
)
LEAD_IN_PATTERN = re.compile(
    rf"\A{_OPENING}(?:let.s|let\ me|i.ll|i\ will|i\ need\ to|we\ need\ to)\s+",
    re.IGNORECASE | re.VERBOSE,
)
"""What can be cut off at the beginning of an announcement."""
_COMES_NEXT = re.compile(r"\b(?:next|to-?do|remaining|pending|follow-?up|open)\b", re.IGNORECASE)
_LONG_WORD = re.compile(r"\w{4,}")
_STEM_CHARS = 6

_MAX_TEXT_CHARS = 20_000
_FENCE = re.compile(r"\s*(?:```|~~~)")
_SKIPPED = re.compile(r"\s*(?:[|<>]|$|[-=*_]{3,}\s*$)")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_LEAD = re.compile(r"\*\*([^*]{2,60}?)(?:\*\*:?|:\*\*)|(\w[^.!?:]{2,50}):")
_TITLE = re.compile(r"\*\*([^*.:!?]{2,60})\*\*\s+(?=[A-Z])")
"""What some models put before each thought."""
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
# Look for white space first; a lookbehind at every character is slow.
_END = re.compile(r"\s(?<=[.!?]\s)(?<!^\*\*\d\.\s)\s*(?=[^\sa-z])")
_END_UNSPACED = re.compile(rf"{_END.pattern}|(?<=[\u3002\uff01\uff1f])")


def is_constraint(sentence: str) -> bool:
    """Check whether a user's sentence states a rule."""
    return not _CONSTRAINT.isdisjoint(_split_words(sentence)) or (
        not sentence.isascii() and _CONSTRAINT_UNSPACED.search(sentence) is not None
    )


def count_cues(sentence: Sentence) -> Mapping[SentenceCue, int]:
    """Count the words of each cue in an agent's sentence."""
    found: dict[SentenceCue, int] = {}
    for cue in filter(None, map(_CUE_OF.get, _split_words(sentence.text))):
        found[cue] = found.get(cue, 0) + 1
    if sentence.text.partition(" ")[0].lower() in _PAST_ACTIONS:
        found[SentenceCue.DONE] = found.get(SentenceCue.DONE, 0) + 1
    if INTENT_PATTERN.match(sentence.text):
        found[SentenceCue.INTENT] = 1
    if sentence.heading and _COMES_NEXT.search(sentence.heading):
        found[SentenceCue.NEXT] = found.get(SentenceCue.NEXT, 0) + 2
    return found


def _split_words(text: str) -> list[str]:
    """Return the words of a sentence, and the word pairs that may be cues."""
    words: list[str] = _CUE_WORD.findall(text.lower().replace("\u2019", "'"))
    return words + [f"{one} {two}" for one, two in pairwise(words) if one in _BEGIN_PAIRS]


def find_stems(text: str) -> frozenset[str]:
    """Return the beginnings of a text's longer words, to match texts on the same subject."""
    return frozenset(word[:_STEM_CHARS] for word in _LONG_WORD.findall(text.casefold()))


def iter_sentences(text: str) -> Iterator[Sentence]:
    """Yield a text's prose as sentences: no code, tables, quotations or tags.

    Of a long text only both ends are read.
    """
    if len(text) > 2 * _MAX_TEXT_CHARS:
        text = f"{text[:_MAX_TEXT_CHARS]}\n\n{text[-_MAX_TEXT_CHARS:]}"
    chapter = lead = ""
    for paragraph, is_item in _iter_paragraphs(text):
        if heading := _HEADING.fullmatch(paragraph):
            chapter, lead = heading[1], ""
            continue
        if (found := _LEAD.fullmatch(paragraph)) and not INTENT_PATTERN.match(paragraph):
            lead = found[1] or found[2]
            continue
        if not is_item:
            lead = ""
        said = paragraph
        if title := _TITLE.match(paragraph):
            lead, said = title[1], paragraph[title.end() :]
        for sentence in (_END if said.isascii() else _END_UNSPACED).split(said):
            if len(sentence) > 5 or not sentence.isascii():
                yield Sentence(sentence.strip(), lead or chapter)


def _iter_paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield lines, with wrapped ones joined, and whether each is a list item."""
    is_code = False
    pending, is_item = "", False
    for line in text.split("\n"):
        is_fence = _FENCE.match(line) is not None
        is_code ^= is_fence
        is_prose = not (is_fence or is_code or _SKIPPED.match(line))
        item = _ITEM.match(line) if is_prose else None
        if is_prose and not item and len(pending) > 50 and line.lstrip()[:1].islower():
            pending = f"{pending} {line.strip()}"
            continue
        if pending:
            yield pending, is_item
        pending = "" if not is_prose else line[item.end() :].strip() if item else line.strip()
        is_item = item is not None
    if pending:
        yield pending, is_item
