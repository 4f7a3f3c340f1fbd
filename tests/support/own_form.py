"""A form for summaries of nobody's document, with a rule of each kind that documents have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cutbank.domain.item import WindowItem
from cutbank.domain.summaries.summarizer import Material, SummaryPart, SummaryRequest

LEAD = "What happened before:"
SPLIT = "**Turn Context (split turn):**"


@dataclass(frozen=True)
class OwnForm:
    """Two requests where a turn was split, texts cut short, file lists and a line on top."""

    sections: tuple[str, ...] = ("Goal", "Progress: Done", "Progress: Not Started", "Odds & Ends")
    turn_sections: tuple[str, ...] = ("Original Request", "Early Progress")
    shown: int = 30

    def plan_requests(self, material: Material) -> tuple[SummaryRequest, ...]:
        turn = tuple(item for item in material.removed_items if item.position in material.prefix)
        history = tuple(
            item for item in material.removed_items if item.position not in material.prefix
        )
        of_history = SummaryRequest(
            SummaryPart.HISTORY, history, material.budget, material.previous
        )
        of_turn = SummaryRequest(SummaryPart.TURN, turn, material.turn_budget or material.budget)
        return tuple(one for one in (of_history, of_turn) if one.items)

    def render_conversation(self, items: Sequence[WindowItem]) -> str:
        return "\n".join(
            f"[{item.kind}] {item.block.text[: self.shown]}"
            for item in items
            if item.block.text.strip()
        )

    def join_answers(self, texts: Mapping[SummaryPart, str], material: Material) -> str:
        text = f"{LEAD}\n\n{texts.get(SummaryPart.HISTORY) or material.previous or ''}"
        if SummaryPart.TURN in texts:
            text = f"{text}\n\n---\n\n{SPLIT}\n\n{texts[SummaryPart.TURN]}"
        if files := material.digest.modified_files:
            text = "\n\n".join([text, "\n".join(["<modified-files>", *files, "</modified-files>"])])
        return text
