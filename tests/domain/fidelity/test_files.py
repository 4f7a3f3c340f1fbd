"""Files that hidden calls touched, and calls that read again what they can no longer see."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fidelity_sessions import Talk, dropping

from cutbank.domain.fidelity.canonical_boundaries import Boundary
from cutbank.domain.fidelity.fidelity_measure import Measure
from cutbank.domain.fidelity.rereads import FileAgain
from cutbank.domain.fidelity.scores import Scores
from cutbank.domain.fidelity.segments import WHOLE


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


def at_end(talk: Talk) -> Measure:
    """Measured at a boundary that hides all of it."""
    talk.says("well").says("well")
    return Measure(talk.read(), (Boundary(talk.calls, len(talk.rows)),))


def scored(measure: Measure, summary: str) -> Scores:
    return measure.scores(dropping(measure.reading, measure.boundaries, summary))


def test_a_file_that_was_modified_is_none_that_was_only_read() -> None:
    measure = at_end(
        touched(
            ("read_file", {"path": "/home/me/zone/src/river.py"}),
            ("read_file", {"path": "src/bank.py"}),
            ("edit_file", {"file_path": "./src/river.py"}),
            ("write_file", {"path": "docs/gate.md"}),
        )
    )

    (at,) = measure.beside.files
    assert at.modified == {"src/river.py", "docs/gate.md"}
    assert at.read == {"src/bank.py"}


def test_a_path_with_white_space_is_named_by_its_last_part() -> None:
    (at,) = at_end(touched(("read_file", {"path": "/deep/down waters/src/bank.py"}))).beside.files

    assert at.read == {"waters/src/bank.py"}


def test_shell_commands_read_what_they_print_and_modify_what_they_write() -> None:
    commands = (
        "cd src && cat bank.py | head -5",
        "sed -n '1,60p' src/gate.py; nl src/*.rs src/hinge.rs",
        "sed -i s/a/b/ src/edited.py",
        "cat > src/written.py <<'END'",
        "tail run.log 2>/dev/null",
        "python src/run.py; echo src/said.py; cat src",
    )
    measure = at_end(touched(*(("bash", {"command": command}) for command in commands)))

    (at,) = measure.beside.files
    assert at.modified == {"src/edited.py", "src/written.py"}
    assert at.read == {"bank.py", "src/gate.py", "src/hinge.rs", "run.log"}


def test_only_shells_run_commands() -> None:
    measure = at_end(touched(("say", {"text": "cat src/bank.py"})))

    assert measure.beside.files[0].read == frozenset()


def test_a_view_names_a_file_by_its_path_or_by_a_longer_one() -> None:
    measure = at_end(
        touched(
            ("edit_file", {"path": "src/river.py"}),
            ("read_file", {"path": "src/bank.py"}),
        )
    )

    assert scored(measure, "river.py and bank.py").modified_named == 0
    assert scored(measure, "src/river.py").modified_named == 1
    assert scored(measure, "/home/me/zone/src/river.py, at core/src/bank.py").read_named == 1
    everything = measure.scores([WHOLE])
    assert (everything.modified, everything.modified_named) == (1, 1)
    assert (everything.read, everything.read_named) == (1, 1)


def test_the_kept_window_names_files_too() -> None:
    talk = touched(("edit_file", {"path": "src/river.py"})).says("well").user("see src/river.py")
    measure = Measure(talk.says("well").read(), (Boundary(3, 5),))

    assert scored(measure, "").modified_named == 1


def test_a_call_that_failed_touched_nothing() -> None:
    talk = called(Talk().user("go"), "edit_file", {"path": "src/river.py"}, "no", fails=True)

    assert at_end(talk).beside.files[0].modified == frozenset()


def test_a_path_that_spells_out_no_fact_counts_for_nothing() -> None:
    assert at_end(touched(("read_file", {"path": "Makefile"}))).beside.files[0].read == frozenset()


def test_each_boundary_counts_all_files_that_are_hidden_by_then() -> None:
    talk = touched(
        ("edit_file", {"path": "src/river.py"}),
        ("edit_file", {"path": "src/bank.py"}),
        ("edit_file", {"path": "src/river.py"}),
    ).says("well")
    measure = Measure(talk.read(), (Boundary(2, 4), Boundary(4, 8)))

    assert [len(at.modified) for at in measure.beside.files] == [1, 2]
    assert scored(measure, "src/river.py").modified_named == 2


READ = ("read_file", {"path": "src/river.py"})


def test_a_file_is_read_again_whose_readings_are_all_hidden() -> None:
    talk = touched(READ, READ, READ)
    measure = Measure(talk.read(), (Boundary(2, 4),))

    # The third reading could see the second.
    assert measure.beside.rereads == (FileAgain(2, "src/river.py", 2),)
    assert scored(measure, "src/river.py").rereads_named == 1
    assert scored(measure, "river.py").rereads_named == 0
    assert measure.scores([WHOLE]).rereads_named == measure.scores([WHOLE]).rereads == 1


def test_a_first_reading_and_one_after_a_change_alone_are_none_again() -> None:
    talk = touched(("edit_file", {"path": "src/river.py"}), READ)

    assert Measure(talk.read(), (Boundary(2, 4),)).beside.rereads == ()


def test_two_readings_of_one_answer_are_one_reading_again() -> None:
    talk = touched(READ)
    talk.calls_tool("read_file", "src/river.py").calls_tool("read_file", "src/river.py", more=True)
    talk.rows[-2:] = [replace(row, arguments=READ[1]) for row in talk.rows[-2:]]
    measure = Measure(talk.read(), (Boundary(2, 4),))

    assert [again.call for again in measure.beside.rereads] == [2]
    # Without the reading before them neither could see the other.
    talk.rows[1] = replace(talk.rows[1], arguments={"path": "src/bank.py"})
    assert Measure(talk.read(), (Boundary(2, 4),)).beside.rereads == ()
    assert Measure(talk.read(), (Boundary(2, 6),)).beside.rereads == ()


def test_what_is_still_in_the_kept_window_is_not_read_again() -> None:
    talk = touched(READ, ("look", {}), READ)

    assert Measure(talk.read(), (Boundary(3, 2),)).beside.rereads == ()
    assert len(Measure(talk.read(), (Boundary(3, 4),)).beside.rereads) == 1
