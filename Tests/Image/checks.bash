# shellcheck shell=bash disable=SC2154 # the variables are those of `run`
# The checks of `run`: each is a function that fails if its check fails, and whose output explains the failure.

size() { podman image inspect --format '{{.Size}}' localhost/coaty-gateway; }

small() {
    echo "$(size) bytes"
    (($(size) <= maximum_size))
}

# Copies the files of the image to $work/image.
unpack() {
    podman create --name "$container" localhost/coaty-gateway
    mkdir "$work/image"
    podman export "$container" | tar -C "$work/image" -x
    podman rm --volumes "$container"
}

# Checks that the image has no shell, no package manager, and no program that gives its caller other rights.
programs() {
    diff <(cd "$work/image" && find . -type f -perm /111 ! -name '*.so*' | sort) \
        <(printf './usr/%s\n' bin/setpriv local/bin/coaty-gateway sbin/mosquitto)
    find "$work/image" -perm /6000 | diff - /dev/null
}

# Checks that scanners find the packages of the libraries, and that the licenses are in the image.
package_list() {
    local names package
    names=$(dpkg-query --admindir "$work/image/var/lib/dpkg" --show --showformat '${Package}\n')
    for package in base-files ca-certificates libc6 libcurl4 libmosquitto1 libssl3 libwebsockets17 libwebsockets-evlib-uv mosquitto; do
        grep -x "$package" <<<"$names"
    done
    for package in $names coaty-gateway; do
        [[ -s $work/image/usr/share/doc/$package/copyright ]]
    done
}

# Checks the certificates of public authorities: the bundle, and the folder with absolute links.
authorities() {
    local folder=$work/image/etc/ssl/certs
    (($(grep -c 'BEGIN CERTIFICATE' "$folder/ca-certificates.crt") > 100))
    (($(find "$folder" -name '*.0' | wc -l) > 100))
    find "$folder" -lname '/*' -printf "$work/image%l\n" | xargs stat
}

version() {
    podman run --rm --network none localhost/coaty-gateway --version >"$work/version"
    grep -x "commit $commit" "$work/version"
    [[ $(podman image inspect --format '{{index .Labels "org.opencontainers.image.revision"}}' localhost/coaty-gateway) == "$commit" ]]
}

# start CONTAINER PODMAN-OPTION... runs the image, and returns when the gateway reports that it listens or is ready.
start() {
    local deadline=$((SECONDS + 60))
    podman run --detach --name "$1" "${@:2}" localhost/coaty-gateway
    until podman logs "$1" 2>&1 | grep -E 'coaty-gateway (ready|listening) on'; do
        if [[ $(podman inspect --format '{{.State.Running}}' "$1") != true ]] || ((SECONDS > deadline)); then
            podman logs "$1"
            return 1
        fi
        sleep 0.2
    done
}

# The image has no programs for a look into a container, so the checks look from the outside.
process() { podman inspect --format '{{.State.Pid}}' "$container"; }

# get CURL-OPTION... runs curl in the network of the container.
get() { nsenter --target "$(process)" --net curl --silent --show-error --max-time 10 "$@"; }

least_privilege() {
    local process
    process=$(process)
    grep -P '^Uid:\t10001\t10001\t10001\t10001$' "/proc/$process/status"
    grep -P '^CapEff:\t0+$' "/proc/$process/status"
    grep -P '^NoNewPrivs:\t1$' "/proc/$process/status"
    touch "/proc/$process/root/tmp/probe"
    { LC_ALL=C touch "/proc/$process/root/probe" 2>&1 || true; } | grep 'Read-only file system'
}

# Checks the library that libwebsockets loads by its name.
event_library() { grep libwebsockets-evlib_uv "/proc/$(process)/maps"; }

# memory FILE writes the resident memory of each process.
memory() {
    local process
    process=$(process)
    for process in "$process" $(pgrep --parent "$process"); do
        awk '/^Name:/ { name = $2 } /^VmRSS:/ { printf "%s %.0f MB, ", name, $2 * 1.024 / 1000 }' "/proc/$process/status"
    done >"$1"
}

discover() {
    memory "$work/memory-after-start"
    get --fail localhost:8080/v1/info >"$work/info.json"
    get --fail "localhost:8080/v1/discover?timeout=500&limit=0" \
        --header 'content-type: application/json' --data '{"coreTypes":["Identity"]}' >"$work/answer.json"
    cat "$work/info.json" "$work/answer.json"
    python3 - "$work/info.json" "$work/answer.json" <<'PYTHON'
import json, sys
info, answer = (json.load(open(path)) for path in sys.argv[1:])
found = [r["data"]["object"]["objectId"] for r in answer["responses"]]
sys.exit(info["identity"]["objectId"] not in found)
PYTHON
    memory "$work/memory-after-discover"
}

published() { curl --silent --show-error --fail --max-time 10 "http://$(podman port "$container" 8080)/readyz"; }

# answers PATH STATUS [CURL-OPTION...] checks the status of a GET.
answers() { [[ $(get --output "$work/body" --write-out '%{http_code}' "${@:3}" "localhost:8080$1") == "$2" ]]; }

# Checks that clients need the token that the gateway has generated and printed.
needs_token() {
    local token
    token=$(podman logs "$container" 2>/dev/null | sed -n 's|^console http://localhost:8080/#token=||p')
    answers /v1/info 401
    answers /v1/info 401 --header "authorization: Bearer ${token%?}"
    answers /v1/info 200 --header "authorization: Bearer $token"
}

without_broker() {
    answers /healthz 200
    answers /readyz 503
    podman healthcheck run "$container"
}

with_broker() {
    local deadline=$((SECONDS + 60))
    podman exec --detach "$container" mosquitto -p 1884
    until answers /readyz 200; do
        cat "$work/body"
        ((SECONDS < deadline))
        sleep 0.2
    done
}

# Checks the health check with a gateway that accepts connections but does not respond.
unhealthy() {
    local status=0
    podman kill --signal STOP "$container"
    timeout 20 podman "${storage[@]}" healthcheck run "$container" || status=$?
    podman kill --signal CONT "$container"
    ((status == 1))
}

stops() {
    podman stop --time 20 "$container"
    podman logs "$container"
    [[ $(podman inspect --format '{{.State.ExitCode}}' "$container") == 0 ]]
    podman rm --volumes "$container"
}

# Starts mosquitto with TLS from the image, and DNS and HTTPS servers in its network.
servers() {
    # Its own authority.
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=DNS:broker.test,DNS:keys.test \
        -keyout "$work/key.pem" -out "$work/certificate.pem"
    # The user of the image reads these files.
    chmod 644 "$work/key.pem"
    printf '%s\n' 'listener 8883 127.0.0.1' 'allow_anonymous true' 'certfile /certificate.pem' 'keyfile /key.pem' >"$work/mosquitto.conf"
    podman run --detach --name "$neighbour" --network none --entrypoint mosquitto --volume "$work/mosquitto.conf:/mosquitto.conf:ro" \
        --volume "$work/certificate.pem:/certificate.pem:ro" --volume "$work/key.pem:/key.pem:ro" \
        localhost/coaty-gateway -c /mosquitto.conf
    nsenter --target "$(podman inspect --format '{{.State.Pid}}' "$neighbour")" --net \
        python3 Tests/Image/servers.py "$work/certificate.pem" "$work/key.pem" "$work/requests" >"$work/servers.log" 2>&1 &
    echo $! >"$work/servers"
    local deadline=$((SECONDS + 20))
    until [[ -e $work/requests ]]; do
        if ((SECONDS > deadline)); then
            cat "$work/servers.log"
            return 1
        fi
        sleep 0.2
    done
}

# Starts the gateway with names instead of addresses, and with the authority among those of the image.
start_with_names() {
    echo 'nameserver 127.0.0.1' >"$work/resolv.conf"
    cat >"$work/gateway.yaml" <<END
broker: mqtts://broker.test
access:
  jwt:
    issuer: https://keys.test
    audience: test
    keys: https://keys.test:8443/keys
END
    start "$container" --network "container:$neighbour" --read-only --tmpfs /tmp --cap-drop ALL \
        --volume "$work/resolv.conf:/etc/resolv.conf:ro" --volume "$work/gateway.yaml:/etc/coaty-gateway/gateway.yaml:ro" \
        --env COATY_GATEWAY_CONFIG=/etc/coaty-gateway/gateway.yaml \
        --volume "$work/certificate.pem:/etc/ssl/certs/$(openssl x509 -noout -hash -in "$work/certificate.pem").0:ro"
}

uses_names() {
    podman logs "$container"
    cat "$work/requests"
    podman logs "$container" 2>/dev/null | grep 'coaty-gateway ready on http://0.0.0.0:8080 (broker mqtts://broker.test:8883)'
    grep '"GET /keys HTTP/1.1" 200' "$work/requests"
}

# Starts a second gateway, which finds the broker of the first one by mDNS.
finds_broker() {
    start "$neighbour" --network "container:$container" --env COATY_GATEWAY_BROKER_DISCOVERY=true --env COATY_GATEWAY_PORT=8081
    podman logs "$neighbour" 2>/dev/null | grep 'coaty-gateway ready on http://0.0.0.0:8081 '
}

removes_neighbour() { podman rm --force --time 5 --volumes "$neighbour"; }

# Writes the times from the start of the container to the ready line, in milliseconds.
start_times() {
    local started ready
    for ((i = 0; i < starts; i++)); do
        start "$container" --network none
        started=$(podman inspect --format '{{.State.StartedAt}}' "$container")
        ready=$(podman logs --timestamps "$container" 2>/dev/null | sed -n 's/ coaty-gateway ready on .*//p')
        podman rm --force --time 5 --volumes "$container"
        echo $((($(date --date "$ready" +%s%N) - $(date --date "${started% UTC}" +%s%N)) / 1000000)) >>"$work/start-times"
    done
}
