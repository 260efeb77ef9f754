ARG BUILD_IMAGE=docker.io/library/swift:6.3-bookworm
ARG RUNTIME_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
# Versions are those of Debian stable with its security updates.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libavahi-core-dev libcjose-dev libcurl4-openssl-dev libmicrohttpd-dev libmosquitto-dev libssl-dev \
        libwebsockets-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The dependencies change less often than the sources.
COPY Package.swift ./
RUN swift package resolve
COPY . .
# The commit that --version prints.
ARG COATY_COMMIT=unknown
RUN swift build -c release --static-swift-stdlib --product coaty-gateway \
    && install -D "$(swift build -c release --static-swift-stdlib --show-bin-path)/coaty-gateway" /out/coaty-gateway \
    && strip /out/coaty-gateway

FROM ${RUNTIME_IMAGE}
ARG COATY_COMMIT=unknown
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libavahi-core7 libcjose0 libcurl4 libmicrohttpd12 libmosquitto1 libssl3 libwebsockets17 \
        libwebsockets-evlib-uv mosquitto \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/coaty-gateway /usr/local/bin/coaty-gateway
# A new volume gets the owner of this folder.
RUN install -d -m 700 -o 10001 -g 10001 /var/lib/coaty-gateway

LABEL org.opencontainers.image.title="coaty-gateway" \
    org.opencontainers.image.description="Gives HTTP and WebSocket clients access to a Coaty network" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.revision="${COATY_COMMIT}"
USER 10001:10001
# The gateway listens on all addresses. Access is then open only with the embedded broker, which only the gateway reaches. With
# another broker, clients need a token: COATY_GATEWAY_TOKEN, or the token that the gateway generates at each start and prints. Set
# COATY_GATEWAY_TOKEN at run time: a token that is set here would be in the image.
ENV COATY_GATEWAY_HOST=0.0.0.0 \
    COATY_GATEWAY_STATE_DIRECTORY=/var/lib/coaty-gateway
VOLUME /var/lib/coaty-gateway
EXPOSE 8080
# The check reports whether the gateway runs, not whether it reaches its broker: a restart would not bring a broker back. It reads the
# settings of the environment. A gateway that requires client certificates needs COATY_GATEWAY_PLAIN_PORT, which the check then uses.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["coaty-gateway", "healthcheck"]
ENTRYPOINT ["coaty-gateway"]
