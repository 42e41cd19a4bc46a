"""A client for whichever server is meant: the Temporal CLI's own configuration, ours, or the embedded one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, ListNamespacesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RPCError, RPCStatusCode

from adapters.payloads.codec import EncryptionCodec
from adapters.payloads.keys import load_keys
from adapters.settings import Settings
from adapters.temporal.failures import SealedFailureConverter, TracelessFailureConverter
from adapters.temporal.state import read_state
from domain.errors import InvalidInput, ServerUnavailable, UnknownName

# What every process uses where nothing is encrypted.
DATA_CONVERTER = replace(pydantic_data_converter, failure_converter_class=TracelessFailureConverter)
_NEEDS_NO_RIGHT = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server to connect to. ``origin`` says, for people, where the address comes from.

    ``options`` are further keywords for ``Client.connect`` (TLS, API key, metadata) and may hold secrets.
    """

    address: str
    namespace: str
    origin: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def external_target(settings: Settings, environment: Mapping[str, str]) -> Target | None:
    """The server that TEMPORAL_*, a profile or ``[temporal].address`` names, in this order; None means embedded.

    Raises InvalidInput for a profile that cannot be read.
    """
    try:
        profile = ClientConfigProfile.load(override_env_vars=dict(environment))
    except RuntimeError as error:
        # Only the first line: the next ones quote the file, which may hold a key.
        raise InvalidInput(f"Temporal's client configuration: {str(error).splitlines()[0]}") from error
    options = dict(profile.to_client_connect_config())
    address = str(options.pop("target_host", ""))
    namespace = str(options.pop("namespace", settings.temporal.namespace))
    origin = "TEMPORAL_ADDRESS or a Temporal profile"
    if not address:
        address, origin = settings.temporal.address, "[temporal].address"
    if not address:
        return None
    return Target(address=address, namespace=namespace, origin=origin, options=options)


def resolve_target(settings: Settings, environment: Mapping[str, str]) -> Target:
    """The server to use. Raises ServerUnavailable when none is named and no ``mendwork dev`` runs."""
    target = external_target(settings, environment)
    if target is not None:
        return target
    running = read_state(settings.state)
    if running is None:
        raise ServerUnavailable(
            f"no Temporal server: run `mendwork dev` in {settings.root}, or name one by TEMPORAL_ADDRESS "
            "or [temporal].address in mendwork.toml"
        )
    return Target(address=running.address, namespace=running.namespace, origin=f"`mendwork dev`, pid {running.pid}")


async def connect(settings: Settings, environment: Mapping[str, str], *, patience: float = 5.0) -> Client:
    """A connected client whose namespace exists.

    Raises ServerUnavailable when nothing answers within ``patience`` seconds, UnknownName for a wrong namespace.
    """
    target = resolve_target(settings, environment)
    return await connect_to(target, patience=patience, converter=converter_for(settings, target.namespace))


def converter_for(settings: Settings, namespace: str) -> DataConverter:
    """How every client, worker and replayer of ``namespace`` writes and reads payloads: encrypted where there are keys.

    Without keys it still knows an encrypted payload, and says which key it lacks. Raises InvalidInput for a bad key.
    """
    keys = load_keys(settings.key_files)
    failures = SealedFailureConverter if keys else TracelessFailureConverter
    codec = EncryptionCodec(keys, namespace=namespace)
    return replace(DATA_CONVERTER, payload_codec=codec, failure_converter_class=failures)


def namespace_of(settings: Settings, environment: Mapping[str, str]) -> str:
    """The namespace that is meant, also where no server runs. Raises InvalidInput."""
    target = external_target(settings, environment)
    return settings.temporal.namespace if target is None else target.namespace


async def connect_to(target: Target, *, patience: float = 5.0, converter: DataConverter = DATA_CONVERTER) -> Client:
    """As ``connect``, for a target that is known; ``converter`` is ``converter_for`` its namespace."""
    try:
        async with asyncio.timeout(patience):
            client = await Client.connect(
                target.address,
                namespace=target.namespace,
                data_converter=converter,
                **target.options,
            )
            await _check_namespace(client, target)
    except TimeoutError as error:
        raise ServerUnavailable(_silent(target, f"no answer within {patience:g} s")) from error
    except (RuntimeError, RPCError, ValueError) as error:
        raise ServerUnavailable(_silent(target, _first_line(error))) from error
    return client


async def _check_namespace(client: Client, target: Target) -> None:
    try:
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=target.namespace), timeout=timedelta(seconds=4)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            known = await _namespaces(client)
            raise UnknownName.among(f"Temporal namespace at {target.address}", target.namespace, known) from error
        if error.status not in _NEEDS_NO_RIGHT:  # a key may be good for its namespace and for nothing about it
            raise


async def _namespaces(client: Client) -> list[str]:
    try:
        answer = await client.workflow_service.list_namespaces(ListNamespacesRequest(page_size=50))
    except RPCError:
        return []  # whoever may not list them gets the name alone
    names = (entry.namespace_info.name for entry in answer.namespaces)
    return [name for name in names if name != "temporal-system"]


def _silent(target: Target, why: str) -> str:
    return f"no Temporal server answers at {target.address} ({target.origin}): {why}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
