"""Lists the weak wordings that reference systems look for and no provider uses."""

from typing import Final

from .overflow_wording import make_wording

WEAK_WORDINGS: Final = tuple(
    make_wording(name, pattern)
    for name, pattern in (
        ("context length exceeded", r"context[ _]length[ _]exceeded"),
        ("context window exceeded", r"context[ _]window[ _](?:is |was )?exceeded"),
        (
            "exceeds context",
            r"exceeds? (?:the )?(?:model'?s )?context (?:window|length|limit|size)",
        ),
        ("greater than the context length", r"greater than the context length"),
        ("input token count exceeds the maximum", r"input token count.{0,80}exceeds the maximum"),
        ("input is too long", r"input (?:is )?too long"),
        ("exceeds the limit of N", r"exceeds the limit of <limit>"),
        ("maximum context", r"max(?:imum)? context"),
        ("context length", r"context[ _]length"),
        ("too many tokens", r"too many tokens"),
        ("token limit", r"token limit"),
        ("max tokens", r"max tokens"),
    )
)
