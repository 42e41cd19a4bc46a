"""What is known of a release before it is approved, and in its record: as lines that still hold untrusted text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from domain.trace.delivery.series import number_in


def release_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The packet of an ask about a release, a step that is final, or a watch that cannot tell."""
    replaced = _mapping(document.get("replaces"))
    if document.get("commit"):
        instead = f", instead of release {replaced['release']}" if replaced.get("release") else ""
        yield f"release {document.get('release', '?')}: commit {str(document['commit'])[:12]}{instead}"
    if document.get("artifact"):
        yield f"artefact {str(document['artifact'])[:12]}"
    if document.get("run"):
        run = document["run"]
        yield f"step {document.get('step', '?')}: {' '.join(map(str, run)) if isinstance(run, list) else run}"
    yield from integration_lines(_mapping(document.get("integration")))
    yield from risk_lines(_mapping(document.get("risk")))


def integration_lines(ran: Mapping[str, Any]) -> Iterator[str]:
    """What the integration tests said; nothing where none ran."""
    if "green" in ran:
        count = f", {ran['ran']} ran" if number_in(ran.get("ran")) >= 0 and "ran" in ran else ""
        yield f"integration tests: {'green' if ran['green'] else 'red'}, {ran.get('reason', '')}{count}"


def risk_lines(scored: Mapping[str, Any]) -> Iterator[str]:
    """The score, and each term of it that counts: how much of what is its share."""
    if "risk" not in scored:
        return
    trust = f", confidence {number_in(scored.get('confidence')):.2f}" if "confidence" in scored else ""
    action = f": {scored['action']}" if scored.get("action") else ""
    why = f" ({scored['why']})" if scored.get("why") else ""
    yield f"risk {number_in(scored['risk']):.2f}{trust}{action}{why}"
    for term in terms_of(scored):
        yield (
            f"  {str(term.get('name', ''))[:14]:<14} {number_in(term.get('weight')):.2f} × "
            f"{number_in(term.get('amount')):.2f} = {number_in(term.get('share')):.2f}  {term.get('why', '')}".rstrip()
        )


def terms_of(scored: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The terms, those that weigh most first."""
    raw = scored.get("terms")
    found = [term for term in raw if isinstance(term, Mapping)] if isinstance(raw, list | tuple) else []
    return sorted(found, key=lambda term: -number_in(term.get("share")))


def _mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}
