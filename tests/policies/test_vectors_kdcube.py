"""Seed 000, line by line against what the original program answered."""

from collections.abc import Iterator
from typing import Any

import pytest
from dialects import kdcube
from dialects.kdcube import TimelineCompaction, TimelineCut, find_due_cut
from kdcube_vectors import compaction_of, find_orphan_results, ids, shipped, window_of, writer
from neutral_timeline import timeline_window
from vector_files import FOLDERS, Vector, lines_of

from cutbank.domain.compaction_events import Trigger
from cutbank.domain.item import Item
from cutbank.domain.summaries.kdcube_template import list_touched_files
from cutbank.domain.summaries.summarizer import SummaryPart


def told(cut: TimelineCut | None) -> dict[str, Any] | None:
    """A cut as the vectors tell it: the block at position 1 has index 0."""
    if cut is None:
        return None
    return {
        "boundary_start": cut.start - 1,
        "boundary_end": cut.end,
        "keep_recent_tokens": cut.keep,
        "cut_index": cut.first_kept - 1,
        "turn_start_index": -1 if cut.turn_start is None else cut.turn_start - 1,
        "is_split_turn": cut.turn_start is not None,
    }


@pytest.mark.claim("S0.21", "S0.22", "S0.43")
@FOLDERS
def test_vectors_of_token_estimates_and_the_trigger(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        expected, name, policy = vector["expected"], vector["vector"], shipped(vector)
        window = window_of(vector)
        blocks = kdcube.in_memory(window)
        assert list(policy.sizes.iter_sizes(blocks)) == expected["block_tokens"], name
        assert policy.sizes.count_overhead(window) == expected["sys_est"], name
        assert policy.sizes.count_total(window) == expected["total_est"], name
        assert (vector["config"]["force"] or policy.fires(window)) == expected["trigger"], name


@pytest.mark.claim("S0.12", "S0.23", "S0.24")
@FOLDERS
def test_vectors_of_cuts(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        window, policy = window_of(vector), shipped(vector)
        assert told(find_due_cut(policy, window)) == vector["expected"]["cut"], vector["vector"]


@pytest.mark.claim("S0.2", "S0.9", "S0.11", "S0.19", "S0.27", "S0.41", "S0.44")
@FOLDERS
def test_vectors_of_what_is_compacted(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        expected, name = vector["expected"], vector["vector"]
        blocks, compaction = vector["input"], compaction_of(vector)
        assert (compaction.summary is not None) == expected["compacted"], name
        assert ids(compaction.blocks, blocks) == expected["updated_ids"], name
        assert ids(kdcube.visible(compaction.blocks), blocks) == expected["visible_ids"], name
        if "orphan_results_in_kept" in expected:
            orphans = ids(find_orphan_results(kdcube.visible(compaction.blocks)), blocks)
            assert orphans == expected["orphan_results_in_kept"], name


@pytest.mark.claim("S0.17", "S0.20", "S0.26", "S0.38", "S0.48")
@FOLDERS
def test_vectors_of_what_summaries_are_asked_for(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        expected, name = vector["expected"], vector["vector"]
        form, asked = (
            shipped(vector).make_template(),
            {a.part: a for a in compaction_of(vector).asked},
        )
        history, prefix = asked.get(SummaryPart.HISTORY), asked.get(SummaryPart.TURN)
        if history is None:
            assert expected["history_call"] is expected["serialized_history"] is None, name
            assert expected["files"] is None, name
        else:
            call = {
                "ids": ids(history.items, vector["input"]),
                "max_tokens": history.budget,
                "previous_summary": history.previous,
            }
            assert call == expected["history_call"], name
            assert form.render_conversation(history.items) == expected["serialized_history"], name
            files = list_touched_files(history.items)
            assert {
                "read": list(files.read),
                "modified": list(files.modified),
            } == expected["files"], name
        if prefix is None:
            assert expected["prefix_call"] is None, name
        else:
            call = {"ids": ids(prefix.items, vector["input"]), "max_tokens": prefix.budget}
            assert call == expected["prefix_call"], name


def persisted_anew(vector: Vector, compaction: TimelineCompaction) -> Iterator[dict[str, Any]]:
    """The timeline after a compaction, as neutral blocks again."""
    for item in compaction.blocks:
        is_new = item.position == 0
        yield new_summary(item, compaction) if is_new else vector["input"][item.position - 1]


def new_summary(item: Item, compaction: TimelineCompaction) -> dict[str, Any]:
    assert compaction.summary is not None
    return {
        "id": "SUMMARY_NEW",
        "turn_id": compaction.turn,
        "kind": "summary",
        "text": item.block.text,
        "tool_call_id": "",
        "tool_name": "",
        "hidden": False,
        "meta": {},
    }


@FOLDERS
def test_vectors_of_a_second_pass_that_nobody_forces(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        if "second_pass_unforced" not in vector["expected"]:
            continue
        expected, first = vector["expected"]["second_pass_unforced"], compaction_of(vector)
        blocks = list(persisted_anew(vector, first))
        window = timeline_window(blocks, vector["config"], Trigger.THRESHOLD)
        second = kdcube.compacted(window, shipped(vector), writer(vector))
        assert len(second.blocks) - len(first.blocks) == expected["summaries_added"]
        assert told(second.cut) == expected["cut"], vector["vector"]
        assert ids(kdcube.visible(second.blocks), blocks) == expected["visible_ids"], vector[
            "vector"
        ]
