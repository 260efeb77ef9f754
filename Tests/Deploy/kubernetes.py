"""Checks the Kubernetes manifests, and runs the pod of the Deployment without a cluster."""

import contextlib
import shutil
import subprocess
import sys

import yaml
from checks import ROOT, require, require_equal, run, version, wait
from clients import Client
from project import GATEWAY_ADDRESS
from sandbox import Sandbox

MANIFESTS = ROOT / "deploy/kubernetes"
# The oldest version that the manifests need (unhealthyPodEvictionPolicy), and the newest one that kubernetes-validate knows.
VERSIONS = ["1.27.0", "1.37.0"]
# The kinds that Kubernetes itself does not define.
CUSTOM = {"ServiceMonitor", "ServersTransport"}


def check(checks, work, gateway):
    folder = work / "kubernetes"
    shutil.copytree(MANIFESTS, folder, ignore=shutil.ignore_patterns("secrets"))
    shutil.copytree(folder / "secrets.example", folder / "secrets")
    built = work / "built.yaml"
    with checks.check("kubernetes: kubectl kustomize builds the manifests", is_needed=True):
        # Warnings, such as those of deprecated fields, are failures.
        result = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
        require(result.returncode == 0 and not result.stderr, f"status {result.returncode}: {result.stderr}")
        built.write_text(result.stdout)
        objects = {document["kind"]: document for document in yaml.safe_load_all(result.stdout)}
        expected = {"Namespace", "ServiceAccount", "ConfigMap", "Secret", "Deployment", "Service", "Ingress", "PodDisruptionBudget",
                    "NetworkPolicy", "ServiceMonitor", "HorizontalPodAutoscaler", "ServersTransport"}
        require_equal(set(objects), expected, "the set of kinds")
    for release in VERSIONS:
        with checks.check(f"kubernetes: kubernetes-validate accepts all objects for version {release}"):
            core = work / "core.yaml"
            core.write_text(yaml.safe_dump_all(item for kind, item in objects.items() if kind not in CUSTOM))
            output = run(sys.executable, "-m", "kubernetes_validate", "--strict", "-k", release, core)
            require_equal(output.count(" passed "), len(objects) - len(CUSTOM), "the number of accepted objects")
    with checks.check("kubernetes: the ServiceMonitor follows the definition of the Prometheus Operator"):
        check_monitor(objects["ServiceMonitor"])
    pod = objects["Deployment"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    with checks.check("kubernetes: the pod follows the restricted pod security standard, and has no token of Kubernetes"):
        check_rights(objects, pod["spec"], container, gateway)
    with checks.check("kubernetes: selectors, ports, secrets and configuration of the objects fit each other"):
        check_references(objects, pod, container)
    with checks.check("kubernetes: the autoscaler sets the number of pods, at least two, and its processor time fits the pod"):
        check_autoscaler(objects["HorizontalPodAutoscaler"]["spec"], objects["Deployment"], container)
    with checks.check("kubernetes: the times of the pod fit those of the gateway"):
        check_times(yaml.safe_load(objects["ConfigMap"]["data"]["gateway.yaml"]), pod["spec"], container)
    with contextlib.ExitStack() as stack:
        check_pod(checks, stack, work, gateway, folder, pod["spec"], container)


def check_monitor(monitor):
    from cloudcoil.models.prometheus_operator.v1 import ServiceMonitor

    model = ServiceMonitor.model_validate(monitor)
    # The model ignores unknown members: they are missing in its output.
    require_equal(model.model_dump(mode="json", by_alias=True, exclude_unset=True)["spec"], monitor["spec"], "the known part of the spec")


def check_rights(objects, pod, container, gateway):
    security, own = pod["securityContext"], container["securityContext"]
    require(security["runAsNonRoot"] is True and security["runAsUser"] > 0, "the pod may run as root")
    require_equal(security["seccompProfile"], {"type": "RuntimeDefault"}, "seccompProfile")
    require(own["readOnlyRootFilesystem"] is True and own["allowPrivilegeEscalation"] is False, "the container can write or get rights")
    require_equal(own["capabilities"], {"drop": ["ALL"]}, "capabilities")
    require(pod["automountServiceAccountToken"] is False, "the pod gets a token of Kubernetes")
    require(objects["ServiceAccount"]["automountServiceAccountToken"] is False, "the service account gives its token to pods")
    require(pod["enableServiceLinks"] is False, "the pod gets variables of services")
    require(container["resources"]["limits"]["memory"], "the memory is not limited")
    require_equal(container["image"].rpartition(":")[2], version(gateway), "the version of the image")
    # The standard forbids these.
    require(not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), "the pod uses namespaces of its node")
    kinds = {key for volume in pod["volumes"] for key in volume if key != "name"}
    require(kinds <= {"configMap", "secret", "emptyDir", "projected"}, f"the pod has volumes of the kinds {kinds}")
    require_equal(objects["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted", "the enforced standard")


def check_references(objects, pod, container):
    labels = pod["metadata"]["labels"]
    service, monitor = objects["Service"], objects["ServiceMonitor"]["spec"]
    selectors = {
        "Deployment": objects["Deployment"]["spec"]["selector"]["matchLabels"], "Service": service["spec"]["selector"],
        "PodDisruptionBudget": objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        "NetworkPolicy": objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    }
    for kind, selector in selectors.items():
        require(selector and selector.items() <= labels.items(), f"the selector of the {kind} does not match the pods")
    require(monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(), "the ServiceMonitor misses the service")
    names = {port["name"] for port in container["ports"]}
    services = {port["name"]: port["targetPort"] for port in service["spec"]["ports"]}
    require(set(services.values()) <= names, f"the service uses the ports {services}, the container has {names}")
    require_equal({endpoint["port"] for endpoint in monitor["endpoints"]}, set(services), "the set of ports of the ServiceMonitor")
    backend = objects["Ingress"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    require_equal((backend["name"], backend["port"]["name"] in services), (service["metadata"]["name"], True), "the backend of the Ingress")
    policy = objects["NetworkPolicy"]["spec"]
    require(all(port["port"] in names for rule in policy["ingress"] for port in rule["ports"]), "the NetworkPolicy opens another port")
    require_equal(set(policy["policyTypes"]), {"Ingress", "Egress"}, "the set of policy types")
    secret, configuration = objects["Secret"], objects["ConfigMap"]
    uses = [(variable["valueFrom"]["secretKeyRef"]["name"], variable["valueFrom"]["secretKeyRef"]["key"])
            for variable in container["env"] if "valueFrom" in variable]
    uses += [(volume["secret"]["secretName"], item["key"]) for volume in pod["spec"]["volumes"] if "secret" in volume
             for item in volume["secret"]["items"]]
    uses += [tuple(endpoint["authorization"]["credentials"][key] for key in ("name", "key")) for endpoint in monitor["endpoints"]]
    for name, key in uses:
        require(name == secret["metadata"]["name"] and key in secret["data"], f"there is no {key} in a secret {name}")
    used = [volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume]
    require_equal(used, [configuration["metadata"]["name"]], "the list of configurations of the pod")
    settings = yaml.safe_load(configuration["data"]["gateway.yaml"])
    items = {item["path"] for volume in pod["spec"]["volumes"] if "secret" in volume for item in volume["secret"]["items"]}
    folder = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "secrets")
    files = {settings[name] for name in ("broker-password-file", "cluster-key-file")}
    require_equal(files, {f"{folder}/{path}" for path in items}, "the set of secret files")
    state = next(variable["value"] for variable in container["env"] if variable["name"] == "COATY_GATEWAY_STATE_DIRECTORY")
    require(state in {mount["mountPath"] for mount in container["volumeMounts"]}, f"there is no volume for {state}")
    host = objects["Ingress"]["spec"]["rules"][0]["host"]
    require_equal((settings["allowed-hosts"], objects["Ingress"]["spec"]["tls"][0]["hosts"]), (host, [host]), "the pair of host names")


def check_autoscaler(autoscaler, deployment, container):
    target = {"apiVersion": deployment["apiVersion"], "kind": deployment["kind"], "name": deployment["metadata"]["name"]}
    require_equal(autoscaler["scaleTargetRef"], target, "the target of the autoscaler")
    require("replicas" not in deployment["spec"], "the Deployment sets the number of pods too")
    require(2 <= autoscaler["minReplicas"] < autoscaler["maxReplicas"], "the autoscaler may leave fewer than two pods, or adds none")
    resources = {metric["resource"]["name"] for metric in autoscaler["metrics"]}
    require(resources <= set(container["resources"]["requests"]), f"the container does not request {resources}")


def check_times(settings, pod, container):
    readiness = container["readinessProbe"]
    # As in docs/operations.md, with one interval as a margin.
    needed = (readiness["failureThreshold"] + 1) * readiness["periodSeconds"]
    require(settings["drain-delay"] >= needed, f"drain-delay is below {needed} s")
    require(settings["drain-delay"] <= settings["stop-timeout"] - 8, "drain-delay leaves no time for the stop")
    require(pod["terminationGracePeriodSeconds"] > settings["stop-timeout"], "Kubernetes does not wait for stop-timeout")


def check_pod(checks, stack, work, gateway, folder, pod, container):
    """Starts the container of the pod with its user, mounts and variables, and mosquitto with the account and ACL of compose."""
    with checks.check("kubernetes: the container starts, read-only and as its user", is_needed=True):
        accounts = work / "accounts"
        accounts.touch()
        run("mosquitto_passwd", "-b", accounts, "gateway", (folder / "secrets/broker-password").read_text())
        accounts.chmod(0o644)
        broker = Sandbox(files={
            "/run/secrets/broker_accounts": accounts,
            "/mosquitto/config/acl": ROOT / "deploy/compose/mosquitto/acl",
            "/mosquitto/config/mosquitto.conf": ROOT / "deploy/compose/mosquitto/mosquitto.conf",
        })
        broker.start(stack, work / "broker.log", "mosquitto", "-c", "/mosquitto/config/mosquitto.conf")
        sandbox_of_pod(work, gateway, folder, pod, container).start(stack, work / "gateway.log", "coaty-gateway", *container["args"])
        probe = Client(f"http://{GATEWAY_ADDRESS}:8080", address=GATEWAY_ADDRESS)
        wait("the gateway listens", lambda: probe.request("GET", "/healthz"))
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        with checks.check(f"kubernetes: the {name} succeeds"):
            path = container[name]["httpGet"]["path"]
            require_equal(container[name]["httpGet"]["port"], container["ports"][0]["name"], "the port of the probe")
            wait(f"{path} responds with 200", lambda: probe.request("GET", path)[0] == 200, 15)
    with checks.check("kubernetes: the tokens of the secret have their roles"):
        secrets = folder / "secrets"
        operator, metrics = (
            Client(f"http://{GATEWAY_ADDRESS}:8080", address=GATEWAY_ADDRESS, token=(secrets / name).read_text())
            for name in ("token", "metrics-token")
        )
        require_equal(probe.request("GET", "/metrics")[0], 401, "the status of /metrics without a token")
        require_equal(metrics.request("GET", "/metrics")[0], 200, "the status of /metrics for Prometheus")
        require_equal(metrics.request("GET", "/v1/agents")[0], 403, "the status of /v1/agents for Prometheus")
        operator.publish("deploy", "from the pod")


def sandbox_of_pod(work, gateway, folder, pod, container):
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    sandbox = Sandbox(pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"], gateway=gateway,
                      is_read_only=container["securityContext"]["readOnlyRootFilesystem"])
    for mount in container["volumeMounts"]:
        volume, target = volumes[mount["name"]], mount["mountPath"]
        if "configMap" in volume:
            sandbox.files[f"{target}/gateway.yaml"] = folder / "gateway.yaml"
        elif "secret" in volume:
            for item in volume["secret"]["items"]:
                sandbox.files[f"{target}/{item['path']}"] = folder / "secrets" / item["key"]
        else:
            sandbox.temporary.append(target)
    for variable in container["env"]:
        sandbox.environment[variable["name"]] = variable.get("value") or (folder / "secrets/token").read_text()
    return sandbox
