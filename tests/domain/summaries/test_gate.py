"""A draft that is not what it should be never comes to stand for anything."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from cutbank.domain.errors import RejectedSummaryError
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extractive import Extractive
from cutbank.domain.summaries.gate import ALWAYS_SMALL, RULES, TOLERANCE, Case, check
from cutbank.domain.summaries.scripts import LATIN, dominant, is_latin
from cutbank.domain.summaries.summarizer import Draft, Material

USER_TEXTS = ["Fix the  parser,\nplease: it says “line 3...” and stops.", "Never push to main!"]
MATERIAL = Material(
    gone=(Item(2, Block.user(USER_TEXTS[0]), turn=1, tokens=5_000),),
    covers=Ranges([(1, 40)]),
    budget=1_000,
)


def rejected_by(draft: Draft, material: Material = MATERIAL) -> str:
    with pytest.raises(RejectedSummaryError) as caught:
        check(draft, material, user_texts=USER_TEXTS)
    assert caught.value.reason
    assert str(caught.value) == f"{caught.value.rule}: {caught.value.reason}"
    return caught.value.rule


def passes(text: str, material: Material = MATERIAL) -> None:
    check(Draft(text), material, user_texts=USER_TEXTS)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_text_is_rejected(text: str) -> None:
    assert rejected_by(Draft(text)) == "empty"


def test_a_text_that_was_cut_off_is_rejected() -> None:
    assert rejected_by(Draft("## Goal\n- Fix the", was_truncated=True)) == "truncated"


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n{}\n</tool_call>",
        "I will look first. <function_calls><invoke name='x'>",
        "<|python_tag|>open()",
        "[TOOL_CALLS] [{}]",
        '{"tool_calls": []}',
        '{"name": "bash", "arguments": {"command": "ls"}}',
        '```json\n[{"name": "bash", "input": {}}]\n```',
    ],
)
def test_a_tool_call_is_no_summary(text: str) -> None:
    assert rejected_by(Draft(text)) == "tool-calling"


@pytest.mark.parametrize(
    "text",
    [
        "The gate knows `<tool_call>` markup.",
        "Found:\n```xml\n<tool_call>\n```\nand fixed it.",
        '{"name": "a person"}',
        "{not json",
        "[1, 2]",
    ],
)
def test_a_text_may_speak_of_tool_calls(text: str) -> None:
    passes(text)


def test_a_text_over_its_budget_is_rejected() -> None:
    most = int(MATERIAL.budget * TOLERANCE)

    passes("x" * 4 * most)
    assert rejected_by(Draft("x" * 4 * (most + 1))) == "oversized"


def test_a_text_as_large_as_what_it_replaces_is_rejected() -> None:
    little = replace(MATERIAL, gone=(Item(2, Block.user("x"), turn=1, tokens=50),))

    passes("x" * 4 * 49, little)
    assert rejected_by(Draft("x" * 4 * 50), little) == "not-smaller"


def test_the_summary_before_is_replaced_too() -> None:
    little = replace(MATERIAL, gone=(Item(2, Block.user("x"), turn=1, tokens=50),))

    passes("x" * 4 * 59, replace(little, previous="y" * 4 * 10))


def test_a_text_of_a_line_is_always_small_enough() -> None:
    passes("x" * 4 * ALWAYS_SMALL, replace(MATERIAL, gone=()))


@pytest.mark.parametrize(
    "line",
    [
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
)
def test_what_the_user_said_may_be_quoted(line: str) -> None:
    passes(line)


@pytest.mark.parametrize(
    "line",
    [
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
)
def test_what_the_user_never_said_is_rejected(line: str) -> None:
    assert rejected_by(Draft(f"## Progress\n- much\n{line}\n- more")) == "misquoted-user"


def test_no_quote_stands_where_no_user_spoke() -> None:
    with pytest.raises(RejectedSummaryError, match="never said"):
        check(Draft('User: "..."'), MATERIAL, user_texts=[])


def test_a_handle_of_something_else_is_rejected() -> None:
    assert rejected_by(Draft("done (#41)", cites=Ranges([(40, 41)]))) == "cites-elsewhere"
    check(Draft("done (#40)", cites=Ranges([(40, 40)])), MATERIAL, user_texts=[])


ENGLISH = "Please fix the parser, it stops at line three of every file that begins with a comment."
CHINESE = "请修复解析器。它在每个文件的第三行停止。测试还没有通过。"
JAPANESE = "パーサーを修正してください。三行目で止まります。"
RUSSIAN = "Почини разборщик, он останавливается на третьей строке каждого файла."
KOREAN = "파서를 고쳐 주세요. 모든 파일의 세 번째 줄에서 멈춥니다."


def talk(*blocks: AnyBlock | str, **more: Any) -> Material:
    """What leaves of a session; a plain text is the user's."""
    said = [Block.user(block) if isinstance(block, str) else block for block in blocks]
    items = tuple(Item(at, block, turn=1, tokens=5_000) for at, block in enumerate(said, 1))
    return replace(MATERIAL, gone=items, **more)


def answered(text: str) -> tuple[AnyBlock, AnyBlock]:
    call = ToolCall(tool_call_id="c", name="fetch", arguments={"url": "https://a.example"})
    return call, ToolResult(tool_call_id="c", content=text)


@pytest.mark.parametrize(
    ("said", "summary"),
    [(ENGLISH, CHINESE), (ENGLISH, RUSSIAN), (RUSSIAN, CHINESE), (KOREAN, CHINESE)],
)
def test_a_summary_in_letters_that_nobody_used_is_rejected(said: str, summary: str) -> None:
    text = f"## Goal\n- {summary}\n\n## Progress\n- `src/parser.py`: {summary} (#1)"

    assert rejected_by(Draft(text), talk(said, Block.assistant(said))) == "other-language"


def test_a_tool_result_does_not_choose_the_language() -> None:
    material = talk(ENGLISH, *answered(CHINESE), Block.thinking(CHINESE))

    assert rejected_by(Draft(f"- {CHINESE}"), material) == "other-language"


def test_the_name_of_a_person_does_not_choose_the_language() -> None:
    assert rejected_by(Draft(f"- {CHINESE}"), talk(ENGLISH + " (李明)")) == "other-language"


@pytest.mark.parametrize(
    ("summary", "material"),
    [
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
    ],
)
def test_a_summary_may_use_any_letters_that_were_used(summary: str, material: Material) -> None:
    passes(summary, material)


def test_what_the_user_said_is_quoted_in_any_letters() -> None:
    material = talk(ENGLISH)
    draft = Draft(f'- {ENGLISH}\n- User: "{CHINESE}" (#1)')

    check(draft, material, user_texts=[CHINESE])


@pytest.mark.parametrize("said", [CHINESE, JAPANESE, RUSSIAN, KOREAN])
def test_the_rules_own_summary_passes_in_any_language(said: str) -> None:
    material = talk(said, Block.assistant(said), *answered(ENGLISH * 20), Block.assistant(said))

    check(Extractive().summarise(material), material, user_texts=[said])


def test_each_rule_has_a_name_and_they_are_asked_in_order() -> None:
    assert list(RULES) == [
        "empty",
        "truncated",
        "tool-calling",
        "oversized",
        "not-smaller",
        "other-language",
        "misquoted-user",
        "cites-elsewhere",
    ]


@given(st.text(st.characters() | st.sampled_from('User:"…>#`<\n\ud800 ')), st.lists(st.text()))
def test_any_text_is_judged(text: str, user_texts: list[str]) -> None:
    with suppress(RejectedSummaryError):
        check(Draft(text), MATERIAL, user_texts=user_texts)


@given(st.text(st.characters(exclude_characters="\n") | st.sampled_from(' "…')), st.data())
def test_any_piece_of_what_the_user_said_may_be_quoted(said: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(said)))
    end = data.draw(st.integers(begin, len(said)))

    check(Draft(f'x\n- User: "{said[begin:end]}" (#2)'), MATERIAL, user_texts=[said])


@pytest.mark.parametrize(
    ("said", "quote"),
    [("000\x1b1", "1"), ("a\x1b[31mred\x1b[0m", "1mred\x1b[0m"), ("a\x1b[1mb", "ab")],
)
def test_a_quote_may_begin_inside_a_terminal_code_or_leave_it_out(said: str, quote: str) -> None:
    check(Draft(f'x\n- User: "{quote}" (#2)'), MATERIAL, user_texts=[said])


BARE = "Now <tool_call> it"
HARMLESS = ["plain words", "`<tool_call>` is markup", '- User: "<tool_call>" (#2)', "", "<invoked>"]


@given(st.lists(st.sampled_from([BARE, *HARMLESS]), max_size=6))
def test_markup_counts_in_whichever_line_it_stands(lines: list[str]) -> None:
    case = Case(Draft("\n".join(lines)), MATERIAL, ())

    assert (RULES["tool-calling"](case) is not None) == (BARE in lines)


@given(st.lists(st.sampled_from([BARE, *HARMLESS]), max_size=6))
def test_markup_between_fences_never_counts(lines: list[str]) -> None:
    case = Case(Draft("\n".join(["```", *lines, "```"])), MATERIAL, ())

    assert RULES["tool-calling"](case) is None


@given(
    st.text(st.characters(codec="utf-8"), max_size=80), st.sampled_from(["", "й" * 40, "日" * 14])
)
def test_no_other_script_is_ever_overlooked(text: str, more: str) -> None:
    assert not is_latin(text + more) or dominant(text + more) in {None, LATIN}
    assert not (more and is_latin(text + more))
