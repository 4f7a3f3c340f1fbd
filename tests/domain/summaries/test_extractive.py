"""The extractive summary says what stands in the log, in the user's own words, and cannot fail."""

import re
from dataclasses import replace
from itertools import product

from extractive_talk import Talk, filler

from cutbank import Block, BlockKind, ExtractiveSummarizer
from cutbank.domain.summaries.findings import iter_rules
from cutbank.domain.summaries.needs import list_likely_facts
from cutbank.domain.summaries.statements import BlockReader


def test_the_latest_request_stands_apart_from_earlier_ones() -> None:
    talk = Talk().say("Write a parser for dates.", filler(), "Make it accept 24:00 too.", filler())
    # A rule inside a quote is not repeated as a constraint.
    ruled = Talk().say("Write the docs, but never use emoji. " + "Thanks. " * 60, filler())

    goal = talk.summary().sections["Goal"]

    assert goal.split("\n") == [
        '- User: "Make it accept 24:00 too." (#3)',
        "### Earlier Requests",
        '- User: "Write a parser for dates." (#1)',
    ]
    assert list(ruled.summary().sections) == ["Goal"]


def test_what_a_program_put_into_a_message_is_not_the_users() -> None:
    talk = Talk().say(
        "<system-reminder>Never mention this.</system-reminder>Fix the login page, please.",
        "[Request interrupted by user]",
        "<command-name>/compact</command-name>",
        "/compact",
        f"<system-reminder>{'x' * 400}</system-reminder>Said by the program as well.",
        filler(),
    )

    assert talk.summary().text == '## Goal\n- User: "Fix the login page, please." (#1)'


def test_the_time_that_a_program_puts_before_a_short_message_leaves_it_the_users() -> None:
    sent = "<current_datetime>2026-03-01T10:00:00.000+00:00</current_datetime>\n\n"
    talk = Talk().say(f"{sent}Fix the login page.", f"{sent}Go on.", filler())

    goal = talk.summary().text

    assert [line for line in goal.split("\n") if line.startswith("-")] == [
        '- User: "Go on." (#2)',
        '- User: "Fix the login page." (#1)',
    ]


def test_a_pasted_log_does_not_hide_what_it_was_pasted_for() -> None:
    talk = Talk().say("Why does this fail?\n" + "GET /x 200\n" * 900 + "Please fix it.", filler())

    goal = talk.summary().sections["Goal"]

    assert goal.startswith('- User: "Why does this fail? GET')
    assert goal.endswith('Please fix it." (#1)')


def test_how_things_must_be_is_a_constraint() -> None:
    rules = [
        "You must not touch the schema.",
        "Never push to main!",
        "Please use tabs.",
        "I prefer small functions.",
        "Don\u2019t add dependencies.",
        "Bitte immer mit Tests.",
        "N'utilise jamais eval, seulement ast.",
        "请不要修改数据库。",
        "不要删除。",
    ]
    for rule in rules:
        # The quote of a long message leaves its middle out.
        bug = "There is a bug somewhere in here. " * 40
        sections = Talk().say(f"{bug}\n\n{rule}\n\n{bug}", filler()).summary().sections
        assert sections["Constraints & Preferences"] == f'- User: "{rule}" (#1)'


def test_rules_of_a_projects_instructions_are_named_and_not_taken_for_the_users() -> None:
    text = (
        "# AGENTS.md instructions\n\n- Never push to main.\n- The parser is old.\n- Use tabs only."
        "\n- It was held back as it must wait.\n- These must hold:"
    )
    talk = Talk().say("Go on with the task.", Block.developer(text), filler())
    other = Talk().say("Go on.", Block.developer(text.replace("AGENTS.md", "Some")), filler())

    assert talk.summary().sections["Constraints & Preferences"] == (
        "- Never push to main. (#2)\n  - Use tabs only."
    )
    assert "Constraints & Preferences" not in other.summary().sections


def test_a_rule_in_a_pasted_text_weighs_less_than_one_that_was_typed() -> None:
    talk = Talk().say("GET /x 200\n" * 400 + "Never push to main!", "Never push to main!")

    pasted, typed = iter_rules(talk.items, (), BlockReader())

    assert (pasted.text, pasted.weight < typed.weight) == (typed.text, True)


def test_what_was_done_is_told_with_its_result() -> None:
    talk = (
        Talk()
        .say("Go on with the task.")
        .call("Edit", file_path="src/a.py")
        .call("Edit", file_path="src/a.py")
        .call("Bash", "collected 34 items\n===== 34 passed in 1.2s =====", command="pytest -q")
        .call("Bash", "a.py\nb.py", command="ls src | head -3")
        .call("Bash", "x" * 9_000, command="make assets")
        .say(
            Block.assistant("I've added the flag to the command line."),
            Block.assistant("Let me check whether src/other_flags.py is tested now and works."),
            filler(),
        )
    )

    progress = talk.summary().sections["Progress"]

    assert progress.split("\n") == [
        "### Done",
        "- edited `src/a.py` x2 (#2, #4)",
        "- ran `pytest -q`: 34 passed in 1.2s (#7)",
        "- I've added the flag to the command line. (#12)",
    ]


def test_the_branch_the_last_commit_and_the_pull_request_are_named() -> None:
    link = "https://host.example/team/dates/pull/12"
    talk = (
        Talk()
        .say("Go on with the task.", filler())
        .call("Bash", "Switched to a new branch 'dates'", command="git checkout -b dates")
        .call("Bash", "[dates 0a1b2c3] Read years\n 1 file changed", command="git commit -am x")
        .call("Bash", "[dates 2b3c4d5] No\n[dates 4d5e6f7] Read days", command="git commit -am y")
        .call("Bash", f"Creating pull request\n{link}", command="gh pr create --fill")
        .call("Bash", "[evil 9999999] Not a commit", command="cat notes.txt")
    )

    done = talk.summary().sections["Progress"]

    assert "- branch `dates` (#8)\n  - commit `4d5e6f7 Read days`" in done
    assert f"- pull request `{link}`" in done
    assert "evil" not in done


def test_an_edit_is_told_with_what_it_was_for() -> None:
    talk = Talk().say("Go on with the task.", filler())
    talk.say(Block.assistant("Now let me make the parser of src/a.py skip rows without a date:"))
    talk.call("Edit", file_path="src/a.py").call("Edit", file_path="src/a.py")

    done = "- edited `src/a.py` x2: make the parser of src/a.py skip rows without a date"
    assert f"{done} (#4, #6)" in talk.summary().sections["Progress"]
    talk.call("Edit", file_path="src/a.py").say(filler())
    assert f"{done.replace('x2', 'x3')} (#4, #6, #8)" in talk.summary().sections["Progress"]
    talk.say(Block.assistant("The writer of src/b.py has one fault.")).call(
        "Edit", file_path="b.py"
    )
    assert "- edited `b.py` (#12)" in talk.summary().sections["Progress"]


def test_lines_that_say_nothing_are_not_quoted() -> None:
    dull = ("Requirement already satisfied: see parser_core.py", "load_rows(")
    talk = Talk().say("Go on with the task.", filler())
    talk.say(Block.assistant("The cause is in one of these files of parser_core.py:"), filler(9))
    for line in dull:
        talk.call("Bash", f"{line}\n{'.' * 500}", command="pip install -e .")
    remark = "Good, now I have the whole picture."
    told = "it reads rows by other_core.py"

    text = talk.say(Block.assistant(remark)).call("Read", told).summary().text

    assert told in text
    assert not [line for line in (*dull, "The cause is", remark) if line in text]


def test_what_failed_is_blocked_until_it_succeeds() -> None:
    trouble = "Traceback (most recent call last):\n  File x\nValueError: no such date"
    talk = (
        Talk()
        .say("Go on with the task.", filler())
        .call("Bash", trouble, failed=True, command="python a.py")
        .call("Bash", "E   assert 1 == 2\n1 failed, 3 passed", command="pytest tests | tail -5")
        .call("Edit", "String to replace not found", failed=True, file_path="a.py")
        .call("Edit", file_path="a.py")
    )

    assert talk.summary().sections["Progress"].split("\n")[2:] == [
        "### Blocked",
        "- `python a.py` failed: ValueError: no such date (#4)",
        "- `pytest tests` failed: 1 failed, 3 passed (#6)",
    ]
    talk.call("Bash", "4 passed", command="pytest -q").say(filler())
    assert "pytest tests" not in talk.summary().sections["Progress"]
    # A search that found nothing blocks nobody.
    talk = Talk().say("Go on.", filler()).call("Bash", failed=True, command="grep x y")
    assert "Progress" not in talk.summary().sections


def test_open_entries_of_a_to_do_list_come_next() -> None:
    todos = [
        {"content": "Write the parser", "status": "completed"},
        {"content": "Write the tests", "status": "in_progress"},
        {"content": "Write the docs", "status": "pending"},
    ]
    talk = Talk().say("Go on with the task.", filler()).call("TodoWrite", todos=todos)
    one_by_one = (
        Talk()
        .say("Go on with the task.", filler())
        .call("TaskCreate", "Task #1 created", subject="Write the parser")
        .call("TaskCreate", "Task #2 created", subject="Write the docs")
        .call("TaskUpdate", taskId="1", status="completed")
    )

    sections = talk.summary().sections

    assert sections["Progress"] == "### In Progress\n- Write the tests (#3)"
    assert sections["Next Steps"] == "- Write the docs (#3)"
    assert one_by_one.summary().sections["Next Steps"] == "- Write the docs (#5)"


def test_reasons_intents_and_plans_are_told_in_the_agents_words() -> None:
    talk = Talk().say(
        "Go on with the task.",
        filler(),
        Block.assistant(
            "I chose a regular expression because the grammar is regular.\n\n"
            "Remaining:\n- write the docs\n\nLet me look at the tokenizer first."
        ),
    )

    sections = talk.summary().sections

    assert sections["Key Decisions"] == (
        "- I chose a regular expression because the grammar is regular. (#3)"
    )
    assert sections["Next Steps"] == "- write the docs (#3)"
    assert sections["Progress"] == "### In Progress\n- look at the tokenizer first (#3)"


def test_what_the_agent_offered_before_the_last_request_is_no_next_step() -> None:
    talk = Talk().say(
        "Go on with the task.", filler(), Block.assistant("The docs still need to be written.")
    )
    talk.say("No, fix the parser first.", Block.assistant("The tokenizer still needs a test."))

    assert talk.summary().sections["Next Steps"] == "- The tokenizer still needs a test. (#5)"


def test_a_failure_that_was_overcome_leaves_what_the_agent_said_of_its_cause() -> None:
    cause = "The root cause is that the parser reads the header twice."
    talk = Talk().say("Go on with the task.", filler())
    talk.call("Bash", "1 failed", failed=True, command="make check")
    talk.say(Block.assistant(cause)).call("Edit", file_path="src/a.py")
    talk.call("Bash", "3 passed", command="make check")

    sections = talk.summary().sections

    assert cause in sections["Key Decisions"]
    assert "Blocked" not in sections["Progress"]


def test_a_programs_lines_in_a_message_are_not_requests() -> None:
    pasted = "[smoke] the run of lib/smoke_a.py must not reach lib/smoke_b.py"
    message = f"Why does this fail?\n{'La ' * 900}\n{pasted}\n{'La ' * 900}\nLook into it."
    talk = Talk().say(message, filler())

    sections = talk.summary().sections

    assert "Constraints & Preferences" not in sections
    assert pasted not in sections["Goal"]
    assert f'- User: "{pasted}" (#1)' in sections["Critical Context"]


def test_of_lines_that_differ_in_values_only_two_are_quoted() -> None:
    log = "".join(
        f"12:00:0{n} INFO worker-{n} holds the row by lib/stock_{n}.py\n" for n in range(9)
    )
    talk = Talk().say("Go on with the task.", filler()).call("Read", f"{log}==== 125 passed ====")
    names = " ".join(f"lib/stock_{n}.py" for n in range(9))

    text = talk.say(Block.thinking(f"{names} 125 passed")).summary().text

    assert text.count("INFO worker") == 2


def test_a_command_is_named_by_the_file_that_it_reads() -> None:
    path = "lib/dates/of_the_calendar/parser_core.py"
    command = f"sed -n '1,99p' {'x' * 40} {path}"
    talk = Talk().say("Go on with the task.", filler())
    for _ in range(2):
        talk.call("Bash", "it reads whole rows by load_rows", command=command)

    assert f"- `{path}`: (#6)\n  - `it reads" in talk.summary().text


def test_facts_that_come_again_and_again_are_kept() -> None:
    talk = Talk().say("Go on with the task.", filler())
    for _ in range(3):
        talk.call("Read", "it is lib/dates/parser_core.py:12\nor https://dates.example/iso?v=2")

    context = talk.summary().sections["Critical Context"]

    # A line without plain words says more with the next one.
    quote = "`it is lib/dates/parser_core.py:12 or https://dates.example/iso?v=2`"
    assert context == f"### Code & Output\n- `Read`: (#8)\n  - {quote}"


def test_what_the_user_named_is_likelier_to_be_needed_again() -> None:
    talk = Talk().say(Block.developer("Then see lib/other_a.py."), "See lib/asked_for.py.")
    talk.say(Block.developer("lib/other_a.py and lib/asked_for.py are next to each other."))

    facts = [fact.text for fact in list_likely_facts(talk.items, (), 9)]

    assert facts == ["lib/asked_for.py", "lib/other_a.py"]


def test_lines_of_a_tool_are_quoted_as_they_stand_below_the_file_that_was_read() -> None:
    line = "def parse_date(text: str, time_zone: TimeZone) -> ParsedDate: # reads whole days"
    second = "day_of_week = find_day(text) # then the parser reads the rest"
    source = f"    12→{line}\n    13→    {second}\n"
    talk = Talk().say("Go on with the task.", filler())
    for _ in range(2):
        talk.call("Read", source, file_path="a.py")

    context = talk.summary().sections["Critical Context"]
    assert context.startswith(f"### Code & Output\n- `a.py`: (#6)\n  - `{line}`\n  - `{second}`")


def test_what_was_read_and_changed_in_a_file_stands_together() -> None:
    talk = Talk().say("Go on with the task.", filler())
    texts = (
        "def load_rows(path): # reads whole days",
        "def store_rows(path): # writes whole days",
        "def skip_rows(path): # leaves out whole days",
        "def count_rows(path): # counts whole days",
    )
    for text in texts[:3]:
        talk.call("Read", text, file_path="lib/a.py").call("Read", "a dull line", file_path="b.py")
    talk.call("Edit", file_path="lib/a.py", old_string="a dull line", new_string=texts[3])

    context = talk.summary().sections["Critical Context"]

    assert context.split("\n") == [
        "### Code & Output",
        "- `lib/a.py`: (#4, #8, #12)",
        *(f"  - `{text}`" for text in texts[:3]),
        "- `lib/a.py`: (#15)",
        f"  - `{texts[3]}`",
    ]


def test_what_the_agent_said_last_is_quoted_before_what_it_said_earlier() -> None:
    talk = Talk().say("Go on with the task.", filler())
    names = ["".join(name) for name in product("abcde", repeat=2)]
    for name in names * 2:
        talk.say(Block.assistant(f"The {name}river carries {name}sand below {name}bridge."))
    last = [f"The {name}heron waits beside {name}pond during {name}winter." for name in names[:6]]
    talk.say(*map(Block.assistant, last))

    text = talk.summary(200).text

    assert all(said in text for said in last)
    assert sum(f"{name}river" in text for name in names) < len(names)


def test_a_lead_in_is_cut_off_at_the_beginning_alone() -> None:
    said = "Now let me read the parser, and if it is wrong, then I'll mend the tokenizer."

    text = Talk().say("Go on.", filler(), Block.assistant(said)).summary().text

    assert "- read the parser, and if it is wrong, then I'll mend the tokenizer (#3)" in text


def test_definitions_are_quoted_before_imports() -> None:
    names = ["".join(name) for name in product("abcde", repeat=2)]
    lines = [f"import {{ readDate_{name} }} from whole calendar days" for name in names]
    lines += [f"function storeDate_{name}(text) of whole calendar days {{" for name in names]
    talk = Talk().say("Go on with the task.", filler())
    talk.call("Read", "\n".join(lines), file_path="lib/a.ts")

    quoted = talk.summary(400).text.split("\n")

    kinds = [line.split(" ")[3] for line in quoted if line.startswith("  - `")]
    assert {*kinds} == {"`function"}


def test_images_and_documents_are_named_so_that_they_can_be_recalled() -> None:
    talk = Talk().say(
        "Go on with the task.",
        Block(kind=BlockKind.DOCUMENT, name="dates.pdf"),
        Block(kind=BlockKind.IMAGE),
        filler(),
    )

    context = talk.summary().sections["Critical Context"]

    assert context == "- document `dates.pdf` (#2)\n- image (#3)"


def test_the_sections_come_in_their_order_and_the_files_last() -> None:
    talk = (
        Talk()
        .say("There is a bug in here. " * 60 + "Never push to main! " + "Find it. " * 60)
        .call("Read", file_path="b.py")
        .call("Edit", file_path="a.py")
        .call("Bash", "fatal: no", failed=True, command="git push")
        .say(
            Block.assistant(
                "I chose tabs because they are wide. Next: write docs. "
                "The parser_core of lib/dates/core.py reads lib/dates/zones.txt line by line. "
                "Let me go on."
            ),
            filler(),
        )
    )

    text = talk.summary().text

    headings = """
        Goal|Constraints & Preferences|Progress|Done|Blocked|Key Decisions|Next Steps
        Critical Context
    """
    assert re.findall(r"^#+ (.+)$", text, re.MULTILINE) == re.split(r"[|\n]\s*", headings.strip())
    assert text.endswith(
        "<read-files>\nb.py\n</read-files>\n<modified-files>\na.py\n</modified-files>"
    )


def test_of_many_files_the_newest_are_named() -> None:
    talk = Talk().say("Go on with the task.", filler())
    for number in range(200):
        talk.call("Edit", file_path=f"src/module_{number}.py")

    text = talk.summary(500).text

    assert "src/module_199.py\n" in text
    assert "src/module_0.py\n" not in text
    assert re.search(r"^\.\.\. and \d+ more$", text, re.MULTILINE)


def test_modified_files_have_more_room_than_files_that_were_read() -> None:
    for tool, is_named in (("Edit", True), ("Read", False)):
        talk = Talk().say("Go on with the task.", filler())
        for number in range(45):
            talk.call(tool, file_path=f"src/package/module_with_a_name_{number:02}.py")

        text = talk.summary(2_000).text

        assert ("... and" not in text) == is_named


def test_paths_without_room_are_relative_to_the_folder_that_the_agent_worked_in() -> None:
    talk = Talk().say("Go on with the task.", filler())
    talk.call("exec_command", cmd="ls", workdir="/home/me/project")
    for number in range(20):
        talk.call("Edit", file_path=f"/home/me/project/src/module_{number}.py")

    wide, narrow = (ExtractiveSummarizer().summarize(talk.material(n)).text for n in (2_000, 400))

    assert "\n/home/me/project/src/module_8.py\n" in wide
    assert "<modified-files>\n... in /home/me/project/\nsrc/module_0.py\n" in narrow


def test_every_line_ends_with_its_handle() -> None:
    talk = (
        Talk()
        .say("Write a parser. You must not use regular expressions.", filler())
        .call("Edit", file_path="a.py")
        .say(Block.assistant("I chose tabs because of lib/a_b.py. I've fixed lib/a_b.py."))
    )

    draft = talk.summary()

    lines = [line for line in draft.text.split("\n") if line.startswith("- ")]
    assert lines
    for line in lines:
        handles = re.search(r" \((#\d+(?:, #\d+)*)\)$", line)
        assert handles
        assert {int(handle) for handle in re.findall(r"\d+", handles[1])} <= set(draft.cites)


def test_an_instruction_says_what_goes_first_and_is_not_quoted() -> None:
    talk = Talk().say("Go on with the task.", filler(9_000))
    for number in range(80):
        thing = f"gadget{number}.py beside widget{number}.py behind gizmo{number}.py"
        talk.say(Block.assistant(f"I've fixed {thing}."))
    talk.items.insert(
        9,
        replace(
            talk.items[9],
            block=Block.assistant(
                "I've moved all of these and also those of the invoices to Rome."
            ),
        ),
    )

    instructed = talk.material(300, instructions="keep what concerns INVOICE numbers")

    assert "Rome" not in ExtractiveSummarizer().summarize(talk.material(300)).text
    assert "Rome" in ExtractiveSummarizer().summarize(instructed).text
    assert "concerns" not in ExtractiveSummarizer().summarize(instructed).text
