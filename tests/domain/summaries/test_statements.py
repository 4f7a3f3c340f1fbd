"""A summary says what is likely to be needed, once, in whole quotes of the log."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cutbank import Block, BlockKind, Material, ToolResult, WindowItem
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.needs import FACT_WEIGHTS, PAIR_WEIGHTS, NeedCounts, ReadItem
from cutbank.domain.summaries.statements import MAX_END_CHARS, BlockReader

WORDS = ("rivers", "carry", "sediment", "src/delta.py", "load_rows", "v1.2.3", "because", "--fast")


def make_items(*texts: str, kind: BlockKind = BlockKind.ASSISTANT) -> tuple[WindowItem, ...]:
    return tuple(
        WindowItem(at, Block(kind=kind, text=text), 1, max(1, len(text) // 4))
        for at, text in enumerate(texts, start=1)
    )


def make_material(items: tuple[WindowItem, ...]) -> Material:
    covers = Ranges.span(1, items[-1].position)
    return Material(removed_items=items, covers=covers, budget=400)


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=4, max_size=20), min_size=1, max_size=30))
def test_every_statement_is_a_contiguous_quote_of_its_block(texts: list[list[str]]) -> None:
    items = make_items(*(" ".join(words) for words in texts))
    reader = BlockReader()

    for item in items:
        for statement in reader.read(item.block).statements:
            assert statement.text in item.block.text


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


def test_of_a_long_result_both_ends_are_read_and_the_middle_is_not() -> None:
    middle = "src/middle.py is in the middle of it\n"
    text = "src/begin.py begins it, as is said\n" + middle.join(["." * MAX_END_CHARS + "\n"] * 2)
    text += "src/end.py ends it, as is said as well\n"

    facts = BlockReader().read(ToolResult(tool_call_id="c", content=text)).facts

    assert facts >= {"src/begin.py", "src/end.py"}
    assert "src/middle.py" not in facts


def test_each_feature_has_one_weight() -> None:
    reader = BlockReader()
    items = make_items("The parser of src/delta.py reads load_rows before anything else happens.")
    counts = NeedCounts([ReadItem(item, reader.read(item.block)) for item in items], [])

    assert {len(features) for _, features in counts.iter_facts()} == {len(FACT_WEIGHTS)}
    assert {len(features) for _, features in counts.iter_pairs()} == {len(PAIR_WEIGHTS)}
