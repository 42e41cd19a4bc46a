"""Whether a call may be reserved, and which limits it brought in sight: pure, for every store alike."""

from __future__ import annotations

from collections.abc import Mapping

from domain.errors import BudgetExhausted, Busy
from domain.money.accounts import build_account, day_of, described, limits_of
from domain.money.budget import Budget, Payer, Spent
from domain.money.usage import dollars

WARN_PERCENT = 80
WAIT_SECONDS = 1.0


def admission(
    spent: Mapping[str, Spent], payer: Payer, budget: Budget, *, bound: int, at: int
) -> BudgetExhausted | Busy | None:
    """Why a call of at most ``bound`` micro-dollars at that moment (ms since 1970) cannot be made, or None.

    ``spent`` has all accounts of the payer. Busy when only the holds of running calls are in the way: most of each
    comes back when its call is settled. Money is never the reason for a call that costs nothing.
    """
    task = build_account(payer.build, task=payer.task)
    if payer.task and spent[task].calls >= budget.calls:
        return BudgetExhausted(
            f"{described(task)} has made {spent[task].calls} calls of {budget.calls}; raise the limit of calls"
        )
    limits = limits_of(payer, budget, day=day_of(at))
    full = [account for account, limit in limits.items() if bound > 0 and spent[account].used + bound > limit]
    for account in full:
        if spent[account].lasting + bound > limits[account]:
            return BudgetExhausted(_exhausted(account, spent[account], limits[account], bound))
    if full:
        names = ", ".join(described(account) for account in full)
        return Busy(f"running calls hold the rest of the budget of {names}"[:290], retry_after=WAIT_SECONDS)
    return None


def warnings(spent: Mapping[str, Spent], limits: Mapping[str, int]) -> Mapping[str, str]:
    """A sentence for each account that has come to 80 % of its limit. Running calls do not count: they may be cheap."""
    return {
        account: f"{described(account)} has used {dollars(spent[account].lasting)} of its limit of {dollars(limit)}"
        for account, limit in limits.items()
        if spent[account].lasting * 100 >= limit * WARN_PERCENT and spent[account].lasting > 0
    }


def _exhausted(account: str, spent: Spent, limit: int, bound: int) -> str:
    used = f"{dollars(spent.lasting)} of {dollars(limit)} is used"
    if spent.unknown + spent.written_off:
        used += f" ({dollars(spent.unknown + spent.written_off)} of it by calls that were lost in flight)"
    name = account.partition(":")[0]
    return (
        f"the budget of {described(account)} is not enough: {used}, and this call may cost up to {dollars(bound)}; "
        f"raise the {name} budget"
    )
