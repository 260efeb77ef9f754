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
RUN swift build -c release --static-swift-stdlib --product coaty-gateway \
    && install -D "$(swift build -c release --static-swift-stdlib --show-bin-path)/coaty-gateway" /out/coaty-gateway \
    && strip /out/coaty-gateway

FROM ${RUNTIME_IMAGE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates libavahi-core7 libcjose0 libcurl4 libmicrohttpd12 libmosquitto1 libssl3 libwebsockets17 \
        libwebsockets-evlib-uv mosquitto \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/coaty-gateway /usr/local/bin/coaty-gateway
# A new volume gets the owner of this folder.
RUN install -d -m 700 -o 10001 -g 10001 /var/lib/coaty-gateway

USER 10001:10001
# The gateway listens on all addresses. Access is then open only with the embedded broker, which only the gateway reaches. With
# another broker, clients need a token: COATY_GATEWAY_TOKEN, or the token that the gateway generates at each start and prints. Set
# COATY_GATEWAY_TOKEN at run time: a token that is set here would be in the image.
ENV COATY_GATEWAY_HOST=0.0.0.0 \
    COATY_GATEWAY_STATE_DIRECTORY=/var/lib/coaty-gateway
VOLUME /var/lib/coaty-gateway
EXPOSE 8080
# The base image has no HTTP client, but bash can open TCP connections. The check reports whether the gateway runs, not whether it
# reaches its broker: a restart would not bring a broker back. /healthz needs no token. The check can't use TLS: with a certificate,
# set COATY_GATEWAY_PLAIN_PORT, which the check then uses.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["bash", "-c", "exec 3<>\"/dev/tcp/127.0.0.1/${COATY_GATEWAY_PLAIN_PORT:-${COATY_GATEWAY_PORT:-8080}}\" && printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -rt 2 _ status _ <&3 && [[ $status == 200 ]]"]
ENTRYPOINT ["coaty-gateway"]
