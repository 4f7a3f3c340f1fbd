"""Judges a draft before it may stand for anything; each rule says in one sentence why not."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from ..blocks import Kind
from ..errors import RejectedSummaryError
from ..token_budget import estimate_text
from .extraction.file_lists import without_lists
from .extraction.wording import REMEMBERED
from .quotes import comparables, quotes_in, stands_in
from .scripts import ENOUGH, LATIN, dominant, is_latin, letters
from .summariser import Draft, Material
from .tool_markup import call_in

TOLERANCE = 1.1
"""A model counts its tokens otherwise than we do; a text this much over its budget still passes."""
ALWAYS_SMALL = 32
"""Tokens that a text may take even where what it stands for is smaller still."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule judges by."""

    draft: Draft
    material: Material
    said: tuple[str, ...]
    """The user's own texts, made comparable."""


Rule = Callable[[Case], str | None]
"""Says why a draft is rejected, if it is."""


def check(draft: Draft, material: Material, *, user_texts: Iterable[str]) -> None:
    """Raises RejectedSummaryError by the first rule of RULES that a draft breaks.

    `user_texts` are the texts of all user blocks of the session up to the boundary: what stood
    in an earlier summary may be quoted again.
    """
    case = Case(draft, material, tuple(chain.from_iterable(map(comparables, user_texts))))
    for name, rule in RULES.items():
        if reason := rule(case):
            raise RejectedSummaryError(name, reason)


def replaced_tokens(material: Material) -> int:
    """Estimated tokens of what a text replaces: the blocks, and the summary before it."""
    return sum(item.tokens for item in material.gone) + estimate_text(material.previous or "")


def worthwhile(material: Material) -> int:
    """The most tokens that a text may take and still gain something."""
    return max(replaced_tokens(material) - 1, ALWAYS_SMALL)


def empty(case: Case) -> str | None:
    if case.draft.text.strip():
        return None
    return "the text is empty"


def truncated(case: Case) -> str | None:
    if not case.draft.was_truncated:
        return None
    return "the provider stopped at its output limit, so that the end is missing"


def calls_tools(case: Case) -> str | None:
    """A model that goes on with the task instead of summing it up."""
    if _is_json_call(case.draft.text):
        return "the text is a tool call in JSON"
    if markup := _markup_in(case.draft.text):
        return f"the text calls a tool: {markup}"
    return None


def oversized(case: Case) -> str | None:
    text, granted = case.draft.text, case.material.granted
    if case.material.form is not None:
        # No model wrote the lists of files, and the documents' budgets are for what it writes.
        text = without_lists(text)
    tokens = estimate_text(text)
    if tokens <= int(granted * TOLERANCE):
        return None
    return f"the text has {tokens:,} tokens, and {granted:,} were granted"


def not_smaller(case: Case) -> str | None:
    tokens = estimate_text(case.draft.text)
    if tokens <= worthwhile(case.material):
        return None
    return f"the text has {tokens:,} tokens and replaces {replaced_tokens(case.material):,}"


def other_language(case: Case) -> str | None:
    """A model that answers in a language that nobody in the session has used.

    Languages of one script are not told apart, and Latin is in every session: code, names, and
    what stands around them in a summary.
    """
    if is_latin(case.draft.text):
        return None
    own = "\n".join(line for line in _own_words(_CODE.sub("", case.draft.text)) if line[:1] != "#")
    script = dominant(own)
    if script is None or script == LATIN:
        return None
    written: Counter[str] = Counter()
    for text in _spoken(case.material):
        written += letters(text)
        if written[script] >= ENOUGH:
            return None
    if written.total() < ENOUGH:
        return None  # hardly a word was said
    return f"the text is written in {script} letters, and nothing that was said is"


def misquotes(case: Case) -> str | None:
    for quote in quotes_in(case.draft.text):
        if not stands_in(quote, case.said):
            return f"the user never said: {_start(quote)}"
    return None


def cites_elsewhere(case: Case) -> str | None:
    elsewhere = case.draft.cites - case.material.covers
    if not elsewhere:
        return None
    return f"the text cites {elsewhere}, which it does not stand for"


RULES: dict[str, Rule] = {
    "empty": empty,
    "truncated": truncated,
    "tool-calling": calls_tools,
    "oversized": oversized,
    "not-smaller": not_smaller,
    "other-language": other_language,
    "misquoted-user": misquotes,
    "cites-elsewhere": cites_elsewhere,
}

# Not what tools answered, which may be in any language, nor what a model thought to itself.
_SPEAKING = frozenset({Kind.USER, Kind.ASSISTANT, Kind.DEVELOPER, Kind.TOOL_CALL})
_FENCE = "```"
_CODE = re.compile(r"^[ \t]*```.*?^[ \t]*```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def _spoken(material: Material) -> Iterator[str]:
    """What people and the agent said, and the words in which the summary was asked for."""
    yield material.instructions or ""
    yield material.previous or ""
    yield from (item.block.text for item in material.gone if item.kind in _SPEAKING)


def _own_words(text: str) -> Iterable[str]:
    """The lines of a text that quote no user."""
    return (line for line in text.split("\n") if not _quotes(line))


@lru_cache(maxsize=REMEMBERED)
def _quotes(line: str) -> bool:
    return any(quotes_in(line))


def _markup_in(text: str) -> str | None:
    """The first markup of a tool call in a text, but for quotes and code."""
    if _FENCE in text:
        return call_in(_CODE.sub("", "\n".join(_own_words(text))))
    # No markup goes on in the next line, and no code but between fences.
    return next(filter(None, map(_markup_in_line, text.split("\n"))), None)


@lru_cache(maxsize=REMEMBERED)
def _markup_in_line(line: str) -> str | None:
    return None if _quotes(line) else call_in(_CODE.sub("", line))


def _is_json_call(text: str) -> bool:
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].partition("\n")[2].strip()
    if not text.startswith(("{", "[")):
        return False
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return False
    entries = tree if isinstance(tree, list) else [tree]
    return any(isinstance(entry, dict) and _is_call(entry) for entry in entries)


def _is_call(entry: dict[str, object]) -> bool:
    arguments = {"arguments", "input", "parameters", "args"}
    return bool({"tool_calls", "function_call", "tool_use"} & set(entry)) or (
        "name" in entry and bool(arguments & set(entry))
    )


def _start(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
