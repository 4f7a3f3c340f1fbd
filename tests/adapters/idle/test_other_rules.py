"""Workers with different rules on one file of read models: each goes by its own."""

from dataclasses import replace

from resting import RULES, SetClock, Told, Working, pass_time, talk

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.idle.notices import NoticeKind

LONG = replace(RULES, idle_time_s=3_000)


def test_who_began_last_makes_nobody_hasty(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    talk(store.session("s"))
    patient = working(LONG, name="patient")
    working(RULES, name="hasty")
    pass_time(clock, 400)

    next_at = patient.look()
    assert patient.wait()

    assert told.keys(NoticeKind.BEGAN) == []
    assert next_at > clock.now
    pass_time(clock, 3_000)
    patient.look()
    assert patient.wait()
    assert told.keys(NoticeKind.DONE) == ["s"]


def test_who_began_last_keeps_nobody_waiting(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    for key, namespace in (("s", "ours"), ("s", "theirs")):
        talk(store.session(key, namespace=namespace))
    hasty = working(replace(RULES, namespaces=("ours",)), name="hasty")
    patient = working(replace(LONG, namespaces=("theirs",)), name="patient")
    pass_time(clock, 400)

    for worker in (hasty, patient):
        worker.look()
        assert worker.wait()

    (done,) = told.about(NoticeKind.DONE)
    assert (done.worker, done.namespace) == ("hasty", "ours")
    assert told.about(NoticeKind.LOOKED)[0].due == 1


def test_it_is_told_once_and_again_after_it_was_put_right(
    store: SessionStore, working: Working, told: Told
) -> None:
    first = working(name="first")
    for other in (working(LONG, name="second"),) * 3:
        first.look()
        other.look()
    assert [notice.worker for notice in told.about(NoticeKind.SETTINGS_DIFFER)] == ["first"]

    working(RULES)
    first.look()
    working(LONG)
    first.look()
    first.look()

    assert len(told.about(NoticeKind.SETTINGS_DIFFER)) == 2


def test_what_was_passed_over_is_not_looked_at_again(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    store.session("one block").append(Block.user("word " * 20_000))
    first = working(name="first")
    working(LONG, name="second")
    pass_time(clock, RULES.idle_time_s)

    for _ in range(3):
        first.look()
        assert first.wait()

    assert len(told.about(NoticeKind.PASSED_OVER)) == 1
    assert told.about(NoticeKind.LOOKED)[-1].due == 0
