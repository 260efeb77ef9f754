"""Starts haproxy, nginx and Caddy in front of a gateway."""

import contextlib
import socket
import subprocess
import sys
import time

TIMEOUT = 20
TICK = 0.05


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(log, *command):
    output = open(log, "wb")
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], stdout=output, stderr=output)


def wait_for_port(port, what):
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port), 1).close()
        time.sleep(TICK)
    sys.exit(f"run: {what} did not start to listen within {TIMEOUT} s")


def haproxy(work, gateway, *, mode="http", options="", server=""):
    """Returns the port of a haproxy and its process. `options` are more lines of its section, `server` more options of its server."""
    port = free_port()
    configuration = work / f"haproxy-{port}.cfg"
    configuration.write_text(
        f"""
        defaults
            mode {mode}
            timeout connect 5s
            timeout client 30s
            timeout server 30s
            {"http-reuse always" if mode == "http" else ""}
        listen front
            bind 127.0.0.1:{port}
            {options}
            server gateway 127.0.0.1:{gateway} {server}
        \n"""
    )
    return port, start(work / f"haproxy-{port}.log", "/usr/sbin/haproxy", "-db", "-f", configuration)


def nginx(work, gateway, *, options="", upstream="keepalive 4;"):
    """Returns the port of an nginx and its process. `options` are more directives of its location, `upstream` of its upstream."""
    port = free_port()
    configuration = work / f"nginx-{port}.conf"
    configuration.write_text(
        f"""
        daemon off; master_process off; pid {work}/nginx-{port}.pid; error_log {work}/nginx-error.log;
        events {{ }}
        http {{
            access_log off; client_body_temp_path {work}/body; proxy_temp_path {work}/proxy;
            fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u; scgi_temp_path {work}/s;
            upstream gateway {{ server 127.0.0.1:{gateway}; {upstream} }}
            server {{
                listen 127.0.0.1:{port};
                location / {{ proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection "";
                    proxy_set_header Host $http_host; {options} }}
            }}
        }}
        """
    )
    return port, start(work / f"nginx-{port}.log", "/usr/sbin/nginx", "-c", configuration)


def caddy(work, gateway, *, options="", transport=""):
    """Returns the port of a Caddy and its process. `options` are more directives of its proxy, `transport` of its connections."""
    port = free_port()
    configuration = work / f"Caddyfile-{port}"
    configuration.write_text(
        f"""
        {{
            admin off
            auto_https off
        }}
        http://127.0.0.1:{port} {{
            bind 127.0.0.1
            reverse_proxy 127.0.0.1:{gateway} {{
                {options}
                transport http {{
                    {transport}
                }}
            }}
        }}
        """
    )
    # Caddy stores its configuration in these folders.
    folders = [f"XDG_CONFIG_HOME={work}", f"XDG_DATA_HOME={work}"]
    return port, start(work / f"caddy-{port}.log", "env", *folders, "caddy", "run", "--config", configuration, "--adapter", "caddyfile")
