"""Everything that was ever said can be searched, and the read models made anew."""

from pathlib import Path

from .conftest import Run


def test_search_shows_where_words_stand(run: Run, talk: Path) -> None:
    answer = run("search", "sandstone")

    assert answer.code == 0
    assert "talk #6 tool_result, turn 1" in answer.out
    assert "print('«sandstone»')" in answer.out
    assert "2 blocks" in answer.out
    assert "`cutbank recall talk" in answer.out


def test_search_answers_in_json(run: Run, talk: Path) -> None:
    run("retract", "talk", "7")
    (found, taken_back) = run("search", "sandstone", "--json").json["found"]
    nothing = run("search", "basalt")

    assert (found["session"], found["kind"], found["turn"]) == ("talk", "tool_result", 1)
    assert (found["handle"], found["position"]) == ("#6", 6)
    start, end = found["marks"][0]
    assert found["snippet"][start:end] == "sandstone"
    assert taken_back["handle"] == "#7"
    assert nothing.code == 1
    assert "Nothing that was said holds 'basalt'." in nothing.out
    assert run("search", "basalt", "--json").json["found"] == []


def test_a_damaged_file_is_made_anew_and_a_person_is_told(run: Run, talk: Path) -> None:
    file = Path(run("search", "sandstone", "--json").json["read_models"])
    file.write_bytes(b"\xff" * file.stat().st_size)

    answer = run("search", "sandstone", "--json")

    assert len(answer.json["found"]) == 2
    assert "was damaged" in answer.json["made_anew"]
    assert "was damaged, and is rebuilt" in answer.err
    assert run("search", "sandstone").err == ""


def test_rebuild_says_what_it_read(run: Run, talk: Path) -> None:
    said = run("rebuild", "--json").json

    assert said["sessions"] == 1
    assert said["blocks"] == 8
    assert said["events"] == said["position"] == 11
    assert said["bytes"] == Path(said["read_models"]).stat().st_size
    assert "rebuilt from 11 events: 1 session, 8 blocks" in run("rebuild").out
