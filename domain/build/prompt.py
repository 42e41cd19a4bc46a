"""A rendered prompt, as it lies in the blob store."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from domain.ports.language_model import Message

SHOWN_AGAIN = 20_000
"""Characters of an answer that go back to its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """``template`` is the template's name, ``version`` the digest of the template files it was rendered from. ``base``
    is the commit whose files it shows, "" for none: an answer is about that tree and no other."""

    template: str
    version: str
    messages: tuple[Message, ...]
    base: str = ""

    def to_bytes(self) -> bytes:
        """Canonical JSON: the same prompt has the same digest."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Prompt:
        """The inverse of ``to_bytes``; what was written before prompts named their base has none."""
        raw = json.loads(content)
        return cls(
            template=raw["template"],
            version=raw["version"],
            messages=tuple(Message(role=m["role"], content=m["content"]) for m in raw["messages"]),
            base=raw.get("base", ""),
        )

    def sent_back(self, answer: str, problems: tuple[str, ...], *, wording: str) -> Prompt:
        """The conversation with the answer that did not fit, its middle left out where it is long, and what is wrong.

        What goes back is paid for: an answer that was cut at megabytes would cost more than the call.
        """
        said = Message(role="assistant", content=_shortened(answer))
        asked = Message(role="user", content=wording + "".join(f"\n- {problem}" for problem in problems))
        return replace(self, messages=(*self.messages, said, asked))


def _shortened(answer: str) -> str:
    left_out = len(answer) - SHOWN_AGAIN
    if left_out <= 0:
        return answer
    half = SHOWN_AGAIN // 2
    return f"{answer[:half]}\n[{left_out} characters are left out here]\n{answer[-half:]}"
