"""Encryption of payloads: what comes back, what is bound, what is told when a key is missing."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

from adapters.payloads.codec import ENCODING, KEY_ID, NONCE_BYTES, EncryptionCodec
from adapters.payloads.keys import Key
from adapters.temporal.connect import DATA_CONVERTER
from adapters.temporal.failures import SEALED, SealedFailureConverter
from domain.errors import DigestMismatch, KeyMissing

OLD = Key(id="2025b", secret=b"o" * 32)
NEW = Key(id="2026a", secret=b"n" * 32)
HELLO = Payload(metadata={"encoding": b"json/plain"}, data=b'"the specification"')
PAYLOADS = st.builds(
    Payload, metadata=st.dictionaries(st.text(max_size=20), st.binary(max_size=40), max_size=4), data=st.binary()
)


def codec(*keys: Key, namespace: str = "default") -> EncryptionCodec:
    """Of these keys; the first encrypts."""
    return EncryptionCodec(keys, namespace=namespace)


class TestRoundTrip:
    @settings(deadline=None)
    @given(payloads=st.lists(PAYLOADS.filter(lambda payload: payload.metadata.get("encoding") != ENCODING), max_size=4))
    def test_every_payload_comes_back_as_it_was(self, payloads: list[Payload]) -> None:
        both = codec(NEW, OLD)
        assert both.opened(both.sealed(payloads)) == payloads

    @settings(deadline=None)
    @given(payload=PAYLOADS)
    def test_what_is_stored_has_the_keys_id_and_nothing_else_in_the_open(self, payload: Payload) -> None:
        (sealed,) = codec(NEW).sealed([payload])
        assert dict(sealed.metadata) == {"encoding": ENCODING, KEY_ID: b"2026a"}
        assert len(sealed.data) == NONCE_BYTES + payload.ByteSize() + 16

    def test_the_same_payload_never_looks_the_same_twice(self) -> None:
        sealed = codec(NEW).sealed([HELLO] * 500)
        assert len({each.data for each in sealed}) == len({each.data[:NONCE_BYTES] for each in sealed}) == 500
        assert not [each for each in sealed if b"specification" in each.data]

    def test_what_was_encrypted_twice_takes_two_steps_back(self) -> None:
        both = codec(NEW)
        once = both.sealed([HELLO])
        assert both.opened(both.sealed(once)) == once

    def test_what_is_not_encrypted_passes(self) -> None:
        assert codec(NEW).opened([HELLO]) == [HELLO]

    def test_without_keys_nothing_is_encrypted(self) -> None:
        assert codec().sealed([HELLO]) == [HELLO]
        assert codec().opened([HELLO]) == [HELLO]

    async def test_the_data_converter_takes_it(self) -> None:
        converter = replace(DATA_CONVERTER, payload_codec=codec(NEW))
        payloads = await converter.encode([{"spec": "x"}, None])
        assert {each.metadata["encoding"] for each in payloads} == {ENCODING}
        assert await converter.decode(payloads) == [{"spec": "x"}, None]


class TestRotation:
    def test_the_first_key_encrypts_and_the_others_still_decrypt(self) -> None:
        before = codec(OLD).sealed([HELLO])
        rotated = codec(NEW, OLD)
        assert rotated.opened(before) == [HELLO]
        assert rotated.sealed([HELLO])[0].metadata[KEY_ID] == b"2026a"

    def test_a_worker_that_has_the_new_key_second_reads_what_rotated_ones_write(self) -> None:
        assert codec(OLD, NEW).opened(codec(NEW, OLD).sealed([HELLO])) == [HELLO]

    def test_a_key_that_is_gone_is_named_beside_those_that_are_there(self) -> None:
        before = codec(OLD).sealed([HELLO])
        with pytest.raises(KeyMissing, match=r"^a payload is encrypted with key '2025b', .*; known: 2026a$"):
            codec(NEW).opened(before)
        with pytest.raises(KeyMissing, match=r"'2025b'.*; known: none$"):
            codec().opened(before)

    def test_a_payload_without_a_key_id_is_a_sentence_too(self) -> None:
        with pytest.raises(KeyMissing, match="key ''"):
            codec(NEW).opened([Payload(metadata={"encoding": ENCODING}, data=b"x")])


class TestBinding:
    @settings(deadline=None)
    @given(at=st.integers(min_value=0, max_value=200), bit=st.integers(min_value=0, max_value=7))
    def test_a_single_changed_bit_is_noticed(self, at: int, bit: int) -> None:
        (sealed,) = codec(NEW).sealed([HELLO])
        changed = bytearray(sealed.data)
        changed[at % len(changed)] ^= 1 << bit
        with pytest.raises(DigestMismatch, match="'2026a' does not decrypt"):
            codec(NEW).opened([Payload(metadata=sealed.metadata, data=bytes(changed))])

    @pytest.mark.parametrize("length", [0, 1, NONCE_BYTES - 1, NONCE_BYTES, NONCE_BYTES + 15])
    def test_a_cut_payload_is_noticed(self, length: int) -> None:
        (sealed,) = codec(NEW).sealed([HELLO])
        with pytest.raises(DigestMismatch):
            codec(NEW).opened([Payload(metadata=sealed.metadata, data=sealed.data[:length])])

    def test_a_payload_does_not_move_to_another_namespace(self) -> None:
        sealed = codec(NEW, namespace="production").sealed([HELLO])
        with pytest.raises(DigestMismatch, match="namespace 'staging'"):
            codec(NEW, namespace="staging").opened(sealed)

    def test_a_key_under_another_id_does_not_open_it(self) -> None:
        twin = Key(id="twin", secret=NEW.secret)
        (sealed,) = codec(NEW).sealed([HELLO])
        with pytest.raises(DigestMismatch):
            codec(twin).opened([Payload(metadata={"encoding": ENCODING, KEY_ID: b"twin"}, data=sealed.data)])

    def test_no_text_of_a_key_or_a_codec_tells_the_secret(self) -> None:
        told = f"{NEW} {NEW!r} {codec(NEW)!r} {vars(codec(NEW))}"
        assert not [form for form in ("nnnn", base64.b64encode(NEW.secret).decode()[:8]) if form in told]


def chain(failure: Failure) -> list[Failure]:
    """A failure and its causes."""
    return [failure, *(chain(failure.cause) if failure.HasField("cause") else [])]


class TestFailures:
    def failed(self) -> Failure:
        error = ApplicationError("a sentence", "detail", type="UnusableAnswer", non_retryable=True)
        error.__cause__ = ValueError("the prompt's secret sentence")
        failure = Failure()
        SealedFailureConverter().to_failure(error, DATA_CONVERTER.payload_converter, failure)
        return failure

    def test_no_sentence_of_a_chain_stays_in_the_open(self) -> None:
        for each in chain(self.failed()):
            assert (each.message, each.stack_trace) == (SEALED, "")

    def test_what_the_server_decides_by_stays(self) -> None:
        info = self.failed().application_failure_info
        assert (info.type, info.non_retryable) == ("UnusableAnswer", True)

    async def test_it_reads_as_it_was_after_the_way_through_the_codec(self) -> None:
        failure = self.failed()
        await codec(NEW).encode_failure(failure)
        assert b"sentence" not in failure.SerializeToString()
        assert b"detail" not in failure.SerializeToString()
        await codec(NEW).decode_failure(failure)
        error = SealedFailureConverter().from_failure(failure, DATA_CONVERTER.payload_converter)
        assert isinstance(error, ApplicationError)
        assert (error.message, error.details) == ("a sentence", ("detail",))
        assert "the prompt's secret sentence" in str(error.__cause__)

    def test_what_is_passed_on_is_sealed_once_more_and_its_causes_once(self) -> None:
        converter, payloads = SealedFailureConverter(), DATA_CONVERTER.payload_converter
        received = converter.from_failure(self.failed(), payloads)
        assert isinstance(received, FailureError)
        wrapped = ActivityError(
            "activity failed",
            scheduled_event_id=1,
            started_event_id=2,
            identity="w",
            activity_type="a",
            activity_id="1",
            retry_state=None,
        )
        wrapped.__cause__ = received
        again = Failure()
        converter.to_failure(wrapped, payloads, again)
        assert [each.message for each in chain(again)] == [SEALED] * 3
        back = converter.from_failure(again, payloads)
        assert "a sentence" in str(back.__cause__)

    def test_a_failure_of_before_is_sealed_to_its_last_cause(self) -> None:
        error = ApplicationError("old")
        error._failure = Failure(message="old", cause=Failure(message="older"))
        failure = Failure()
        SealedFailureConverter().to_failure(error, DATA_CONVERTER.payload_converter, failure)
        assert [each.message for each in chain(failure)] == [SEALED, SEALED]
