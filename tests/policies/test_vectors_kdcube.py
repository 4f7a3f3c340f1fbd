"""Seed 000, line by line against what the original program answered."""

from typing import Any

import pytest
from dialects import kdcube
from dialects.kdcube import TimelineCompaction, TimelineCut, find_due_cut
from kdcube_vectors import compaction_of, find_orphan_results, ids, shipped, window_of, writer
from neutral_timeline import timeline_window
from vector_files import FOLDERS, Vector, lines_of

from cutbank import Trigger, WindowItem
from cutbank.domain.policies.reference.kdcube import count_overhead, iter_sizes
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


@pytest.mark.claim("S0.2", "S0.9", "S0.11", "S0.12", "S0.17", "S0.19", "S0.20", "S0.21", "S0.22")
@pytest.mark.claim("S0.23", "S0.24", "S0.26", "S0.27", "S0.38", "S0.41", "S0.43", "S0.44", "S0.48")
@FOLDERS
def test_vectors_are_answered(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        window, policy, compaction = window_of(vector), shipped(vector), compaction_of(vector)
        visible = kdcube.visible(compaction.blocks)
        found = {
            "block_tokens": list(iter_sizes(kdcube.in_memory(window))),
            "sys_est": count_overhead(window),
            "total_est": policy.count_in_use(window),
            "trigger": vector["config"]["force"] or policy.fires(window),
            "cut": told(find_due_cut(policy, window)),
            "compacted": compaction.summary is not None,
            "updated_ids": ids(compaction.blocks, vector["input"]),
            "visible_ids": ids(visible, vector["input"]),
            "orphan_results_in_kept": ids(find_orphan_results(visible), vector["input"]),
            **requests_of(vector, compaction),
        }
        if "orphan_results_in_kept" not in vector["expected"]:
            del found["orphan_results_in_kept"]
        assert found == {name: vector["expected"][name] for name in found}, vector["vector"]


def requests_of(vector: Vector, compaction: TimelineCompaction) -> dict[str, Any]:
    asked = {one.part: one for one in compaction.asked}
    history, prefix = asked.get(SummaryPart.HISTORY), asked.get(SummaryPart.TURN)
    found: dict[str, Any] = dict.fromkeys(
        ("history_call", "serialized_history", "files", "prefix_call")
    )
    if history is not None:
        read, modified = list_touched_files(history.items)
        found["history_call"] = {
            "ids": ids(history.items, vector["input"]),
            "max_tokens": history.budget,
            "previous_summary": history.previous,
        }
        template = shipped(vector).make_template()
        found["serialized_history"] = template.render_conversation(history.items)
        found["files"] = {"read": read, "modified": modified}
    if prefix is not None:
        ids_of_prefix = ids(prefix.items, vector["input"])
        found["prefix_call"] = {"ids": ids_of_prefix, "max_tokens": prefix.budget}
    return found


@FOLDERS
def test_vectors_of_a_second_pass_that_nobody_forces(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        if "second_pass_unforced" not in vector["expected"]:
            continue
        first = compaction_of(vector)
        blocks = [
            vector["input"][item.position - 1] if item.position else new_summary(item, first)
            for item in first.blocks
        ]
        window = timeline_window(blocks, vector["config"], Trigger.THRESHOLD)
        second = kdcube.compacted(window, shipped(vector), writer(vector))
        found = {
            "summaries_added": len(second.blocks) - len(first.blocks),
            "cut": told(second.cut),
            "visible_ids": ids(kdcube.visible(second.blocks), blocks),
        }
        expected = vector["expected"]["second_pass_unforced"]
        assert found == {name: expected[name] for name in found}, vector["vector"]


def new_summary(item: WindowItem, compaction: TimelineCompaction) -> dict[str, Any]:
    """The summary that was just written, as a neutral block."""
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
