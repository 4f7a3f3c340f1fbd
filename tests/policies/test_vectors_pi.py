"""What pi answered, line by line: estimate, trigger, cut, preparation, requests, summary."""

from typing import Any

from neutral_blocks import Neutral
from neutral_session import NeutralSession
from pi_preparation import PiPreparation, find_pi_cut, prepare_like_pi
from vector_files import FOLDERS, Vector, lines_of

from cutbank.domain.compaction_events import Trigger
from cutbank.domain.messages import group_messages
from cutbank.domain.policies.catalog import build_policy
from cutbank.domain.policies.pi import Pi
from cutbank.domain.summaries.summarizer import SummaryPart
from cutbank.domain.window import Window

DROPPED = frozenset({"turn_header", "artifact", "note"})


class Line:
    """One vector, its session, and its entries by the blocks that they hold."""

    def __init__(self, vector: Vector) -> None:
        self.name: str = vector["vector"]
        self.expected: dict[str, Any] = vector["expected"]
        self.limit: int = vector["config"]["context_window"]
        self.session = NeutralSession(vector["input"])
        self.messages: list[list[str]] = self.expected["message_block_ids"]
        self._entries = {id: at for at, ids in enumerate(self.messages) for id in ids}
        config = vector["config"]
        policy = build_policy(
            "pi@as_shipped",
            {
                "enabled": config["enabled"],
                "reserve_tokens": config["reserve_tokens"],
                "keep_tokens": config["keep_recent_tokens"],
            },
        )
        assert isinstance(policy, Pi)
        self.policy = policy

    def folded(self) -> Window:
        """As the session stands behind its last compaction."""
        last = self.session.last_summary
        return self.session.window(self.limit, behind=last, among=self.is_entry)

    def handed(self) -> Window:
        """What the original was handed to say how full it is: messages, whenever they were said."""
        sizes = self.expected["message_tokens"]
        return self.session.window(
            self.limit,
            Trigger.THRESHOLD,
            among=lambda b: self.is_entry(b) and sizes[self._entries[b["id"]]] is not None,
        )

    def is_entry(self, block: Neutral) -> bool:
        return block["id"] in self._entries

    def entry(self, position: int | None) -> int:
        """The index of the entry that holds a block; one past the last where there is none."""
        return len(self.messages) if position is None else self._entries[self.session.id(position)]


def lines(folder: str) -> list[Line]:
    return [Line(vector) for vector in lines_of(folder, "pi_mono")]


@FOLDERS
def test_vectors_of_the_size_of_each_message(folder: str) -> None:
    for line in lines(folder):
        everything = line.session.window(line.limit, among=line.is_entry).items
        pieces = [
            [item for item in everything if line.session.id(item.position) in ids]
            for ids in line.messages
        ]
        # A compaction is no message here: nothing is asked about it, and nothing is told.
        sizes = [line.policy.count_message_tokens(one) if one else None for one in pieces]
        assert sizes == line.expected["message_tokens"], line.name


@FOLDERS
def test_vectors_of_how_full_the_context_is_and_whether_that_fires(folder: str) -> None:
    for line in lines(folder):
        window = line.handed()
        found = line.policy.measure_usage(window)
        spoken = [i for i, size in enumerate(line.expected["message_tokens"]) if size is not None]
        at = None if found.answered is None else spoken.index(line.entry(found.answered))

        told = {
            "tokens": found.tokens,
            "usageTokens": found.reported,
            "trailingTokens": found.since,
            "lastUsageIndex": at,
        }
        assert told == line.expected["context_estimate"], line.name
        assert line.policy.fires(window) is line.expected["trigger"], line.name


@FOLDERS
def test_vectors_of_where_it_cuts(folder: str) -> None:
    for line in lines(folder):
        cut = find_pi_cut(line.policy, line.folded())
        turn = None if cut.turn_start is None else line.entry(cut.turn_start)

        told = {
            "firstKeptEntryIndex": line.entry(cut.first_kept),
            "turnStartIndex": -1 if turn is None else turn,
            "isSplitTurn": turn is not None,
        }
        assert (told if line.messages else None) == line.expected["cut"], line.name


@FOLDERS
def test_vectors_of_what_is_prepared(folder: str) -> None:
    for line in lines(folder):
        preparation = prepare_like_pi(line.policy, line.folded())
        told = preparation and _told(line.session, preparation)
        assert told == line.expected["prepared"], line.name


def _told(session: NeutralSession, preparation: PiPreparation) -> dict[str, Any]:
    return {
        "first_kept_id": session.id(preparation.first_kept),
        "is_split_turn": preparation.is_split_turn,
        "tokens_before": preparation.tokens_before,
        "previous_summary": preparation.previous_summary,
        "summarised_ids": session.ids(preparation.history),
        "prefix_ids": session.ids(preparation.prefix),
        "kept_ids": session.ids(preparation.kept),
        "messages_to_summarize": len(group_messages(preparation.history)),
        "turn_prefix_messages": len(group_messages(preparation.prefix)),
        "file_lists": _file_lists(preparation),
    }


def _file_lists(preparation: PiPreparation) -> dict[str, list[str]]:
    return {
        "readFiles": list(preparation.digest.read_files),
        "modifiedFiles": list(preparation.digest.modified_files),
    }


@FOLDERS
def test_vectors_of_the_summary_and_its_requests(folder: str) -> None:
    for line in lines(folder):
        window, expected = line.folded(), line.expected.get("compact")
        preparation = prepare_like_pi(line.policy, window)
        assert (preparation is None) is (expected is None), line.name
        if preparation is None or expected is None:
            continue
        form, reserve = line.policy.template, line.policy.reserve_tokens
        material = preparation.make_material(int(0.8 * reserve), int(0.5 * reserve))
        asked = form.plan_requests(material)
        calls = [
            {
                "max_tokens": one.budget,
                "has_prev": one.previous is not None,
                "conversation": form.render_conversation(one.items),
            }
            for one in asked
        ]
        assert calls == expected["llm_calls"], line.name
        texts: dict[SummaryPart, str] = {one.part: f"SUM{n}" for n, one in enumerate(asked, 1)}
        told = {
            "summary": form.join_answers(texts, material),
            "first_kept_id": line.session.id(preparation.first_kept),
            "tokens_before": preparation.tokens_before,
            "details": _file_lists(preparation),
        }
        assert told | {"llm_calls": calls} == expected, line.name
