"""Files that hidden calls touched, and calls that read again what they can no longer see."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fidelity_sessions import Talk, measure, score_summary

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.file_touches import RepeatedRead
from cutbank.domain.fidelity.rows import WHOLE_HISTORY


def called(
    talk: Talk, tool: str, arguments: Mapping[str, Any], answer: str = "ok", *, fails: bool = False
) -> Talk:
    """A call of a tool by its arguments, and its answer."""
    values = [str(value) for value in arguments.values()]
    talk.calls_tool(tool, *values).returns(answer)
    talk.rows[-2] = replace(talk.rows[-2], arguments=arguments)
    talk.rows[-1] = replace(talk.rows[-1], is_error=fails)
    return talk


def touched(*calls: tuple[str, Mapping[str, Any]]) -> Talk:
    talk = Talk(roots=["/home/me/zone"]).user("go")
    for tool, arguments in calls:
        called(talk, tool, arguments)
    return talk


def at_end(talk: Talk) -> FidelityMeasure:
    """Measured at a boundary that hides all of it."""
    talk.says("well").says("well")
    return measure(talk, (talk.calls, len(talk.rows)))


def test_a_file_that_was_modified_is_none_that_was_only_read() -> None:
    found = at_end(
        touched(
            ("read_file", {"path": "/home/me/zone/src/river.py"}),
            ("read_file", {"path": "src/bank.py"}),
            ("edit_file", {"file_path": "./src/river.py"}),
            ("write_file", {"path": "docs/gate.md"}),
        )
    )

    (at,) = found.beside.hidden_files
    assert at.modified == {"src/river.py", "docs/gate.md"}
    assert at.read == {"src/bank.py"}


def test_a_path_has_to_be_a_fact_of_a_call_that_reads_and_did_not_fail() -> None:
    spaced = at_end(touched(("read_file", {"path": "/deep/down waters/src/bank.py"})))
    none = at_end(
        called(
            touched(("read_file", {"path": "Makefile"}), ("say", {"text": "cat src/bank.py"})),
            *("edit_file", {"path": "src/river.py"}, "no"),
            fails=True,
        )
    )

    assert spaced.beside.hidden_files[0].read == {"waters/src/bank.py"}
    assert (none.beside.hidden_files[0].read, none.beside.hidden_files[0].modified) == (
        frozenset(),
        frozenset(),
    )


def test_shell_commands_read_what_they_print_and_modify_what_they_write() -> None:
    commands = (
        "cd src && cat bank.py | head -5",
        "sed -n '1,60p' src/gate.py; nl src/*.rs src/hinge.rs",
        "sed -i s/a/b/ src/edited.py",
        "cat > src/written.py <<'END'",
        "tail run.log 2>/dev/null",
        "python src/run.py; echo src/said.py; cat src",
    )
    found = at_end(touched(*(("bash", {"command": command}) for command in commands)))

    (at,) = found.beside.hidden_files
    assert at.modified == {"src/edited.py", "src/written.py"}
    assert at.read == {"bank.py", "src/gate.py", "src/hinge.rs", "run.log"}


def test_a_view_names_a_file_by_its_path_or_by_a_longer_one() -> None:
    found = at_end(
        touched(("edit_file", {"path": "src/river.py"}), ("read_file", {"path": "src/bank.py"}))
    )

    assert score_summary(found, "river.py and bank.py").modified_named == 0
    assert score_summary(found, "src/river.py").modified_named == 1
    assert score_summary(found, "/home/me/zone/src/river.py, at core/src/bank.py").read_named == 1
    everything = found.score([WHOLE_HISTORY])
    assert (everything.modified, everything.modified_named) == (1, 1)
    assert (everything.read, everything.read_named) == (1, 1)


def test_the_kept_window_names_files_too() -> None:
    talk = touched(("edit_file", {"path": "src/river.py"})).says("well").user("see src/river.py")
    found = measure(talk.says("well"), (3, 5))

    assert score_summary(found, "").modified_named == 1


def test_each_boundary_counts_all_files_that_are_hidden_by_then() -> None:
    talk = touched(
        ("edit_file", {"path": "src/river.py"}),
        ("edit_file", {"path": "src/bank.py"}),
        ("edit_file", {"path": "src/river.py"}),
    ).says("well")
    found = measure(talk, (2, 4), (4, 8))

    assert [len(at.modified) for at in found.beside.hidden_files] == [1, 2]
    assert score_summary(found, "src/river.py").modified_named == 2


READ = ("read_file", {"path": "src/river.py"})


def test_a_file_is_read_again_whose_readings_are_all_hidden() -> None:
    talk = touched(READ, READ, READ)
    found = measure(talk, (2, 4))

    # The third reading could see the second; a first reading, after a change too, is none again.
    assert found.beside.repeated_reads == (RepeatedRead(2, "src/river.py", 2),)
    assert score_summary(found, "src/river.py").rereads_named == 1
    assert score_summary(found, "river.py").rereads_named == 0
    assert found.score([WHOLE_HISTORY]).rereads_named == found.score([WHOLE_HISTORY]).rereads == 1
    once = touched(("edit_file", {"path": "src/river.py"}), READ)
    assert measure(once, (2, 4)).beside.repeated_reads == ()


def test_two_readings_of_one_answer_are_one_reading_again() -> None:
    talk = touched(READ)
    talk.calls_tool("read_file", "src/river.py").calls_tool("read_file", "src/river.py", more=True)
    talk.rows[-2:] = [replace(row, arguments=READ[1]) for row in talk.rows[-2:]]
    found = measure(talk, (2, 4))

    assert [again.call for again in found.beside.repeated_reads] == [2]
    # Without the reading before them neither could see the other.
    talk.rows[1] = replace(talk.rows[1], arguments={"path": "src/bank.py"})
    assert measure(talk, (2, 4)).beside.repeated_reads == ()
    assert measure(talk, (2, 6)).beside.repeated_reads == ()


def test_what_is_still_in_the_kept_window_is_not_read_again() -> None:
    talk = touched(READ, ("look", {}), READ)

    assert measure(talk, (3, 2)).beside.repeated_reads == ()
    assert len(measure(talk, (3, 4)).beside.repeated_reads) == 1
