"""Where one configured model is reached."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.money.usage import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model of the configuration. ``model`` is litellm's ``provider/name``, ``base_url`` any compatible server.

    Without ``api_key`` the provider's usual environment variable counts, but only without ``base_url``: a key of one
    provider is never sent to another's address. ``key_name`` is the variable that a person has to set, for messages.
    ``structured``: the server takes a JSON schema as ``response_format``; ``pin``: it takes a temperature and a seed.
    ``price`` None asks litellm's own table.
    """

    name: str
    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    key_name: str = ""
    structured: bool = True
    pin: bool = True
    price: Price | None = None

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key, as well as it can be told."""
        provider = self.model.partition("/")[0] if "/" in self.model else "openai"
        return self.key_name or f"{provider.upper().replace('-', '_')}_API_KEY"
