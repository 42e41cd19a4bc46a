"""The commands of decisions. Each imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from adapters.cli.config.completing import build_names
from adapters.cli.config.options import AllowMissing, Approve, Build, By, Json, Reason, Unattended, User, Yes

app = typer.Typer()

Digest = Annotated[str, typer.Argument(help="At least 8 hex digits of what you decide about; asked for on a terminal.")]
Usd = Annotated[float, typer.Option(min=0.0, metavar="USD", help="A new limit in USD; limits only go up.")]
Count = Annotated[int, typer.Option(min=0, metavar="N", help="A new limit; limits only go up.")]


@app.command()
def pending(
    build: Annotated[
        str, typer.Argument(help="A build's name; without it, all builds.", autocompletion=build_names)
    ] = "",
    json: Json = False,
) -> None:
    """Show what waits for a person, from the store, and the commands that answer it."""
    from adapters.cli.decide import waiting
    from adapters.cli.session import run

    run(lambda settings: waiting.pending(settings, build, json=json))


@app.command()
def approve(
    build: Build,
    digest: Digest = "",
    reason: Reason = "",
    by: By = "",
    json: Json = False,
) -> None:
    """Approve the change, the plan or the release of that digest."""
    from adapters.cli.decide import answers
    from adapters.cli.session import login, run

    decision = answers.Decision(
        build=build, choice="approve", digest=digest, reason=reason, by=by or login(), json=json
    )
    run(lambda settings: answers.decide(settings, decision))


@app.command()
def reject(
    build: Build,
    reason: Annotated[str, typer.Option(help="Why: a plan or a change goes back into planning.")],
    digest: Digest = "",
    by: By = "",
    json: Json = False,
) -> None:
    """Reject the change, the plan or the release of that digest; what is rejected is planned again, or taken back."""
    from adapters.cli.decide import answers
    from adapters.cli.session import login, run

    decision = answers.Decision(build=build, choice="reject", digest=digest, reason=reason, by=by or login(), json=json)
    run(lambda settings: answers.decide(settings, decision))


@app.command()
def answer(
    build: Build,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ASK] CHOICE",
            help="The question's id, if several are open; retry|raise|skip|take|abort, "
            "or promote|extend|roll_back about a release.",
        ),
    ],
    hint: Annotated[str, typer.Option(help="What the next attempt is told; why, for an abort.")] = "",
    commit: Annotated[str, typer.Option(help="For take: a branch or commit of the project's repository.")] = "",
    task_budget: Usd = 0.0,
    build_budget: Usd = 0.0,
    attempts: Count = 0,
    by: By = "",
    json: Json = False,
) -> None:
    """Answer a question: about a task that is stuck, a limit, or a release that its watch cannot judge."""
    from adapters.cli.decide import answers
    from adapters.cli.session import login, run

    if len(words) > 2:
        raise typer.BadParameter("give at most the question's id and one choice")
    reply = answers.Reply(
        build=build,
        ask=words[0] if len(words) == 2 else "",
        choice=words[-1],
        by=by or login(),
        json=json,
        hint=hint,
        commit=commit,
        task_budget=task_budget,
        build_budget=build_budget,
        attempts=attempts,
    )
    run(lambda settings: answers.reply(settings, reply))


@app.command("edit-plan")
def edit_plan(
    build: Build,
    file: Annotated[str, typer.Argument(help="The plan as JSON, or - for standard input; without it, print it.")] = "",
    by: By = "",
    json: Json = False,
) -> None:
    """Replace the plan that waits for its approval; without a file, print the plan as it is now."""
    from adapters.cli.decide import answers
    from adapters.cli.session import login, run

    given = answers.NewPlan(build=build, file=file, by=by or login(), json=json)
    run(lambda settings: answers.edit_plan(settings, given))


@app.command("raise")
def raise_limits(
    build: Build,
    task_budget: Usd = 0.0,
    build_budget: Usd = 0.0,
    project_budget: Usd = 0.0,
    user_budget: Usd = 0.0,
    day_budget: Usd = 0.0,
    calls: Count = 0,
    attempts: Count = 0,
    by: By = "",
    json: Json = False,
) -> None:
    """Raise limits of a build while it runs."""
    budgets = {"task": task_budget, "build": build_budget, "project": project_budget}
    budgets |= {"user": user_budget, "day": day_budget}
    words: dict[str, Any] = {f"{name}_budget": usd for name, usd in budgets.items() if usd}
    words |= {name: number for name, number in {"calls": calls, "attempts": attempts}.items() if number}
    if not words:
        raise typer.BadParameter("name a limit, as in --build-budget 20")
    _say(build, "raise_limits", words, by, json)


@app.command()
def pause(build: Build, by: By = "", json: Json = False) -> None:
    """Start no new call, task or merge; what runs goes on."""
    _say(build, "pause", {}, by, json)


@app.command("resume-now")
def resume_now(build: Build, by: By = "", json: Json = False) -> None:
    """End a pause, or a wait of the build's own."""
    _say(build, "resume_now", {}, by, json)


@app.command()
def abort(
    build: Build,
    reason: Reason = "",
    by: By = "",
    json: Json = False,
) -> None:
    """End a build at once and undo what it did."""
    _say(build, "abort", {"reason": reason}, by, json)


@app.command()
def rerun(
    build: Build,
    title: Annotated[str, typer.Option(help="One line; the earlier build's by default.")] = "",
    detach: Annotated[bool, typer.Option("--detach", help="Print the new name and come back at once.")] = False,
    allow_missing: AllowMissing = "",
    yes: Yes = False,
    approve: Approve = "",
    unattended: Unattended = False,
    user: User = "",
    json: Json = False,
) -> None:
    """Start a new build of the same spec and project, and follow it."""
    from adapters.cli import build as command
    from adapters.cli.session import run

    asked = command.Asked(
        spec="",
        project="",
        title=title,
        detach=detach,
        json=json,
        allow_missing=allow_missing,
        approve="plan,change" if yes else approve,
        unattended=unattended,
        user=user,
    )
    run(lambda settings: command.rerun(settings, build, asked))


def _say(build: str, what: str, words: Mapping[str, Any], by: str, json: bool) -> None:
    from adapters.cli.decide import saying
    from adapters.cli.session import login, run

    said = saying.Said(build=build, what=what, words={**words, "by": by or login()})
    run(lambda settings: saying.tell(settings, said, json=json))
