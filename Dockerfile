# syntax=docker/dockerfile:1
# gang-extender: a wheel built in one stage, installed in the next; non-root, fit for a read-only root file system.

FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/gang-extender
COPY constraints.txt .
COPY pyproject.toml setup.cfg README.md LICENSE ./
COPY extender extender
# Wheels only: nothing is compiled, and no package's setup script runs, but our own.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && /opt/gang-extender/bin/pip install --no-cache-dir --only-binary=:all: \
        --constraint constraints.txt "gang-extender[server] @ file://$(ls /wheels/*.whl)" \
    && /opt/gang-extender/bin/pip uninstall --yes --quiet pip

FROM python:3.13-slim
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
