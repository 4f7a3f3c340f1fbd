"""Hook commands: real programs that answer, fail, hang, flood and leave children behind."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cutbank import CompactionEvent, CompactionEventKind, HookAnswer, Trigger, Usage
from cutbank.adapters.runtime.compaction.hook_commands import HookCommand, to_hook_input
from cutbank.domain.hooks import ViewStats

ABOUT_TO = CompactionEvent(
    CompactionEventKind.PRE_COMPACT,
    *("talk", "default", "main"),
    trigger=Trigger.THRESHOLD,
    policy="reserve-headroom",
    before=ViewStats(tokens=9_000, blocks=40),
    instructions="Keep the names.",
)
STARTS_AGAIN = CompactionEvent(
    CompactionEventKind.SESSION_START, *("talk", "default", "main"), source="compact"
)
ANY_MOMENT = frozenset(CompactionEventKind)
PYTHON = Path(sys.executable).name
HANGS = "import signal; signal.pause()"
NO_REASON = f"{PYTHON}: it gave no reason"

Program = Callable[..., HookCommand]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A hook whose program is this Python."""

    def made(code: str, *arguments: str, **how: Any) -> HookCommand:
        script = tmp_path / "hook.py"
        script.write_text(code, encoding="utf-8")
        how = {"on": ANY_MOMENT, "time_limit_s": 60, **how}
        return HookCommand((sys.executable, str(script), *arguments), **how)

    return made


def test_a_program_is_told_what_happens(program: Program, tmp_path: Path) -> None:
    heard = tmp_path / "heard.json"
    hook = program(f"import sys; open({str(heard)!r}, 'w').write(sys.stdin.read())")

    assert hook(ABOUT_TO) is None

    assert json.loads(heard.read_text()) == {
        "moment": "pre_compact",
        "session": "talk",
        "namespace": "default",
        "lineage": "main",
        "policy": "reserve-headroom",
        "before": {"tokens": 9_000, "blocks": 40, "summaries": 0},
        "instructions": "Keep the names.",
        "set_off_by": "threshold",
        # And as hooks of coding agents know it.
        "hook_event_name": "PreCompact",
        "session_id": "talk",
        "trigger": "auto",
        "custom_instructions": "Keep the names.",
        "cwd": str(Path.cwd()),
    }


def test_what_a_draft_took_is_said_as_json() -> None:
    paid = CompactionEvent(
        CompactionEventKind.SUMMARIZED,
        *("talk", "default", "main"),
        summarizer="llm",
        model="small",
        usage=Usage(input=900, output=50),
        cost_usd=0.002,
        latency_s=1.5,
    )

    told = json.loads(json.dumps(to_hook_input(paid)))

    assert told["summariser"] == "llm"
    assert told["usage"] == {"input": 900, "output": 50}
    assert (told["model"], told["cost_usd"], told["latency_s"]) == ("small", 0.002, 1.5)
    assert told["hook_event_name"] == "Summarised"


def test_an_answer_is_heard(program: Program) -> None:
    rows: list[tuple[str, HookAnswer | None]] = [
        ("", None),
        ("print('   ')", None),
        ("print('{}')", None),
        ("""print('{"instructions": "Keep #3."}')""", HookAnswer("Keep #3.")),
        ("""print('{"instructions": "  "}')""", None),
        ("""print('{"veto": "not now"}')""", HookAnswer(veto=f"{PYTHON}: not now")),
        ("""print('{"veto": ""}')""", HookAnswer(veto=NO_REASON)),
        ("""print('{"decision": "block", "reason": "no"}')""", HookAnswer(veto=f"{PYTHON}: no")),
        ("""print('{"continue": false, "stopReason": "so"}')""", HookAnswer(veto=f"{PYTHON}: so")),
        ("""print('{"continue": true, "suppressOutput": true}')""", None),
        ("""print('{"decision": "approve"}')""", None),
        ("print('Keep the rivers.\\nAnd lakes.')", HookAnswer("Keep the rivers.\nAnd lakes.")),
        ("import sys; sys.stdout.buffer.write(b'caf\\xe9')", HookAnswer("caf\ufffd")),
        ("import sys; sys.stderr.write('chatter')", None),
        ("import sys; sys.stderr.write('silt ' * 100_000); print('Keep it.')",
         HookAnswer("Keep it.")),
        ("import sys; print('no'); print('busy', file=sys.stderr); sys.exit(2)",
         HookAnswer(veto=f"{PYTHON}: busy")),
        ("import sys; print('out'); sys.exit(2)", HookAnswer(veto=f"{PYTHON}: out")),
        ("import sys; sys.exit(2)", HookAnswer(veto=NO_REASON)),
    ]  # fmt: skip
    for code, verdict in rows:
        assert program(code)(ABOUT_TO) == verdict, code


def test_an_answer_counts_before_a_compaction(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    assert program("""print('{"veto": "no", "instructions": "x"}')""")(STARTS_AGAIN) is None
    assert not caplog.text

    assert program("import sys; sys.exit(2)")(STARTS_AGAIN) is None
    assert "at session_start ended with status 2" in caplog.text


def test_a_program_is_started_for_its_moments_only(program: Program) -> None:
    hook = program("print('x')", on=frozenset({CompactionEventKind.SESSION_START}))

    assert hook(ABOUT_TO) is None


def test_a_failure_is_only_logged(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    rows: list[tuple[str, str]] = [
        ("raise ValueError('no river')", "ended with status 1: ValueError: no river"),
        ("import os; os.abort()", "was killed by SIGABRT"),
        ("print('{broken')", "answered with broken JSON"),
        ("print('{\"a\":' + '[' * 60_000)", "answered with broken JSON"),
        ("""print('{"instruction": "x"}')""", "answered with JSON that says nothing"),
        ("""print('{"veto": true}')""", "answered with veto that is no text"),
        ("""print('{"decision": "block", "reason": 3}')""", "answered with reason that is no text"),
        ("print('silt ' * 20_000)", "said more than 65,536 bytes"),
    ]
    for code, said in rows:
        caplog.clear()

        assert program(code)(ABOUT_TO) is None, code

        (record,) = caplog.records
        assert record.levelno == logging.WARNING, code
        message = record.getMessage()
        assert f"hook command {sys.executable!r} at pre_compact {said}" in message, code
        assert "hooks.commands in the settings" in message, code
        assert "\n" not in message, code


def test_a_program_that_cannot_be_started_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    for word in ["cutbank-has-no-such-program", "/", "with\0null"]:
        caplog.clear()

        assert HookCommand((word,), ANY_MOMENT)(STARTS_AGAIN) is None, word

        assert "cannot be started" in caplog.text, word


def test_no_arguments_or_keys_are_logged(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-ant-api03-Zq8vN2xK7wPqLmT4"

    program(f"import sys; sys.exit('refused: {key}')", "--secret=abcdef")(ABOUT_TO)

    assert "refused" in caplog.text
    assert key not in caplog.text
    assert "abcdef" not in caplog.text


def test_a_program_that_does_not_end_is_killed(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    mute = f"import os\nfor n in (0, 1, 2): os.close(n)\n{HANGS}"
    talks = "import itertools\nfor n in itertools.count(): print(n, flush=True, end='')"
    for code, time_limit_s, why in (
        (mute, 0.2, "took longer than 0.2 s"),
        (talks, 60, "said more than 65,536 bytes"),
    ):
        caplog.clear()

        assert program(code, time_limit_s=time_limit_s)(ABOUT_TO) is None, code

        assert why in caplog.text, code


def test_a_program_may_leave_what_it_is_told_unread(program: Program) -> None:
    long = CompactionEvent(ABOUT_TO.moment, "s", "n", "main", instructions="silt " * 200_000)

    assert program("import os; os.close(0); print('Keep it.')")(long) == HookAnswer("Keep it.")
    assert program("import sys; print(len(sys.stdin.read()) > 10**6)")(long) == HookAnswer("True")


@pytest.fixture
def _hears_interrupts() -> Iterator[None]:
    """A shell that starts the tests in the background has them ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_hears_interrupts")
def test_an_interrupt_leaves_no_program_behind(program: Program, tmp_path: Path) -> None:
    # The program itself interrupts who waits for it, as Ctrl+C does, once it has been told all.
    number = tmp_path / "number"
    hook = program(
        "import os, signal, sys\n"
        "sys.stdin.read()\n"
        f"open({str(number)!r}, 'w').write(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        f"{HANGS}"
    )

    with pytest.raises(KeyboardInterrupt):
        hook(ABOUT_TO)

    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)


def test_no_shell_reads_a_command(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVER", "brown")
    code = "import os, sys; print(sys.argv[1:], sorted(os.environ.items()))"
    hook = program(code, "$RIVER; echo", "*")

    verdict = hook(ABOUT_TO)

    plain = subprocess.run(hook.command, capture_output=True, check=True, text=True)
    assert verdict == HookAnswer(instructions=plain.stdout.strip())
    assert plain.stdout.startswith("['$RIVER; echo', '*'] ")
    assert "('RIVER', 'brown')" in plain.stdout


def test_text_that_is_no_text_survives(program: Program) -> None:
    odd = CompactionEvent(ABOUT_TO.moment, "half \ud83d", "n", "main", instructions="\0\u2028")
    hook = program("import json, sys; print(json.load(sys.stdin)['session'] == 'half \\ud83d')")

    assert hook(odd) == HookAnswer("True")
