"""``kattn reproduce --list``: the tables, and what each needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kattn_cli.papers.plan import Plan, find_plans, plans


def reproductions(names: Sequence[str]) -> str:
    """All tables, or those of some papers: hours and data of each size.

    Raises:
        KattnError: if a name is none of a table or paper.
    """
    for name in names:
        find_plans([name])
    chosen = {
        name: plan for name, plan in plans().items() if not names or name in names or name.partition("/")[0] in names
    }
    return "\n".join(line for name, plan in chosen.items() for line in (f"{name}: {plan.title}", *_needs(plan)))


def _needs(plan: Plan) -> Iterator[str]:
    if plan.full:
        yield f"  full     {f'{plan.full.hours:,g} h of an H100':20}  {plan.full.data}"
    if plan.small:
        yield f"  --small  {f'{plan.small.hours:g} h of two cores':20}  {plan.small.data}"
