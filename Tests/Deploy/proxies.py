"""Checks the examples for HAProxy, nginx and Caddy with their own tools, and in front of a gateway."""

import contextlib
import re
import shutil

from checks import ROOT, Ended, require, require_equal, run, wait
from clients import Client
from project import HOST
from sandbox import Sandbox, start_gateway
from traffic import check_proxy

EXAMPLES = ROOT / "deploy/proxies"
# The timeouts of HAProxy and nginx that end pending requests and quiet streams. Caddy has none.
TIMEOUTS = {
    "proxies/haproxy.cfg": r"timeout (client|server) (\d+)s", "proxies/nginx.conf": r"proxy_(read|send)_timeout (\d+)s",
    "scale/haproxy.cfg": r"timeout (client|server) (\d+)s",
}
TOKEN = "coaty_operator-of-the-proxies"
# The settings that each example asks for.
SETTINGS = ["--trusted-proxies", "127.0.0.1", "--forwarded-header", "x-forwarded-for", "--allowed-hosts", HOST]


def check(checks, work, gateway):
    check_timeouts(checks)
    certificate, key = make_certificate(work)
    pair = work / "gateway.pem"
    pair.write_text(certificate.read_text() + key.read_text())
    pair.chmod(0o644)

    haproxy = Sandbox(files={"/etc/haproxy/coaty-gateway.cfg": EXAMPLES / "haproxy.cfg", "/etc/haproxy/gateway.pem": pair})
    arguments = ["haproxy", "-f", "/etc/haproxy/coaty-gateway.cfg"]
    check_one(checks, work, gateway, "haproxy", haproxy, [*arguments, "-c"], [*arguments, "-db"], certificate)

    nginx = Sandbox(files={"/etc/nginx": nginx_folder(work, certificate, key)}, temporary=["/run", "/var/log/nginx", "/var/lib/nginx"])
    check_one(checks, work, gateway, "nginx", nginx, ["nginx", "-t", "-q"], ["nginx", "-g", "daemon off;"], certificate)

    caddyfile = work / "Caddyfile"
    # Signs the certificate of the name with Caddy's own authority.
    caddyfile.write_text("{\n\tlocal_certs\n\tskip_install_trust\n\tadmin off\n}\n\n" + (EXAMPLES / "Caddyfile").read_text())
    data = work / "caddy"
    data.mkdir(mode=0o777)
    data.chmod(0o777)
    caddy = Sandbox(files={"/etc/caddy/Caddyfile": caddyfile}, folders={"/data": data},
                    environment={"XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/data"})
    arguments = ["--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
    check_one(checks, work, gateway, "caddy", caddy, ["caddy", "validate", *arguments], ["caddy", "run", *arguments],
              data / "caddy/pki/authorities/local/root.crt")


def check_timeouts(checks):
    limits = (ROOT / "docs/limits.md").read_text()
    longest = int(re.search(r"^\| `maximum-timeout` \| (\d+) ", limits, re.MULTILINE)[1]) / 1000
    for name, pattern in TIMEOUTS.items():
        with checks.check(f"proxies: the timeouts of {name} are longer than maximum-timeout of the gateway"):
            found = {kind: int(seconds) for kind, seconds in re.findall(pattern, (ROOT / "deploy" / name).read_text())}
            require_equal(len(found), 2, f"the number of timeouts in {found}")
            require(min(found.values()) > longest, f"{found} is not above {longest:g} s")


def check_one(checks, work, gateway, name, sandbox, validation, program, authority):
    with checks.check(f"{name}: accepts its example"):
        run(*sandbox.command(*validation))
    log = work / f"audit-{name}.log"
    # The other proxies are checked even if this one does not start.
    with contextlib.suppress(Ended), contextlib.ExitStack() as stack:
        with checks.check(f"{name}: serves the gateway", is_needed=True):
            arguments = ["--port", "8080", "--embedded-broker-listen", "127.0.0.1:0", "--audit-log", log, *SETTINGS]
            start_gateway(stack, work / f"gateway-{name}.log", gateway, *arguments, COATY_GATEWAY_TOKEN=TOKEN)
            sandbox.start(stack, work / f"{name}.log", *program)
            wait("the proxy has a certificate", authority.exists)
            client = Client(f"https://{HOST}", token=TOKEN, authority=authority)
            wait("the gateway is ready", lambda: client.request("GET", "/readyz")[0] == 200)
        check_proxy(checks, name, client, log.read_text, stranger="127.0.0.72")


def make_certificate(work):
    certificate, key = work / "certificate.pem", work / "certificate.key"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={HOST}",
        "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", certificate)
    key.chmod(0o644)
    return certificate, key


def nginx_folder(work, certificate, key):
    """Returns a copy of Debian's configuration of nginx, without its sites, with the example and a certificate."""
    folder = work / "nginx"
    folder.mkdir()
    for name in ("nginx.conf", "mime.types"):
        shutil.copy(f"/etc/nginx/{name}", folder / name)
    for name in ("conf.d", "sites-enabled", "modules-enabled", "tls"):
        (folder / name).mkdir()
    shutil.copy(EXAMPLES / "nginx.conf", folder / "conf.d/coaty-gateway.conf")
    shutil.copy(certificate, folder / "tls/gateway.pem")
    shutil.copy(key, folder / "tls/gateway.key")
    return folder
