# syntax=docker/dockerfile:1
# gang-extender: a wheel built in one stage, installed in the next; non-root, fit for a read-only root file system.

# python:3.13-slim; `docker buildx imagetools inspect python:3.13-slim` tells the digest of today's.
ARG BASE=python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
FROM ${BASE} AS build
WORKDIR /src
# Wheels only, by their hashes: nothing is compiled, and no package's setup script runs, but our own.
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.txt requirements-build.txt ./
RUN python -m venv /opt/gang-extender \
    && /opt/gang-extender/bin/pip install --only-binary=:all: --require-hashes -r requirements.txt \
    && python -m venv /build \
    && /build/bin/pip install --only-binary=:all: --require-hashes -r requirements-build.txt
COPY pyproject.toml setup.cfg README.md LICENSE ./
COPY build_backend build_backend
COPY extender extender
RUN /build/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /wheels . \
    && /opt/gang-extender/bin/pip install --no-deps --no-index /wheels/*.whl \
    && /opt/gang-extender/bin/pip uninstall --yes --quiet pip

FROM ${BASE}
LABEL org.opencontainers.image.title="gang-extender" \
      org.opencontainers.image.description="Gang scheduling for the stock kube-scheduler, as an HTTP scheduler extender" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/gang-extender /opt/gang-extender
ENV PATH=/opt/gang-extender/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /tmp
EXPOSE 8889
ENTRYPOINT ["gang-extender"]
CMD ["serve"]
