"""A replay by tokens alone comes to the very compactions and prompts of one in full."""

from typing import Any

from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from token_sessions import Act, Talk, acts, recording_of

from cutbank.domain.blocks import Block, Kind, ToolCall, ToolResult
from cutbank.domain.compaction import MAIN_LINEAGE
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.item import Item
from cutbank.domain.pins import NO_PINS, PinRules
from cutbank.domain.policies.catalog import POLICIES, build_policy
from cutbank.domain.policies.policy import NEVER_FIRES, Policy, quiet_below
from cutbank.domain.summaries.simple_summarizers import SizedSummarizer
from cutbank.domain.window import Window
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.recording import Recording
from cutbank.projections.replay.recording_calibration import calibrate_recording
from cutbank.projections.replay.replay import replay_recording
from cutbank.projections.replay.replay_writers import ReplayWriters
from cutbank.projections.replay.token_replay import TokenReplay, replay_by_tokens
from cutbank.projections.replay.trace import NeedsFullReplay, SessionTrace, make_trace

pi = st.builds(
    lambda **settings: build_policy("pi", settings),
    reserve_tokens=st.integers(10, 1_000),
    keep_tokens=st.integers(0, 1_000),
    fires_at=st.sampled_from([">", ">="]),
    enabled=st.sampled_from([True, True, True, False]),
)
reserve_headroom = st.builds(
    lambda **settings: build_policy("reserve-headroom", settings),
    reserve_tokens=st.none() | st.integers(0, 1_000),
    keep_tokens=st.none() | st.integers(0, 1_000),
    fires_at=st.sampled_from([">", ">="]),
    answer_tokens=st.integers(0, 300),
    passes_developer=st.booleans(),
)
preserve_zone = st.builds(
    lambda threshold, **settings: build_policy(
        "preserve-zone",
        {
            "threshold": threshold,
            "preserve_ratio": threshold / 2,
            "prune_over": None,
            "max_output_tokens": 0,
            **settings,
        },
    ),
    st.floats(0.1, 0.9),
    keeps_newest=st.booleans(),
    steps_back=st.booleans(),
)
policies: st.SearchStrategy[Policy] = pi | reserve_headroom | preserve_zone
RESULTS_STAY = PinRules(kinds=frozenset({Kind.TOOL_RESULT}), most=0.5)
pin_rules = st.sampled_from([NO_PINS, PinRules(), PinRules(most=0.5), RESULTS_STAY])


def in_full(
    recording: Recording, terms: CompactionTerms, tokens: int, *, once_a_turn: bool
) -> dict[str, Any]:
    decider = PolicyDecider(
        terms, recording, ReplayWriters((SizedSummarizer(tokens),)), once_a_turn=once_a_turn
    )
    served = list(replay_recording(recording, decider, limit=terms.limit))
    return {
        "compactions": [
            (
                call,
                one.boundary.trigger,
                one.boundary.first_kept,
                one.boundary.pre_tokens,
                one.boundary.post_tokens,
                one.summary.tokens if one.summary else 0,
            )
            for call, each in enumerate(served)
            for one in each.compactions
        ],
        "prompts": [each.tokens for each in served],
        "unchanged": [each.unchanged for each in served],
        "futile": sum(len(each.futile_compactions) for each in served),
    }


def by_tokens(replay: TokenReplay) -> dict[str, Any]:
    return {
        "compactions": [one[:6] for one in replay.compactions],
        "prompts": replay.list_prompts(),
        "unchanged": replay.list_unchanged(),
        "futile": replay.futile_count,
    }


@settings(max_examples=150, deadline=None)
@given(
    acts,
    policies,
    st.sampled_from([0, 600, 1_500, 3_000, 6_000]),
    st.integers(8, 500),
    pin_rules,
    st.sampled_from([0.0, 0.2]),
    st.booleans(),
)
# Calls of one message that wait over several compactions.
@example(
    [("user", 400), ("calls", 101), *[("user", 900), ("assistant", 901)] * 8] * 2,
    build_policy("pi", {"reserve_tokens": 100, "keep_tokens": 300}),
    1_000,
    50,
    PinRules(),
    0.0,
    False,
)
# A large result that is pinned with the first prompt, in a view that is too large.
@example(
    [
        *(("user", 300), ("calls", 3), ("result", 4_000)),
        *(("user", 4_000), ("assistant", 4_000), ("user", 4_000), ("call", 3)),
    ],
    build_policy("pi", {"reserve_tokens": 100, "keep_tokens": 1_500}),
    3_000,
    50,
    PinRules(most=0.5),
    0.0,
    False,
)
# A result that was shortened stands in the kept window when there is a plan again.
@example(
    [
        *[("user", 1_600)] * 3,
        *(("calls", 3), ("result", 20_000)),
        *[("user", 1_600), ("call", 3)] * 6,
    ],
    build_policy("pi", {"reserve_tokens": 100, "keep_tokens": 5_900, "fits_limit": False}),
    3_000,
    50,
    NO_PINS,
    0.0,
    False,
)
# A raw cut between a call and its result, from where it is as far to either side.
@example(
    [
        *(("user", 4_000), ("assistant", 4_000)),
        *(("calls", 60), ("developer", 10), ("result", 400), ("user", 40)),
        ("call", 3),
    ],
    build_policy(
        "reserve-headroom", {"reserve_tokens": 500, "keep_tokens": 50, "passes_developer": True}
    ),
    1_500,
    50,
    NO_PINS,
    0.0,
    False,
)
def test_tokens_alone_tell_what_a_full_replay_does(  # noqa: PLR0917 - Hypothesis names them
    acts: list[Act],
    policy: Policy,
    limit: int,
    summary_tokens: int,
    pins: PinRules,
    minimum_gain: float,
    once_a_turn: bool,
) -> None:
    recording = calibrate_recording(recording_of(acts), [], MAIN_LINEAGE)
    event("calibrated" if recording.calibration else "estimated")
    trace = make_trace(recording)
    if isinstance(trace, NeedsFullReplay):
        event("a result came late")
        return

    replay = replay_by_tokens(
        trace,
        policy,
        limit,
        summary_tokens,
        pins=pins,
        minimum_gain=minimum_gain,
        once_a_turn=once_a_turn,
    )

    if isinstance(replay, NeedsFullReplay):
        event(replay.reason)
        return
    nothing_left = any(one.unchanged > trace.count_request(one.call) for one in replay.compactions)
    event(f"{min(len(replay.compactions), 3)} compactions or more")
    event("results were shortened, and nothing left" if nothing_left else "blocks left")
    terms = CompactionTerms(policy, limit=limit, pins=pins, minimum_gain=minimum_gain)
    assert by_tokens(replay) == in_full(recording, terms, summary_tokens, once_a_turn=once_a_turn)


@settings(max_examples=40, deadline=None)
@given(acts)
def test_a_trace_is_the_same_once_it_was_packed(acts: list[Act]) -> None:
    trace = make_trace(recording_of(acts))

    if isinstance(trace, NeedsFullReplay):
        return
    assert SessionTrace.unpack(trace.pack()) == trace


@settings(max_examples=100, deadline=None)
@given(policies, st.integers(0, 100_000), st.integers(-2, 2))
def test_what_a_policy_lets_be_is_the_most_at_which_it_does_not_fire(
    policy: Policy, limit: int, beside: int
) -> None:
    most = quiet_below(policy, limit)
    if most is None:
        assert getattr(policy, "answer_tokens", 0) >= limit
        return
    used = max(0, (limit if most == NEVER_FIRES else most) + beside)
    blocks = (Item(1, Block.user("words"), 1, used),)
    window = Window(items=blocks, after=1, limit=limit, in_use=used)

    assert policy.fires(window) == (used > most)  # type: ignore[attr-defined]


def test_no_policy_that_reads_texts_says_that_it_goes_by_tokens() -> None:
    for name in POLICIES:
        as_shipped = build_policy(f"{name}@as_shipped", {})

        assert quiet_below(as_shipped, 32_000) is None, name


def test_a_session_whose_view_others_had_changed_has_no_trace() -> None:
    for verb, why in (("pin", "pinned"), ("hide", "hidden"), ("retract", "taken back")):
        found = make_trace(recording_of([("user", 40), ("assistant", 40), (verb, 1)]))

        assert isinstance(found, NeedsFullReplay)
        assert why in found.reason


LARGE = [
    *(("user", 40), ("calls", 3), ("result", 20_000)),
    *(("assistant", 40), ("user", 40), ("call", 3)),
]


def test_where_nothing_may_leave_large_results_are_shortened_and_the_rest_is_as_it_was() -> None:
    trace = make_trace(recording_of([*LARGE, ("user", 40), ("call", 3)]))
    assert isinstance(trace, SessionTrace)
    keeps_all = build_policy("pi", {"keep_tokens": 100_000, "fits_limit": False})

    replay = replay_by_tokens(trace, keeps_all, 2_000, 100)

    assert isinstance(replay, TokenReplay)
    (shortened,) = replay.compactions
    assert shortened.before > 5_000
    assert shortened.after < 600
    assert shortened.summary == 0
    assert shortened.unchanged == trace.running[3] > 0


def test_large_results_that_are_pinned_by_their_size_are_left_to_a_full_replay() -> None:
    trace = make_trace(recording_of([*LARGE, *[("user", 4_000), ("call", 3)] * 2]))
    assert isinstance(trace, SessionTrace)

    found = replay_by_tokens(trace, build_policy("pi", {}), 2_000, 100, pins=RESULTS_STAY)

    assert isinstance(found, NeedsFullReplay)
    assert "pinned" in found.reason
    # So are summaries that could be the same.
    assert isinstance(replay_by_tokens(trace, build_policy("pi", {}), 2_000, 7), NeedsFullReplay)


def test_a_shortened_result_of_the_first_prompt_s_message_stays_shortened() -> None:
    talk = Talk()
    talk.session.append(Block.user("u" * 40, message_id="m"))
    talk.session.append(ToolCall(tool_call_id="c", name="tool"))
    talk.session.append(ToolResult(tool_call_id="c", content="r" * 20_000, message_id="m"))
    for _ in range(3):
        talk.user(4_000)
        talk.call(3)
    recording, policy = talk.recorded(), build_policy("pi", {})
    pins = PinRules(most=0.5, most_together=9.0)
    trace = make_trace(recording)
    assert isinstance(trace, SessionTrace)

    found = replay_by_tokens(trace, policy, 2_000, 100, pins=pins)

    assert isinstance(found, TokenReplay)
    terms = CompactionTerms(policy, limit=2_000, pins=pins)
    assert by_tokens(found) == in_full(recording, terms, 100, once_a_turn=False)
