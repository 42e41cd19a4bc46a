# Mendwork's own image: every worker class, the codec server and the command line run from it.
#   docker build -t mendwork .
# BASE is any Debian or Ubuntu with Python 3.11 or newer as `python3`, and its venv module.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE} AS build

ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
WORKDIR /opt/mendwork
RUN apt-get update -q && apt-get install -q -y --no-install-recommends ca-certificates
COPY setup setup
COPY pyproject.toml uv.lock README.md ./
# uv and every package come by hash; Mendwork itself is not installed, it runs from its folder.
RUN python3 -B -c "import os; from setup.python import ensure_uv, uv_environment as given; \
    uv = ensure_uv(os.environ); \
    os.execve(uv, [uv, 'sync', '--frozen', '--all-extras', '--no-default-groups', '--no-install-project'], \
    given(os.environ))"

FROM ${BASE}
# bubblewrap isolates what models write, haproxy switches the local target's traffic. A project's own tools belong into
# an image that begins with this one.
RUN apt-get update -q \
    && apt-get install -q -y --no-install-recommends ca-certificates git bubblewrap haproxy tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home --shell /usr/sbin/nologin mendwork \
    && install -d -o mendwork -g mendwork -m 700 /srv/mendwork /srv/mendwork/.mendwork \
        /srv/mendwork/.mendwork/blobs /srv/mendwork/.mendwork/mirrors /srv/mendwork/shared
COPY --from=build /opt/mendwork/.venv /opt/mendwork/.venv
COPY . /opt/mendwork
RUN printf '#!/bin/sh\nexec python -P -m starter "$@"\n' > /usr/local/bin/mendwork && chmod 755 /usr/local/bin/mendwork

ENV PATH=/opt/mendwork/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/mendwork \
    PYTHONDONTWRITEBYTECODE=1 \
    MENDWORK_CONFIG=/srv/mendwork/mendwork.toml
USER mendwork
WORKDIR /srv/mendwork
ENTRYPOINT ["tini", "--"]
CMD ["mendwork", "--help"]
