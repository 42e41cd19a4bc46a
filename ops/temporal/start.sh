#!/bin/sh
# Starts Temporal's server: the password comes from a file and is in no command line and no compose file.
#   TEMPORAL_DB_HOST           host:port of PostgreSQL
#   TEMPORAL_DB_PASSWORD_FILE  by default the secret of the compose file
#   TEMPORAL_BROADCAST_ADDRESS where its other servers reach this one, by default this host's first address
set -eu
: "${TEMPORAL_DB_HOST:=postgresql:5432}"
: "${TEMPORAL_DB_PASSWORD_FILE:=/run/secrets/temporal_db_password}"
: "${TEMPORAL_CONFIG_FOLDER:=$(dirname "$(readlink -f "$0")")}"
: "${TEMPORAL_BROADCAST_ADDRESS:=$(hostname -i | cut -d' ' -f1)}"
TEMPORAL_DB_PASSWORD=$(cat "$TEMPORAL_DB_PASSWORD_FILE")
export TEMPORAL_DB_HOST TEMPORAL_DB_PASSWORD TEMPORAL_CONFIG_FOLDER TEMPORAL_BROADCAST_ADDRESS
exec temporal-server --root / --config "$TEMPORAL_CONFIG_FOLDER" --env production --allow-no-auth start
