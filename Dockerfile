ARG BUILD_IMAGE=docker.io/library/swift:6.3-bookworm

FROM ${BUILD_IMAGE} AS build
# The image gets libraries and programs of this stage, with the security updates of Debian.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get upgrade -y \
    && apt-get install -y --no-install-recommends \
        ca-certificates libavahi-core-dev libcjose-dev libcurl4-openssl-dev libmicrohttpd-dev libmosquitto-dev libssl-dev \
        libwebsockets-dev libwebsockets-evlib-uv libyaml-dev mosquitto pkg-config zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# The dependencies change less often than the sources.
COPY Package.swift ./
RUN swift package resolve
COPY . .
# The commit that --version prints.
ARG COATY_COMMIT=unknown
RUN swift build -c release --static-swift-stdlib --product coaty-gateway \
    && strip -o /coaty-gateway "$(swift build -c release --static-swift-stdlib --show-bin-path)/coaty-gateway" \
    && deploy/image-root /coaty-gateway /image

# No distribution: only the files that the gateway needs. There is no shell; docs/operations.md describes how to look into a container.
FROM scratch
ARG COATY_COMMIT=unknown
COPY --from=build /image /

LABEL org.opencontainers.image.title="coaty-gateway" \
    org.opencontainers.image.description="Gives HTTP and WebSocket clients access to a Coaty network" \
    org.opencontainers.image.licenses="MIT" \
    org.opencontainers.image.revision="${COATY_COMMIT}"
USER 10001:10001
# The gateway listens on all addresses. Access is then open only with the embedded broker, which only the gateway reaches. With
# another broker, clients need a token: COATY_GATEWAY_TOKEN, or the token that the gateway generates at each start and prints. Set
# COATY_GATEWAY_TOKEN at run time: a token that is set here would be in the image.
ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin \
    COATY_GATEWAY_HOST=0.0.0.0 \
    COATY_GATEWAY_STATE_DIRECTORY=/var/lib/coaty-gateway
VOLUME /var/lib/coaty-gateway
EXPOSE 8080
# The check reports whether the gateway runs, not whether it reaches its broker: a restart would not bring a broker back. It reads the
# settings of the environment. A gateway that requires client certificates needs COATY_GATEWAY_PLAIN_PORT, which the check then uses.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["coaty-gateway", "healthcheck"]
ENTRYPOINT ["coaty-gateway"]
