"""Whatever left the view is recalled word for word, and what is not there is named."""

import pytest
from short_sessions import call, compacted, result

from cutbank import Block, StoredSession, ToolResult
from cutbank.domain.errors import (
    InvalidPositionError,
)
from cutbank.domain.ranges import Ranges


def test_recall_gives_back_what_left_the_view(session: StoredSession, five: list[int]) -> None:
    original = {entry.position: entry.block for entry in session.view().entries}
    session.hide(five[3])
    session.retract(five[4])
    compacted(session, five[2])

    recalled = session.recall(Ranges.span(five[0], five[4]))

    assert {block.position: block.block for block in recalled} == original
    assert [block.handle for block in recalled] == [f"#{at}" for at in five]
    assert session.recall(five[0], five[4])[1].block == original[five[4]]


def test_recall_searches_words_and_names(session: StoredSession) -> None:
    session.append(Block.user("Straße nach Köln"), call("c1"), Block.note("a note of roads"))
    session.append(result("c1", "ROADS everywhere"))

    def found(text: str, *where: int | Ranges) -> list[int]:
        return [block.position for block in session.recall(*where, search=text)]

    first = session.view().entries[0].position
    assert found("STRASSE") == [first]
    assert found("roads") == [first + 2, first + 3]
    assert found("roads", Ranges.span(1, first + 2)) == [first + 2]
    assert found("read") == [first + 1]  # a tool's name
    assert found("nowhere") == []


def test_recall_reads_long_ranges_and_skips_what_is_no_block(session: StoredSession) -> None:
    session.append(*(Block.note(f"note {number}") for number in range(1_200)))
    session.end_turn()
    session.append(Block.user("last"))

    recalled = session.recall(Ranges.span(1, session.position))

    assert len(recalled) == 1_201
    assert recalled[1_199].block.text == "note 1199"
    assert [b.position for b in recalled] == sorted(b.position for b in recalled)


def test_recall_says_what_does_not_exist(session: StoredSession, five: list[int]) -> None:
    with pytest.raises(InvalidPositionError, match=f"#999 does not exist.*ends at #{five[-1]}"):
        session.recall(999)
    with pytest.raises(InvalidPositionError, match="#1 is not a block"):
        session.recall(1, five[0])
    with pytest.raises(InvalidPositionError, match="give handles, or text to search"):
        session.recall()


def test_an_abandoned_call_s_answer_can_be_recalled(session: StoredSession) -> None:
    session.append(call("c1"))
    session.cancel_tool_call("c1", "too slow")

    (block,) = session.recall(session.position)

    assert block.block == ToolResult(tool_call_id="c1", content="too slow", is_error=True)
