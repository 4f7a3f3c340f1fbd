"""One self-contained page: its data, drawings and program stand in it, and it asks no network."""

from itertools import chain

from .....domain.backtest.comparison import Difference
from .....domain.backtest.result import Measured
from .....domain.backtest.totals import control_totals_of, limits_of, totals_of
from ..in_words import CAVEATS, NO_TEXTS, differences_told, has_texts
from . import figures, sections
from .curves import curves_of
from .ink import Ink, inks_of
from .look import SCRIPT, STYLE
from .markup import data, figure, paragraph, sayable, section, text

# What stands in the page runs; nothing is loaded, whatever a session's text may hold.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
GLOSSARY = {
    "facts kept (R)": "of the facts that the agent went on to use and that lay in hidden history "
    "only, the part that the view still carried",
    "facts kept in context (C)": "the part that it carried beside two of the words that stood "
    "there before",
    "prose kept (P)": "of the pairs of words that the agent's prose went on to use, the part that "
    "the summary has",
    "kept overall (F3)": "the harmonic mean of R, C and P: the headline",
    "hard facts kept": "facts kept of paths, urls, hashes, errors and numbers only",
    "tokens written again": "prompt tokens that a boundary or a rewind took out of the provider's "
    "cache and that had to be written into it anew",
    "cost": "prompts with prompt caching, answers and summaries, in US dollars; `of 9`, where the "
    "prices of the models of 9 sessions alone are known",
    "prompts without cache": "the prompts alone, had there been no cache",
    "modified and read files named": "of the files that hidden calls touched, those that the view "
    "still names",
    "constraints kept": "sentences of users with a word such as must, never or only, of whose "
    "words most survived",
    "facts invented": "facts in summaries that stand nowhere in history: suspected inventions",
    "facts that were needed": "facts at stake among the distinct facts that summaries carry",
    "budget": "tokens that each summary may take",
}


def page_of(measured: Measured, command: str) -> str:
    """The page as HTML, ready to be written as UTF-8."""
    # Only a report needs it: it carries the program that draws.
    from plotly.offline import get_plotlyjs  # noqa: PLC0415

    body = "\n".join(_sections(measured, command))
    plotly = get_plotlyjs()
    return sayable(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Backtest of compaction policies</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>Backtest of compaction policies</h1>\n{body}\n</main>\n"
        f"<script>{plotly}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _sections(measured: Measured, command: str) -> list[str]:
    totals = totals_of(measured)
    by_limit = {
        limit: [one for one in totals if one.setup.limit == limit] for limit in limits_of(measured)
    }
    scored = {
        limit: texts
        for limit, each in by_limit.items()
        if (texts := [one for one in each if has_texts(one.setup)])
    }
    apart = differences_told(measured)
    inks = inks_of(measured.setups)
    controls = control_totals_of(measured)
    no_texts = "" if scored == by_limit else paragraph(f"{NO_TEXTS[0].upper()}{NO_TEXTS[1:]}.")
    return [
        section("run", "What was run", sections.what_was_run(measured, command)),
        section(
            "came-to",
            "What it came to",
            paragraph(
                "Each session was run through again under each setup, from its first event on, and "
                "scored on boundaries that all setups share."
            ),
            *map(sections.headline, by_limit.values()),
            no_texts,
            _glossary(),
            *map(sections.own_boundaries, scored.values()),
            sections.controls(controls) if controls else "",
        ),
        section(
            "front",
            "Cost against fidelity",
            _front(scored, inks) if scored else no_texts,
        ),
        section("apart", "What may be concluded", *_apart(apart, inks)),
        section("context", "Context use over calls", _curves(measured, inks)),
        section(
            "lost",
            "What was lost",
            *(_lost(scored) if scored else (no_texts,)),
        ),
        section(
            "budgets",
            "What a larger budget buys",
            _budgets(measured, figures.by_budget(scored, controls, inks), no_texts),
        ),
        section("trouble", "What would have gone wrong", sections.trouble(by_limit)),
        section("failures", "Failures and what was left out", sections.failures(measured)),
        section("caveats", "What these figures do not say", _listed(CAVEATS)),
    ]


def _front(scored: figures.ByLimit, inks: figures.Inks) -> str:
    drawn, is_priced = figures.cost_against_fidelity(scored, inks)
    if drawn is None:
        return paragraph("Nothing was at stake at any limit, so that there is nothing to compare.")
    unit = "US dollars for 100 calls" if is_priced else "prompt tokens a call, as prices lack"
    return figure(
        "front-drawing",
        f"What is kept overall (F3) against {unit}, over the sessions that no setup of the limit "
        "failed in; bars are intervals of 95 percent. They are wide because sessions differ; "
        "differences between policies are paired below.",
        drawn,
    )


def _lost(scored: figures.ByLimit) -> list[str]:
    if not any(map(figures.lost_kinds, chain.from_iterable(scored.values()))):
        return [paragraph("No fact that was at stake was lost."), sections.kinds_lost(scored)]
    return [
        figure(
            "lost-drawing",
            "Facts at stake that the view did not carry, by kind and policy.",
            figures.lost_by_kind(scored),
        ),
        sections.kinds_lost(scored),
        sections.facts_lost(scored),
    ]


def _apart(found: list[Difference], inks: dict[str, Ink]) -> list[str]:
    if not found:
        return [paragraph("One setup a limit: there is nothing to compare it with.")]
    drawn = figures.differences(found, inks)
    says = "Differences from the first policy of the limit, with their 95 percent intervals."
    return [
        paragraph(
            "Differences are paired by session. A setup is called better or worse where the whole "
            "interval is on one side of nothing and six sessions or more bear on it; else the "
            "sessions cannot tell. Cost and tokens differ by a part, ratios by points."
        ),
        figure("apart-drawing", says, drawn) if drawn else "",
        sections.differences(found),
    ]


def _curves(measured: Measured, inks: dict[str, Ink]) -> str:
    curves = curves_of(measured, inks)
    if curves is None:
        return paragraph("No session was called in.")
    options = "\n".join(
        f'<option value="{number}">{text(one["name"])}</option>'
        for number, one in enumerate(curves["sessions"])
    )
    says = (
        "Tokens of the prompt at each call, one curve a policy; the dotted line is the limit. Of "
        "long sessions the highest and lowest values are drawn."
    )
    return (
        '<p><label for="curves-pick">Session, the longest first</label><br>\n'
        f'<select id="curves-pick">\n{options}\n</select></p>\n'
        f'<figure>\n<div class="drawing" id="curves" role="img" aria-label="{says}"></div>\n'
        f"<figcaption>{says}</figcaption>\n</figure>\n{data('curves-all', curves)}"
    )


def _budgets(measured: Measured, drawn: figures.Drawing | None, no_texts: str) -> str:
    if drawn is None and any(setup.budget is not None for setup in measured.setups):
        return no_texts or paragraph("Nothing was at stake under any of the budgets.")
    if drawn is None:
        return no_texts or paragraph(
            "No budgets were tried: each policy allowed its summaries what it allows."
        )
    says = (
        "Facts kept (R) and kept overall (F3) by the tokens that each summary may take. Dotted "
        "grey are the controls, dashed "
        "grey is the most that any text of that size could carry."
    )
    return figure("budgets-drawing", says, drawn)


def _glossary() -> str:
    words = "\n".join(
        f"<dt>{text(word)}</dt><dd>{text(says)}</dd>" for word, says in GLOSSARY.items()
    )
    return f"<details><summary>What the columns mean</summary><dl>\n{words}\n</dl></details>"


def _listed(lines: tuple[str, ...]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{text(line)}</li>" for line in lines) + "\n</ul>"
