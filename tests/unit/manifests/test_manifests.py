"""The manifests agree with each other and with the rules that are never broken; the API server judges the rest in e2e."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.api.metadata_keys import Record, Source
from extender.cli import serve
from extender.config.durations import parse_go_duration
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import NamespacedName
from extender.plugins.coscheduling.backfill.backfill_nodes import DAEMON_SET
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.sources.source import KOORDINATOR, LIGHTWEIGHT, OBJECTS, presets
from extender.scheduler.actions.bell import NAME
from extender.scheduler.filter_health import USELESS_SECONDS
from extender.scheduler.health import KUBE_SCHEDULER
from extender.server.options import ServeOptions
from tests.declared_keys import declared_keys
from tests.documented import configuration_in

STOP_SECONDS = 3  # gunicorn's master gives the worker so much beyond its drain
MANIFESTS = Path(__file__).parents[3] / "manifests"
FILES = sorted(MANIFESTS.rglob("*.yaml"))
COPIED = (MANIFESTS / "kubeadm" / "nodes", MANIFESTS / "service" / "nodes")  # to the disks of control-plane nodes


def documents(path: str) -> list[Any]:
    return [document for document in yaml.safe_load_all((MANIFESTS / path).read_text()) if document]


SCHEDULER = documents("sidecar/kube-scheduler.yaml")[0]
EXTENDER = documents("sidecar/extender.yaml")[0]
DEPLOYMENT = documents("sidecar/deployment.yaml")[0]
POD = DEPLOYMENT["spec"]["template"]["spec"]
CONTAINERS = {container["name"]: container for container in POD["containers"]}
QUICK, BIND = SCHEDULER["extenders"]


def seconds(duration: str) -> int:
    match = re.fullmatch(r"([0-9]+)s", duration)
    assert match, duration
    return int(match[1])


def rules() -> Iterator[dict[str, Any]]:
    for document in documents("rbac/extender.yaml"):
        yield from document.get("rules", [])


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(MANIFESTS)))
def test_a_file_begins_with_what_it_is_for(file: Path) -> None:
    assert file.name == "kustomization.yaml" or file.read_text().startswith("# ")


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.parent not in COPIED], ids=lambda file: str(file.relative_to(MANIFESTS))
)
def test_every_manifest_is_installed_by_the_kustomization_beside_it(file: Path) -> None:
    kustomization = yaml.safe_load((file.parent / "kustomization.yaml").read_text())
    generated = [
        name for generator in kustomization.get("configMapGenerator", []) for name in generator.get("files", [])
    ]
    assert file.name in [*kustomization["resources"], *generated, "kustomization.yaml"]


@pytest.mark.parametrize(
    "folder", [folder for folder in MANIFESTS.iterdir() if folder.name != "examples"], ids=lambda each: each.name
)
def test_all_that_is_installed_can_be_found_by_one_label(folder: Path) -> None:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert kustomization["labels"] == [{"pairs": {"app.kubernetes.io/part-of": "gang-extender"}}]


GATED = documents("gate/groups.yaml")[0]["data"]
NAMED = documents("scheduler-name/groups.yaml")[0]["data"]


def test_the_gate_is_for_all_that_count_as_members_without_configuration_and_for_no_others() -> None:
    """The pair of labels is in the policy itself."""
    labels, sources = GroupLabels(), (*OBJECTS, KOORDINATOR)
    by_label = {*labels.names, *(each.group for each in sources if each.group.source is Source.LABEL)}
    by_annotation = {each.group for each in sources if each.group.source is Source.ANNOTATION}
    assert set(GATED["groupLabels"].split()) == by_label
    assert set(GATED["groupAnnotations"].split()) == by_annotation
    assert GATED["schedulerNames"].split() == EXTENDER["schedulerNames"]
    assert GATED["schedulingGroup"] == str(CoschedulingArgs().in_tree_pod_groups).lower()
    policy = (MANIFESTS / "gate" / "policy.yaml").read_text()
    assert all(f"'{key}'" in policy for key in LIGHTWEIGHT.read_keys())


def test_the_keys_of_presets_are_named_where_they_would_be_added() -> None:
    text = (MANIFESTS / "gate" / "groups.yaml").read_text()
    assert all(source.group in text for source in presets())


def test_the_name_that_is_set_is_served() -> None:
    assert NAMED["schedulerName"] in EXTENDER["schedulerNames"]
    assert set(NAMED["groupLabels"].split()) <= set(GATED["groupLabels"].split())


def test_the_overlay_for_another_name_differs_in_that_name_alone() -> None:
    name = "scheduler-plugins-scheduler"
    scheduler, extender = (
        documents("scheduler-plugins/kube-scheduler.yaml")[0],
        documents("scheduler-plugins/extender.yaml")[0],
    )
    assert scheduler == {**SCHEDULER, "profiles": [*SCHEDULER["profiles"], {"schedulerName": name}]}
    assert extender == {**EXTENDER, "schedulerNames": [*EXTENDER["schedulerNames"], name]}


def with_lease(lease: str) -> tuple[Any, Any]:
    """The two files of manifests/sidecar for another Lease."""
    namespace, _, name = lease.partition("/")
    election = {**SCHEDULER["leaderElection"], "resourceNamespace": namespace, "resourceName": name}
    return {**SCHEDULER, "leaderElection": election}, {**EXTENDER, "leaderLease": lease}


def test_the_overlay_for_another_namespace_differs_in_the_lease_alone() -> None:
    folder = "other-namespace/moved"
    assert (documents(f"{folder}/kube-scheduler.yaml")[0], documents(f"{folder}/extender.yaml")[0]) == with_lease(
        "gang-system/gang-scheduler"
    )


def test_kubeadm_s_files_differ_in_lease_name_and_kubeconfig_and_offer_every_node() -> None:
    """All single pods of a cluster are placed by them."""
    name, folder, every = "default-scheduler", "kubeadm/nodes", {"percentageOfNodesToScore": 100}
    scheduler, extender = with_lease("kube-system/kube-scheduler")
    connection = {**SCHEDULER["clientConnection"], "kubeconfig": "/etc/kubernetes/scheduler.conf"}
    assert documents(f"{folder}/kube-scheduler.yaml")[0] == {
        **scheduler,
        **every,
        "clientConnection": connection,
        "profiles": [{"schedulerName": name}],
    }
    assert documents(f"{folder}/extender.yaml")[0] == {**extender, **every, "schedulerNames": [name]}


def test_kubeadm_s_static_pod_finds_the_files_that_are_copied() -> None:
    (cluster,) = documents("kubeadm/nodes/cluster-configuration.yaml")
    (config,) = cluster["scheduler"]["extraArgs"]
    (volume,) = cluster["scheduler"]["extraVolumes"]
    assert Path(config["value"]) == Path(volume["mountPath"]) / "kube-scheduler.yaml"
    (pod,) = documents("kubeadm/nodes/kube-scheduler+strategic.yaml")
    (container,) = pod["spec"]["containers"]
    assert f"--config={volume['mountPath']}/extender.yaml" in container["args"]
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts[volume["name"]] == volume["mountPath"]
    assert f"--kubeconfig={mounts['kubeconfig']}" in container["args"]


@pytest.mark.parametrize("entry", [pytest.param(QUICK, id="the short entry"), pytest.param(BIND, id="the bind entry")])
def test_no_entry_can_break_a_gang(entry: dict[str, Any]) -> None:
    assert entry["nodeCacheCapable"] is True
    assert entry["ignorable"] is False
    assert "managedResources" not in entry


def test_bind_has_a_long_timeout_of_its_own() -> None:
    assert [verb for verb in QUICK if verb.endswith("Verb")] == ["filterVerb", "prioritizeVerb", "preemptVerb"]
    assert [verb for verb in BIND if verb.endswith("Verb")] == ["bindVerb"]
    assert seconds(QUICK["httpTimeout"]) <= 5 < 60 < seconds(BIND["httpTimeout"])
    assert QUICK["weight"] > 0


def test_a_tenth_of_the_nodes_is_offered_and_the_extender_knows_it() -> None:
    assert SCHEDULER["percentageOfNodesToScore"] == EXTENDER["percentageOfNodesToScore"] == 10


def test_the_extender_knows_what_kube_scheduler_is_told() -> None:
    assert EXTENDER["bindTimeoutSeconds"] == seconds(BIND["httpTimeout"])
    assert EXTENDER["percentageOfNodesToScore"] == SCHEDULER["percentageOfNodesToScore"]
    assert EXTENDER["schedulerNames"] == [profile["schedulerName"] for profile in SCHEDULER["profiles"]]
    election = SCHEDULER["leaderElection"]
    assert election["leaderElect"] is True
    assert EXTENDER["leaderLease"] == f"{election['resourceNamespace']}/{election['resourceName']}"


def test_the_verbs_are_on_loopback_alone_and_where_kube_scheduler_looks_for_them() -> None:
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in CONTAINERS["extender"]["args"][1:])
    assert flags["bind-address"] == "127.0.0.1"
    assert QUICK["urlPrefix"] == BIND["urlPrefix"] == f"http://127.0.0.1:{flags['port']}"
    assert [port["containerPort"] for port in CONTAINERS["extender"]["ports"]] == [int(flags["ops-port"])]
    assert "hostNetwork" not in POD


def probe_seconds(container: str, kind: str) -> float:
    """From the first failure of a probe on until the container is told to end, at most."""
    probe = CONTAINERS[container][f"{kind}Probe"]
    return float(probe["periodSeconds"] * probe["failureThreshold"])


@pytest.mark.parametrize(("kind", "path"), [("startup", "/readyz"), ("liveness", "/livez")])
def test_kube_scheduler_lives_as_long_as_its_extender_does(kind: str, path: str) -> None:
    """By the number of the ops port, on the pod's address: a kubelet looks for a name among the ports of the same container."""
    get = CONTAINERS["kube-scheduler"][f"{kind}Probe"]["httpGet"]
    (ops,) = CONTAINERS["extender"]["ports"]
    assert get == {"path": path, "port": ops["containerPort"]}
    assert "--ops-bind-address=$(POD_IP)" in CONTAINERS["extender"]["args"]


@pytest.mark.parametrize("kind", ["startup", "liveness"])
def test_the_extender_does_not_end_for_what_its_kube_scheduler_is_to_end_for(kind: str) -> None:
    """Else it would be restarted each time before its kube-scheduler's patience is over, and the Lease would stay."""
    path = CONTAINERS["extender"][f"{kind}Probe"]["httpGet"]["path"]
    assert path == f"/livez?exclude={KUBE_SCHEDULER}"


def test_the_extender_is_restarted_alone_before_its_kube_scheduler_is() -> None:
    grace = CONTAINERS["extender"]["livenessProbe"]["terminationGracePeriodSeconds"]
    assert grace > ServeOptions().drain_seconds + STOP_SECONDS
    restart = probe_seconds("extender", "liveness") + grace
    patience = probe_seconds("kube-scheduler", "liveness")
    assert restart + 15 <= patience, "15 s to start and to answer"
    period = CONTAINERS["kube-scheduler"]["livenessProbe"]["periodSeconds"]
    assert USELESS_SECONDS + period + patience + 2 <= 60, "then another leads"


def test_the_replica_that_stands_by_asks_for_the_lease_more_often_than_a_container_takes_to_start() -> None:
    """client-go waits for 1 to 2.2 times retryPeriod. A container takes half a second to be made, kube-scheduler 0.1 s to ask."""
    assert 2.2 * parse_go_duration(SCHEDULER["leaderElection"]["retryPeriod"]) < 0.5 + 0.1


def test_the_scheduler_does_not_need_itself_to_be_scheduled() -> None:
    assert POD["schedulerName"] == "default-scheduler"
    assert POD["priorityClassName"] == "system-cluster-critical"


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_is_restricted(name: str) -> None:
    security = CONTAINERS[name]["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert "memory" in CONTAINERS[name]["resources"]["limits"]


def test_the_extender_is_given_no_right_that_it_has_no_use_for() -> None:
    for rule in rules():
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not {"secrets", "configmaps"} & set(rule["resources"])
        assert not {"delete", "deletecollection", "update", "escalate", "impersonate"} & set(rule["verbs"])
    writes = {
        resource: verb
        for rule in rules()
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert set(writes) == {"pods/binding", "pods/status", "podgroups/status", "events", "csistoragecapacities"}


def test_of_storage_the_bell_alone_is_ours() -> None:
    about = [rule for rule in rules() if "csistoragecapacities" in rule["resources"]]
    create, patch = (rule for rule in about if rule["verbs"] != ["get", "list", "watch"])
    assert create["verbs"] == ["create"]
    assert patch["resourceNames"] == [NAME]
    assert patch["verbs"] == ["patch"]


def test_one_lease_alone_may_be_read() -> None:
    (lease,) = (rule for rule in rules() if "leases" in rule["resources"])
    assert lease["resourceNames"] == [SCHEDULER["leaderElection"]["resourceName"]]
    assert lease["verbs"] == ["get", "list", "watch"]


def test_the_image_is_built_of_our_own_version() -> None:
    setup = (MANIFESTS.parent / "setup.cfg").read_text()
    version = re.search(r"^version = (\S+)$", setup, re.MULTILINE)
    images = {image["name"]: image["newTag"] for image in documents("sidecar/kustomization.yaml")[0]["images"]}
    assert version is not None
    assert images["gang-extender"] == version[1]
    static = documents("kubeadm/nodes/kube-scheduler+strategic.yaml")[0]["spec"]["containers"][0]
    assert static["image"] == f"gang-extender:{version[1]}"


def policy(path: str) -> dict[str, Any]:
    """What a ValidatingAdmissionPolicy says; its binding names it, and denies."""
    found, binding = documents(path)
    assert found["kind"] == "ValidatingAdmissionPolicy"
    assert binding["spec"] == {"policyName": found["metadata"]["name"], "validationActions": ["Deny"]}
    said: dict[str, Any] = found["spec"]
    return said


def quoted(expression: str) -> set[str]:
    return set(re.findall(r"'([^']*)'", expression))


def test_tenants_may_write_no_annotation_that_is_a_record_of_the_extender_s() -> None:
    said = policy("tenants/records.yaml")
    variables = {variable["name"]: variable["expression"] for variable in said["variables"]}
    assert quoted(variables["records"]) == {key for key in declared_keys() if isinstance(key, Record)}
    (rule,) = said["matchConstraints"]["resourceRules"]
    assert set(rule["resources"]) == {"pods", "pods/status", "pods/binding", "bindings"}, "ways to an annotation"
    assert rule["operations"] == ["CREATE", "UPDATE"]


def test_the_account_of_the_sidecar_may_write_them() -> None:
    (account,) = documents("rbac/service-account.yaml")
    metadata = account["metadata"]
    (condition,) = policy("tenants/records.yaml")["matchConditions"]
    assert quoted(condition["expression"]) == {f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}"}
    assert POD["serviceAccountName"] == metadata["name"]


def test_the_controller_of_a_daemon_set_s_pod_is_told_as_the_extender_tells_it() -> None:
    variables = {each["name"]: each["expression"] for each in policy("tenants/daemon-sets.yaml")["variables"]}
    assert quoted(variables["claimed"]) == set(DAEMON_SET)


def test_the_quota_counts_what_it_is_about() -> None:
    """By the plural and the group of the definition; a quota of a name that there is not counts nothing, and says nothing."""
    gangs, *by_priority = documents("examples/quota/quota.yaml")
    (definition,) = documents("crd/podgroups.yaml")
    counted = f"count/{definition['spec']['names']['plural']}.{definition['spec']['group']}"
    assert gangs["spec"]["hard"].keys() == {
        "requests.cpu",
        "requests.memory",
        "pods",
        counted,
        f"count/daemonsets.{DAEMON_SET[0].partition('/')[0]}",
    }
    for quota in by_priority:
        (selected,) = quota["spec"]["scopeSelector"]["matchExpressions"]
        assert (selected["scopeName"], selected["operator"]) == ("PriorityClass", "In")
        assert quota["spec"]["hard"].keys() <= {"pods", "requests.cpu", "requests.memory"}, "all that has a priority"


def test_under_the_quota_a_pod_that_asks_for_nothing_is_given_what_the_quota_wants_it_to_ask_for() -> None:
    (limits,) = documents("examples/quota/limits.yaml")
    (container,) = limits["spec"]["limits"]
    wanted = {name.removeprefix("requests.") for name in documents("examples/quota/quota.yaml")[0]["spec"]["hard"]}
    assert container["type"] == "Container"
    assert container["defaultRequest"].keys() == wanted & {"cpu", "memory"}


EXAMPLES = sorted((MANIFESTS / "examples" / "integrations").glob("*.yaml"))
INTEGRATIONS = (MANIFESTS.parent / "docs" / "integrations.md").read_text()


def values_of(document: Any, key: str) -> Iterator[Any]:
    """Of that field, wherever it stands."""
    if isinstance(document, dict):
        yield from (value for name, value in document.items() if name == key)
        for value in document.values():
            yield from values_of(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from values_of(value, key)


@pytest.mark.parametrize(
    "file", [file for file in EXAMPLES if file.name != "kustomization.yaml"], ids=lambda file: file.stem
)
def test_an_example_of_a_controller_names_served_schedulers_and_known_annotations(file: Path) -> None:
    found = list(yaml.safe_load_all(file.read_text()))
    assert set(values_of(found, "schedulerName")) <= set(EXTENDER["schedulerNames"])
    annotations = {key for each in values_of(found, "annotations") for key in each}
    assert {key for key in annotations if key.startswith("gang-extender.dev/")} <= set(declared_keys())
    assert f"../manifests/examples/integrations/{file.name})" in INTEGRATIONS


def test_the_configuration_beside_the_default_scheduler_is_read(tmp_path: Path) -> None:
    read = configuration_in(INTEGRATIONS, tmp_path)
    assert (read.scheduler_names, read.leader_lease) == (
        ("default-scheduler",),
        NamespacedName("kube-system", "kube-scheduler"),
    )


def test_every_file_and_folder_that_the_page_of_integrations_links_to_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)", INTEGRATIONS):
        assert (MANIFESTS.parent / "docs" / link).exists(), link


def test_the_overlay_of_pages_gives_the_flags_that_serve_takes_and_the_right_to_two_reviews() -> None:
    (kustomization,) = documents("pages/kustomization.yaml")
    operations = yaml.safe_load(kustomization["patches"][0]["patch"])
    [container] = [each["path"].split("/")[5] for each in operations if each["op"] == "test"]
    assert POD["containers"][int(container)]["name"] == "extender"
    flags = [each["value"] for each in operations if each["path"].endswith("/args/-")]
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    given = parser.parse_args(flags)
    assert (given.pages_bind_address, given.pages_port) == ("$(POD_IP)", 8890)
    [mount] = [each["value"] for each in operations if each["path"].endswith("/volumeMounts/-")]
    for file in (given.pages_tls_cert_file, given.pages_tls_private_key_file):
        assert str(Path(file).parent) == mount["mountPath"]
    role = documents("pages/role.yaml")[0]
    assert {(each, verb) for rule in role["rules"] for each in rule["resources"] for verb in rule["verbs"]} == {
        ("tokenreviews", "create"),
        ("subjectaccessreviews", "create"),
    }


def test_the_service_of_pages_and_its_policy_lead_to_the_port_of_pages_alone() -> None:
    (service,), (policy,) = documents("pages/service.yaml"), documents("pages/network-policy.yaml")
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert [each["targetPort"] for each in service["spec"]["ports"]] == ["pages"]
    for_users, for_all = policy["spec"]["ingress"]
    assert for_users["ports"] == [{"port": "pages"}]
    ports = {each["name"] for container in POD["containers"] for each in container["ports"]}
    assert {each["port"] for each in for_all["ports"]} <= ports


APART = documents("service/deployment.yaml")[0]["spec"]["template"]["spec"]
APART_EXTENDER = documents("service/extender.yaml")[0]
APART_SCHEDULER = documents("service/nodes/kube-scheduler.yaml")[0]


def test_the_extender_apart_is_the_container_of_the_sidecar_but_for_addresses_and_certificates() -> None:
    (apart,), sidecar = APART["containers"], CONTAINERS["extender"]
    own = {"args", "ports", "volumeMounts"}
    assert {key: apart[key] for key in apart.keys() - own} == {key: sidecar[key] for key in sidecar.keys() - own}
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    given = parser.parse_args(apart["args"][1:])
    mounts = {each["mountPath"] for each in apart["volumeMounts"]}
    for file in (given.config, given.tls_cert_file, given.tls_private_key_file, given.client_ca_file):
        assert str(Path(file).parent) in mounts
    assert {each["name"]: each["containerPort"] for each in apart["ports"]} == {
        "verbs": given.port,
        "ops": given.ops_port,
    }
    secrets = [each["secret"]["secretName"] for each in APART["volumes"] if "secret" in each]
    assert secrets == ["gang-extender-tls"]


def test_kube_scheduler_apart_calls_the_service_with_certificates_and_elects_by_a_lease_of_its_own() -> None:
    (service,) = documents("service/service.yaml")
    name = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    for entry, quick in zip(APART_SCHEDULER["extenders"], (QUICK, BIND), strict=True):
        more = {key: entry[key] for key in ("tlsConfig", "enableHTTPS")}
        assert entry == {**quick, "urlPrefix": f"https://{name}", **more}
        assert set(more["tlsConfig"]) == {"certFile", "keyFile", "caFile"}
    (pod,) = documents("service/nodes/kube-scheduler+strategic.yaml")
    assert pod["spec"]["hostAliases"][0]["hostnames"] == [name]
    election = APART_SCHEDULER["leaderElection"]
    assert APART_EXTENDER["leaderLease"] != f"{election['resourceNamespace']}/{election['resourceName']}"
    assert APART_EXTENDER["leaderService"] == "kube-system/gang-extender"
    assert "selector" not in service["spec"], "it would lead to the replica that stands by too"


def test_the_certificates_of_cert_manager_are_for_the_names_that_are_asked_for() -> None:
    found = {each["metadata"]["name"]: each["spec"] for each in documents("examples/certificates/cert-manager.yaml")}
    assert found["gang-extender"]["secretName"] == "gang-extender-tls"
    assert APART_SCHEDULER["extenders"][0]["urlPrefix"] == f"https://{found['gang-extender']['dnsNames'][0]}"
    args = APART["containers"][0]["args"]
    assert f"--allowed-client-name={found['gang-extender-client']['commonName']}" in args


def test_the_policy_and_the_budget_of_the_extender_apart_are_for_its_pods() -> None:
    deployment, budget = documents("service/deployment.yaml")
    (policy,) = documents("service/network-policy.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    ports = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    assert ports == {each["name"] for each in APART["containers"][0]["ports"]}


@pytest.mark.parametrize("folder", ["service", "network-policy"])
def test_metrics_are_reached_from_the_namespace_of_prometheus_alone(folder: str) -> None:
    (policy,) = documents(f"{folder}/network-policy.yaml")
    (rule,) = [rule for rule in policy["spec"]["ingress"] if {"port": "ops"} in rule["ports"]]
    (source,) = rule["from"]
    assert source == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    assert {"port": "verbs"} not in rule["ports"]


def test_the_policy_of_the_sidecar_is_for_its_pods_and_ports() -> None:
    (policy,) = documents("network-policy/network-policy.yaml")
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    there = {port["name"] for container in POD["containers"] for port in container["ports"]}
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= there
