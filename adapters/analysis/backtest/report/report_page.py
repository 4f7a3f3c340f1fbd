"""Renders one self-contained page that holds its data, drawings and program."""

from itertools import chain

from .....domain.backtest.comparison import SetupDifference
from .....domain.backtest.result import BacktestResult
from .....domain.backtest.totals import compute_control_totals, compute_totals, list_limits
from ..backtest_text import CAVEATS, NO_TEXTS, has_texts, select_differences
from . import figures, sections
from .curves import make_curves
from .html_parts import (
    escape_html,
    escape_surrogates,
    make_data_script,
    make_figure,
    make_paragraph,
    make_section,
)
from .page_assets import PAGE_SCRIPT, PAGE_STYLE
from .setup_styles import SetupStyle, assign_styles

# Allow only the page's own scripts and load nothing, whatever a session's text holds.
CONTENT_SECURITY_POLICY = (
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
    "cache and that had to be written into it again",
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


def render_report_page(measured: BacktestResult, command: str) -> str:
    """Return the page as HTML, ready to be encoded as UTF-8."""
    # Only a report needs it: it contains the drawing program.
    from plotly.offline import get_plotlyjs  # noqa: PLC0415

    body = "\n".join(_render_sections(measured, command))
    plotly = get_plotlyjs()
    return escape_surrogates(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Backtest of compaction "
        f"policies</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>Backtest of compaction policies</h1>\n{body}\n</main>\n"
        f"<script>{plotly}</script>\n<script>{PAGE_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _render_sections(measured: BacktestResult, command: str) -> list[str]:
    totals = compute_totals(measured)
    by_limit = {
        limit: [one for one in totals if one.setup.limit == limit]
        for limit in list_limits(measured)
    }
    scored = {
        limit: texts
        for limit, each in by_limit.items()
        if (texts := [one for one in each if has_texts(one.setup)])
    }
    apart = select_differences(measured)
    inks = assign_styles(measured.setups)
    controls = compute_control_totals(measured)
    no_texts = "" if scored == by_limit else make_paragraph(f"{NO_TEXTS[0].upper()}{NO_TEXTS[1:]}.")
    return [
        make_section("run", "What was run", sections.render_run(measured, command)),
        make_section(
            "came-to",
            "What it came to",
            make_paragraph(
                "Each session was run through again under each setup, from its first event on, and "
                "scored on boundaries that all setups share."
            ),
            *map(sections.render_headline, by_limit.values()),
            no_texts,
            _render_glossary(),
            *map(sections.render_own_boundaries, scored.values()),
            sections.render_controls(controls) if controls else "",
        ),
        make_section(
            "front",
            "Cost against fidelity",
            _render_front(scored, inks) if scored else no_texts,
        ),
        make_section("apart", "What may be concluded", *_render_differences(apart, inks)),
        make_section("context", "Context use over calls", _render_curves(measured, inks)),
        make_section(
            "lost",
            "What was lost",
            *(_render_lost(scored) if scored else (no_texts,)),
        ),
        make_section(
            "budgets",
            "What a larger budget buys",
            _render_budgets(measured, figures.draw_budgets(scored, controls, inks), no_texts),
        ),
        make_section("trouble", "What would have gone wrong", sections.render_trouble(by_limit)),
        make_section(
            "failures", "Failures and what was left out", sections.render_failures(measured)
        ),
        make_section("caveats", "What these figures do not say", _render_list(CAVEATS)),
    ]


def _render_front(scored: figures.ByLimit, inks: figures.SetupStyles) -> str:
    drawn, is_priced = figures.draw_cost_and_fidelity(scored, inks)
    if drawn is None:
        return make_paragraph(
            "Nothing was at stake at any limit, so that there is nothing to compare."
        )
    unit = "US dollars for 100 calls" if is_priced else "prompt tokens a call, as prices lack"
    return make_figure(
        "front-drawing",
        f"What is kept overall (F3) against {unit}, over the sessions that no setup of the limit "
        "failed in; bars are intervals of 95 percent. They are wide because sessions differ; "
        "differences between policies are paired below.",
        drawn,
    )


def _render_lost(scored: figures.ByLimit) -> list[str]:
    if not any(map(figures.count_lost_kinds, chain.from_iterable(scored.values()))):
        return [
            make_paragraph("No fact that was at stake was lost."),
            sections.render_lost_kinds(scored),
        ]
    return [
        make_figure(
            "lost-drawing",
            "Facts at stake that the view did not carry, by kind and policy.",
            figures.draw_lost_kinds(scored),
        ),
        sections.render_lost_kinds(scored),
        sections.render_lost_facts(scored),
    ]


def _render_differences(found: list[SetupDifference], inks: dict[str, SetupStyle]) -> list[str]:
    if not found:
        return [make_paragraph("One setup a limit: there is nothing to compare it with.")]
    drawn = figures.draw_differences(found, inks)
    says = "Differences from the first policy of the limit, with their 95 percent intervals."
    return [
        make_paragraph(
            "Differences are paired by session. A setup is called better or worse where the whole "
            "interval is on one side of nothing and six sessions or more bear on it; else the "
            "sessions cannot tell. Cost and tokens differ by a part, ratios by points."
        ),
        make_figure("apart-drawing", says, drawn) if drawn else "",
        sections.render_differences(found),
    ]


def _render_curves(measured: BacktestResult, inks: dict[str, SetupStyle]) -> str:
    curves = make_curves(measured, inks)
    if curves is None:
        return make_paragraph("No session was called in.")
    options = "\n".join(
        f'<option value="{number}">{escape_html(one["name"])}</option>'
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
        f"<figcaption>{says}</figcaption>\n</figure>\n{make_data_script('curves-all', curves)}"
    )


def _render_budgets(measured: BacktestResult, drawn: figures.Drawing | None, no_texts: str) -> str:
    if drawn is None and any(setup.budget is not None for setup in measured.setups):
        return no_texts or make_paragraph("Nothing was at stake under any of the budgets.")
    if drawn is None:
        return no_texts or make_paragraph(
            "No budgets were tried: each policy allowed its summaries what it allows."
        )
    says = (
        "Facts kept (R) and kept overall (F3) by the tokens that each summary may take. Dotted "
        "grey are the controls, dashed "
        "grey is the most that any text of that size could carry."
    )
    return make_figure("budgets-drawing", says, drawn)


def _render_glossary() -> str:
    words = "\n".join(
        f"<dt>{escape_html(word)}</dt><dd>{escape_html(says)}</dd>"
        for word, says in GLOSSARY.items()
    )
    return f"<details><summary>What the columns mean</summary><dl>\n{words}\n</dl></details>"


def _render_list(lines: tuple[str, ...]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{escape_html(line)}</li>" for line in lines) + "\n</ul>"
