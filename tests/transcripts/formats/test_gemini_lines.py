"""A session of Gemini CLI shows what the model was sent, whatever lines take back or replace."""

import json
from pathlib import Path
from typing import Any

from claude_code_talk import Reading
from transcripts import import_file

from cutbank import SessionStore, StoredSession
from cutbank.adapters.transcripts.formats.gemini_cli_lines import FORMAT
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import ReportedCall

CONTEXT = {"id": "context", "type": "user", "content": [{"text": "<session_context>\nharbour"}]}
SNAPSHOT = "<state_snapshot>the boats were counted</state_snapshot>"


class Talk:
    def __init__(self) -> None:
        self.lines: list[Any] = [header(), {"$set": {"messages": [CONTEXT]}}]

    def user(self, id: str, text: str) -> None:
        self.lines.append({"id": id, "type": "user", "content": [{"text": text}]})

    def says(self, id: str, text: str, *calls: dict[str, Any], **more: Any) -> None:
        """The text comes first, and once more with the calls when they have ended."""
        message = {"id": id, "type": "gemini", "content": text, "thoughts": [], **more}
        self.lines.append(message)
        if calls:
            self.lines.append(message | {"toolCalls": list(calls)})
            responses = [part for call in calls for part in call["result"]]
            self.lines.append({"id": f"{id}-r", "type": "user", "content": responses})

    def list(self, *messages: dict[str, Any]) -> None:
        self.lines.append({"$set": {"messages": list(messages)}})

    def imported(self, store: SessionStore, path: Path) -> StoredSession:
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        report = import_file(store, path)
        assert (report.format, report.errors) == ("gemini-cli-lines", [])
        return store.session("s", create=False)


def header(**more: Any) -> dict[str, Any]:
    return {"sessionId": "s", "projectHash": "h", "startTime": "t", "kind": "main", **more}


def call(id: str, output: str) -> dict[str, Any]:
    answer = {"functionResponse": {"id": id, "name": "ls", "response": {"output": output}}}
    return {"id": id, "name": "ls", "args": {}, "status": "success", "result": [answer]}


def parts(id: str, kind: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "type": kind, "content": list(content)}


def called(id: str) -> dict[str, Any]:
    return {"functionCall": {"id": id, "name": "ls", "args": {}}}


def shown(session: StoredSession) -> list[str]:
    return [entry.text for entry in session.view().entries]


def counted() -> Talk:
    talk = Talk()
    talk.user("u1", "Count the boats.")
    talk.says("m1", "I look.", call("c1", "Petrel\nTern"), tokens={"input": 9, "output": 2})
    talk.says("m2", "Two.")
    return talk


def test_a_message_that_comes_again_adds_only_what_is_new(
    store: SessionStore, tmp_path: Path
) -> None:
    session = counted().imported(store, tmp_path / "a.jsonl")

    assert shown(session)[1:] == ["Count the boats.", "I look.", "{}", "Petrel\nTern", "Two."]
    steps = Reading(list(FORMAT.read(TranscriptSource(tmp_path / "a.jsonl"))))
    assert len(steps.of(ReportedCall)) == 1


def test_a_resumed_session_adds_no_message_twice(store: SessionStore, tmp_path: Path) -> None:
    talk = counted()
    once = shown(talk.imported(store, tmp_path / "a.jsonl"))
    hm = {"text": "Hm.", "thought": True}
    texts: list[dict[str, Any]] = [hm, {"text": "I look."}, called("c1")]
    again = call("c1", "Petrel\nTern")["result"]

    talk.lines.append(header())
    talk.list(CONTEXT)
    talk.lines.append({"$set": {"sessionId": "s"}})
    at_once = shown(talk.imported(store, tmp_path / "a.jsonl"))
    talk.list(
        CONTEXT,
        parts("u1", "user", {"text": "Count the boats."}),
        {**parts("m1", "gemini", *texts), "thoughts": [{"subject": "", "description": ""}]},
        parts("m1", "user", *again),
        parts("m1-r", "user", *again),
        parts("m2", "gemini", {"text": "Two."}),
    )
    talk.user("u2", "And the crews?")

    assert at_once == once, "a list that a message has not confirmed"
    assert shown(talk.imported(store, tmp_path / "a.jsonl")) == [*once, "And the crews?"]


def test_a_compression_keeps_the_newest_messages_under_new_ids(
    store: SessionStore, tmp_path: Path
) -> None:
    talk = counted()
    talk.list(
        CONTEXT,
        parts("n1", "user", {"text": SNAPSHOT}),
        parts("n2", "gemini", {"text": "Got it."}),
        parts("n3", "gemini", {"text": "I look."}, called("c1")),
        parts("n4", "user", *call("c1", "Petrel\nTern")["result"]),
        parts("n5", "gemini", {"text": "Two."}),
    )
    session = talk.imported(store, tmp_path / "a.jsonl")

    assert shown(session)[1:] == ["I look.", "{}", "Petrel\nTern", "Two.", "Got it."]
    summary = session.view().summary
    assert summary
    assert SNAPSHOT in summary.text


def test_a_result_that_is_cut_short_is_sent_short_and_stays_in_the_log(
    store: SessionStore, tmp_path: Path
) -> None:
    talk = counted()
    talk.list(
        CONTEXT,
        parts("u1", "user", {"text": "Count the boats."}),
        parts("m1", "gemini", {"text": "I look."}, called("c1")),
        parts("m1-r", "user", *call("c1", "<tool_output_masked>")["result"]),
        parts("m2", "gemini", {"text": "Two."}),
    )
    talk.user("u2", "And the crews?")
    session = talk.imported(store, tmp_path / "a.jsonl")

    assert "<tool_output_masked>" in shown(session)
    assert "Petrel\nTern" not in shown(session)
    assert "Petrel\nTern" in [block.block.text for block in session.blocks()]


def test_messages_that_are_taken_back_leave_the_view(store: SessionStore, tmp_path: Path) -> None:
    rewound, aborted = counted(), counted()
    rewound.lines.append({"$rewindTo": "m2"})
    rewound.user("u2", "Once more.")
    aborted.user("u2", "Count the whales.")
    aborted.list(CONTEXT, *(parts(id, "user") for id in ("u1", "m1", "m2")))
    aborted.user("u3", "Once more.")
    once = ["Count the boats.", "I look.", "{}", "Petrel\nTern"]

    session = rewound.imported(store, tmp_path / "a.jsonl")
    assert shown(session)[1:] == [*once, "Once more."]
    store.delete("s")
    assert shown(aborted.imported(store, tmp_path / "b.jsonl"))[1:] == [*once, "Two.", "Once more."]


def test_a_restored_conversation_has_its_calls_among_the_texts(
    store: SessionStore, tmp_path: Path
) -> None:
    talk = Talk()
    talk.list(
        CONTEXT,
        parts("r1", "user", {"text": "Count."}),
        parts("r2", "gemini", {"text": "Hm.", "thought": True}, called("c9")),
        parts("r3", "user", *call("c9", "Petrel")["result"]),
    )
    talk.user("u1", "And?")
    session = talk.imported(store, tmp_path / "a.jsonl")

    assert shown(session)[1:] == ["Count.", "Hm.", "{}", "Petrel", "And?"]


def test_a_sub_agent_names_the_session_in_whose_folder_it_is(
    store: SessionStore, tmp_path: Path
) -> None:
    (tmp_path / "parent").mkdir()
    talk = Talk()
    talk.lines[0] = header(kind="subagent", summary="Boats")
    talk.user("u1", "Count.")
    session = talk.imported(store, tmp_path / "parent" / "s.jsonl")

    assert session.info.parent
    assert (session.info.parent.key, session.info.title) == ("parent", "Boats")
