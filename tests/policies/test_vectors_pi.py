"""What pi answered, line by line: estimate, trigger, cut, preparation, requests, summary."""

from typing import Any

from neutral_blocks import Neutral
from neutral_session import NeutralSession
from pi_preparation import PiPreparation, find_pi_cut, prepare_like_pi
from vector_files import FOLDERS, Vector, lines_of

from cutbank import Trigger, Window, get_policy
from cutbank.domain.item import group_messages
from cutbank.domain.policies.reference.pi_mono import PiAsShipped
from cutbank.domain.summaries.summarizer import SummaryPart


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
        settings = {name: config[name] for name in ("enabled", "reserve_tokens")}
        keep = {"keep_tokens": config["keep_recent_tokens"]}
        policy = get_policy("pi@as_shipped", **(settings | keep))
        assert isinstance(policy, PiAsShipped)
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


@FOLDERS
def test_vectors_are_answered(folder: str) -> None:
    for line in map(Line, lines_of(folder, "pi_mono")):
        preparation = prepare_like_pi(line.policy, line.folded())
        handed = line.handed()
        found = {
            "message_tokens": measure_messages(line),
            "context_estimate": measure_usage(line, handed),
            "trigger": line.policy.fires(handed),
            "cut": find_cut(line) if line.messages else None,
            "prepared": preparation and describe(line.session, preparation),
        }
        if preparation is not None:
            found["compact"] = compact(line, preparation)
        else:
            assert line.expected.get("compact") is None, line.name
        assert found == {name: line.expected[name] for name in found}, line.name


def measure_messages(line: Line) -> list[int | None]:
    """The size of each message; a compaction is none here, as nothing is asked about it."""
    everything = line.session.window(line.limit, among=line.is_entry).items
    pieces = [
        [item for item in everything if line.session.id(item.position) in ids]
        for ids in line.messages
    ]
    return [line.policy.count_message_tokens(one) if one else None for one in pieces]


def measure_usage(line: Line, window: Window) -> dict[str, Any]:
    found = line.policy.measure_items(window, window.items)
    spoken = [i for i, size in enumerate(line.expected["message_tokens"]) if size is not None]
    return {
        "tokens": found.tokens,
        "usageTokens": found.reported,
        "trailingTokens": found.since,
        "lastUsageIndex": (
            None if found.answered is None else spoken.index(line.entry(found.answered))
        ),
    }


def find_cut(line: Line) -> dict[str, Any]:
    cut = find_pi_cut(line.policy, line.folded())
    return {
        "firstKeptEntryIndex": line.entry(cut.first_kept),
        "turnStartIndex": -1 if cut.turn_start is None else line.entry(cut.turn_start),
        "isSplitTurn": cut.turn_start is not None,
    }


def describe(session: NeutralSession, preparation: PiPreparation) -> dict[str, Any]:
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
        "file_lists": list_files(preparation),
    }


def list_files(preparation: PiPreparation) -> dict[str, list[str]]:
    return {
        "readFiles": list(preparation.digest.read_files),
        "modifiedFiles": list(preparation.digest.modified_files),
    }


def compact(line: Line, preparation: PiPreparation) -> dict[str, Any]:
    form, reserve = line.policy.template, line.policy.reserve_tokens
    material = preparation.make_material(int(0.8 * reserve), int(0.5 * reserve))
    asked = form.plan_requests(material)
    texts: dict[SummaryPart, str] = {one.part: f"SUM{n}" for n, one in enumerate(asked, 1)}
    return {
        "summary": form.join_answers(texts, material),
        "first_kept_id": line.session.id(preparation.first_kept),
        "tokens_before": preparation.tokens_before,
        "details": list_files(preparation),
        "llm_calls": [
            {
                "max_tokens": one.budget,
                "has_prev": one.previous is not None,
                "conversation": form.render_conversation(one.items),
            }
            for one in asked
        ],
    }
