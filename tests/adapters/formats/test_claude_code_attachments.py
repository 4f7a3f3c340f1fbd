"""What Claude Code tells the model unasked, and what it only shows to the person."""

import json

import pytest
from claude_code_talk import Entry, Talk, Tell

from cutbank.adapters.transcripts.formats.steps import Aside, Unknown


def test_what_the_model_saw_is_taken_word_for_word_where_it_is_kept(tell: Tell) -> None:
    talk = Talk()
    talk.attach("some_later_type", secret=1)
    talk.entries[0]["rendered"] = [{"content": "<system-reminder>mind</system-reminder>"}]
    talk.attach("hook_success", content="x")
    talk.entries[1]["rendered"] = []

    reading = tell(talk)

    assert reading.said == [("developer", "<system-reminder>mind</system-reminder>")]
    assert [json.loads(step.raw) for step in reading.of(Aside)] == talk.entries[1:]


@pytest.mark.parametrize(
    ("attachment", "words"),
    [
        ({"type": "hook_success", "hookName": "Start", "content": "hi"}, "Start hook success: hi"),
        (
            {"type": "hook_additional_context", "hookName": "Post", "content": ["a", "b"]},
            "Post hook additional context: a\nb",
        ),
        (
            {
                "type": "file",
                "filename": "/a",
                "content": {"type": "text", "file": {"content": "x"}},
            },
            "Contents of /a:\n\nx",
        ),
        (
            {"type": "nested_memory", "path": "/m", "content": {"content": "x"}},
            "Contents of /m:\n\nx",
        ),
        ({"type": "edited_text_file", "filename": "/a", "snippet": "x"}, "/a was changed:\nx"),
        (
            {"type": "compact_file_reference", "filename": "/a"},
            "/a was read before the conversation was compacted.",
        ),
        (
            {
                "type": "task_reminder",
                "content": [{"id": "1", "status": "pending", "subject": "sow"}],
            },
            "The tasks as they stand:\n#1 [pending] sow",
        ),
        (
            {"type": "agent_listing_delta", "addedLines": ["- a"], "removedTypes": ["b"]},
            "Agents added:\n- a\nAgents removed: b",
        ),
        ({"type": "skill_listing", "content": "- s"}, "- s"),
        ({"type": "total_tokens_reminder", "text": "9 left"}, "9 left"),
    ],
)
def test_older_attachments_are_put_into_words(tell: Tell, attachment: Entry, words: str) -> None:
    talk = Talk()
    talk.add("attachment", attachment=attachment)

    reading = tell(talk)

    assert reading.said == [("developer", words)]
    assert reading.blocks[0].origin
    assert json.loads(reading.blocks[0].origin.entry or "")["attachment"] == attachment


def test_a_prompt_typed_while_the_agent_worked_is_the_users_word(tell: Tell) -> None:
    talk = Talk()
    talk.attach("queued_command", prompt="commit first", commandMode="prompt")
    talk.attach("queued_command", prompt="<x>done</x>", commandMode="task-notification")

    assert [kind for kind, _ in tell(talk).said] == ["user", "developer"]


def test_older_versions_tell_of_such_prompts_only_by_the_queue(tell: Tell) -> None:
    talk = Talk()
    for operation, content in [
        ("enqueue", "one"),
        ("enqueue", "two"),
        ("dequeue", None),
        ("remove", None),
        ("enqueue", "three"),
        ("popAll", None),
        ("remove", None),
    ]:
        operation_ = {"operation": operation, "timestamp": str(len(talk.entries))}
        talk.entries.append({"type": "queue-operation", **operation_, "content": content})

    reading = tell(talk)

    assert reading.said == [("user", "two")]
    assert len(reading.of(Aside)) == 6
    assert reading.outcomes == ["imported"] * 7


def test_attachments_for_the_person_and_unknown_ones_are_kept_as_they_stand(tell: Tell) -> None:
    talk = Talk()
    talk.attach("hook_system_message", content="hello you")
    talk.attach("plan_mode", planFilePath="/p")
    talk.attach("some_later_type", text="?")

    reading = tell(talk)

    assert not reading.blocks
    assert reading.outcomes == ["imported", "imported", "unknown"]
    assert [json.loads(step.raw) for step in reading.of(Aside)] == talk.entries[:2]
    assert reading.of(Unknown)[0].type == "attachment/some_later_type"
    assert json.loads(reading.of(Unknown)[0].raw) == talk.entries[2]
