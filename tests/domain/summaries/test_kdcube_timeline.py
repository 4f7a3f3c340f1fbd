"""What kdcube's timeline says of a block, where no vector shows it."""

from cutbank.domain.blocks import Block, Origin, ToolCall
from cutbank.domain.summaries.kdcube_template import read_timeline_entry, render_shown_text


def test_an_entry_that_says_nothing_leaves_the_block_to_speak() -> None:
    for entry in ("", "no json", "[1]", '{"meta": 3}', "{}", None):
        block = Block.user("u").model_copy(update={"origin": Origin(format="kdcube", entry=entry)})
        read = read_timeline_entry(block)

        assert (read.type, render_shown_text(block)) == ("user.prompt", "u"), entry
        assert (read.is_hidden, read.replacement) == (False, ""), entry


def test_a_call_is_the_json_that_the_timeline_holds() -> None:
    for arguments, params in (('{"a": "é"}', '{"a": "\\u00e9"}'), ("é", '"\\u00e9"'), ("{}", "{}")):
        call = ToolCall(tool_call_id="c", name="t", arguments=arguments)
        text = f'{{"tool_id": "t", "tool_call_id": "c", "params": {params}}}'
        assert render_shown_text(call) == text
