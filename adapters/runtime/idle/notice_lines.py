"""What a notice says to people, in one line."""

from datetime import UTC, datetime

from .notices import About, Notice

SAID = {
    About.STARTED: "started",
    About.DATABASE_BACK: "the database is back",
    About.CLOCK_JUMPED: "the clock was set back; looking now",
}
"""Notices that say no more than what they are about."""
ABOUT_REASONS = {
    About.DATABASE_AWAY: "the database cannot be used",
    About.SETTINGS_RELOADED: "goes by new settings",
    About.SETTINGS_REFUSED: "keeps to the settings as they were",
    About.SETTINGS_DIFFER: "other workers go by other settings",
}


def line_of(notice: Notice) -> str:
    """`compacted ours/talk: 36,000 -> 8,000 tokens, by extractive, in 0.4 s`."""
    reason = f": {notice.reason}" if notice.reason else ""
    session, chore = _session(notice), notice.chore
    match notice.about:
        case About.LOOKED:
            later = f"; the next is due at {_time(notice.next_at)}" if notice.next_at else ""
            return f"{notice.due} due, {notice.running} running{later}"
        case About.WAITING:
            return f"begins nothing until {_time(notice.next_at)}{reason}"
        case About.BEGAN:
            return f"begins {session}, attempt {notice.attempt}"
        case About.DONE:
            return f"compacted {session}: {_gain(notice)}"
        case About.PASSED_OVER:
            return f"leaves {session} as it is{reason}"
        case About.FAILED:
            return f"could not compact {session}{_which(notice)}{reason}{_again(notice)}"
        case About.LOST:
            return f"did not use what was written for {session}{reason}"
        case About.CHORE_DONE:
            return f"did the chore {chore}{_seconds(notice)}{reason}"
        case About.CHORE_FAILED:
            return f"could not do the chore {chore}{reason}{_again(notice)}"
        case About.STOPPING:
            return f"stopping; {notice.running or 'none'} running"
        case About.STOPPED:
            left = f" with {notice.running} still running" if notice.running else ""
            return f"stopped{left}"
        case about:
            return f"{SAID.get(about) or ABOUT_REASONS.get(about, about.value)}{reason}"


def _session(notice: Notice) -> str:
    if notice.namespace in {None, "default"}:
        return str(notice.session)
    return f"{notice.namespace}/{notice.session}"


def _gain(notice: Notice) -> str:
    gain = f"{notice.pre_tokens or 0:,} -> {notice.post_tokens or 0:,} tokens"
    by = f", by {notice.summariser}" if notice.summariser else ""
    cost = f", for ${notice.cost_usd:.4f}" if notice.cost_usd else ""
    return f"{gain}{by}{cost}{_seconds(notice)}"


def _seconds(notice: Notice) -> str:
    return f", in {notice.took_s:.1f} s" if notice.took_s is not None else ""


def _which(notice: Notice) -> str:
    return f" (attempt {notice.attempt})" if notice.attempt else ""


def _again(notice: Notice) -> str:
    if notice.next_at is not None:
        return f"; again at {_time(notice.next_at)}"
    return "; not again until something is said in it" if notice.attempt else ""


def _time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else "it is said"
