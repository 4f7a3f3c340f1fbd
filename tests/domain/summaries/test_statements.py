"""A summary says what is likely to be needed, once, in whole quotes of the log."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cutbank import Block, BlockKind, Material, ToolCall, ToolResult, WindowItem
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.needs import FACT_WEIGHTS, PAIR_WEIGHTS, NeedCounts, ReadItem
from cutbank.domain.summaries.statements import MAX_STATEMENT_CHARS, BlockReader

WORDS = ("rivers", "carry", "sediment", "src/delta.py", "load_rows", "v1.2.3", "because", "--fast")
LEAD_INS = ("Now", "let me", "then I'll", "so", "I need to")


def make_items(*texts: str, kind: BlockKind = BlockKind.ASSISTANT) -> tuple[WindowItem, ...]:
    return tuple(
        WindowItem(at, Block(kind=kind, text=text), 1, max(1, len(text) // 4))
        for at, text in enumerate(texts, start=1)
    )


def make_result(text: str) -> ToolResult:
    return ToolResult(tool_call_id="c", content=text)


def make_material(items: tuple[WindowItem, ...]) -> Material:
    covers = Ranges.span(1, items[-1].position)
    return Material(removed_items=items, covers=covers, budget=400)


@given(
    st.lists(
        st.lists(st.sampled_from(WORDS + LEAD_INS), min_size=4, max_size=20),
        min_size=1,
        max_size=30,
    )
)
def test_every_statement_is_a_contiguous_quote_of_its_block(texts: list[list[str]]) -> None:
    items = make_items(*(" ".join(words) for words in texts))
    reader = BlockReader()

    for item in items:
        for statement in reader.read(item.block).sentences:
            assert statement.text in item.block.text


def test_the_title_that_a_model_puts_before_a_thought_is_no_part_of_its_sentence() -> None:
    for between in ("\n", " "):
        said = "I see that load_rows of src/delta.py is slow."
        thought = Block.thinking(f"**Reading the Rows**{between}{said}")
        assert [one.text for one in BlockReader().read(thought).sentences] == [said]
    defined = Block.thinking("**The cause**: load_rows of src/delta.py reads all of it.")
    assert [one.text for one in BlockReader().read(defined).sentences] == [defined.text]


def test_an_announcement_is_quoted_whole_if_it_says_what_for() -> None:
    long = "Let me check whether load_rows of src/delta.py reads the rows twice."
    block = Block.assistant(f"{long} Let me look at src/mouth.py.")

    assert [one.text for one in BlockReader().read(block).sentences] == [long]


def test_what_the_view_still_shows_is_not_said_again() -> None:
    said = "The parser of src/delta.py reads load_rows before anything else happens."
    other = "And src/mouth.py writes store_rows afterwards, in another order."
    material = make_material(make_items(said, other, "x" * 4_000))
    beside = replace(material, kept_items=(WindowItem(9, Block.assistant(said), 2, 20),))

    for shown, facts in ((material, ["load_rows", "store_rows"]), (beside, ["store_rows"])):
        text = ExtractiveSummarizer().summarize(shown).text
        assert [fact for fact in ("load_rows", "store_rows") if fact in text] == facts


def test_blocks_that_left_earlier_are_read_again_where_the_log_has_them() -> None:
    old = make_items("The parser of src/delta.py reads load_rows before anything else happens.")
    new = (WindowItem(2, Block.assistant("Nothing of note happened here since. " * 60), 2, 500),)
    material = replace(
        make_material(new), originals=lambda at: [i for i in old if i.position in at]
    )

    assert "load_rows" in ExtractiveSummarizer().summarize(material).text
    assert "load_rows" not in ExtractiveSummarizer().summarize(make_material(new)).text


def test_a_long_result_is_read_whole() -> None:
    middle = "src/middle.py is in the middle of it\n"
    text = f"src/begin.py begins it\n{'.' * 40_000}\n{middle}{'.' * 40_000}\nsrc/end.py ends it\n"

    facts = BlockReader().read(make_result(text)).facts

    assert facts >= {"src/begin.py", "src/middle.py", "src/end.py"}


LINES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=60), min_size=1, max_size=9)


@given(LINES, st.sampled_from(("src/delta.py", "load_rows", "v1.2.3", "--fast")))
def test_a_line_that_carries_a_fact_is_quoted_in_whole_words(
    lines: list[list[str]], fact: str
) -> None:
    text = "\n".join(" ".join(words) for words in lines)

    quotes = [one.text for one in BlockReader().list_lines_with(make_result(text), fact)]

    assert bool(quotes) == (fact in text)
    assert all(f" {quote} " in f" {' '.join(text.split())} " for quote in quotes)
    assert all(len(quote) <= MAX_STATEMENT_CHARS for quote in quotes)


def test_a_line_without_words_is_quoted_with_its_neighbors_as_well() -> None:
    text = (
        "def read_all(path):\n    # The parser skips rows\n    12 = load_rows()\n    return rows\n"
    )

    quotes = [one.text for one in BlockReader().list_lines_with(make_result(text), "load_rows")]

    assert quotes == [
        "12 = load_rows()",
        "# The parser skips rows 12 = load_rows()",
        "12 = load_rows() return rows",
    ]


def test_a_script_without_commands_is_quoted_by_what_it_asks_for() -> None:
    script = 'const r = await tools.web__run({query:[{q:"rows of lib/dates.py"}]}); text(r);'
    call = ToolCall(tool_call_id="c", name="exec", arguments=json.dumps({"input": script}))

    lines = [one.text for one in BlockReader().list_lines_with(call, "lib/dates.py")]

    assert lines == ["rows of lib/dates.py"]


def test_a_script_is_quoted_by_the_lines_of_its_commands_and_its_patch() -> None:
    script = (
        'const r = await tools.exec_command({cmd:"echo rivers\\nthe parser reads src/delta.py"});'
        'await tools.apply_patch("*** Begin Patch\\n+load_rows reads all rivers\\n*** End Patch");'
    )
    call = ToolCall(tool_call_id="c", name="exec", arguments=json.dumps({"input": script}))
    folder = "words " * 40 + "of the parser in C:\\new\\src/delta.py"

    (command,) = BlockReader().list_lines_with(call, "src/delta.py")
    (patch,) = BlockReader().list_lines_with(call, "load_rows")
    (other,) = BlockReader().list_lines_with(make_result(folder), "src/delta.py")

    assert command.text == "the parser reads src/delta.py"
    assert patch.text == "+load_rows reads all rivers"
    assert other.text.endswith(" of the parser in C:\\new\\src/delta.py")


def test_a_line_is_quoted_without_its_decoration() -> None:
    result = make_result("======= 12 passed in src/delta.py in 3.15s =======")

    (line,) = BlockReader().list_lines_with(result, "src/delta.py")

    assert line.text == "12 passed in src/delta.py in 3.15s"


def test_each_feature_has_one_weight() -> None:
    reader = BlockReader()
    items = make_items("The parser of src/delta.py reads load_rows before anything else happens.")
    counts = NeedCounts([ReadItem(item, reader.read(item.block)) for item in items], [])

    assert {len(features) for _, features in counts.iter_facts()} == {len(FACT_WEIGHTS)}
    assert {len(features) for _, features in counts.iter_pairs()} == {len(PAIR_WEIGHTS)}
