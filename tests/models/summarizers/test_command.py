"""Any program may write the summary; whatever it does is one line, and nothing of it is left."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from summarizer_talk import items_of, material_of, steps

from cutbank.adapters.models.command_summarizer import CommandSummarizer
from cutbank.domain.blocks import Block, BlockKind, Media, ToolCall, ToolResult
from cutbank.domain.compaction_events import Digest
from cutbank.domain.errors import InvalidSettingError, SummarizerFailedError
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material

MATERIAL = material_of(items_of(*steps(2)))


def program(code: str, **options: Any) -> CommandSummarizer:
    return CommandSummarizer((sys.executable, "-c", code), **options)


def drafted(code: str, material: Material = MATERIAL, **options: Any) -> Draft:
    return asyncio.run(program(code, **options).summarize(material))


def failure(code: str) -> SummarizerFailedError:
    with pytest.raises(SummarizerFailedError) as caught:
        drafted(code)
    assert "\n" not in str(caught.value)
    return caught.value


def question_for(material: Material, tmp_path: Path, **options: Any) -> Any:
    """Return what the program read."""
    kept = tmp_path / "question.json"
    code = f"import sys; open({str(kept)!r}, 'w').write(sys.stdin.read()); print('- said')"
    drafted(code, material, **options)
    return json.loads(kept.read_text())


def test_a_program_is_told_all_that_a_summary_is_made_of(tmp_path: Path) -> None:
    items = items_of(
        Block.user("Look at half a character: \ud83d"),
        ToolCall(tool_call_id="c", name="read", arguments={"path": "a.py"}),
        ToolResult(tool_call_id="c", content="gone", is_error=True),
        Block(kind=BlockKind.IMAGE, media=Media(type="image", mime="image/png", data=b"1234")),
    )
    material = material_of(
        items,
        covers=Ranges([(1, 4), (9, 9)]),
        budget=321,
        prefix=Ranges([(3, 4)]),
        previous="- old (#9)",
        instructions="Mind this.",
        digest=Digest(read_files=("a.py",), modified_files=("b.py",)),
    )

    asked = question_for(material, tmp_path)

    blocks = asked.pop("blocks")
    assert asked == {
        "version": 1,
        "budget": 321,
        "instructions": "Mind this.",
        "previous": "- old (#9)",
        "covers": [[1, 4], [9, 9]],
        "prefix": [[3, 4]],
        "digest": {"read_files": ["a.py"], "modified_files": ["b.py"]},
    }
    user = {"position": 1, "kind": "user", "turn": 1, "tokens": 7}
    assert blocks[0] == {**user, "text": "Look at half a character: \ud83d"}
    assert blocks[1]["tool"] == "read"
    assert json.loads(blocks[1]["text"]) == {"path": "a.py"}
    assert (blocks[2]["call"], blocks[2]["is_error"]) == (2, True)
    assert blocks[3]["media"] == [{"type": "image", "mime": "image/png", "bytes": 4, "url": None}]


def test_originals_may_take_the_place_of_an_earlier_summary(tmp_path: Path) -> None:
    first, second = items_of(*steps(1)), items_of(*steps(1), begins=10)
    material = material_of(second, previous="- old", originals=lambda _: iter([*first, *second]))

    asked = question_for(material, tmp_path, from_originals=True)

    assert asked["previous"] is None
    assert [block["position"] for block in asked["blocks"]] == [1, 2, 3, 4, 10, 11, 12, 13]


def test_an_answer_is_plain_text_or_an_object_that_says_what_it_took() -> None:
    draft = drafted("print('## Goal\\n- fix it (#1, #99)')")
    assert draft == Draft("## Goal\n- fix it (#1)", {"Goal": "- fix it (#1)"}, Ranges.of([1]))

    answer = {"text": "- fix it (#1)", "cites": [2, [3, 4]], "usage": {"input": 40, "output": 2}}
    more: dict[str, Any] = {"model": "m-1", "cost_usd": 0.5, "was_truncated": True}
    draft = drafted(f"print({json.dumps(json.dumps(answer | more))})")
    usage = Usage(input=40, output=2)
    assert draft == Draft("- fix it (#1)", cites=Ranges([(1, 4)]), usage=usage, **more)


def test_an_object_that_is_none_says_what_is_wrong_with_it() -> None:
    rows = {
        "text": ['{"summary": "x"}'],
        "cites": [
            f'{{"text": "x", "cites": {cites}}}' for cites in ("3", "[[3]]", "[[5, 3]]", "[0]")
        ],
        "model": ['{"text": "x", "model": 1}'],
        "usage": ['{"text": "x", "usage": {"input": "many"}}'],
        "cost_usd": [f'{{"text": "x", "cost_usd": {cost}}}' for cost in ("NaN", "-1", "true")],
        "was_truncated": ['{"text": "x", "was_truncated": "no"}'],
    }
    for name, answers in rows.items():
        for answer in answers:
            assert f"`{name}`" in str(failure(f"print({answer!r})")), answer
    assert drafted("print('{not JSON}')").text == "{not JSON}"
    assert drafted(r"""print('{"text": "half a \\ud83d"}')""").text == "half a \ufffd"


def test_how_a_program_ended_is_one_line() -> None:
    rows = [
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "was killed by SIGTERM", False),
        (r"import sys; sys.exit('two\x1b[31m red\n')", "ended with status 1: two red", False),
        (f"import sys; sys.exit({os.EX_TEMPFAIL})", f"ended with status {os.EX_TEMPFAIL}", True),
        # Of what it complains of, the end is kept.
        ("import sys; sys.exit('a' * 100_000 + '\\nlast')", "ended with status 1: last", False),
    ]
    for code, says, is_transient in rows:
        error = failure(code)
        assert (str(error).endswith(says), error.is_transient) == (True, is_transient), code
    assert "wrote more than a summary" in str(failure("while True: print('x' * 65_536)"))
    with pytest.raises(SummarizerFailedError, match="no-such-program cannot be started"):
        asyncio.run(CommandSummarizer(("/nowhere/no-such-program",)).summarize(MATERIAL))
    words: tuple[Any, ...] = ((), "", (1, 2))
    for argv in words:
        with pytest.raises(InvalidSettingError, match="it takes a program and its arguments"):
            CommandSummarizer(argv)


def test_nothing_is_read_by_a_shell(tmp_path: Path) -> None:
    trap = tmp_path / "trap"

    # It need not read what it is given.
    material = material_of(items_of(Block.user("x" * 5_000_000)))

    draft = asyncio.run(CommandSummarizer(("echo", f"$(touch {trap})")).summarize(material))

    assert draft.text == f"$(touch {trap})"
    assert not trap.exists()


def test_a_child_that_a_program_leaves_behind_does_not_keep_anybody_waiting() -> None:
    _gone(int(drafted("import subprocess; print(subprocess.Popen(['sleep', '600']).pid)").text))


def test_cancelling_ends_the_program_and_its_children(tmp_path: Path) -> None:
    pipe = tmp_path / "started"
    os.mkfifo(pipe)
    code = (
        "import os, subprocess, time; child = subprocess.Popen(['sleep', '600']);"
        f"open({str(pipe)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); time.sleep(600)"
    )

    async def cancelled() -> list[int]:
        writing = asyncio.ensure_future(program(code).summarize(MATERIAL))
        pids = await asyncio.to_thread(pipe.read_text)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        return [int(pid) for pid in pids.split()]

    for pid in asyncio.run(cancelled()):
        _gone(pid)


def _gone(pid: int) -> None:
    """Return once no process has this number, or only one that nobody has asked about yet."""
    state = Path(f"/proc/{pid}/stat")
    with suppress(ProcessLookupError, FileNotFoundError):
        while not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z":
            os.kill(pid, 0)
