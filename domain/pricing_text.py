"""Describes the price of a compaction in a few lines, with money only if all of it is known."""

from .models import ModelFacts, Prices
from .pricing import Pricing


def describe_pricing(pricing: Pricing) -> tuple[str, ...]:
    """Return lines on the saving, the broken cache, the summary's cost and the break-even point."""
    model = pricing.model
    prices = model.find_prices(pricing.before) if model else None
    saves, breaks, summary = pricing.saved_usd, pricing.cache_loss_usd, pricing.summary_usd
    per_call, net = pricing.saved_per_call_usd, pricing.net_usd
    calls = _format_calls(pricing.expected_calls)
    smaller = f"each prompt is {pricing.tokens_saved:,} tokens smaller"
    anew = f"{pricing.cache_tokens_lost:,} more tokens are in no cache at the next call"
    if not (model and prices) or saves is None or breaks is None or per_call is None:
        return (smaller, anew, _explain_no_prices(model))
    lines = [
        _describe_model(model, prices),
        f"{smaller}: {format_dollars(per_call)} a call, {format_dollars(saves)} over {calls}",
        f"{anew}: {format_dollars(breaks)}",
    ]
    if summary is None:
        return (*lines, "what the summary costs is not known, so neither is what remains")
    lines.append(f"the summary costs {format_dollars(summary)}{_describe_summary_call(pricing)}")
    return (*lines, _describe_break_even(pricing, net or 0.0, calls))


def format_dollars(amount: float) -> str:
    """Return `$12.50`, `$0.0042`, `-$0.31`, or `less than ...` if it rounds to zero."""
    if amount == 0:
        return "$0"
    sign, size = ("-" if amount < 0 else ""), abs(amount)
    if size < 0.0001:
        return "less than $0.0001"
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}${size:.4f}"


def _describe_model(model: ModelFacts, prices: Prices) -> str:
    at = f" at {model.provider}" if model.provider else ""
    return (
        f"{model.name}{at}, for a million tokens: ${prices.input:g} in, "
        f"${prices.read_price:g} from the "
        f"cache, ${prices.write_price:g} into it, ${prices.output:g} out"
    )


def _explain_no_prices(model: ModelFacts | None) -> str:
    if model is None:
        return "no model is known, so there is no price: tokens only"
    return f"prices of {model.name} are not known: tokens only"


def _describe_summary_call(pricing: Pricing) -> str:
    order = pricing.summary
    if pricing.summary_usd == 0 and order is None:
        return ": no model writes it"
    if order is None or pricing.paid_usd is not None:
        return ""
    return f": {order.input:,} tokens in, {order.cached:,} of them cached, {order.output:,} out"


def _describe_break_even(pricing: Pricing, net: float, calls: str) -> str:
    pays_after = pricing.break_even_calls
    remains = (
        f"{format_dollars(net)} saved after {calls}"
        if net >= 0
        else f"{format_dollars(-net)} lost in all"
    )
    if pays_after is None:
        return f"it never pays for itself: {remains}"
    if pays_after == 0:
        return f"it costs nothing: {remains}"
    if pays_after <= pricing.expected_calls:
        return f"paid for after {_format_calls(pays_after)}: {remains}"
    return f"paid for only after {_format_calls(pays_after)}, and {calls} are expected: {remains}"


def _format_calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number:,} calls"
