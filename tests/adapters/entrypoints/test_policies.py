"""`cutbank policies` says which policies there are; those that cannot be used are named apart."""

from pathlib import Path

import pytest
from databases import on_sqlite

from cutbank.adapters.settings import policy_catalog
from cutbank.domain.policies.catalog import DEFAULT, POLICIES, alias_of, policy_named
from cutbank.domain.policies.policy import presets_of, settings_of

from .conftest import Run


@on_sqlite
def test_every_policy_is_listed_with_its_presets_and_settings(run: Run, file: Path) -> None:
    listed = {one["name"]: one for one in run("policies", "--json").json}

    assert list(listed) == list(POLICIES)
    for name, policy in POLICIES.items():
        one = listed[name]
        assert one["aliases"] == [alias_of(policy)]
        assert one["default"] == (name == DEFAULT)
        assert one["source"]
        assert one["package"] is None
        for preset in one["presets"]:
            assert policy_named(f"{name}@{preset['name']}", {}) == policy_named(
                name, preset["settings"]
            )
        assert [preset["name"] for preset in one["presets"]] == list(presets_of(policy))
        assert [setting["name"] for setting in one["settings"]] == [
            setting.name for setting in settings_of(policy)
        ]
    assert not file.exists()


@on_sqlite
def test_people_are_told_what_a_preset_sets(run: Run) -> None:
    said = run("policies").out

    for name, policy in POLICIES.items():
        part = said.partition(f"{name} ({alias_of(policy)}")[2].partition("\n\n")[0]
        assert f"from {getattr(policy, 'source', None)}" in part
        for preset, settings in presets_of(policy).items():
            (line,) = [line for line in part.splitlines() if f"@{preset} " in line]
            assert all(f"{setting}=" in line for setting in settings)


@on_sqlite
def test_a_policy_that_cannot_be_used_is_one_line_on_standard_error(
    run: Run, long_talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "wreck-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wreck\nVersion: 2.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[cutbank.policies]\nsunk = nowhere:Sunk\n", "utf-8")
    monkeypatch.syspath_prepend(str(info.parent))
    policy_catalog.brought.cache_clear()
    try:
        listed = run("policies", "--json")
        asked = run("compact", "long", "--policy", "sunk")
        other = run("compact", "long", "--policy", "pi-mono", "--set", "keep_tokens=1000")
    finally:
        policy_catalog.brought.cache_clear()

    wrong = "policy 'sunk' of the package wreck 2.0: it cannot be loaded: ModuleNotFoundError"
    assert listed.code == 0
    assert [one["name"] for one in listed.json] == list(POLICIES)
    assert listed.err.startswith(f"cutbank: {wrong}")
    assert listed.err.count("\n") == 1
    assert asked.code == 2
    assert asked.err.startswith(f"cutbank: {wrong}")
    assert other.code == 0
    assert "wreck" not in other.err


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        ("basalt", "there is no policy 'basalt'; there is rolling-timeline (kdcube), "),
        ("tunacode@basalt", "retention-window has no preset @basalt; it has @as_shipped, @later"),
        ("@later", "there is no policy ''"),
    ],
)
@on_sqlite
def test_a_policy_that_does_not_exist_is_wrong_usage(
    run: Run, long_talk: Path, policy: str, wrong: str
) -> None:
    answer = run("compact", "long", "--policy", policy)

    assert answer.code == 2
    assert answer.err.startswith(f"cutbank: {wrong}")


def test_a_preset_is_taken_with_settings_over_it(run: Run, long_talk: Path) -> None:
    words = ("--policy", "tunacode@as_shipped", "--set", "keep_recent_tokens=1000")

    outcome = run("compact", "long", *words, "--json").json

    assert outcome["compacted"]
    assert outcome["policy"] == "retention-window"
