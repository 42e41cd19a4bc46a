#!/bin/sh
# Makes an account and its databases for Temporal, and one for Mendwork; neither enters the other's. The postgres image
# runs it once, in an empty data folder, as its superuser. Elsewhere PGHOST, PGUSER and so on say where. Needs psql 15.
set -eu
: "${SECRETS:=/run/secrets}"
: "${PGUSER:=${POSTGRES_USER:-postgres}}"
export PGUSER PGDATABASE=postgres

account() { # NAME FILE DATABASE...
    NAME=$1
    PASSWORD=$(cat "$SECRETS/$2")
    export NAME PASSWORD # not by argument: everybody can read a command line
    shift 2
    psql -v ON_ERROR_STOP=1 -q <<'SQL'
\getenv name NAME
\getenv password PASSWORD
CREATE ROLE :"name" LOGIN PASSWORD :'password';
SQL
    for DATABASE in "$@"; do
        export DATABASE
        psql -v ON_ERROR_STOP=1 -q <<'SQL'
\getenv name NAME
\getenv database DATABASE
CREATE DATABASE :"database" OWNER :"name" TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
SQL
    done
}

account temporal temporal_db_password temporal temporal_visibility
account mendwork mendwork_db_password mendwork
