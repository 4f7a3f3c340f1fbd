"""Sessions of the Agent Development Kit keep what ADK demands of every session service."""

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest
from databases import each_database

from cutbank import SessionStore

if find_spec("google") is None or find_spec("google.adk") is None:
    pytest.skip(
        "google-adk is not installed: scripts/test-frameworks has it", allow_module_level=True
    )

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from cutbank.frameworks.google_adk import CutbankSessionService

pytestmark = each_database


@pytest.fixture
def service(opened: SessionStore) -> CutbankSessionService:
    return CutbankSessionService(opened)


async def create(service: CutbankSessionService, **given: Any) -> Session:
    return await service.create_session(**{"app_name": "app", "user_id": "anna", **given})


async def get(service: CutbankSessionService, id: str, **given: Any) -> Session | None:
    return await service.get_session(
        **{"app_name": "app", "user_id": "anna", "session_id": id, **given}
    )


async def reread(service: CutbankSessionService, session: Session, **given: Any) -> Session:
    found = await get(
        service, session.id, app_name=session.app_name, user_id=session.user_id, **given
    )
    assert found is not None
    return found


def change(state: dict[str, Any], **fields: Any) -> Event:
    return Event(author="user", actions=EventActions(state_delta=state), **fields)


def test_a_session_is_created_read_and_deleted(service: CutbankSessionService) -> None:
    async def run() -> None:
        assert await get(service, "none") is None
        session = await create(service, state={"key": "value"})

        assert session.id
        assert session.state == {"key": "value"}
        assert await reread(service, session) == session
        names = {"app_name": "app", "user_id": "anna", "session_id": session.id}
        await service.delete_session(**names)
        assert await get(service, session.id) is None
        await service.delete_session(**names)
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, Event(author="user"))
        assert (await create(service, session_id=session.id)).state == {}

    asyncio.run(run())


def test_an_id_is_used_once_and_without_white_space(service: CutbankSessionService) -> None:
    async def run() -> None:
        session = await create(service, session_id="order-42\n", state={"cart": "book"})

        assert session.id == "order-42"
        for id in ("order-42", " order-42 "):
            with pytest.raises(AlreadyExistsError):
                await create(service, session_id=id)
            found = await get(service, id)
            assert found is not None
            assert found.state == {"cart": "book"}
        assert (await create(service, session_id="  ")).id.strip()
        await service.delete_session(app_name="app", user_id="anna", session_id="order-42\n")
        assert await get(service, "order-42") is None

    asyncio.run(run())


def test_sessions_are_listed_by_user_and_app_the_last_active_one_last(
    service: CutbankSessionService,
) -> None:
    async def run() -> None:
        for id in ("a", "b", "c"):
            await create(service, session_id=id, state={"key": id, "user:of": "anna"})
        await create(service, user_id="an/na", session_id="a")
        await create(service, app_name="other", session_id="a")
        first = await get(service, "a")
        assert first is not None
        await service.append_event(first, change({}, timestamp=first.last_update_time + 100))

        of_anna = (await service.list_sessions(app_name="app", user_id="anna")).sessions
        assert [(one.id, one.state["key"]) for one in of_anna] == [
            ("b", "b"),
            ("c", "c"),
            ("a", "a"),
        ]
        assert [one.events for one in of_anna] == [[]] * 3
        assert {one.state["user:of"] for one in of_anna} == {"anna"}
        of_all = (await service.list_sessions(app_name="app")).sessions
        assert [(one.user_id, one.id) for one in of_all if one.user_id != "anna"] == [
            ("an/na", "a")
        ]
        assert len(of_all) == 4
        assert (await service.list_sessions(app_name="none")).sessions == []

    asyncio.run(run())


def test_a_users_session_is_no_other_users(service: CutbankSessionService) -> None:
    async def run() -> None:
        mine = await create(service, session_id="s")
        await service.append_event(mine, Event(author="user"))
        await create(service, user_id="bert", session_id="s")

        found = await get(service, "s", user_id="bert")
        assert found is not None
        assert (found.user_id, found.events) == ("bert", [])

    asyncio.run(run())


def test_each_scope_of_state_is_shared_by_whom_it_is_for(service: CutbankSessionService) -> None:
    async def run() -> None:
        first = await create(service, state={"app:a": 1, "user:u": 1, "s": 1, "temp:t": 1})
        await service.append_event(first, change({"app:b": 2, "user:v": 2, "r": 2}))

        assert (await reread(service, first)).state == {
            "app:a": 1,
            "app:b": 2,
            "user:u": 1,
            "user:v": 2,
            "s": 1,
            "r": 2,
        }
        same_user = await create(service)
        assert same_user.state == {"app:a": 1, "app:b": 2, "user:u": 1, "user:v": 2}
        assert (await create(service, user_id="bert")).state == {"app:a": 1, "app:b": 2}
        assert (await create(service, app_name="other")).state == {}

    asyncio.run(run())


def test_temporary_state_is_seen_in_the_run_and_never_stored(
    service: CutbankSessionService,
) -> None:
    async def run() -> None:
        session = await create(service)
        event = change({"temp:out": "from the first agent", "s": 1})
        await service.append_event(session, event)

        assert session.state == {"temp:out": "from the first agent", "s": 1}
        assert event.actions.state_delta == {"s": 1}
        again = await reread(service, session)
        assert again.state == {"s": 1}
        assert again.events == [event]

    asyncio.run(run())


@pytest.mark.parametrize("scope", ["", "app:", "user:"])
def test_a_value_of_state_replaces_the_one_before(
    service: CutbankSessionService, scope: str
) -> None:
    async def run() -> None:
        before = {"profile": {"name": "ada", "role": "admin"}, "flag": True, "off": False}
        session = await create(service, state={f"{scope}{key}": of for key, of in before.items()})
        delta = {f"{scope}profile": {"name": "bob"}, f"{scope}flag": None}
        await service.append_event(session, change(delta))

        after = {**delta, f"{scope}off": False}
        assert session.state == after
        found = (await reread(service, session)).state
        assert found == after
        assert found[f"{scope}off"] is False

    asyncio.run(run())


def test_a_users_state_is_read_without_a_session(service: CutbankSessionService) -> None:
    async def run() -> None:
        assert await service.get_user_state(app_name="app", user_id="anna") == {}
        session = await create(service)
        for count in (1, 2):
            await service.append_event(session, change({"user:count": count, "s": 1}))

        assert await service.get_user_state(app_name="app", user_id="anna") == {"count": 2}
        assert await service.get_user_state(app_name="app", user_id="bert") == {}
        assert await service.get_user_state(app_name="other", user_id="anna") == {}

    asyncio.run(run())


def test_an_event_comes_back_with_all_its_fields(service: CutbankSessionService) -> None:
    async def run() -> None:
        session = await create(service)
        blob = types.Part.from_bytes(data=bytes(range(256)), mime_type="image/png")
        heard = types.Transcription(text="input", finished=True)
        event = Event(
            invocation_id="invocation",
            author="user",
            content=types.Content(role="user", parts=[types.Part(text="text"), blob]),
            turn_complete=True,
            partial=False,
            actions=EventActions(
                artifact_delta={"file": 0},
                transfer_to_agent="agent",
                escalate=True,
                requested_tool_confirmations={
                    "call": ToolConfirmation(hint="sure?", confirmed=False, payload={"id": "1"})
                },
            ),
            long_running_tool_ids={"tool1"},
            error_code="code",
            interrupted=True,
            grounding_metadata=types.GroundingMetadata(
                search_entry_point=types.SearchEntryPoint(sdk_blob=b"\xff\xfe blob")
            ),
            usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=1),
            citation_metadata=types.CitationMetadata(),
            custom_metadata={"key": "value"},
            timestamp=1700000000.123,
            input_transcription=heard,
            output_transcription=heard,
        )
        await service.append_event(session, event)

        assert session.last_update_time == 1700000000.123
        assert await reread(service, session) == session

    asyncio.run(run())


def test_a_value_that_is_no_json_is_kept_as_a_text(service: CutbankSessionService) -> None:
    async def run() -> None:
        session = await create(service)
        await service.append_event(session, change({"callback": print, "ok": 2}))

        found = await reread(service, session)
        assert found.state["ok"] == 2
        assert isinstance(found.state["callback"], str)
        assert len(found.events) == 1

    asyncio.run(run())


def test_events_are_read_by_number_and_time(service: CutbankSessionService) -> None:
    async def run() -> None:
        session = await create(service)
        # Two of them are in an hour that local clocks in New York had twice.
        times = [1730613600.0, 1730615400.0, 1730615403.0, 1730615404.0, 1730615405.0]
        for at in times:
            await service.append_event(session, Event(author="user", timestamp=at))

        async def read(**config: Any) -> list[float]:
            found = await reread(service, session, config=GetSessionConfig(**config))
            return [event.timestamp for event in found.events]

        assert await read() == times
        assert await read(num_recent_events=0) == []
        assert await read(num_recent_events=3) == times[2:]
        assert await read(after_timestamp=times[3]) == times[3:]
        assert await read(after_timestamp=times[4] + 1) == []
        assert await read(after_timestamp=times[3], num_recent_events=3) == times[3:]
        assert await read(after_timestamp=times[1], num_recent_events=3) == times[2:]

    asyncio.run(run())


def test_a_partial_event_is_not_stored(service: CutbankSessionService) -> None:
    async def run() -> None:
        session = await create(service)
        await service.append_event(session, Event(author="user", partial=True))

        assert session.events == []
        assert (await reread(service, session)).events == []

    asyncio.run(run())


def test_an_event_is_stored_once_and_another_one_of_its_id_as_well(
    service: CutbankSessionService,
) -> None:
    async def run() -> None:
        session = await create(service)
        stale = await reread(service, session)
        event = Event(id="event-1", author="user", actions=EventActions(state_delta={"n": 1}))
        await service.append_event(session, event)
        await service.append_event(session, event)
        await service.append_event(stale, event.model_copy(deep=True))
        assert (await reread(service, session)).events == [event]

        await service.append_event(session, Event(id="event-1", author="agent"))
        found = await reread(service, session)
        assert [one.author for one in found.events] == ["user", "agent"]
        assert found.state == {"n": 1}

    asyncio.run(run())


def test_a_copy_that_another_writer_has_overtaken_is_refused(
    service: CutbankSessionService,
) -> None:
    async def run() -> None:
        session = await create(service)
        for later in (10, -10):  # the clocks of two machines may differ
            one, two = await reread(service, session), await reread(service, session)
            await service.append_event(one, change({"by": "one"}, timestamp=time_of(one) + later))
            with pytest.raises(StaleSessionError, match="get it again"):
                await service.append_event(two, change({"by": "two"}, timestamp=time_of(two) + 20))

            found = await reread(service, session)
            assert found.state == {"by": "one"}
            assert two.state.get("by") != "two"
        assert len(found.events) == 2

        copies = [await reread(service, session) for _ in range(8)]
        done = await asyncio.gather(
            *(
                service.append_event(copy, Event(author="user", timestamp=time_of(copy) + at))
                for at, copy in enumerate(copies, 1)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(one, StaleSessionError) for one in done) == 7

    asyncio.run(run())


def time_of(session: Session) -> float:
    return float(session.last_update_time)


def test_a_session_that_two_create_at_once_is_one_of_theirs(opened: SessionStore) -> None:
    async def run() -> None:
        services = [CutbankSessionService(opened) for _ in range(4)]
        done = await asyncio.gather(
            *(create(one, session_id="s") for one in services), return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in done) == [
            *["AlreadyExistsError"] * 3,
            "Session",
        ]

    asyncio.run(run())


def test_what_is_about_a_user_is_erased_by_subject(
    service: CutbankSessionService, opened: SessionStore
) -> None:
    async def run() -> None:
        session = await create(service, state={"user:u": 1, "app:a": 1, "s": 1})
        await service.append_event(session, Event(author="user"))
        await create(service, user_id="bert", session_id="s")

        opened.erase(subject="anna")

        listed = (await service.list_sessions(app_name="app")).sessions
        assert [one.user_id for one in listed] == ["bert"]
        assert await service.get_user_state(app_name="app", user_id="anna") == {}
        assert (await create(service)).state == {"app:a": 1}

    asyncio.run(run())


def test_what_a_rewind_takes_back_leaves_the_view_and_stays_in_the_session(
    service: CutbankSessionService,
) -> None:
    async def run() -> None:
        session = await create(service, session_id="s")
        for number in range(3):
            said = types.Content(role="user", parts=[types.Part(text=f"word {number}")])
            await service.append_event(
                session, Event(author="user", invocation_id=f"i{number}", content=said)
            )
        rewind = EventActions(rewind_before_invocation_id="i1")
        await service.append_event(session, Event(author="user", actions=rewind))

        log = service.log(app_name="app", user_id="anna", session_id="s")
        assert [entry.block.text for entry in log.view().entries] == ["word 0"]
        assert len((await reread(service, session)).events) == 4
        await service.append_event(session, Event(author="user", invocation_id="i4"))

    asyncio.run(run())
