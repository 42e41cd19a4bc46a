#!/bin/sh
# Brings the schemas of Temporal's two databases up to date; run before every start of a newer server, twice is well.
# The databases and their owner are there already (ops/postgresql/databases.sh).
set -eu
: "${TEMPORAL_DB_HOST:=postgresql:5432}"
: "${TEMPORAL_DB_PASSWORD_FILE:=/run/secrets/temporal_db_password}"
SQL_PASSWORD=$(cat "$TEMPORAL_DB_PASSWORD_FILE")
SQL_HOST=${TEMPORAL_DB_HOST%:*} SQL_PORT=${TEMPORAL_DB_HOST##*:} SQL_USER=temporal SQL_PLUGIN=postgres12_pgx
export SQL_HOST SQL_PORT SQL_USER SQL_PLUGIN SQL_PASSWORD
for pair in temporal:temporal temporal_visibility:visibility; do
    export SQL_DATABASE="${pair%:*}"
    temporal-sql-tool setup-schema --version 0.0
    temporal-sql-tool update-schema --schema-name "postgresql/v12/${pair#*:}"
done
