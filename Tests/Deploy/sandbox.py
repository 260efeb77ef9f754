"""Runs a program with the files, the user and the read-only root that its container has, by bubblewrap.

The program sees the system's /usr and the given mounts, and nothing else of this machine. All programs of a test run share the network,
which is separate from that of the machine.
"""

import dataclasses
import os
import pathlib
import re
import subprocess

# Files of the system that programs need in addition to /usr.
SYSTEM = ["/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/nsswitch.conf", "/etc/ssl", "/etc/passwd",
          "/etc/group", "/etc/mime.types"]


@dataclasses.dataclass
class Sandbox:
    """`files` and `folders` map a path in the sandbox to one of this machine; programs can change only folders.

    `gateway` is the gateway program, which gets the path /usr/local/bin/coaty-gateway.
    """

    user: int = 65534
    group: int = 65534
    files: dict = dataclasses.field(default_factory=dict)
    folders: dict = dataclasses.field(default_factory=dict)
    temporary: list = dataclasses.field(default_factory=list)
    environment: dict = dataclasses.field(default_factory=dict)
    is_read_only: bool = True
    gateway: pathlib.Path | None = None

    def command(self, *program):
        arguments = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
        arguments += ["--uid", self.user, "--gid", self.group, "--proc", "/proc", "--dev", "/dev"]
        # All of /usr except /usr/local, which gets the gateway.
        for entry in sorted(pathlib.Path("/usr").iterdir()):
            if entry.name != "local" and entry.is_dir():
                arguments += ["--ro-bind", entry, entry]
        for name in ("bin", "sbin", "lib", "lib64"):
            arguments += ["--symlink", f"usr/{name}", f"/{name}"]
        for path in SYSTEM:
            arguments += ["--ro-bind-try", path, path]
        if self.gateway:
            arguments += ["--ro-bind", self.gateway, "/usr/local/bin/coaty-gateway"]
            for folder in library_folders(self.gateway):
                arguments += ["--ro-bind", folder, folder]
        # Mounts on outer folders come before mounts on inner folders.
        mounts = [(target, "--ro-bind", source) for target, source in self.files.items()]
        mounts += [(target, "--bind", source) for target, source in self.folders.items()]
        mounts += [(target, "--tmpfs", None) for target in self.temporary]
        for target, kind, source in sorted(mounts, key=lambda mount: str(mount[0])):
            arguments += [kind, target] if source is None else [kind, source, target]
        if self.is_read_only:
            arguments += ["--remount-ro", "/"]
        arguments += ["--chdir", "/", "--clearenv"]
        environment = {"PATH": "/usr/local/bin:/usr/bin:/usr/sbin"} | self.environment
        for name, value in environment.items():
            arguments += ["--setenv", name, value]
        return [*map(str, arguments), "--", *map(str, program)]

    def start(self, stack, log, *program):
        """Starts a program, which ends with `stack`."""
        return start(stack, log, *self.command(*program))


def library_folders(program):
    """Returns the folders of the libraries of a program that are not among the system's: those of the Swift toolchain."""
    output = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    folders = {pathlib.Path(path).parent for path in re.findall(r"=> (/\S+)", output)}
    return sorted(folder for folder in folders if not re.match(r"/(usr/)?lib(64)?(/|$)", str(folder)))


def start_gateway(stack, log, gateway, *arguments, **environment):
    """Starts a gateway without a sandbox: signals reach it."""
    # In the user namespace of the test, the gateway would consider itself root and start its broker as another user.
    return start(stack, log, gateway, *arguments, environment=environment, prefix=["unshare", "--user", "--map-user=65534", "--"])


def start(stack, log, *command, environment=None, prefix=()):
    """Starts a process that writes to `log` and ends with `stack`. `environment` is added to that of the test."""
    output = stack.enter_context(open(log, "wb"))
    command = [*prefix, "setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]
    process = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | (environment or {}))

    def stop():
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(stop)
    return process
