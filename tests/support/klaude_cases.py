"""The vectors of klaude-code as sessions of cutbank: events, folded as they are when served."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neutral_session import NeutralSession
from vector_files import Vector, lines_of

from cutbank import Material, Ranges, Window, WindowItem, get_policy
from cutbank.domain.compaction_events import Digest
from cutbank.domain.digest import build_digest
from cutbank.domain.item import group_messages
from cutbank.domain.policies.reference.klaude_code import KlaudeAsShipped, count_klaude_tokens
from cutbank.domain.policies.reserve_headroom import ReserveWalk
from cutbank.domain.settlement import find_split_turn
from cutbank.domain.summaries.klaude_template import KLAUDE_TEMPLATES, KlaudeTemplate

SYSTEMS: Mapping[str, str] = {"klaude_first": "as_shipped", "klaude": "later"}
"""Files of vectors, and the preset that answers as each of them."""


@dataclass(frozen=True)
class Case:
    """One vector, its session, and the policy that is to answer as the original did."""

    vector: Vector
    session: NeutralSession
    whole: Sequence[WindowItem]
    """All that was ever said."""
    policy: KlaudeAsShipped
    window: Window

    @property
    def id(self) -> str:
        return str(self.vector["vector"])

    @property
    def expected(self) -> Mapping[str, Any]:
        expected: Mapping[str, Any] = self.vector["expected"]
        return expected

    @property
    def form(self) -> KlaudeTemplate:
        return KLAUDE_TEMPLATES[self.policy.form]

    def message_at(self, position: int) -> int:
        """The index of the message that holds a position, or of the next one."""
        messages = self.expected["message_block_ids"]
        lasts = [self.session.position(names[-1]) for names in messages]
        return next((i for i, last in enumerate(lasts) if last >= position), 0)

    def walk(self) -> ReserveWalk:
        """How far the original walks back, legal or not."""
        keep = self.policy.find_headroom(self.window.limit).keep
        return self.policy.walk_back(self.window, keep)

    @property
    def tokens_before(self) -> int:
        """The size of a session for its entry: the last report, or all messages so far."""
        if self.window.usage is not None:
            return self.window.usage
        return sum(count_klaude_tokens(message.items) for message in group_messages(self.whole))

    def material(self, first_kept: int) -> Material:
        """What leaves by a cut, legal or not."""
        window = self.window
        gone = tuple(item for item in window.open_to_cut if item.position < first_kept)
        covers = Ranges.of(item.position for item in gone)
        split = find_split_turn(window.items, first_kept, covers)
        previous, plan = window.summary, self.policy.plan(window)
        assert plan is not None, self.id
        return Material(
            removed_items=gone,
            covers=covers,
            budget=plan.summary_tokens,
            turn_budget=plan.turn_tokens,
            prefix=split.prefix if split else Ranges(),
            previous=previous.text if previous else None,
            digest=build_digest(
                gone,
                previous.digest if previous else Digest(),
                touches=self.form.find_touches,
                tracked=self.vector["config"]["tracked_files"],
            ),
            template=self.form,
        )


def cases(which: str, file: str) -> Iterator[Case]:
    """All vectors of a file, each under the preset that it is to be answered by."""
    for vector in lines_of(which, file):
        config = vector["config"]
        settings = {
            "reserve_tokens": config["reserve_tokens"],
            "keep_tokens": config["keep_recent_tokens"],
            "summary_tokens": config["max_summary_tokens"],
        }
        if file == "klaude":
            settings["answer_tokens"] = config["max_tokens"]
        policy = get_policy(f"klaude-code@{SYSTEMS[file]}", **settings)
        assert isinstance(policy, KlaudeAsShipped)
        session = NeutralSession(vector["input"])
        last = session.last_summary
        kept_from = last["meta"]["first_kept_block"] if last else None
        limit = config["context_limit"] or 0
        window = session.window(limit, behind=last, kept_from=kept_from)
        yield Case(vector, session, session.window(limit).items, policy, window)
