# Image for `assay serve`, also with `--worker-only`: Python and Chromium, without a compiler, running as a non-root user.
# Chromium's sandbox needs user namespaces, which Docker's default seccomp profile denies. docker-compose.yml
# therefore uses scripts/container/chromium-seccomp.json; see docs/operations.md.

ARG PYTHON=python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

FROM ${PYTHON} AS build
WORKDIR /opt/assay
RUN python -m venv .venv
COPY requirements-bootstrap.lock requirements-all.lock ./
RUN .venv/bin/pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements-bootstrap.lock \
 && .venv/bin/pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements-all.lock
COPY . .
RUN .venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation --editable .

FROM ${PYTHON}
# Debian keeps only the newest security update. If it has replaced this one, the build stops: raise the version here, or
# pass --build-arg CHROMIUM=VERSION.
ARG CHROMIUM=156.0.8078.79-1~deb12u1
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      chromium=${CHROMIUM} chromium-common=${CHROMIUM} chromium-headless-shell=${CHROMIUM} \
      fonts-liberation fonts-noto-core \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 assay \
 && install -d -o assay -g assay /data
COPY --from=build /opt/assay /opt/assay
ENV PATH=/opt/assay/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ASSAY_DATA_DIR=/data
WORKDIR /opt/assay
USER assay
VOLUME /data
EXPOSE 8000
CMD ["assay", "serve", "--host", "0.0.0.0"]
