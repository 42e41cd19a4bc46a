"""One question to a chain of models: the next model, or the answer sent back, as ``domain.recovery.asking`` decides."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.faults import faults_of, last_fault
from workflows.policies import MODEL, WORKSPACE, Effects, granting
from workflows.recorder import Recorder

with workflow.unsafe.imports_passed_through():
    from activities.models import CalledModel, CallModelInput, Models
    from activities.prompts import Prompts, RenderAgainInput
    from domain.errors import ModelsExhausted
    from domain.money.budget import Budget, Payer
    from domain.ports.language_model import CallKey
    from domain.recovery.asking import Asking, next_asking
    from domain.recovery.fault import Fault

MONEY = ("BudgetExhausted", "Overbilled")
PASSING = {
    "Busy": "money is held by running calls",
    "Crowded": "other calls have the turns",
    "StoreUnavailable": "the store does not answer",
}
"""No verdict on the call: the same one is made again, later than its own tries reach."""
BUSY_SECONDS = 5
BUSY_ROUNDS = 240
"""Twenty minutes: longer than any call may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """``prompt`` is a digest; ``chain`` the models to ask in order; ``schema_name`` the domain class to answer with."""

    build: str
    step: str
    attempt: int
    prompt: str
    schema_name: str
    chain: tuple[str, ...]
    output_tokens: int
    seconds: float
    payer: Payer
    budget: Budget


async def ask(question: Question, *, effects: Effects, recorder: Recorder) -> CalledModel:
    """An answer that fits its schema. Raises ModelsExhausted, with each model's last fault, when none gave one, and
    BudgetExhausted or Overbilled at once: no other model mends those."""
    now: Asking | None = Asking()
    prompt, told = question.prompt, dict[str, str]()
    while now is not None:
        model = question.chain[now.model]
        try:
            called = await _answer(question, now, prompt, effects)
        except ActivityError as error:
            faults = faults_of(error)
            _note_failure(recorder, question, now, faults)
            if faults[-1].kind in MONEY:
                raise
            told[model], now = faults[-1].sentence, next_asking(now, "failed", chain_length=len(question.chain))
            prompt = question.prompt
            continue
        _note_answer(recorder, question, now, called)
        if called.value:
            return called
        told[model] = f"it answered {question.schema_name} so that it does not fit: {called.problems[0]}"
        now = next_asking(now, "unfit", chain_length=len(question.chain))
        prompt = question.prompt if now is None or not now.sent_back else await _sent_back(effects, prompt, called)
    each = "; ".join(f"{model}: {sentence}" for model, sentence in told.items())
    raise ModelsExhausted(f"no model of the chain gave a usable answer: {each}")


async def _answer(question: Question, now: Asking, prompt: str, effects: Effects) -> CalledModel:
    """One call, made again while only what passes is in its way: money that running calls hold comes free when they
    are settled, a store comes back."""
    policy = granting(MODEL, question.seconds)
    for waited in range(BUSY_ROUNDS + 1):
        try:
            model = question.chain[now.model]
            return await effects.run(policy, Models.call_model, _call(question, now, prompt), summary=model)
        except ActivityError as error:
            kind = last_fault(error).kind
            if kind not in PASSING or waited == BUSY_ROUNDS:
                raise
        await effects.rest(BUSY_SECONDS, summary=PASSING[kind])
    raise AssertionError("unreachable: the last round returns or raises")


async def _sent_back(effects: Effects, prompt: str, called: CalledModel) -> str:
    request = RenderAgainInput(prompt=prompt, answer=called.answer, problems=called.problems)
    return (await effects.run(WORKSPACE, Prompts.render_again_prompt, request)).prompt


def _call(question: Question, now: Asking, prompt: str) -> CallModelInput:
    saga = workflow.info().workflow_id
    return CallModelInput(
        key=CallKey(saga=saga, step=question.step, attempt=question.attempt, turn=now.turn),
        build=question.build,
        model=question.chain[now.model],
        prompt=prompt,
        schema_name=question.schema_name,
        output_tokens=question.output_tokens,
        seconds=question.seconds,
        payer=question.payer,
        budget=question.budget,
        tries=MODEL.tries,
    )


def _note_answer(recorder: Recorder, question: Question, now: Asking, called: CalledModel) -> None:
    recorder.note(
        "call.answered",
        attempt=question.attempt,
        step=question.step,
        turn=now.turn,
        model=called.model,
        prompt=question.prompt,
        answer=called.answer,
        value=called.value,
        problems=list(called.problems),
        usage=asdict(called.usage),
        faults=list(called.faults),
        pinned=dict(called.pinned),
        phase=question.payer.phase,
        role=question.payer.role,
    )
    for sentence in called.warnings:
        recorder.note("money.warned", attempt=question.attempt, sentence=sentence)


def _note_failure(recorder: Recorder, question: Question, now: Asking, faults: tuple[Fault, ...]) -> None:
    recorder.note(
        "call.failed",
        attempt=question.attempt,
        step=question.step,
        turn=now.turn,
        model=question.chain[now.model],
        prompt=question.prompt,
        faults=[asdict(fault) for fault in faults],
        phase=question.payer.phase,
        role=question.payer.role,
    )
