"""Judges a draft before it may stand for anything: each rule rejects in one sentence, with a reason."""

import json
import re
from collections.abc import Callable, Iterable, Sequence

from ..errors import RejectedSummaryError
from ..token_budget import estimate_text
from .quotes import comparable, quotes_in, stands_in
from .summariser import Draft, Material

TOLERANCE = 1.1
"""A model counts its tokens otherwise than we do; a text this much over its budget still passes."""
ALWAYS_SMALL = 32
"""Tokens that a text may take even where what it stands for is smaller still."""

Rule = Callable[[Draft, Material, Sequence[str]], str | None]
"""Says why a draft is rejected, if it is. The texts are the user's own, made comparable."""


def check(draft: Draft, material: Material, *, user_texts: Iterable[str]) -> None:
    """Raises RejectedSummaryError by the first rule of RULES that a draft breaks.

    `user_texts` are the texts of all user blocks of the session up to the boundary: what stood
    in an earlier summary may be quoted again.
    """
    texts = tuple(map(comparable, user_texts))
    for name, rule in RULES.items():
        if reason := rule(draft, material, texts):
            raise RejectedSummaryError(name, reason)


def replaced_tokens(material: Material) -> int:
    """Estimated tokens of what a text replaces: the blocks, and the summary before it."""
    return sum(item.tokens for item in material.gone) + estimate_text(material.previous or "")


def worthwhile(material: Material) -> int:
    """The most tokens that a text may take and still gain something."""
    return max(replaced_tokens(material) - 1, ALWAYS_SMALL)


def empty(draft: Draft, material: Material, texts: Sequence[str]) -> str | None:
    if draft.text.strip():
        return None
    return "the text is empty"


def truncated(draft: Draft, material: Material, texts: Sequence[str]) -> str | None:
    if not draft.was_truncated:
        return None
    return "the provider stopped at its output limit, so that the end is missing"


def calls_tools(draft: Draft, material: Material, texts: Sequence[str]) -> str | None:
    """A model that goes on with the task instead of summing it up."""
    if _is_json_call(draft.text):
        return "the text is a tool call in JSON"
    told = _CODE.sub("", "\n".join(_not_quoted(draft.text)))
    if markup := CALL_MARKUP.search(told):
        return f"the text calls a tool: {markup[0]}"
    return None


def oversized(draft: Draft, material: Material, texts: Sequence[str]) -> str | None:
    tokens, most = estimate_text(draft.text), int(material.budget * TOLERANCE)
    if tokens <= most:
        return None
    return f"the text has {tokens:,} tokens, and {material.budget:,} were granted"


def not_smaller(draft: Draft, material: Material, texts: Sequence[str]) -> str | None:
    tokens = estimate_text(draft.text)
    if tokens <= worthwhile(material):
        return None
    return f"the text has {tokens:,} tokens and replaces {replaced_tokens(material):,}"


def misquotes(draft: Draft, material: Material, texts: Sequence[str]) -> str | None:
    for quote in quotes_in(draft.text):
        if not stands_in(quote, texts):
            return f"the user never said: {_start(quote)}"
    return None


def cites_elsewhere(draft: Draft, material: Material, texts: Sequence[str]) -> str | None:
    elsewhere = draft.cites - material.covers
    if not elsewhere:
        return None
    return f"the text cites {elsewhere}, which it does not stand for"


RULES: dict[str, Rule] = {
    "empty": empty,
    "truncated": truncated,
    "tool-calling": calls_tools,
    "oversized": oversized,
    "not-smaller": not_smaller,
    "misquoted-user": misquotes,
    "cites-elsewhere": cites_elsewhere,
}

CALL_MARKUP = re.compile(
    r"</?(?:antml:)?(?:tool_calls?|function_calls?|tool_use|invoke|function=|tool_code)\b[^<>\n]{0,80}>?"
    r"|<\|(?:tool|python_tag|channel\|>commentary to=)[^|\n]{0,40}\|?>?|\[TOOL_CALLS?\]",
    re.IGNORECASE,
)
_CODE = re.compile(r"^\s*```.*?^\s*```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"\s*```\w*\n(.*?)\n\s*```\s*", re.DOTALL)


def _not_quoted(text: str) -> Iterable[str]:
    """The lines of a text that are its own words."""
    return (line for line in text.split("\n") if not any(quotes_in(line)))


def _is_json_call(text: str) -> bool:
    fenced = _FENCED.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
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
