#!/bin/sh
# Makes the namespace that builds live in, with the days that their histories are kept; twice is well.
# Search attributes and schedules are made by the saga worker when it starts.
set -eu
: "${TEMPORAL_ADDRESS:=temporal:7233}"
: "${TEMPORAL_NAMESPACE:=default}"
: "${RETENTION:=720h}"
export TEMPORAL_ADDRESS
tries=60
until temporal operator cluster health >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "no Temporal server at $TEMPORAL_ADDRESS" >&2; exit 1; }
    sleep 1
done
if temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
    temporal operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
else
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
fi
