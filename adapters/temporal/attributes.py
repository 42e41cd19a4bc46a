"""The search attributes of a namespace: which ones it lacks, and adding them."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from domain.errors import ServerUnavailable
from domain.human.attributes import ATTRIBUTES, KEYWORD, KEYWORDS, NUMBER, TRUTH

_TYPES = {
    KEYWORD: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    KEYWORDS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    NUMBER: IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    TRUTH: IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
}


async def missing(client: Client) -> Sequence[str]:
    """The names that the client's namespace does not know. Raises ServerUnavailable, also when one has another type."""
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
    except RPCError as error:
        raise ServerUnavailable(f"the search attributes cannot be listed: {error.message}") from error
    there = {**listed.custom_attributes, **listed.system_attributes}
    wrong = [name for name, kind in ATTRIBUTES.items() if there.get(name, _TYPES[kind]) != _TYPES[kind]]
    if wrong:
        raise ServerUnavailable(
            f"the search attribute {wrong[0]} of namespace {client.namespace} is not of type {ATTRIBUTES[wrong[0]]}: "
            "somebody else uses the name; give Mendwork a namespace of its own ([temporal] namespace)"
        )
    return [name for name in ATTRIBUTES if name not in there]


async def ensure_attributes(client: Client) -> Sequence[str]:
    """Add what is missing, and return that. May be repeated, and by several at once.

    Raises ServerUnavailable, with the command that adds them, where this client may not.
    """
    absent = await missing(client)
    if not absent:
        return ()
    wanted = {name: _TYPES[ATTRIBUTES[name]] for name in absent}
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=wanted)
    try:
        await client.operator_service.add_search_attributes(request)
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            raise ServerUnavailable(f"{error.message}; add them by hand: {by_hand(client, absent)}") from error
    return absent


def by_hand(client: Client, names: Sequence[str]) -> str:
    """The command that adds them."""
    words = " ".join(f"--name {name} --type {ATTRIBUTES[name]}" for name in names)
    return f"temporal operator search-attribute create --namespace {client.namespace} {words}"
