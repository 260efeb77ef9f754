"""Reads compose.yaml, and runs its services without a container engine."""

import json
import os
import pathlib
import re
import shutil

import yaml
from checks import ROOT, require, run
from sandbox import Sandbox

HOST = "gateway.example.com"
# The names of the services, and of sites. All programs of a test share one network.
HOSTS = ["broker", "caddy", "prometheus", "grafana", "mosquitto", HOST]
# The gateway and Caddy have addresses of the network `proxy`.
GATEWAY_ADDRESS = "172.30.80.3"

# What the images of the services start, in front of `command`. The images of mosquitto and Caddy start `command` itself.
ENTRY_POINTS = {"gateway": ["coaty-gateway"], "prometheus": ["prometheus"], "broker": [], "caddy": []}


class Project:
    """A copy of the folder `deploy`, with the secrets that `setup` generates, run with the umask of a careful user."""

    def __init__(self, work, gateway, host=HOST):
        self.work, self.gateway = work, gateway
        shutil.copytree(ROOT / "deploy", work / "deploy", ignore=shutil.ignore_patterns("secrets", ".env", "config"))
        self.folder = work / "deploy/compose"
        self.setup = run(self.folder / "setup", "--host", host, umask=0o077)
        self.variables = environment_file(self.folder / ".env")
        text = (self.folder / "compose.yaml").read_text()
        self.model = yaml.safe_load(re.sub(r"\$\{(\w+)(:\?[^}]*)?\}", self._value, text))
        self.services = self.model["services"]

    def _value(self, match):
        require(match[1] in self.variables, f"compose.yaml needs {match[1]}, which setup does not write to .env")
        return json.dumps(self.variables[match[1]])

    def secret(self, name):
        return (self.folder / "secrets" / name).read_text().strip()

    @property
    def tokens(self):
        """The tokens of the operator and of the viewer, as `setup` prints them."""
        return re.findall(r"^ +(coaty_\S+)$", self.setup, re.MULTILINE)

    def sandbox(self, name):
        """Returns the sandbox for a service, with the files, the folders, the user and the environment of its container."""
        service = self.services[name]
        user, _, group = service.get("user", "0:0").partition(":")
        files, folders = {}, {}
        for volume in service.get("volumes", []):
            source, target, *options = volume.split(":")
            if source.startswith("."):
                files[target] = (self.folder / source).resolve()
            else:
                require(source in self.model["volumes"], f"{name}: the volume {source} is not defined")
                folders[target] = self.volume(source)
        for secret in service.get("secrets", []):
            files[f"/run/secrets/{secret}"] = (self.folder / self.model["secrets"][secret]["file"]).resolve()
        if name == "broker" and (broker := os.environ.get("COATY_MOSQUITTO")):
            files["/usr/local/bin/mosquitto"] = pathlib.Path(broker).resolve()
        environment = {key: str(value) for key, value in service.get("environment", {}).items()}
        for path in service.get("env_file", []):
            environment |= environment_file(self.folder / path)
        if name == "gateway":
            # Here all services are in one network namespace, so Caddy's connections come from the address that they go to.
            environment["COATY_GATEWAY_TRUSTED_PROXIES"] = GATEWAY_ADDRESS
        temporary, is_read_only = list(service.get("tmpfs", [])), service.get("read_only", False)
        return Sandbox(
            int(user), int(group), files, folders, temporary, environment, is_read_only, self.gateway if name == "gateway" else None
        )

    def volume(self, name):
        folder = self.work / "volumes" / name
        folder.mkdir(parents=True, exist_ok=True)
        # A new volume belongs to the user of the image.
        folder.chmod(0o777)
        return folder

    def start(self, stack, name, *more):
        """Starts a service. `more` are additional arguments."""
        program = [*ENTRY_POINTS[name], *self.services[name]["command"], *more]
        return self.sandbox(name).start(stack, self.work / f"{name}.log", *program)

    def log(self, name):
        return (self.work / f"{name}.log").read_text(errors="replace")


def environment_file(path):
    lines = (line.strip() for line in path.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
