"""`cutbank policies` says which policies there are; those that cannot be used are named apart."""

from pathlib import Path

from cutbank.domain.policies.catalog import DEFAULT_POLICY, POLICIES, build_policy, find_alias
from cutbank.domain.policies.policy import get_presets, list_settings

from .conftest import Refusals, Run, answered_wrongly


def test_every_policy_is_listed_with_its_presets_and_settings(run: Run, file: Path) -> None:
    listed = {one["name"]: one for one in run("policies", "--json").json}

    assert list(listed) == list(POLICIES)
    for name, policy in POLICIES.items():
        one = listed[name]
        assert one["aliases"] == [find_alias(policy)]
        assert one["default"] == (name == DEFAULT_POLICY)
        assert one["source"]
        assert one["package"] is None
        for preset in one["presets"]:
            assert build_policy(f"{name}@{preset['name']}", {}) == build_policy(
                name, preset["settings"]
            )
        assert [preset["name"] for preset in one["presets"]] == list(get_presets(policy))
        assert [setting["name"] for setting in one["settings"]] == [
            setting.name for setting in list_settings(policy)
        ]
    assert not file.exists()


def test_people_are_told_what_a_preset_sets(run: Run) -> None:
    said = run("policies").out

    for name, policy in POLICIES.items():
        part = said.partition(f"{name} ({find_alias(policy)}")[2].partition("\n\n")[0]
        assert f"from {getattr(policy, 'source', None)}" in part
        for preset, settings in get_presets(policy).items():
            (line,) = [line for line in part.splitlines() if f"@{preset} " in line]
            assert all(f"{setting}=" in line for setting in settings)


def test_a_policy_that_does_not_exist_is_wrong_usage(run: Run, long_talk: Path) -> None:
    wrong: Refusals = [
        (["basalt"], "there is no policy 'basalt'; there is rolling-timeline (kdcube), "),
        (["tunacode@basalt"], "retention-window has no preset @basalt; it has @as_shipped, @later"),
        (["@later"], "there is no policy ''"),
    ]

    assert not answered_wrongly(run, wrong, "compact", "long", "--policy")


def test_a_preset_is_taken_with_settings_over_it(run: Run, long_talk: Path) -> None:
    words = ("--policy", "tunacode@as_shipped", "--set", "keep_recent_tokens=1000")

    outcome = run("compact", "long", *words, "--json").json

    assert outcome["compacted"]
    assert outcome["policy"] == "retention-window"
