"""Tables on terminals of any width."""

import sys

import pytest

from cutbank.adapters.entrypoints.printing import say_table


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_no_name_and_no_number_is_lost_however_narrow_it_is(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    name = "a-rather-long-name-of-a-session-0123456789"
    numbers = [1_000_000 + n for n in range(8)]

    say_table(
        ["session", *(f"tokens {n}" for n in range(8)), "title"],
        [[name, *numbers, "What it is about, at length, as people put it"]],
    )

    lines = capsys.readouterr().out.splitlines()
    assert name in "".join(line.split(" ")[0] for line in lines)
    assert all(f"{number:,}" in lines[2] for number in numbers)
    assert all(f"tokens {n}" in lines[0] for n in range(8))
    assert "What it is" in lines[2]
