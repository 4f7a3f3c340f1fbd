"""Stored sessions that have gone through everything that lineages and views can go through."""

from contextlib import suppress

from hypothesis import strategies as st

from cutbank import Block, CompactionOptions, CutbankError, StoredSession, ToolCall, ToolResult
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

POLICY = ReserveHeadroom(reserve_tokens=200, keep_tokens=200)
LIMIT = 2_000

SAYS = 4
"""How often something is said for each other thing that is done."""
WHAT = ["say"] * SAYS + ["call", "compact", "compact", "prepare", "activate", "revert"]
WHAT += ["rewind", "pin", "hide", "whatif", "prompt"]

Act = tuple[str, int]
acts: st.SearchStrategy[list[Act]] = st.lists(
    st.tuples(st.sampled_from(WHAT), st.integers(min_value=0, max_value=40)),
    min_size=3,
    max_size=24,
)


def live(session: StoredSession, what: list[Act]) -> StoredSession:
    for act, n in what:
        with suppress(CutbankError):
            _do(session, act, n)
    return session


def _do(session: StoredSession, act: str, n: int) -> None:
    match act:
        case "say":
            session.append(*exchange(session.position, n))
        case "call":
            view = session.view()
            session.record_call(view, call_id=f"call at {view.coordinate.position}")
        case "compact" | "prepare":
            session.compact(
                POLICY, limit=LIMIT, options=CompactionOptions(activate=act == "compact")
            )
        case "activate":
            session.activate()
        case "revert":
            session.revert()
        case "rewind":
            session.retract(after=max(1, session.position - n))
        case "pin":
            session.pin(n)
        case "hide":
            session.hide(n, replacement="[gone]" if n % 2 else None)
        case "whatif":
            session.compact(POLICY, limit=LIMIT, options=CompactionOptions(lineage="what-if"))
        case "prompt":
            session.configure(system_prompt=f"You work in /srv/project-{n}/src.")
        case _:
            raise AssertionError(act)


def exchange(at: int, n: int) -> list[Block | ToolCall | ToolResult]:
    path = f"src/part_{n}/module_{at}.py"
    call = f"call-{at}"
    return [
        Block.user(f"Please look at {path}. You must never change lib/{n}/frozen_{at}.toml!"),
        ToolCall(tool_call_id=call, name="read", arguments={"path": path}),
        ToolResult(
            tool_call_id=call,
            content=f"raise Part{n}Error({10_000 + at})\n" + "silt and clay\n" * (20 + 4 * n),
        ),
        Block.assistant(
            f"I decided to keep {path} as it is, because handle_{at}_part is used elsewhere."
        ),
    ]
