"""A rendered prompt, as it lies in the blob store."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from domain.ports.language_model import Message


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
        """The conversation with the answer that did not fit and what is wrong with it."""
        said = Message(role="assistant", content=answer)
        asked = Message(role="user", content=wording + "".join(f"\n- {problem}" for problem in problems))
        return replace(self, messages=(*self.messages, said, asked))
