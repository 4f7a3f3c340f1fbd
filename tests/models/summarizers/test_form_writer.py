"""Where it is asked to, a model is asked as the policy's document has it."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from own_form import LEAD, SPLIT, OwnForm
from summarizer_talk import Scripted, always, items_of, material_of, steps

from cutbank.adapters.models.llm_summarizer import LlmSummarizer
from cutbank.adapters.models.prompts import format_headings
from cutbank.domain.blocks import Block
from cutbank.domain.compaction_events import Digest
from cutbank.domain.errors import InvalidSettingError, RejectedSummaryError, SummarizerFailedError
from cutbank.domain.ranges import Ranges
from cutbank.domain.summaries.gate import check_draft
from cutbank.domain.summaries.kdcube_template import KdcubeTemplate
from cutbank.domain.summaries.klaude_template import KLAUDE_TEMPLATES, KlaudeVersion
from cutbank.domain.summaries.summarizer import Draft, Material, SummaryTemplate
from cutbank.domain.summaries.templates import ClaudeSdkTemplate, PiTemplate, TunacodeTemplate

GOAL = "## Goal\n- make the parser's tests green"
TURN = "### Original Request\n- the same"


FORMS: list[SummaryTemplate] = [OwnForm(), ClaudeSdkTemplate(), TunacodeTemplate(), PiTemplate()]
FORMS += [KdcubeTemplate(), *KLAUDE_TEMPLATES.values()]


def test_a_form_is_told_by_the_same_words_in_every_process() -> None:
    """A replay finds its summaries by them."""
    assert not [form for form in FORMS if " at 0x" in repr(form)]


def by_form(model: Scripted, material: Material, **options: Any) -> Draft:
    return asyncio.run(LlmSummarizer(model.model, by_form=True, **options).summarize(material))


def formed(count: int = 2, **more: Any) -> Material:
    """What left, with a form to tell of it."""
    return material_of(items_of(*steps(count)), **{"template": OwnForm(), **more})


def is_of_turn(prompt: str) -> bool:
    return "beginning of a turn" in prompt


def test_one_request_shows_what_the_form_shows_and_its_answer_is_unframed() -> None:
    framed = f"<summary>\n{GOAL}\n<read-files>\nmade-up.py\n</read-files>\n</summary>"
    model = always(f"<think>hm</think>\n{framed}")
    material = formed()

    draft = by_form(model, material)

    (prompt,) = model.prompts
    (inside,) = re.findall(r"<record-\w+>(.*?)</record-", prompt, re.DOTALL)
    assert OwnForm().render_conversation(material.removed_items) in inside
    assert "step-000 step-000 step-000 step-000" not in prompt
    assert not re.search(r"#\d", prompt)
    assert "handle" not in prompt + model.systems[0]
    assert draft.text == f"{LEAD}\n\n{GOAL}"
    check_draft(draft, material, user_texts=[])


def test_a_heading_that_stands_for_itself_and_its_parts_is_asked_for_once() -> None:
    listed = format_headings(("Progress", "Progress: Done", "Files Touched: Read", "Next"))

    asked = [line.partition("  (")[0] for line in listed.split("\n")]
    assert asked == ["## Progress", "### Done", "## Files Touched", "### Read", "## Next"]


@pytest.mark.claim("S4.32")
def test_the_beginning_of_a_split_turn_is_asked_for_at_the_same_time() -> None:
    model = Scripted(lambda prompt: TURN if is_of_turn(prompt) else GOAL)
    wish = "Mind the migrations."
    material = formed(prefix=Ranges([(5, 7)]), turn_budget=320, instructions=wish)

    draft = by_form(model, material)

    history, turn = sorted(model.prompts, key=is_of_turn)
    assert set(re.findall(r"step-\d+", history)) == {"step-000"}
    assert set(re.findall(r"step-\d+", turn)) == {"step-001"}
    assert all(prompt.index(wish) > prompt.rindex("</record-") for prompt in model.prompts)
    assert "### Original Request" in turn
    assert "## Goal" not in turn
    assert sorted(settings["max_tokens"] for settings in model.settings) == [320, 2_000]
    assert draft.text.index(GOAL) < draft.text.index(SPLIT) < draft.text.index(TURN)
    goal = "- make the parser's tests green"
    assert draft.sections == {"Goal": goal, "Turn Context (split turn)": TURN}
    check_draft(draft, material, user_texts=[])


def test_a_text_that_is_known_without_a_model_is_not_asked_for() -> None:
    model, previous = always(GOAL), f"{GOAL} (#1)"
    material = replace(formed(), removed_items=(), covers=Ranges([(1, 3)]), previous=previous)

    draft = by_form(model, material)

    assert model.prompts == []
    assert draft == Draft(f"{LEAD}\n\n{previous}", draft.sections, Ranges([(1, 1)]))


def test_the_form_is_not_used_unless_it_is_asked_for_is_there_and_the_model_holds_it() -> None:
    model, small = always("## Goal\n- g (#1)"), always("## Goal\n- g (#1)")

    unasked = asyncio.run(LlmSummarizer(model.model).summarize(formed()))
    by_form(model, formed(template=None))
    in_parts = by_form(small, formed(40, template=OwnForm(shown=10_000)), window=6_000)

    assert LEAD not in unasked.text + in_parts.text
    assert all("#1 user:" in prompt for prompt in model.prompts)
    assert len(small.prompts) > 1
    assert "part 1 of" in small.prompts[0]


def test_nothing_to_show_is_a_failure_in_words_and_two_ways_to_ask_contradict_each_other() -> None:
    blank = material_of(items_of(Block.assistant(" ")), template=OwnForm())

    with pytest.raises(SummarizerFailedError) as caught:
        by_form(always(GOAL), blank)

    assert "nothing of the 1 blocks is shown" in str(caught.value)
    assert "set summary.prompt to fresh" in str(caught.value)
    assert not caught.value.is_transient
    for other in ["from_originals", "from_served_prefix"]:
        with pytest.raises(InvalidSettingError, match=f"does not have {other}"):
            LlmSummarizer("test", by_form=True, **{other: True})  # type: ignore[arg-type]


def test_each_form_is_asked_for_by_its_headings_and_what_it_joins_meets_the_gate() -> None:
    files = tuple(f"src/module_{number}.py" for number in range(100))
    digest = Digest(modified_files=files, read_files=("a.py",))
    for form in FORMS:
        material = formed(20, template=form, budget=60, turn_budget=60, digest=digest)
        for prefix in (Ranges(), Ranges([(50, 60)])):
            model = Scripted(lambda prompt: TURN if is_of_turn(prompt) else GOAL)

            draft = by_form(model, replace(material, prefix=prefix))

            assert GOAL in draft.text, (form, prefix)
            assert draft.sections["Goal"] == GOAL.split("\n")[1], (form, prefix)
            check_draft(draft, replace(material, prefix=prefix), user_texts=[])
            prompt = min(model.prompts, key=is_of_turn)
            for section in form.sections:
                heading = re.escape(section.rpartition(": ")[2])
                assert re.search(rf"^#+ {heading}", prompt, re.MULTILINE), form

        oversized = by_form(always(GOAL + " and more" * 60), material)
        with pytest.raises(RejectedSummaryError, match="oversized"):
            check_draft(oversized, material, user_texts=[])


def test_klaude_halves_its_budget_for_a_cut_task_or_asks_for_an_update_of_nothing() -> None:
    items = items_of(Block.user("a"), Block.assistant("b"), Block.user("c"), Block.assistant("d"))
    material = material_of(items, prefix=Ranges([(3, 4)]), budget=800)

    asked = KLAUDE_TEMPLATES[KlaudeVersion.DOCUMENT].plan_requests(material)
    shipped = KLAUDE_TEMPLATES[KlaudeVersion.AS_SHIPPED].plan_requests(material)

    assert [(len(one.items), one.budget, one.previous) for one in asked] == [(2, 400, None)] * 2
    assert [one.previous for one in shipped] == ["", None]


def test_the_beginning_of_a_turn_has_an_allowance_of_its_own() -> None:
    material = formed(20, budget=40, turn_budget=200, prefix=Ranges([(50, 60)]))
    draft = Draft(TURN + " and more" * 60)

    check_draft(draft, material, user_texts=[])

    with pytest.raises(RejectedSummaryError, match="40 were granted"):
        check_draft(draft, replace(material, prefix=Ranges()), user_texts=[])
