"""`cutbank diff` and `cutbank lineage`."""

from pathlib import Path

import pytest

import cutbank
from cutbank import Block, ToolCall, ToolResult
from cutbank.adapters.interfaces.commands.lineage import ASCII_STROKES, BOX_STROKES, format_tree
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run

COMPACT = ("compact", "long", "--set", "keep_tokens=1000")


def tell(address: str, *calls: tuple[str, dict[str, object], str]) -> None:
    """Store the session `facts`, which asks, calls tools and goes on."""
    with open_store(address) as store:
        session = store.session("facts")
        session.append(Block.user("What is there?"))
        for number, (name, arguments, content) in enumerate(calls):
            session.append(
                ToolCall(tool_call_id=f"c{number}", name=name, arguments=arguments),
                ToolResult(tool_call_id=f"c{number}", content=content),
            )
        session.append(Block.user("Go on."), Block.assistant("I go on."))


def test_what_is_lost_is_said_with_its_handles(run: Run, address: str) -> None:
    paths = "\n".join(f"src/river/arm_{n}/bed_{n}.py" for n in range(600))
    tell(address, ("find", {"in": "src"}, paths))
    run("compact", "facts", "--set", "keep_tokens=10")

    answer = run("diff", "facts", "--full").out
    short = run("diff", "facts").out

    lost = run("diff", "facts", "--json").json["lost"]
    assert len(lost) > 100
    assert all(f"{fact['fact']}  #5" in answer for fact in lost)
    assert f"lost: {len(lost)} facts nowhere in the new view" in short
    assert f"... and {len(lost) - 20} more facts: --full lists all" in short


def test_a_diff_shows_one_compaction_and_a_lineage_is_a_tree_of_all(
    run: Run, address: str, long_talk: Path
) -> None:
    empty = run("lineage", "long")
    assert (empty.code, run("lineage", "long", "--json").json["lineages"]) == (0, [])
    assert "Nothing was compacted in long yet" in empty.out
    run(*COMPACT)
    left = run("diff", "long", "--json").json["left"]
    said = run("diff", "long").out
    assert "compaction 1 on main" in said
    assert f"{len(left)} blocks left" in said
    assert f"{left[0]['handle']} {left[0]['kind']}, " in said
    assert "a summary of" in said
    run("append", "long", "more " * 5_000)
    run(*COMPACT)
    run("revert", "long")

    said = run("lineage", "long").out
    boundaries = run("lineage", "long", "--json").json["lineages"][0]["boundaries"]

    assert "served from #" in said
    assert "reverted at #" in said
    assert "left with compaction 1; the summary of 1 replaces them" in said
    assert [one["compaction"] for one in boundaries] == [1, 2]
    assert boundaries[0]["boundary"] == 3
    assert run("diff", "long", "2", "--json").json["after"]["compaction"] == 2
    with open_store(address) as store:
        tree = cutbank.lineage_tree(store.session("long"))
    plain, boxed = list(format_tree(tree, ASCII_STROKES)), list(format_tree(tree, BOX_STROKES))
    assert "".join(plain).replace("…", "").isascii()
    assert len(plain) == len(boxed)


@pytest.mark.parametrize("verb", ["diff", "lineage", "audit"])
def test_a_page_is_written_beside_the_answer(
    run: Run, long_talk: Path, tmp_path: Path, verb: str
) -> None:
    run(*COMPACT)
    path, other = tmp_path / "page.html", tmp_path / "other.html"

    answer = run(verb, "long", "--html", path)
    again = run(verb, "long", "--html", path)
    as_json = run(verb, "long", "--html", other, "--full", "--json").json

    assert f"wrote {path}" in answer.out
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert again.code == 2
    assert "is there already" in again.err
    assert as_json["page"] == str(other)
    assert other.exists()


def test_what_nobody_misses_is_left_out_and_what_was_used_again_comes_first(
    run: Run, address: str
) -> None:
    calls: list[tuple[str, dict[str, object], str]] = []
    for call in range(40):
        source = f"tools.look_up(part_{call})" if call < 20 else "tools.list()"
        listing = f"{900 + call}: river_bed_{call}()  took 0.{call + 11}s"
        calls.append(("script", {"source": source, "max_output_tokens": 900}, listing))
    tell(address, *calls)
    run("compact", "facts", "--set", "keep_tokens=10", "--set", "summary_tokens=40")
    lost = run("diff", "facts", "--json").json["lost"]
    word = [one["key"] for one in lost if not one["minor"]][5]
    run("append", "facts", "--role", "assistant", f"It is {word}.")

    said = run("diff", "facts").out
    lost = run("diff", "facts", "--json").json["lost"]

    assert lost[0]["key"] == word
    minor = {one["key"] for one in lost if one["minor"]}
    assert {"tools.look_up", "0.13s"} <= minor
    assert not any(key.startswith("river_bed") for key in minor)
    assert "identifier tools.look_up" not in said
    assert f"left out: {len(minor)} unused numbers and words of tool calls" in said
    assert "0.13s" in run("diff", "facts", "--full").out
