"""One error tree, split by who can act. Class names are wire names: Temporal sees them as failure types.

MendworkError
├── Transient        try again: the same request may work in a moment
│   ├── RateLimited, ProviderUnavailable, StoreUnavailable, ServerUnavailable, ResourceShort, Overtaken, Busy
│   ├── Crowded, TargetUnavailable, PortTaken
├── Permanent        will never work as asked: the request, its answer or the configuration has to change
│   ├── InvalidInput, UnknownName, InvalidName, InvalidPlan, InvalidChange, UnusableAnswer, TooLarge
│   ├── KeyMissing, CredentialsRefused, ProviderRefused, PriceUnknown, RepositoryRefused, BranchTaken, IsolationMissing
│   ├── AlreadyRunning, StaleChange
│   ├── TargetMissing, ReleaseDied, ReleaseSilent, ReleaseMissing, OlderRelease, ArtifactFailed
├── NeedsHuman       nothing automatic is left to try
│   ├── BaseIsRed, AttemptsExhausted, ModelsExhausted, BudgetExhausted, Overbilled, Escalated, Aborted
└── Defect           our bug, or corrupted state: stop loudly
    ├── EventConflict, EventUnreadable, DigestMismatch, BlobMissing, KeyConflict, PhaseMissing
"""

from __future__ import annotations

from collections.abc import Iterable


class MendworkError(Exception):
    """The base of all our errors. ``str(error)`` is one sentence for a person, without secrets or contents."""


class Transient(MendworkError):
    """The same request may work in a moment. ``retry_after`` is the wait in seconds that the other side asked for."""

    def __init__(self, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class RateLimited(Transient):
    """The provider said "later" (HTTP 429)."""


class ProviderUnavailable(Transient):
    """The provider failed, hung or cut the connection (HTTP 5xx, reset, timeout, empty answer)."""


class StoreUnavailable(Transient):
    """The database cannot be reached or is locked beyond the busy timeout."""


class ServerUnavailable(Transient):
    """Temporal is not found, does not start or does not answer; the sentence says how to have one."""


class ResourceShort(Transient):
    """This machine ran out of something: disk, memory, processes."""


class Overtaken(Transient):
    """A compare-and-set lost against another writer: look again before acting."""


class Busy(Transient):
    """Everything that this would use is in use: money that running calls hold, places of the project's tasks."""


class Crowded(Busy):
    """Other calls of the project, or at the provider, have the turns that it may have: waiting for one is no try."""


class TargetUnavailable(Transient):
    """The deploy target's own programs do not answer."""


class PortTaken(Transient):
    """A port that a release or a site needs is held by somebody else."""


class Permanent(MendworkError):
    """Will never work as asked."""


class InvalidInput(Permanent):
    """What a person or a start request gave is not usable; the sentence says which field and why."""


class InvalidName(InvalidInput):
    """A name that cannot be a git ref and a folder."""


class UnknownName(InvalidInput):
    """A name that is not known; the sentence lists the names that are."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str]) -> UnknownName:
        """``kind`` is what was looked up, as in "project" or "model"."""
        names = ", ".join(sorted(known)) or "none"
        return cls(f"unknown {kind} {name!r}; known: {names}")


class InvalidPlan(Permanent):
    """A plan that is not a usable DAG of tasks."""


class InvalidChange(Permanent):
    """A change that cannot be applied to this tree; the reason goes back to the model."""


class UnusableAnswer(Permanent):
    """A model's answer that fits no schema, also after it was sent back."""


class TooLarge(Permanent):
    """Something is over a stated limit."""


class KeyMissing(Permanent):
    """A payload is encrypted with a key that this process was not given; the sentence names the key's id."""


class CredentialsRefused(Permanent):
    """A provider or a database does not let us in: no key or password, a wrong one, one that may not do this."""


class ProviderRefused(Permanent):
    """The provider will not serve this request: content filter, context too long, unknown model, no credit left."""


class PriceUnknown(Permanent):
    """Money is limited and nobody knows what this model costs."""


class StaleChange(Permanent):
    """A change was written against another tree than the one it would be applied to."""


class RepositoryRefused(Permanent):
    """The user's repository cannot be used as configured."""


class BranchTaken(RepositoryRefused):
    """The result branch exists with commits that are not this build's."""


class IsolationMissing(Permanent):
    """The sandbox cannot isolate what the build demands; never silently weaker."""


class TargetMissing(Permanent):
    """The deploy target cannot work here; the sentence names what is missing and the cure."""


class ReleaseDied(Permanent):
    """A release's process ended by itself."""


class ReleaseSilent(Permanent):
    """A release runs and its health check is not answered well in time."""


class ReleaseMissing(Permanent):
    """Nothing is left of a release that was to be used again."""


class OlderRelease(Permanent):
    """Production has a newer release than this one, and this is no rollback."""


class SetupFailed(Permanent):
    """The project's set-up command failed, or left nothing in its folder; the sentence says what it printed."""


class ArtifactFailed(Permanent):
    """The project's build command failed, or left nothing to release."""


class AlreadyRunning(Permanent):
    """Another ``mendwork dev`` holds this folder, or a build that would be gone on from is still open; the sentence
    names it."""


class NeedsHuman(MendworkError):
    """Nothing automatic is left to try."""


class BaseIsRed(NeedsHuman):
    """The project's own tests fail, or do not exist, before any change."""


class AttemptsExhausted(NeedsHuman):
    """A task used all its attempts without a green run."""


class ModelsExhausted(NeedsHuman):
    """Every model of the role's chain failed."""


class UnknownPackages(NeedsHuman):
    """A change wants packages installed that no manifest of before and no list knows; the sentence names them."""


class NeedsExhausted(NeedsHuman):
    """A model asked for more of the repository until its rounds were used up."""


class BudgetExhausted(NeedsHuman):
    """A limit of money or calls is reached; the sentence names the account and its limit."""


class Overbilled(NeedsHuman):
    """A provider charged more than the upper bound of the call: the bound, or the bill, is wrong."""


class Escalated(NeedsHuman):
    """Nobody answered in time, or the answer was to leave it to people: nothing was landed."""


class Aborted(NeedsHuman):
    """A person ended the build."""


class Defect(MendworkError):
    """Our bug, or corrupted state."""


class EventConflict(Defect):
    """The same event key with another content."""


class EventUnreadable(Defect):
    """An event that is damaged, or that this version does not understand; the sentence names its key."""


class KeyConflict(Defect):
    """The same logical attempt with another request."""


class PhaseMissing(Defect):
    """A phase ran before what it needs."""


class DigestMismatch(Defect):
    """What was read back is not what was written."""


class BlobMissing(Defect):
    """A digest that the blob store does not hold."""
