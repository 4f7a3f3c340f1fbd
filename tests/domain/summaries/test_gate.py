"""A draft that is not what it should be never comes to stand for anything."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.errors import RejectedSummaryError
from cutbank.domain.item import WindowItem
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.gate import SIZE_TOLERANCE, check_draft
from cutbank.domain.summaries.summarizer import ALWAYS_SMALL_TOKENS, Draft, Material

USER_TEXTS = ["Fix the  parser,\nplease: it says “line 3...” and stops.", "Never push to main!"]
MATERIAL = Material(
    removed_items=(WindowItem(2, Block.user(USER_TEXTS[0]), turn=1, tokens=5_000),),
    covers=Ranges([(1, 40)]),
    budget=1_000,
)


def rule_of(draft: Draft | str, material: Material = MATERIAL) -> str | None:
    """The rule that rejects a draft; None where it passes."""
    try:
        check_draft(
            Draft(draft) if isinstance(draft, str) else draft, material, user_texts=USER_TEXTS
        )
    except RejectedSummaryError as rejected:
        return rejected.rule
    return None


TEXTS: dict[str | None, list[str]] = {
    "empty": ["", " \n\t"],
    "tool-calling": [
        "<tool_call>\n{}\n</tool_call>",
        "I will look first. <function_calls><invoke name='x'>",
        "<|python_tag|>open()",
        "[TOOL_CALLS] [{}]",
        '{"tool_calls": []}',
        '{"name": "bash", "arguments": {"command": "ls"}}',
        '```json\n[{"name": "bash", "input": {}}]\n```',
    ],
    "misquoted-user": [
        'User: "Fix the lexer"',
        '- User: "Push to main" (#2)',
        '- **User**: "please fix the parser"',
        'The user asked: "stops. Fix the parser"',
        'The user asked: "and stops… Fix the parser"',
        'Human: "yes, delete it all"',
        'User: "Fix the parser" and "push it"',
        "## Goal\n> Fix everything (#2)",
        "## Constraints & Preferences\n- none\n> Always push to main",
        'User: "Fix the parser, please" (#2) (#3) "and more"',
    ],
    # A text may speak of tool calls, and quote what the user said.
    None: [
        "The gate knows `<tool_call>` markup.",
        "Found:\n```xml\n<tool_call>\n```\nand fixed it.",
        '{"name": "a person"}',
        "{not json",
        "[1, 2]",
        'User: "Fix the parser, please: it says “line 3...” and stops."',
        '- User: "Fix the parser, please" (#2)',
        "* **User**: “Never push to main!”",
        '1. The user asked: "Fix the parser… and stops." (#2)',
        'User (later): "Never push to main"',
        'User: "Fix the parser" is done',
        'User: "Fix the parser" and "Never push to main!" (#2, #7)',
        "## Constraints\n> Never push to main! (#7)",
        "## Goal\n> Fix the ... stops.",
        "The user wants the parser fixed.",
        "User: wants the parser fixed",
        '## Critical Context\n> "error: no such file"',
        'Said "yes" to everything.',
    ],
}
"""Texts by the rule that rejects them."""


@pytest.mark.parametrize("rule", TEXTS)
def test_a_text_is_rejected_by_its_rule_or_not_at_all(rule: str | None) -> None:
    texts = TEXTS[rule]
    if rule == "misquoted-user":
        texts = [f"## Progress\n- much\n{line}\n- more" for line in texts]

    assert {text: rule_of(text) for text in texts} == dict.fromkeys(texts, rule)


def test_a_rejection_says_what_is_wrong() -> None:
    with pytest.raises(RejectedSummaryError, match=r"^truncated: \w"):
        check_draft(
            Draft("## Goal\n- Fix the", was_truncated=True), MATERIAL, user_texts=USER_TEXTS
        )
    with pytest.raises(RejectedSummaryError, match="never said"):
        check_draft(Draft('User: "..."'), MATERIAL, user_texts=[])


def test_a_text_over_its_budget_is_rejected() -> None:
    most = int(MATERIAL.budget * SIZE_TOLERANCE)

    assert rule_of("x" * 4 * most) is None
    assert rule_of("x" * 4 * (most + 1)) == "oversized"


def test_a_text_as_large_as_what_it_replaces_is_rejected() -> None:
    little = replace(MATERIAL, removed_items=(WindowItem(2, Block.user("x"), turn=1, tokens=50),))

    assert rule_of("x" * 4 * 49, little) is None
    assert rule_of("x" * 4 * 50, little) == "not-smaller"
    assert rule_of("x" * 4 * 59, replace(little, previous="y" * 4 * 10)) is None
    assert rule_of("x" * 4 * ALWAYS_SMALL_TOKENS, replace(MATERIAL, removed_items=())) is None


def test_a_handle_of_something_else_is_rejected() -> None:
    assert rule_of(Draft("done (#41)", cites=Ranges([(40, 41)]))) == "cites-elsewhere"
    check_draft(Draft("done (#40)", cites=Ranges([(40, 40)])), MATERIAL, user_texts=[])


ENGLISH = "Please fix the parser, it stops at line three of every file that begins with a comment."
CHINESE = "请修复解析器。它在每个文件的第三行停止。测试还没有通过。"
JAPANESE = "パーサーを修正してください。三行目で止まります。"
RUSSIAN = "Почини разборщик, он останавливается на третьей строке каждого файла."
KOREAN = "파서를 고쳐 주세요. 모든 파일의 세 번째 줄에서 멈춥니다."


def talk(*blocks: AnyBlock | str, **more: Any) -> Material:
    """What leaves of a session; a plain text is the user's."""
    said = [Block.user(block) if isinstance(block, str) else block for block in blocks]
    items = tuple(WindowItem(at, block, turn=1, tokens=5_000) for at, block in enumerate(said, 1))
    return replace(MATERIAL, removed_items=items, **more)


def answered(text: str) -> tuple[AnyBlock, AnyBlock]:
    call = ToolCall(tool_call_id="c", name="fetch", arguments={"url": "https://a.example"})
    return call, ToolResult(tool_call_id="c", content=text)


def test_a_summary_in_letters_that_nobody_used_is_rejected() -> None:
    pairs = [(ENGLISH, CHINESE), (ENGLISH, RUSSIAN), (RUSSIAN, CHINESE), (KOREAN, CHINESE)]
    for said, summary in pairs:
        text = f"## Goal\n- {summary}\n\n## Progress\n- `src/parser.py`: {summary} (#1)"
        assert rule_of(text, talk(said, Block.assistant(said))) == "other-language"


def test_neither_a_tool_result_nor_a_name_chooses_the_language() -> None:
    answered_so = talk(ENGLISH, *answered(CHINESE), Block.thinking(CHINESE))

    assert rule_of(f"- {CHINESE}", answered_so) == "other-language"
    assert rule_of(f"- {CHINESE}", talk(ENGLISH + " (李明)")) == "other-language"


def test_a_summary_may_use_any_letters_that_were_used() -> None:
    rows = [
        (CHINESE, talk(CHINESE)),
        (CHINESE, talk(ENGLISH, CHINESE)),
        (CHINESE, talk(ENGLISH, Block.assistant(CHINESE))),
        (CHINESE, talk(ENGLISH, instructions=CHINESE)),
        (CHINESE, talk(ENGLISH, previous=CHINESE)),
        (CHINESE, talk(*answered(ENGLISH))),
        (CHINESE, talk("ok")),
        (JAPANESE, talk("漢字" * 10)),
        ("おねがいします。" * 8, talk("漢字" * 10)),
        (ENGLISH, talk(CHINESE)),
        (ENGLISH, talk(RUSSIAN)),
        (f"{ENGLISH} 李明", talk(ENGLISH)),
        (f"{ENGLISH} `{CHINESE}`", talk(ENGLISH)),
        (f"```\n{CHINESE * 9}\n```\n{ENGLISH}", talk(ENGLISH)),
        ("✓ → … δ + λ = π", talk(ENGLISH)),
    ]

    assert not [
        (summary, rule) for summary, material in rows if (rule := rule_of(summary, material))
    ]


def test_the_rules_own_summary_passes_in_any_language() -> None:
    quoting = Draft(f'- {ENGLISH}\n- User: "{CHINESE}" (#1)')
    check_draft(quoting, talk(ENGLISH), user_texts=[CHINESE])
    for said in (CHINESE, JAPANESE, RUSSIAN, KOREAN):
        material = talk(said, Block.assistant(said), *answered(ENGLISH * 20), Block.assistant(said))
        check_draft(ExtractiveSummarizer().summarize(material), material, user_texts=[said])


@given(st.text(st.characters() | st.sampled_from('User:"…>#`<\n\ud800 ')), st.lists(st.text()))
def test_any_text_is_judged(text: str, user_texts: list[str]) -> None:
    with suppress(RejectedSummaryError):
        check_draft(Draft(text), MATERIAL, user_texts=user_texts)


@given(st.text(st.characters(exclude_characters="\n") | st.sampled_from(' "…')), st.data())
def test_any_piece_of_what_the_user_said_may_be_quoted(said: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(said)))
    end = data.draw(st.integers(begin, len(said)))

    check_draft(Draft(f'x\n- User: "{said[begin:end]}" (#2)'), MATERIAL, user_texts=[said])


def test_a_quote_may_begin_inside_a_terminal_code_or_leave_it_out() -> None:
    for said, quote in [
        ("000\x1b1", "1"),
        ("a\x1b[31mred\x1b[0m", "1mred\x1b[0m"),
        ("a\x1b[1mb", "ab"),
    ]:
        check_draft(Draft(f'x\n- User: "{quote}" (#2)'), MATERIAL, user_texts=[said])


BARE = "Now <tool_call> it"
HARMLESS = ["plain words", "`<tool_call>` is markup", '- User: "<tool_call>" (#2)', "", "<invoked>"]


@given(st.lists(st.sampled_from([BARE, *HARMLESS]), max_size=6))
def test_markup_counts_in_whichever_line_it_stands_but_not_between_fences(lines: list[str]) -> None:
    assert (rule_of("\n".join(lines)) == "tool-calling") == (BARE in lines)
    assert rule_of("\n".join(["```", *lines, "```"])) != "tool-calling"
