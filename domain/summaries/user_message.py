"""Reads what a user's message says, without what a program put into it, and projects' rules."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ..blocks import AnyBlock
from .clean_text import ELLIPSIS, make_printable, tidy_line
from .prose import is_constraint, iter_sentences

# Tags of text that common agent programs insert into a user's message.
_INSERTED_TAGS = re.compile(
    r"<(system[-_]reminder|environment_\w+|INSTRUCTIONS|\w+_instructions|local-command-\w+"
    r"|command-(?:name|message|args|contents)|ide_\w+|[\w-]*hook[\w-]*|task-notification"
    r"|user_info|git_status)\b[^<>]*>"
)
_SENT_TIME = re.compile(r"<current_datetime>[^<>]*</current_datetime>\s*")
"""When it was sent, which a program puts before every message, however short."""
_NOT_A_REQUEST = re.compile(
    r"\[[^\[\]]*\]|/(?:clear|compact|context|cost|exit|login|model|resume|status|usage)"
)
"""What a program says in brackets, and a command to the program itself."""
_MAX_MESSAGE_CHARS = 40_000
"""The middle of a longer message is not a request."""
_GLANCE = 500
_MAX_RULES = 12


class UserMessage(NamedTuple):
    """What a user's message says, without the text that a program inserted."""

    said: str
    text: str
    """As one line."""
    is_request: bool
    is_pasted: bool
    """Whether it is long, so that its rules need not be the user's."""
    rules: tuple[str, ...]


def parse_user_message(block: AnyBlock) -> UserMessage:
    said = remove_inserted_text(block.text)
    text = tidy_line(said)
    # A line next to inserted text comes from the program as well.
    is_own = len(said) > 0.2 * min(len(_SENT_TIME.sub("", block.text)), _GLANCE)
    is_blank = not text.strip(f"{ELLIPSIS} ") or _NOT_A_REQUEST.fullmatch(text) is not None
    return UserMessage(
        said,
        text,
        is_request=is_own and not is_blank,
        is_pasted=len(said) >= 4_000,
        rules=tuple(iter_rules_in(said)),
    )


def remove_inserted_text(text: str) -> str:
    """Return a user's message without the text that a program inserted."""
    text = _SENT_TIME.sub("", make_printable(text))
    if len(text) > _MAX_MESSAGE_CHARS:
        text = f"{text[: _MAX_MESSAGE_CHARS // 2]} {ELLIPSIS} {text[-_MAX_MESSAGE_CHARS // 2 :]}"
    pieces: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _INSERTED_TAGS.finditer(text):
        if tag.start() < at or tag[1] in unclosed:
            continue
        closing = f"</{tag[1]}>"
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        pieces.append(text[at : tag.start()])
        at = end + len(closing)
    return f" {ELLIPSIS} ".join([*pieces, text[at:]]).strip(f"{ELLIPSIS} \t\r\n")


_PASTED = re.compile(
    "[^\\w\u276f$\u2502]*(?:[\u276f$\u2502\u256d\u2570]|\\[[^\\[\\]]*\\] |\\S+\\.\\w+:\\d+: "
    "|(?:error|warning|remote|fatal): |!\\[)"
)


def is_pasted_line(line: str) -> bool:
    """Check whether a line of a user's message is a program's: a prompt, a box, a log."""
    return _PASTED.match(line) is not None


def iter_rules_in(text: str) -> Iterator[str]:
    sentences = (sentence.text for sentence in iter_sentences(text))
    rules = (
        words
        for words in sentences
        if len(words) < 600 and is_constraint(words) and not is_pasted_line(words)
    )
    for rule in islice(rules, _MAX_RULES):
        words = tidy_line(rule).strip(f"{ELLIPSIS} ")
        if words and ELLIPSIS not in words and not words.endswith(":"):
            yield words


_PROJECT_FILE = re.compile(r"\b(?:AGENTS|CLAUDE|GEMINI|copilot-instructions)\.md\b")
_STRONG_RULE = re.compile(r"\b(?:never|must|only|always|do not|don't|cannot)\b", re.IGNORECASE)
_NOT_A_RULE = re.compile(r":$|\b(?:was|were|found|had)\b|^\W*\w[^.]{0,40}:\*\* ")
"""An announcement, what happened, and what a name means."""
_MAX_PROJECT_RULES = 40


def list_project_rules(block: AnyBlock) -> tuple[tuple[str, bool], ...]:
    """Return the rules in a block that shows a project's instructions, and whether each is strict.

    Such a block names the file of the instructions at its beginning, as `AGENTS.md`.
    """
    if not _PROJECT_FILE.search(block.text[:_GLANCE]):
        return ()
    sentences = (tidy_line(sentence.text) for sentence in iter_sentences(block.text))
    rules = (
        rule
        for rule in sentences
        if 12 < len(rule) < 300 and is_constraint(rule) and not _NOT_A_RULE.search(rule)
    )
    return tuple(
        (rule, bool(_STRONG_RULE.search(rule))) for rule in islice(rules, _MAX_PROJECT_RULES)
    )
