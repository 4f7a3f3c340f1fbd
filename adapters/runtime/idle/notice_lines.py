"""Formats a notice as one line."""

from datetime import UTC, datetime

from .notices import NoticeKind, WorkerNotice

NOTICE_TEXTS = {
    NoticeKind.STARTED: "started",
    NoticeKind.DATABASE_BACK: "the database is back",
    NoticeKind.CLOCK_JUMPED: "the clock was set back; looking now",
}
REASON_TEXTS = {
    NoticeKind.DATABASE_AWAY: "the database cannot be used",
    NoticeKind.SETTINGS_RELOADED: "goes by new settings",
    NoticeKind.SETTINGS_REFUSED: "keeps to the settings as they were",
    NoticeKind.SETTINGS_DIFFER: "other workers go by other settings",
}


def format_notice(notice: WorkerNotice) -> str:
    """Return e.g. `compacted ours/talk: 36,000 -> 8,000 tokens, by extractive, in 0.4 s`."""
    reason = f": {notice.reason}" if notice.reason else ""
    session, chore = _format_session(notice), notice.chore
    match notice.about:
        case NoticeKind.LOOKED:
            later = f"; the next is due at {_format_time(notice.next_at)}" if notice.next_at else ""
            return f"{notice.due} due, {notice.running} running{later}"
        case NoticeKind.WAITING:
            return f"begins nothing until {_format_time(notice.next_at)}{reason}"
        case NoticeKind.BEGAN:
            return f"begins {session}, attempt {notice.attempt}"
        case NoticeKind.DONE:
            return f"compacted {session}: {_format_gain(notice)}"
        case NoticeKind.PASSED_OVER:
            return f"leaves {session} as it is{reason}"
        case NoticeKind.FAILED:
            return (
                "could not compact "
                f"{session}{_format_summarizer(notice)}{reason}{_format_next_time(notice)}"
            )
        case NoticeKind.LOST:
            return f"did not use what was written for {session}{reason}"
        case NoticeKind.CHORE_DONE:
            return f"did the chore {chore}{_format_seconds(notice)}{reason}"
        case NoticeKind.CHORE_FAILED:
            return f"could not do the chore {chore}{reason}{_format_next_time(notice)}"
        case NoticeKind.STOPPING:
            return f"stopping; {notice.running or 'none'} running"
        case NoticeKind.STOPPED:
            left = f" with {notice.running} still running" if notice.running else ""
            return f"stopped{left}"
        case about:
            return f"{NOTICE_TEXTS.get(about) or REASON_TEXTS.get(about, about.value)}{reason}"


def _format_session(notice: WorkerNotice) -> str:
    if notice.namespace in {None, "default"}:
        return str(notice.session)
    return f"{notice.namespace}/{notice.session}"


def _format_gain(notice: WorkerNotice) -> str:
    gain = f"{notice.pre_tokens or 0:,} -> {notice.post_tokens or 0:,} tokens"
    by = f", by {notice.summariser}" if notice.summariser else ""
    cost = f", for ${notice.cost_usd:.4f}" if notice.cost_usd else ""
    return f"{gain}{by}{cost}{_format_seconds(notice)}"


def _format_seconds(notice: WorkerNotice) -> str:
    return f", in {notice.took_s:.1f} s" if notice.took_s is not None else ""


def _format_summarizer(notice: WorkerNotice) -> str:
    return f" (attempt {notice.attempt})" if notice.attempt else ""


def _format_next_time(notice: WorkerNotice) -> str:
    if notice.next_at is not None:
        return f"; again at {_format_time(notice.next_at)}"
    return "; not again until something is said in it" if notice.attempt else ""


def _format_time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else "it is said"
