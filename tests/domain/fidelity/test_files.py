"""Files that hidden calls modified, and whether the view still names them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fidelity_sessions import Talk, measure, score_summary

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
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


def read_or_modified(measure: FidelityMeasure) -> tuple[set[str], set[str]]:
    touches = measure.reading.file_touches
    modified = {touch.key for touch in touches if touch.modifies}
    return {touch.key for touch in touches} - modified, modified


def test_the_files_that_hidden_calls_modified_are_counted() -> None:
    found = at_end(
        touched(
            ("read_file", {"path": "/home/me/zone/src/river.py"}),
            ("read_file", {"path": "src/bank.py"}),
            ("edit_file", {"file_path": "./src/river.py"}),
            ("write_file", {"path": "docs/gate.md"}),
        )
    )

    assert [keys for _, keys in found.hidden_files] == [{"src/river.py", "docs/gate.md"}]
    assert read_or_modified(found)[0] == {"src/bank.py"}


def test_a_path_has_to_be_a_fact_of_a_call_that_reads_and_did_not_fail() -> None:
    spaced = at_end(touched(("read_file", {"path": "/deep/down waters/src/bank.py"})))
    none = at_end(
        called(
            touched(("read_file", {"path": "Makefile"}), ("say", {"text": "cat src/bank.py"})),
            *("edit_file", {"path": "src/river.py"}, "no"),
            fails=True,
        )
    )

    assert read_or_modified(spaced) == ({"waters/src/bank.py"}, set())
    assert read_or_modified(none) == (set(), set())


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

    read, modified = read_or_modified(found)
    assert modified == {"src/edited.py", "src/written.py"}
    assert read == {"bank.py", "src/gate.py", "src/hinge.rs", "run.log"}


def test_a_view_names_a_file_by_its_path_or_by_a_longer_one() -> None:
    found = at_end(touched(("edit_file", {"path": "src/river.py"})))

    assert score_summary(found, "river.py").modified_named == 0
    assert score_summary(found, "src/river.py").modified_named == 1
    assert score_summary(found, "it is /home/me/zone/src/river.py").modified_named == 1
    assert score_summary(found, "at core/src/river.py").modified_named == 1
    everything = found.score([WHOLE_HISTORY])
    assert (everything.modified, everything.modified_named) == (1, 1)


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

    assert [len(keys) for _, keys in found.hidden_files] == [1, 2]
    assert score_summary(found, "src/river.py").modified_named == 2
