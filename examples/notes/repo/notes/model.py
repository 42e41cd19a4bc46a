"""The values that the service stores and exchanges."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class NoteDraft:
    """What a client says about a note; the rest is the store's to decide."""

    title: str
    body: str = ""
    pinned: bool = False


@dataclass(frozen=True)
class Note:
    """A stored note. ``revision`` starts at 1 and grows with every change; times are ISO 8601 in UTC."""

    id: str
    title: str
    body: str
    pinned: bool
    revision: int
    created_at: str
    updated_at: str

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class NoteFilter:
    """Which notes to list. ``None`` and the empty text mean no restriction."""

    pinned: bool | None = None
    text: str = ""


@dataclass(frozen=True)
class Page:
    """One page of a listing; ``next_position`` is where the next one starts, ``None`` on the last."""

    notes: tuple[Note, ...]
    next_position: int | None
