#!/bin/sh
# Makes the secrets that docker-compose.yml mounts, as far as they are missing:   ops/compose/secrets.sh [FOLDER]
# The folder belongs to whoever runs this alone; the files in it can be read by the users inside the containers.
set -eu
folder=${1:-$(dirname "$0")/../../secrets}
umask 077
mkdir -p "$folder"
chmod 700 "$folder"
for name in postgres_password temporal_db_password mendwork_db_password grafana_admin_password codec.token; do
    if [ ! -s "$folder/$name" ]; then
        head -c 24 /dev/urandom | od -An -vtx1 | tr -d ' \n' > "$folder/$name"
        chmod 444 "$folder/$name"
    fi
done
if [ ! -s "$folder/payloads.key" ]; then
    head -c 32 /dev/urandom | base64 > "$folder/payloads.key"
fi
# Mendwork refuses a key that others may read; 1000 is the user of its image.
chmod 400 "$folder/payloads.key" "$folder/codec.token"
if [ "$(id -u)" = 0 ]; then
    chown 1000 "$folder/payloads.key" "$folder/codec.token"
fi
if [ ! -e "$folder/provider_api_key" ]; then
    : > "$folder/provider_api_key"
    chmod 444 "$folder/provider_api_key"
fi
[ -s "$folder/provider_api_key" ] || echo "put your provider's key into $folder/provider_api_key" >&2
