"""`cutbank diff` and `cutbank lineage`."""

import re
from pathlib import Path

import pytest
from databases import on_sqlite

import cutbank
from cutbank.adapters.interfaces.command_line.lineage_lines import ASCII, BOXES, tree_lines
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run

REFERENCE = Path(__file__).parents[3] / "docs" / "cli.md"
COMPACT = ("compact", "long", "--set", "keep_tokens=1000")


def documented(verb: str) -> set[str]:
    """The keys that the reference names in a verb's section."""
    (text,) = [
        part
        for part in re.split(r"^## ", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if part.startswith(f"{verb}\n")
    ]
    return set(re.findall(r"`([a-z_0-9]+)`", text))


@on_sqlite
def test_a_diff_says_what_left_and_what_stands_for_it(run: Run, long_talk: Path) -> None:
    run(*COMPACT)
    left = run("diff", "long", "--json").json["left"]

    said = run("diff", "long").out

    assert "compaction 1 on main" in said
    assert f"{len(left)} blocks left" in said
    assert "a summary of" in said
    assert f"{left[0]['handle']} {left[0]['kind']}, " in said


@on_sqlite
def test_what_is_lost_is_said_with_its_handles(run: Run, address: str, long_talk: Path) -> None:
    with open_store(address) as store:
        session = store.session("facts")
        paths = "\n".join(f"src/river/arm_{n}/bed_{n}.py" for n in range(600))
        session.append(
            cutbank.Block.user("What is there?"),
            cutbank.ToolCall(tool_call_id="c", name="find", arguments={"in": "src"}),
            cutbank.ToolResult(tool_call_id="c", content=paths),
            cutbank.Block.user("Go on."),
            cutbank.Block.assistant("I go on."),
        )
    run("compact", "facts", "--set", "keep_tokens=10")

    answer = run("diff", "facts", "--full").out
    short = run("diff", "facts").out

    lost = run("diff", "facts", "--json").json["lost"]
    assert len(lost) > 100
    assert all(f"{fact['fact']}  #5" in answer for fact in lost)
    assert f"lost: {len(lost)} facts nowhere in the new view" in short
    assert f"... and {len(lost) - 20} more facts: --full lists all" in short


@on_sqlite
def test_every_key_of_a_diff_and_a_lineage_is_in_the_reference(run: Run, long_talk: Path) -> None:
    run(*COMPACT)

    diff = run("diff", "long", "--json").json
    lineage = run("lineage", "long", "--json").json

    told = documented("diff")
    for part in (diff["before"], diff["after"], diff["summary"], *diff["left"], *diff["lost"]):
        assert set(part) <= told
    told = documented("lineage")
    (tree,) = lineage["lineages"]
    assert set(tree) <= told
    for part in (*tree["boundaries"], *tree["attempts"], *tree["stands"]):
        assert set(part) <= told


@on_sqlite
def test_a_view_compared_with_itself_is_the_same(run: Run, long_talk: Path) -> None:
    run(*COMPACT)

    answer = run("diff", "long", "--from", "main#last", "--to", "main")

    assert answer.code == 0
    assert "Both views are the same." in answer.out


@on_sqlite
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("diff", "long"), "nothing was compacted"),
        (("diff", "long", "7"), "no compaction 7"),
        (("diff", "long", "--from", "nobody"), "no lineage 'nobody'"),
        (("diff", "long", "--from", "main#999"), "no position 999"),
        (("diff", "long", "--from", "main@99"), "no version 99"),
        (("diff", "nobody"), "no session 'nobody'"),
        (("lineage", "long", "--lineage", "nobody"), "no lineage 'nobody'"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_line(
    run: Run, long_talk: Path, words: tuple[str, ...], complaint: str
) -> None:
    answer = run(*words)

    assert answer.code == 2
    assert complaint in answer.err
    assert answer.err.count("\n") == 1


@on_sqlite
def test_a_lineage_is_a_tree_with_lines_of_the_terminals_own(
    run: Run, address: str, long_talk: Path
) -> None:
    run(*COMPACT)
    run("append", "long", "more " * 5_000)
    run(*COMPACT)
    run("revert", "long")

    said = run("lineage", "long").out
    boundaries = run("lineage", "long", "--json").json["lineages"][0]["boundaries"]

    assert "served from #" in said
    assert "reverted at #" in said
    assert "left with compaction 1; the summary of 1 stands for them" in said
    assert [one["compaction"] for one in boundaries] == [1, 2]
    assert boundaries[0]["boundary"] == 3
    assert run("diff", "long", "2", "--json").json["after"]["compaction"] == 2
    with open_store(address) as store:
        tree = store.session("long").lineage_tree()
    plain, boxed = ("\n".join(tree_lines(tree, strokes)) for strokes in (ASCII, BOXES))
    assert plain.replace("…", "").isascii()
    assert plain.count("\n") == boxed.count("\n")


@on_sqlite
def test_without_a_compaction_a_lineage_says_so(run: Run, long_talk: Path) -> None:
    answer = run("lineage", "long")

    assert answer.code == 0
    assert "Nothing was compacted in long yet" in answer.out
    assert run("lineage", "long", "--json").json["lineages"] == []


@on_sqlite
def test_more_lineages_stand_side_by_side(run: Run, long_talk: Path) -> None:
    run(*COMPACT)
    run(*COMPACT, "--lineage", "what-if")

    said = run("lineage", "long").out
    one = run("lineage", "long", "--lineage", "what-if", "--json").json

    assert "long on main" in said
    assert "long on what-if" in said
    assert [tree["lineage"] for tree in one["lineages"]] == ["what-if"]


@on_sqlite
@pytest.mark.parametrize("verb", ["diff", "lineage"])
def test_a_page_is_written_beside_the_answer(
    run: Run, long_talk: Path, tmp_path: Path, verb: str
) -> None:
    run(*COMPACT)
    path = tmp_path / f"{verb}.html"

    answer = run(verb, "long", "--html", path)
    again = run(verb, "long", "--html", path)
    as_json = run(verb, "long", "--html", tmp_path / "other.html", "--json").json

    assert f"wrote {path}" in answer.out
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert again.code == 2
    assert "is there already" in again.err
    assert as_json["page"] == str(tmp_path / "other.html")


@on_sqlite
def test_what_nobody_misses_is_left_out_and_what_was_used_again_comes_first(
    run: Run, address: str, long_talk: Path
) -> None:
    with open_store(address) as store:
        session = store.session("facts")
        session.append(cutbank.Block.user("Why does it fail?"))
        for call in range(40):
            listing = f"{900 + call}: river_bed_{call}()  took 0.{call + 11}s"
            source = f"tools.look_up(part_{call})" if call < 20 else "tools.list()"
            session.append(
                cutbank.ToolCall(
                    tool_call_id=f"c{call}",
                    name="script",
                    arguments={"source": source, "max_output_tokens": 900},
                ),
                cutbank.ToolResult(tool_call_id=f"c{call}", content=listing),
            )
        session.append(cutbank.Block.user("Go on."), cutbank.Block.assistant("I go on."))
    run("compact", "facts", "--set", "keep_tokens=10", "--set", "summary_tokens=40")
    word = [one["key"] for one in run("diff", "facts", "--json").json["lost"] if not one["minor"]][
        5
    ]
    run("append", "facts", "--role", "assistant", f"It is {word}.")

    said = run("diff", "facts").out
    lost = run("diff", "facts", "--json").json["lost"]

    assert lost[0]["key"] == word
    minor = {one["key"] for one in lost if one["minor"]}
    assert "tools.look_up" in minor
    assert "0.13s" in minor
    assert not any(key.startswith("river_bed") for key in minor)
    assert "identifier tools.look_up" not in said
    assert f"left out: {len(minor)} unused numbers and words of tool calls" in said
    assert "0.13s" in run("diff", "facts", "--full").out
