# One node. `make image` builds it; docs/packages.md says how to run it.
# BASE is any Debian with Python 3.11 or newer and its venv; tests build on one of their own.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
ARG WHEELS=build/wheels
COPY ${WHEELS} /wheels
RUN python3 -m venv --without-pip /opt/goqueue \
 && python3 -m venv /pip \
 && /pip/bin/pip --python /opt/goqueue/bin/python3 install --no-index --no-deps --no-cache-dir --no-compile /wheels/*.whl \
 && find /opt/goqueue -name tests -type d -prune -exec rm -rf {} + \
 && find /opt/goqueue \( -name '*.pyi' -o -name '*.pxd' -o -name '*.pyx' -o -name '*.h' -o -name '*.c' \) -delete \
 && python3 -m compileall -q -j 0 /opt/goqueue/lib \
 && install -d -o 10001 -g 10001 /var/lib/goqueue

FROM ${BASE}
LABEL org.opencontainers.image.title="GoQueue" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/goqueue /opt/goqueue
COPY --from=build --chown=10001:10001 /var/lib/goqueue /var/lib/goqueue
ENV PATH=/opt/goqueue/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
VOLUME /var/lib/goqueue
EXPOSE 9092 8080 9000
# Whether the event loop answers; a node that opens a big data directory is not there yet.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python3", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/livez', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["goqueue"]
CMD ["serve", "--data-dir", "/var/lib/goqueue/data"]
