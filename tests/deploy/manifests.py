"""Checks everything in deploy/ that a cluster or systemd would read, without either.

    WICK=build/wick python3 tests/deploy/manifests.py TOOLS

Each kustomization is built, the chart rendered with several values, and every object compared with the
schemas that Kubernetes publishes, for the oldest and the newest version that they are for; PodMonitors
with the operator's own definition. The configuration in each ConfigMap must be what `wick agent
--check-config` takes; every metric of the dashboard must exist in the agent's sources.

TOOLS is a directory where pinned tools are kept: Kubernetes' schemas in a Python environment, helm and the
operator's definitions by `go`. What can't be had is skipped and said; exits 1 if a check fails.
"""

import copy
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WICK = os.path.abspath(os.environ.get("WICK", os.path.join(ROOT, "build", "wick")))

SCHEMAS = "kubernetes-validate==1.37.0"
HELM = "helm.sh/helm/v3/cmd/helm@v3.17.0"
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.78.2"
VERSIONS = ("1.30", "1.37")  # of Kubernetes; before 1.30, appArmorProfile is dropped with a warning
CAPABILITIES = {"BPF", "PERFMON", "SYS_PTRACE", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "SYSLOG"}
EXPOSURE = 35  # of the unit, in tenths of systemd's own measure: "OK" ends at 49
TOKEN = "0123456789abcdef0123456789abcdef"

failures = []


def check(condition, message):
    if not condition:
        failures.append(message)
        print(f"FAIL {message}")


def run(*argv, **kwargs):
    return subprocess.run(argv, capture_output=True, text=True, **kwargs)


# ---- tools ----


def python_with_schemas(tools):
    """A Python that has them, or None."""
    python = os.path.join(tools, "venv", "bin", "python")
    if not os.path.exists(python):
        run(sys.executable, "-m", "venv", os.path.join(tools, "venv"))
        run(python, "-m", "pip", "install", "-q", SCHEMAS)
    done = run(python, "-c", "import kubernetes_validate")
    return python if done.returncode == 0 else None


def go_program(tools, module, name):
    path = os.path.join(tools, "bin", name)
    if not os.path.exists(path) and shutil.which("go"):
        env = dict(os.environ, GOBIN=os.path.join(tools, "bin"), GOFLAGS="-mod=mod")
        run("go", "install", module, env=env, cwd=tools)
    return path if os.path.exists(path) else None


def pod_monitor_schema(tools, yaml):
    """The OpenAPI schema of version v1, or None."""
    if not shutil.which("go"):
        return None
    done = run("go", "mod", "download", "-json", OPERATOR, cwd=tools)
    if done.returncode:
        return None
    path = os.path.join(json.loads(done.stdout)["Dir"], "example", "prometheus-operator-crd",
                        "monitoring.coreos.com_podmonitors.yaml")
    with open(path) as f:
        versions = yaml.safe_load(f)["spec"]["versions"]
    return strict(next(v for v in versions if v["name"] == "v1")["schema"]["openAPIV3Schema"])


def strict(schema):
    """No property that isn't listed, as the API server prunes those."""
    schema = copy.deepcopy(schema)
    if isinstance(schema, dict):
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        for key, value in schema.items():
            if key == "properties":
                schema[key] = {name: strict(s) for name, s in value.items()}
            elif key in ("items", "additionalProperties"):
                schema[key] = strict(value)
    return schema


# ---- objects ----


def check_objects(name, text, yaml, schema):
    import jsonschema
    import kubernetes_validate

    objects = [o for o in yaml.safe_load_all(text) if o]
    for o in objects:
        what = f"{name}: {o['kind']}/{o['metadata']['name']}"
        if o["kind"] == "PodMonitor":
            if schema:
                body = {k: v for k, v in o.items() if k not in ("apiVersion", "kind", "metadata")}
                inner = dict(schema, properties={"spec": schema["properties"]["spec"]})
                errors = jsonschema.Draft7Validator(inner).iter_errors(body)
                for e in errors:
                    check(False, f"{what}: {e.message}")
            continue
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(o, version, strict=True)
            except kubernetes_validate.ValidationError as e:
                check(False, f"{what}: not of Kubernetes {version}: {e.message}")
    print(f"ok   {name}: {len(objects)} objects")
    return objects


def only(objects, kind):
    found = [o for o in objects if o["kind"] == kind]
    check(len(found) == 1, f"{len(found)} objects of kind {kind}")
    return found[0]


def check_set(name, objects, privileged):
    """What hangs together between the objects of one installation."""
    daemons = only(objects, "DaemonSet")
    pod = daemons["spec"]["template"]
    container = pod["spec"]["containers"][0]
    security = container["securityContext"]
    check(bool(security["privileged"]) == privileged, f"{name}: privileged")
    if not privileged:
        check(set(security["capabilities"]["add"]) == CAPABILITIES, f"{name}: capabilities")
        check(security["capabilities"]["drop"] == ["ALL"], f"{name}: nothing is dropped")
    labels = pod["metadata"]["labels"]
    selector = daemons["spec"]["selector"]["matchLabels"]
    check(selector and selector.items() <= labels.items(), f"{name}: the selector selects nothing")
    for monitor in [o for o in objects if o["kind"] == "PodMonitor"]:
        wanted = monitor["spec"]["selector"]["matchLabels"]
        check(wanted and wanted.items() <= labels.items(), f"{name}: the PodMonitor selects nothing")
    for volume in pod["spec"]["volumes"]:
        for kind, key in (("configMap", "name"), ("secret", "secretName")):
            if kind in volume:
                names = [o["metadata"]["name"] for o in objects if o["kind"].lower() == kind.lower()]
                check(volume[kind][key] in names or "mine" in volume[kind][key],
                      f"{name}: no {kind} {volume[kind][key]}")
    check_config(name, objects)


def check_config(name, objects):
    """The ConfigMap's file, with its secrets where they are in the pod."""
    texts = [o["data"]["agent.yaml"] for o in objects
             if o["kind"] == "ConfigMap" and "agent.yaml" in o["data"]]
    check(len(texts) == 1, f"{name}: {len(texts)} configurations")
    with tempfile.TemporaryDirectory() as secrets:
        for file in ("token", "password"):
            with open(os.path.join(secrets, file), "w") as f:
                f.write(TOKEN)
        path = os.path.join(secrets, "agent.yaml")
        with open(path, "w") as f:
            f.write(texts[0].replace("/etc/wick/secrets", secrets))
        done = run(WICK, "agent", "--config", path, "--check-config")
        check(done.returncode == 0, f"{name}: {done.stderr.strip()}")
        check(TOKEN not in done.stdout, f"{name}: a secret is printed")


# ---- kustomize, helm ----


def check_kustomize(yaml, schema):
    if not shutil.which("kubectl"):
        print("skip kustomizations: no kubectl")
        return
    with tempfile.TemporaryDirectory() as directory:
        tree = os.path.join(directory, "kubernetes")
        shutil.copytree(os.path.join(ROOT, "deploy", "kubernetes"), tree,
                        ignore=shutil.ignore_patterns("token"))
        done = run("kubectl", "kustomize", os.path.join(tree, "base"))
        check(done.returncode and "token" in done.stderr, "kustomize: builds without a token")
        with open(os.path.join(tree, "base", "token"), "w") as f:
            f.write(TOKEN)
        for name in ("base", "overlays/privileged", "overlays/prometheus"):
            done = run("kubectl", "kustomize", os.path.join(tree, name))
            check(done.returncode == 0, f"kustomize {name}: {done.stderr.strip()}")
            if done.returncode == 0:
                objects = check_objects(f"kustomize {name}", done.stdout, yaml, schema)
                check_set(name, objects, privileged=name.endswith("privileged"))


VALUES = {
    "defaults": {},
    "all": {"podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "dashboard": {"enabled": True}, "secrets": {"password": "secret"}, "token": TOKEN,
            "config": {"push": [{"url": "pyroscope+https://profiles.example.com", "user": "me",
                                 "password_file": "/etc/wick/secrets/password"}],
                       "labels": {"cluster": "eu-1"}, "freq": 49}},
    "privileged": {"privileged": True, "spoolPath": "", "existingSecret": "mine",
                   "priorityClass": {"create": False, "name": "system-node-critical"}},
    "kubelet": {"config": {"kubernetes": {"mode": "kubelet", "insecure": True}}},
}


def check_helm(helm, yaml, schema):
    chart = os.path.join(ROOT, "deploy", "helm", "wick")
    done = run(helm, "lint", "--strict", chart)
    check(done.returncode == 0, f"helm lint: {done.stdout}{done.stderr}")
    for name, values in VALUES.items():
        done = run(helm, "template", "w", chart, "-n", "wick", "--kube-version", VERSIONS[0],
                   "-f", "-", input=json.dumps(values))
        check(done.returncode == 0, f"helm {name}: {done.stderr.strip()}")
        if done.returncode == 0:
            objects = check_objects(f"helm {name}", done.stdout, yaml, schema)
            check_set(f"helm {name}", objects, privileged=name == "privileged")
    done = run(helm, "template", "w", chart, "--kube-version", VERSIONS[0], "--set", "tokne=x")
    check(done.returncode != 0, "helm: takes a value that it doesn't know")


# ---- the rest ----


def check_unit():
    if not shutil.which("systemd-analyze"):
        print("skip the unit: no systemd-analyze")
        return
    unit = os.path.join(ROOT, "deploy", "systemd", "wick-agent.service")
    with tempfile.TemporaryDirectory() as directory:
        with open(unit) as f:
            text = f.read()
        named = set(re.search(r"^AmbientCapabilities=(.*)$", text, re.M).group(1).split())
        check(named == {"CAP_" + c for c in CAPABILITIES}, "unit: capabilities")
        path = os.path.join(directory, "wick-agent.service")
        with open(path, "w") as f:
            f.write(text.replace("/usr/bin/wick", WICK))
        done = run("systemd-analyze", "verify", path)
        said = [line for line in done.stderr.splitlines() if "wick-agent" in line]
        check(not said, f"unit: {said}")
        done = run("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE}", path)
        check(done.returncode == 0, f"unit: {done.stdout.splitlines()[-1:]}")
    print("ok   systemd unit")


def check_dashboard():
    with open(os.path.join(ROOT, "deploy", "grafana", "wick.json")) as f:
        dashboard = json.load(f)
    sources = ""
    for path in glob.glob(os.path.join(ROOT, "src", "agent", "*.c")):
        with open(path) as f:
            sources += f.read()
    known = set(re.findall(r'"((?:wick|process)_[a-z0-9_]+)"', sources))
    used = set()
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            used |= set(re.findall(r"\b(?:wick|process)_[a-z0-9_]+", target["expr"]))
    missing = {m for m in used if m not in known and re.sub(r"_bucket$", "", m) not in known}
    check(used and not missing, f"dashboard: the agent has no {sorted(missing)}")
    print(f"ok   dashboard: {len(dashboard['panels'])} panels, {len(used)} metrics")


def main():
    tools = os.path.abspath(sys.argv[1])
    os.makedirs(tools, exist_ok=True)
    python = python_with_schemas(tools)
    if python and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(tools, "venv")):
        os.execv(python, [python, os.path.abspath(__file__), tools])
    check_unit()
    check_dashboard()
    if not python:
        print(f"skip manifests: {SCHEMAS} can't be installed")
    else:
        import yaml

        schema = pod_monitor_schema(tools, yaml)
        if not schema:
            print(f"skip PodMonitor's schema: {OPERATOR} can't be had")
        check_kustomize(yaml, schema)
        helm = go_program(tools, HELM, "helm")
        if helm:
            check_helm(helm, yaml, schema)
        else:
            print(f"skip the chart: {HELM} can't be installed")
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
