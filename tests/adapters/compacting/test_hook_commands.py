"""Hook commands: real programs that answer, fail, hang, flood and leave children behind."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cutbank
from cutbank.adapters.runtime.compaction.hook_commands import HookCommand, as_told, hook_commands
from cutbank.adapters.runtime.compaction.hook_process import HookProcess
from cutbank.adapters.settings.settings import HookCommandSettings, HookSettings
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import CompactionVetoedError
from cutbank.domain.hooks import Happening, Moment, Stats, Verdict
from cutbank.domain.session_events import Usage

ABOUT_TO = Happening(
    Moment.PRE_COMPACT,
    session="talk",
    namespace="default",
    lineage="main",
    trigger=Trigger.THRESHOLD,
    policy="reserve-headroom",
    before=Stats(tokens=9_000, blocks=40),
    instructions="Keep the names.",
)
STARTS_AGAIN = Happening(
    Moment.SESSION_START, session="talk", namespace="default", lineage="main", source="compact"
)
HANGS = "import signal; signal.pause()"

Program = Callable[..., HookCommand]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A hook whose program is this Python, run in a folder of its own."""

    def made(code: str, *, time_limit_s: float = 60, on: frozenset[Moment] | None = None) -> Any:
        script = tmp_path / "hook.py"
        script.write_text(code, encoding="utf-8")
        moments = frozenset(Moment) if on is None else on
        return HookCommand((sys.executable, str(script)), moments, time_limit_s)

    return made


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test may leave a program that nobody waited for, or an open stream."""
    started: list[subprocess.Popen[bytes]] = []
    start = HookProcess._started

    def noted(process: HookProcess) -> subprocess.Popen[bytes]:
        started.append(start(process))
        return started[-1]

    monkeypatch.setattr(HookProcess, "_started", noted)
    yield
    for process in started:
        assert process.returncode is not None
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream
            assert stream.closed


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


def test_a_session_start_says_its_source() -> None:
    told = as_told(STARTS_AGAIN)

    assert told["hook_event_name"] == "SessionStart"
    assert told["source"] == "compact"
    assert "trigger" not in told


def test_what_a_draft_took_is_said_as_json() -> None:
    paid = Happening(
        Moment.SUMMARISED,
        *("talk", "default", "main"),
        summariser="llm",
        model="small",
        usage=Usage(input=900, output=50),
        cost_usd=0.002,
        latency_s=1.5,
    )

    told = json.loads(json.dumps(as_told(paid)))

    assert told["usage"] == {"input": 900, "output": 50}
    assert (told["model"], told["cost_usd"], told["latency_s"]) == ("small", 0.002, 1.5)
    assert told["hook_event_name"] == "Summarised"


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        (Trigger.MANUAL, "manual"),
        (Trigger.THRESHOLD, "auto"),
        (Trigger.OVERFLOW, "auto"),
    ],
)
def test_a_trigger_is_manual_or_auto(trigger: Trigger, said: str) -> None:
    told = as_told(Happening(Moment.ACTIVATED, "s", "default", "main", trigger=trigger))

    assert told["trigger"] == said
    assert told["set_off_by"] == trigger.value
    assert told["hook_event_name"] == "PostCompact"


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("", None),
        ("print('   ')", None),
        ("print('{}')", None),
        ("""print('{"instructions": "Keep #3."}')""", Verdict(instructions="Keep #3.")),
        ("""print('{"instructions": "  "}')""", None),
        ("""print('{"veto": "not now"}')""", Verdict(veto="python: not now")),
        ("""print('{"veto": ""}')""", Verdict(veto="python: it gave no reason")),
        (
            """print('{"decision": "block", "reason": "tests run"}')""",
            Verdict(veto="python: tests run"),
        ),
        (
            """print('{"continue": false, "stopReason": "enough"}')""",
            Verdict(veto="python: enough"),
        ),
        ("""print('{"continue": true, "suppressOutput": true}')""", None),
        ("""print('{"decision": "approve"}')""", None),
        ("print('Keep the rivers.\\nAnd lakes.')", Verdict("Keep the rivers.\nAnd lakes.")),
        ("import sys; sys.stderr.write('chatter')", None),
        (
            "import sys; print('no'); print('a build runs', file=sys.stderr); sys.exit(2)",
            Verdict(veto="python: a build runs"),
        ),
        ("import sys; print('out'); sys.exit(2)", Verdict(veto="python: out")),
        ("import sys; sys.exit(2)", Verdict(veto="python: it gave no reason")),
    ],
)
def test_an_answer_is_heard(program: Program, code: str, verdict: Verdict | None) -> None:
    hook = program(code)
    if verdict and verdict.veto:
        verdict = Verdict(veto=verdict.veto.replace("python", Path(sys.executable).name, 1))

    assert hook(ABOUT_TO) == verdict


def test_an_answer_is_heard_before_a_compaction_only(program: Program) -> None:
    hook = program("""print('{"veto": "no", "instructions": "x"}')""")

    assert hook(STARTS_AGAIN) is None


def test_a_program_is_started_for_its_moments_only(program: Program, tmp_path: Path) -> None:
    started = tmp_path / "started"
    hook = program(f"open({str(started)!r}, 'w'); print('x')", on=frozenset({Moment.SESSION_START}))

    assert hook(ABOUT_TO) is None

    assert not started.exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no river')", "exited with 1 (ValueError: no river)"),
        ("import os; os.abort()", "was ended by signal 6"),
        ("print('{broken')", "answered with broken JSON"),
        ("print('{\"a\":' + '[' * 60_000)", "answered with broken JSON"),
        ("""print('{"instruction": "x"}')""", "answered with JSON that says nothing"),
        ("""print('{"veto": true}')""", "answered with veto that is no text"),
        ("""print('{"decision": "block", "reason": 3}')""", "answered with reason that is no text"),
        ("print('silt ' * 20_000)", "said more than 65,536 bytes"),
    ],
)
def test_a_failure_is_logged_and_stops_nothing(
    program: Program, caplog: pytest.LogCaptureFixture, code: str, said: str
) -> None:
    hook = program(code)

    assert hook(ABOUT_TO) is None

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    message = record.getMessage()
    assert f"hook command {sys.executable!r} at pre_compact {said}" in message
    assert "hooks.commands in the settings" in message
    assert "\n" not in message


@pytest.mark.parametrize("moment", [ABOUT_TO, STARTS_AGAIN])
@pytest.mark.parametrize("word", ["cutbank-has-no-such-program", "/", "with\0null"])
def test_a_program_that_cannot_be_started_is_logged(
    caplog: pytest.LogCaptureFixture, word: str, moment: Happening
) -> None:
    assert HookCommand((word,), frozenset(Moment))(moment) is None

    assert "cannot be started" in caplog.text


def test_exit_code_2_at_another_moment_is_a_failure(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    assert program("import sys; sys.exit(2)")(STARTS_AGAIN) is None

    assert "at session_start exited with 2" in caplog.text


def test_neither_arguments_nor_keys_are_logged(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-ant-api03-Zq8vN2xK7wPqLmT4"
    hook = program(f"import sys; sys.exit('refused: {key}')")
    hook = HookCommand((*hook.command, "--secret=abcdef"), hook.on, hook.time_limit_s)

    hook(ABOUT_TO)

    assert "refused" in caplog.text
    assert key not in caplog.text
    assert "abcdef" not in caplog.text


def test_a_hang_is_killed_with_its_children(
    program: Program,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Both hold a pipe open for as long as they live: it ends when the last of them is gone.
    alive, hangs = tmp_path / "alive", tmp_path / "hangs"
    os.mkfifo(alive)
    hook = program(
        "import os, pathlib, subprocess, sys\n"
        f"held = os.open({str(alive)!r}, os.O_WRONLY)\n"
        "subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'],"
        " pass_fds=[held])\n"
        "os.write(held, b'x')\n"
        f"pathlib.Path({str(hangs)!r}).touch()\n"
        f"{HANGS}",
        time_limit_s=5,
    )
    read = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(read, True)
    # Time stands still until they hang.
    monkeypatch.setattr(
        "cutbank.adapters.runtime.compaction.hook_process.monotonic",
        lambda: 6.0 if hangs.exists() else 0.0,
    )

    assert hook(ABOUT_TO) is None

    assert os.read(read, 9) == b"x"
    assert os.read(read, 9) == b""
    os.close(read)
    assert "took longer than 5 s, and was killed" in caplog.text


def test_a_program_that_closed_its_streams_is_killed_as_well(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    hook = program(f"import os\nfor n in (0, 1, 2): os.close(n)\n{HANGS}", time_limit_s=0.2)

    assert hook(ABOUT_TO) is None

    assert "took longer than 0.2 s" in caplog.text


def test_a_child_that_lives_on_is_not_waited_for(program: Program, tmp_path: Path) -> None:
    number = tmp_path / "number"
    hook = program(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        f"open({str(number)!r}, 'w').write(str(child.pid))\n"
        "print('Keep the rivers.')",
    )

    try:
        assert hook(ABOUT_TO) == Verdict(instructions="Keep the rivers.")
    finally:
        os.kill(int(number.read_text()), signal.SIGKILL)


def test_a_child_that_floods_is_not_heard_to_the_end(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    # The program ends once its child has said more than a pipe holds.
    hook = program(
        "import os, subprocess, sys\n"
        "read, write = os.pipe()\n"
        'child = \'import os\\nfor n in range(10**9): os.write(1, b"silt" * 50_000);'
        ' n == 5 and os.write(%d, b"x")\' % write\n'
        "subprocess.Popen([sys.executable, '-c', child], pass_fds=[write])\n"
        "os.read(read, 1)"
    )

    assert hook(ABOUT_TO) is None

    assert "said more than 65,536 bytes" in caplog.text


def test_a_program_that_floods_can_end(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    hook = program(
        "import sys\n"
        "sys.stderr.write('silt ' * 2_000_000)\n"
        "sys.stdout.write('silt ' * 2_000_000)\n"
        "sys.exit(3)"
    )

    assert hook(ABOUT_TO) is None

    assert "65,536 bytes" in caplog.text


def test_a_flood_of_complaints_does_not_hide_an_answer(program: Program) -> None:
    hook = program("import sys; sys.stderr.write('silt ' * 100_000); print('Keep it.')")

    assert hook(ABOUT_TO) == Verdict(instructions="Keep it.")


def test_a_program_may_leave_what_it_is_told_unread(program: Program) -> None:
    long = Happening(Moment.PRE_COMPACT, "s", "n", "main", instructions="silt " * 200_000)

    assert program("import os; os.close(0); print('Keep it.')")(long) == Verdict("Keep it.")
    assert program("import sys; print(len(sys.stdin.read()) > 10**6)")(long) == Verdict("True")


@pytest.fixture
def _hears_interrupts() -> Iterator[None]:
    """A shell that starts the tests in the background has them ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_hears_interrupts")
def test_an_interrupt_leaves_no_program_behind(program: Program, tmp_path: Path) -> None:
    # The program itself interrupts who waits for it, as Ctrl+C does.
    number = tmp_path / "number"
    hook = program(
        "import os, signal\n"
        f"open({str(number)!r}, 'w').write(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        f"{HANGS}"
    )

    with pytest.raises(KeyboardInterrupt):
        hook(ABOUT_TO)

    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)


def test_no_shell_reads_a_command_and_the_environment_is_as_it_is(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIVER", "brown")
    code = "import os, sys; print(sys.argv[1:], sorted(os.environ.items()))"
    hook = program(code)
    hook = HookCommand((*hook.command, "$RIVER; echo", "*"), hook.on)

    verdict = hook(ABOUT_TO)

    plain = subprocess.run(hook.command, capture_output=True, check=True, text=True)
    assert verdict == Verdict(instructions=plain.stdout.strip())
    assert plain.stdout.startswith("['$RIVER; echo', '*'] ")
    assert "('RIVER', 'brown')" in plain.stdout


def test_text_that_is_no_text_survives(program: Program) -> None:
    odd = Happening(Moment.PRE_COMPACT, "half \ud83d", "n", "main", instructions="\x00\u2028")
    hook = program(
        "import json, sys\n"
        "told = json.load(sys.stdin)\n"
        "assert told['session'] == 'half \\ud83d', told\n"
        "sys.stdout.buffer.write(b'caf\\xe9')"
    )

    assert hook(odd) == Verdict(instructions="caf\ufffd")


def test_many_threads_may_start_programs_at_once(program: Program) -> None:
    hook = program("import sys; print(len(sys.stdin.read()))")
    heard: list[Verdict | None] = []
    threads = [threading.Thread(target=lambda: heard.append(hook(ABOUT_TO))) for _ in range(6)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(heard)) == 1
    assert len(heard) == 6
    assert heard[0]


def test_settings_make_listeners() -> None:
    one = HookCommandSettings(on=(Moment.FAILED,), command=("x", "y"), time_limit=3)

    assert hook_commands(HookSettings(commands=(one,))) == [
        HookCommand(("x", "y"), frozenset({Moment.FAILED}), 3)
    ]


def test_the_time_limit_is_of_the_whole_run() -> None:
    # It says something now and then, and never ends.
    code = "import itertools\nfor n in itertools.count(): print(n, flush=True, end='')"

    with pytest.raises(Exception, match="took longer than 1 s"):
        HookProcess((sys.executable, "-c", code), 1).tell(b"{}")


@pytest.fixture
def long_session(session: cutbank.StoredSession) -> cutbank.StoredSession:
    for turn in range(12):
        session.append(
            cutbank.Block.user(f"Question {turn}: " + "why is the river brown? " * 20),
            cutbank.Block.assistant(f"Answer {turn}: " + "silt, silt and more silt. " * 140),
        )
    return session


def test_a_program_vetoes_a_real_compaction(
    program: Program, store: cutbank.SessionStore, long_session: cutbank.StoredSession
) -> None:
    before = long_session.view()
    store.listeners.append(program("""print('{"veto": "no"}')"""))

    with pytest.raises(CompactionVetoedError, match=f"{Path(sys.executable).name}: no"):
        long_session.compact(limit=8_000, settings={"keep_tokens": "1000"})

    assert long_session.view().fingerprint == before.fingerprint


def test_programs_are_told_of_a_real_compaction_and_a_broken_one_stops_nothing(
    program: Program,
    tmp_path: Path,
    store: cutbank.SessionStore,
    long_session: cutbank.StoredSession,
) -> None:
    told = tmp_path / "told.jsonl"
    store.listeners += [
        HookCommand(("cutbank-has-no-such-program",), frozenset(Moment)),
        program(
            "import json, sys\n"
            f"open({str(told)!r}, 'a').write(sys.stdin.read() + chr(10))\n"
            "print('Keep the names of all rivers.')"
        ),
    ]

    outcome = long_session.compact(
        limit=8_000, settings={"keep_tokens": "1000"}, instructions="Be short."
    )

    heard = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    assert outcome.compacted
    assert heard[0]["hook_event_name"] == "PreCompact"
    assert heard[0]["trigger"] == "manual"
    assert heard[0]["custom_instructions"] == "Be short."
    assert [one["moment"] for one in heard][-3:] == ["recorded", "activated", "session_start"]
    assert "Keep the names of all rivers." in heard[1]["instructions"]
    assert heard[-1]["source"] == "compact"
    assert heard[-1]["after"]["tokens"] < heard[0]["before"]["tokens"]
