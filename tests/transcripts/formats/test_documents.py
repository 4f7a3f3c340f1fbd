"""Transcripts that are not lines of JSON: what is one, what is wrong in one, and what it adds."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from claude_code_talk import Reading, Talk, text
from pi_talk import shown
from told_elsewhere import said
from transcripts import SAMPLES, import_file

from cutbank import SessionStore, Usage, export, lineage_tree, verify
from cutbank.adapters.transcripts.formats.catalog import FORMATS
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import SessionStart

AIDER = "# aider chat started at 2026-03-01 10:00:00\n\n"
CONVERSATION = SAMPLES / "openhands-v1/a-sack-too-few"
MILL = SAMPLES / "atif/mill.json"
STONE = SAMPLES / "swe-agent-traj/stone.traj"


def read(name: str, path: Path) -> Reading:
    return Reading(list(FORMATS[name].read(TranscriptSource(path))))


WRONG = [
    ("aider-history", AIDER + "\udcff\udcfe"),
    ("atif", ""),
    ("atif", "no JSON"),
    ("atif", "[]"),
    ("atif", '{"steps": {}}'),
    ("atif", '{"schema_version": "ATIF-v1.6"}'),
    ("atif", '{"messages": [{"role": "user", "content": "go"}]}'),
]
OTHERS = [("aider-history", text) for text in ("# aider", "> a quote", '{"a": 1}\n' + AIDER, "[]")]


@pytest.mark.parametrize(("name", "body"), [*WRONG, *OTHERS])
def test_another_file_is_not_recognized(name: str, body: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(body.encode("utf-8", "surrogateescape"))

    assert not FORMATS[name].recognizes(TranscriptSource(path))
    assert (name, body) in OTHERS or read(name, path).outcomes == ["error"]


def test_a_history_of_gemini_is_known_by_how_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    starts = []
    for texts in (("go", "yes"), ("go", "yes", "on"), ("go", "no")):
        roles = zip(("user", "model", "user"), texts, strict=False)
        path.write_text(json.dumps([{"role": who, "parts": [{"text": it}]} for who, it in roles]))
        starts.append(read("gemini-history", path).of(SessionStart))

    assert starts[0] == starts[1] != starts[2]


def test_a_session_of_copilot_without_a_start_is_known_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "0b0a").mkdir()
    path = tmp_path / "0b0a" / "events.jsonl"
    event = {"type": "user.message", "data": {"content": "go"}, "id": "e1"}
    path.write_text(json.dumps(event | {"timestamp": "t", "parentId": None}) + "\n")

    assert FORMATS["copilot-cli"].recognizes(TranscriptSource(path))
    assert read("copilot-cli", path).of(SessionStart) == [SessionStart("0b0a")]


def test_a_missing_a_doubled_and_a_linked_event_are_problems_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "conversation"
    copytree(CONVERSATION, folder)
    third, fourth, fifth = sorted((folder / "events").iterdir())[2:5]
    third.unlink()
    doubled = "00000063-0000-4000-8000-000000000063"
    (folder / "events" / f"event-00003-{doubled}.json").write_text(
        json.dumps(json.loads(fifth.read_text()) | {"id": doubled})
    )
    (tmp_path / "secret.json").write_text(fourth.read_text())
    linked = folder / "events" / "event-00090-0000005a-0000-4000-8000-00000000005a.json"
    linked.symlink_to(tmp_path / "secret.json")

    reading = read("openhands-v1", folder)

    assert {"event 2: not there", "another event has the number 3"} <= {*reading.reasons}
    assert any(reason.endswith("a link out of the folder") for reason in reading.reasons)
    assert any(text.startswith("Running the tests") for _, text in reading.said)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_summary_of_openhands_cost_what_the_condenser_was_paid(
    is_named: bool, tmp_path: Path, store: SessionStore
) -> None:
    folder = tmp_path / "conversation"
    copytree(CONVERSATION, folder)
    calls = [("resp-c2", 0.02), ("resp-c1", 0.01)] if is_named else [("a", 0.01), ("b", 0.02)]
    state = json.loads((folder / "base_state.json").read_text())
    state["stats"]["usage_to_metrics"]["condenser"] = {
        "token_usages": [{"response_id": id, "completion_tokens": 9} for id, _ in calls],
        "costs": [{"cost": cost} for _, cost in calls],
    }
    (folder / "base_state.json").write_text(json.dumps(state))
    for path in (folder / "events").iterdir() if not is_named else ():
        event = json.loads(path.read_text())
        event.pop("llm_response_id", None)
        path.write_text(json.dumps(event))

    import_file(store, folder)

    (session,) = store.sessions()
    summaries = [node.summary for node in lineage_tree(session, "recorded").nodes]
    assert [(it.cost_usd, it.usage) for it in summaries if it] == [
        (0.01, Usage(output=9)),
        (0.02, Usage(output=9)),
    ]


def write_conversation(folder: Path, parents: dict[str, str | None]) -> None:
    """Write user messages, each with its id as its text; a text with a star forgets the first."""
    (folder / "events").mkdir(parents=True)
    (folder / "base_state.json").write_text('{"id": "44444444-4444-4444-8444-444444444444"}')
    ids = {name: f"0000000{number}-aaaa" for number, name in enumerate(parents)}
    for number, (name, parent) in enumerate(parents.items()):
        event: dict[str, Any] = {
            "id": ids[name],
            "timestamp": "2026-01-01T00:00:00",
            "source": "user",
        }
        event["parent_id"] = ids.get(parent, parent) if parent else None
        if name.startswith("*"):
            event |= {"kind": "Condensation", "summary": name, "forgotten_event_ids": [ids["a"]]}
        else:
            said = {"role": "user", "content": [{"type": "text", "text": name}]}
            event |= {"kind": "MessageEvent", "llm_message": said}
        (folder / "events" / f"event-{number:05}-{ids[name]}.json").write_text(json.dumps(event))


@pytest.mark.parametrize(
    ("parents", "sent"),
    [
        ({"a": None, "b": "a", "c": "b"}, ["a", "b", "c"]),
        ({"a": None, "b": "a", "c": "a"}, ["a", "c"]),
        ({"a": None, "b": "a", "c": "__root__"}, ["c"]),
        ({"a": None, "b": "a", "*": "b", "c": "b"}, ["a", "b", "c"]),
        ({"a": None, "b": "a", "*": "b", "c": "*", "d": "*"}, ["*", "b", "d"]),
        ({"a": None, "b": "a", "c": "b", "d": "b", "*": "d"}, ["*", "b", "d"]),
    ],
)
def test_a_conversation_goes_on_from_the_event_that_the_next_one_follows(
    parents: dict[str, str | None], sent: list[str], store: SessionStore, tmp_path: Path
) -> None:
    write_conversation(tmp_path / "conversation", parents)

    report = import_file(store, tmp_path / "conversation")

    (session,) = store.sessions()
    assert report.errors == []
    assert shown(session.view()) == sent
    assert verify(store).violations == []


# What grew


def of_opencode(*messages: tuple[str, list[Any], dict[str, Any]]) -> str:
    info = {"id": "s", "directory": "/", "title": "t", "time": {"created": 1}}
    return json.dumps(
        {
            "info": info,
            "messages": [
                {"info": {"id": id} | more, "parts": [{"id": f"{id}-0"} | one for one in parts]}
                for id, parts, more in messages
            ],
        }
    )


def of_gemini(message: dict[str, Any]) -> str:
    whole = {"sessionId": "s", "projectHash": "p", "startTime": "t", "messages": [message]}
    return json.dumps(whole)


PROMPT = ("m1", [{"type": "text", "text": "go"}], {"role": "user"})
TOOL = {"type": "tool", "tool": "look", "callID": "c1"}
WAITS = {"status": "running", "input": {"at": "sea"}}
DONE = WAITS | {"status": "completed", "output": "calm", "title": "look", "metadata": {"n": 1}}
CALL = {"id": "c1", "name": "look", "args": {}, "status": "executing"}
RESPONSE = {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "calm"}}}
ANSWER = {"id": "g1", "type": "gemini", "content": "I look", "toolCalls": [CALL]}


@pytest.mark.parametrize(
    ("name", "bodies", "texts"),
    [
        (
            "aider-history",
            [
                AIDER + "> Aider  \n\n#### go  \n\nI go.\n\n> Tokens: 5 sent, 6 received.  \n",
                AIDER + "> Aider  \n\n#### go  \n\nI go.\n\n> Tokens: 5 sent, 6 received.  \n"
                "> Applied  \n\n#### on  \n\nI went.\n",
            ],
            ["go", "I go.", "on", "I went."],
        ),
        (
            "opencode",
            [
                of_opencode(PROMPT, ("m2", [TOOL | {"state": WAITS}], {"role": "assistant"})),
                of_opencode(
                    PROMPT,
                    (
                        "m2",
                        [TOOL | {"state": DONE}],
                        {"role": "assistant", "time": {"completed": 9}},
                    ),
                    ("m3", [{"type": "text", "text": "it is calm"}], {"role": "assistant"}),
                ),
            ],
            ["go", '{"at":"sea"}', "calm", "it is calm"],
        ),
        (
            "gemini-cli",
            [
                of_gemini(ANSWER),
                of_gemini(
                    ANSWER
                    | {
                        "toolCalls": [
                            CALL | {"status": "success", "result": [RESPONSE]},
                            CALL | {"id": "c2"},
                        ],
                        "tokens": {"input": 9, "output": 1},
                    }
                ),
            ],
            ["I look", "{}", "calm", "{}"],
        ),
    ],
)
def test_a_file_that_grew_adds_what_is_new_and_goes_out_as_it_is_now(
    name: str, bodies: list[str], texts: list[str], store: SessionStore, tmp_path: Path
) -> None:
    path, out = tmp_path / "a.json", tmp_path / "out.json"
    reports = []
    for body in bodies:
        path.write_text(body)
        reports.append(report := import_file(store, path))
        assert (report.format, report.errors, report.added > 0) == (name, [], True)

    session = store.session(*reports[-1].sessions, create=False)
    assert [text for _, text, _ in said(session)] == texts
    if name != "aider-history":
        export(session, name, out)
        assert json.loads(out.read_bytes()) == json.loads(path.read_bytes())


def test_a_trajectory_that_grew_adds_what_is_new(store: SessionStore, tmp_path: Path) -> None:
    path, body = tmp_path / "a.json", json.loads(MILL.read_bytes())
    for count in (2, 4, None):
        path.write_text(json.dumps(body | {"steps": body["steps"][:count]}))
        assert import_file(store, path).errors == []
    import_file(store, MILL, namespace="whole")

    grown = store.session("mill-1", create=False)
    assert said(grown) == said(store.session("mill-1", namespace="whole", create=False))


def test_a_conversation_that_grew_adds_only_what_is_new(
    store: SessionStore, tmp_path: Path
) -> None:
    folder = tmp_path / "conversation"
    copytree(CONVERSATION, folder)
    for file in sorted((folder / "events").iterdir())[20:]:
        file.unlink()
    half = import_file(store, folder)
    copytree(CONVERSATION, folder, dirs_exist_ok=True)

    added = [import_file(store, folder).added for _ in range(2)]

    assert min(half.added, added[0]) > 0
    assert added[1] == 0
    assert import_file(store, folder, namespace="once").added == half.added + added[0]


def test_marks_for_the_cache_that_move_on_add_nothing(store: SessionStore, tmp_path: Path) -> None:
    run = json.loads(STONE.read_text())
    path = tmp_path / "run.traj"
    path.write_text(json.dumps(run))
    first = import_file(store, path)
    del run["history"][3]["cache_control"]
    run["history"][1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    path.write_text(json.dumps(run))

    again = import_file(store, path)

    assert (again.sessions, again.added) == (first.sessions, 0)


def opencode_message(number: int, role: str, *parts: dict[str, Any], **info: Any) -> Any:
    whole = [{"id": f"p{number}-{place}"} | part for place, part in enumerate(parts)]
    return {"info": {"id": f"m{number}", "role": role} | info, "parts": whole}


def opencode_reverted() -> str:
    answer = {"summary": True, "finish": "stop", "parentID": "m3"}
    messages = [
        opencode_message(1, "user", {"type": "text", "text": "go"}),
        opencode_message(2, "assistant", {"type": "text", "text": "gone"}),
        opencode_message(3, "user", {"type": "compaction"}),
        opencode_message(4, "assistant", {"type": "text", "text": "what was said"}, **answer),
    ]
    about = {"id": "s", "directory": "/", "time": {}, "revert": {"messageID": "m3"}}
    return json.dumps({"info": about, "messages": messages})


def copilot_rewound() -> str:
    events = [
        ("user.message", {"content": "go"}),
        ("assistant.message", {"content": "gone", "messageId": "a"}),
        ("session.compaction_complete", {"success": True, "summaryContent": "what was said"}),
        ("session.snapshot_rewind", {"upToEventId": "e2"}),
    ]
    return "".join(
        json.dumps({"type": kind, "data": data, "id": f"e{at}", "timestamp": "", "parentId": None})
        + "\n"
        for at, (kind, data) in enumerate(events)
    )


def claude_code_rewound() -> str:
    talk = Talk()
    talk.user("go")
    before = talk.says("m1", text("gone"))
    talk.boundary()
    talk.summary("what was said")
    talk.user("on", parentUuid=before)
    return talk.raw().decode()


@pytest.mark.parametrize("source", [claude_code_rewound, copilot_rewound, opencode_reverted])
def test_a_return_to_just_before_a_compaction_takes_it_back(
    store: SessionStore, tmp_path: Path, source: Callable[[], str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(source())

    report = import_file(store, path)

    view = store.session(report.sessions[0], create=False).view()
    assert report.compactions == 1
    assert view.summary is None
    assert [entry.text for entry in view.entries][:2] == ["go", "gone"]
