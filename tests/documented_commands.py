"""By which test each block of commands in README, docs/ and CONTRIBUTING is run. tests/unit/test_documented_commands.py holds the list.

A block that begins with a prompt shows its output: tests/unit/cli/test_readme.py, tests/unit/cli/test_kubectl_gang_page.py and
tests/server/test_documented_calls.py take those from the pages by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.documented import BESIDE_PAGES, PAGES, PROJECT, Block, shell_blocks

MAKE = "unit/test_documented_commands.py::test_make_and_pytest_know_what_they_are_given"
STARTED = "server/test_documented_calls.py::test_a_call_answers_what_stands_below_it"
SERVICE = "docs/tasks/extender-as-a-service.md"
ON_A_CLUSTER = "e2e/test_documented_commands.py::test_"

RUN_BY: Mapping[tuple[str, str], str] = {
    ("README.md", "make demo"): MAKE,
    ("README.md", "docker build"): ON_A_CLUSTER + "readme_installs",
    ("README.md", "make install"): STARTED,
    ("README.md", "kubectl get -A"): ON_A_CLUSTER + "readme_simulates_one_s_own_cluster",
    ("CONTRIBUTING.md", "make install"): MAKE,
    ("docs/compatibility.md", "make e2e"): MAKE,
    ("docs/fault-runs.md", "make faults"): MAKE,
    ("docs/performance.md", "make performance"): MAKE,
    ("docs/fault-runs.md", "make benchmark"): MAKE,
    ("docs/debugging.md", "kubectl -n kube-system port-forward"): ON_A_CLUSTER + "the_leader_is_asked",
    (
        "docs/kubectl-gang.md",
        "kubectl gang list",
    ): "unit/cli/test_readme.py::test_a_command_in_a_block_is_one_that_there_is",
    (
        "docs/operations.md",
        "kubectl delete --ignore-not-found",
    ): "e2e/test_gate_manifests.py::test_the_gates_can_be_taken_off_by_hand",
    ("docs/operations.md", "kubectl delete --namespace"): ON_A_CLUSTER + "nothing_is_left_after_uninstalling",
    ("docs/operations.md", "rm /etc/kubernetes/patches"): ON_A_CLUSTER + "kube_scheduler_is_the_plain_one_again",
    ("docs/operations.md", "kubectl delete -k manifests/kubeadm"): ON_A_CLUSTER
    + "nothing_is_left_of_the_other_shapes_after_uninstalling",
    ("docs/operations.md", "kubectl delete -k manifests/service"): ON_A_CLUSTER
    + "nothing_is_left_of_the_other_shapes_after_uninstalling",
    ("docs/operations.md", "kubectl get --all-namespaces"): ON_A_CLUSTER + "nothing_is_left_after_uninstalling",
    ("docs/page.md", "kubectl -n kube-system port-forward"): ON_A_CLUSTER + "the_leader_is_asked",
    ("docs/page.md", "openssl"): ON_A_CLUSTER + "the_pages_get_a_certificate",
    ("docs/page.md", "kubectl -n team-a"): ON_A_CLUSTER + "the_pages_get_a_certificate",
    ("docs/runbooks.md", "kubectl -n kube-system logs"): ON_A_CLUSTER + "the_leader_is_asked",
    ("docs/tasks/another-namespace.md", "kubectl apply"): ON_A_CLUSTER + "another_namespace",
    ("docs/tasks/another-namespace.md", "grep"): ON_A_CLUSTER + "another_namespace",
    ("docs/tasks/another-namespace.md", "kubectl kustomize"): ON_A_CLUSTER + "another_namespace",
    ("docs/tasks/another-namespace.md", "gang-extender doctor"): ON_A_CLUSTER + "another_namespace",
    (SERVICE, "openssl"): ON_A_CLUSTER + "the_extender_as_a_service",
    (SERVICE, "kubectl -n kube-system create secret"): ON_A_CLUSTER + "the_extender_as_a_service",
    (SERVICE, "kubectl apply --server-side -k manifests/service"): ON_A_CLUSTER + "the_extender_as_a_service",
    (SERVICE, "install -d"): ON_A_CLUSTER + "the_extender_as_a_service",
    ("docs/tasks/kubeadm-static-pod.md", "kubectl apply"): ON_A_CLUSTER + "kubeadm_s_static_pod",
    ("docs/tasks/kubeadm-static-pod.md", "install -d"): ON_A_CLUSTER + "kubeadm_s_static_pod",
    ("docs/tasks/kubeadm-static-pod.md", "kubectl -n kube-system edit"): ON_A_CLUSTER + "kubeadm_s_static_pod",
    ("docs/tasks/kubeadm-static-pod.md", "kubectl -n kube-system get"): ON_A_CLUSTER + "kubeadm_s_static_pod",
    ("docs/tasks/managed-clusters.md", "kubectl version"): ON_A_CLUSTER + "a_managed_cluster",
    ("docs/tasks/managed-clusters.md", "docker build"): ON_A_CLUSTER + "a_managed_cluster",
    ("docs/tasks/upgrade.md", "kubectl diff"): ON_A_CLUSTER + "an_upgrade_and_the_way_back",
    ("docs/tasks/upgrade.md", "gang-extender doctor"): ON_A_CLUSTER + "an_upgrade_and_the_way_back",
    ("docs/tasks/upgrade.md", "kubectl apply"): ON_A_CLUSTER + "an_upgrade_and_the_way_back",
    ("docs/tasks/upgrade.md", "kubectl -n kube-system rollout undo"): ON_A_CLUSTER + "an_upgrade_and_the_way_back",
    ("docs/troubleshooting.md", "LEADER="): ON_A_CLUSTER + "the_leader_is_asked",
    ("docs/troubleshooting.md", "kubectl -n kube-system port-forward"): ON_A_CLUSTER + "the_leader_is_asked",
    ("docs/tutorial.md", "make install"): MAKE,
    ("docs/tutorial.md", ".venv/bin/gang-extender serve"): STARTED,
}
"""Page, and how the block's first line begins -> the test, below tests/."""

NOT_RUN: Mapping[tuple[str, str], str] = {
    (
        "docs/kubectl-gang.md",
        "pipx",
    ): "asks a package registry. unit/test_distribution.py builds what pipx would install, "
    "unit/cli/test_light_commands.py runs it without the extra `server`, e2e/test_kubectl_gang.py by a real kubectl",
    (SERVICE, "kubectl apply --server-side -k manifests/examples"): "needs cert-manager in the cluster",
}
"""The blocks that no test runs, and why."""

PLAYED: Mapping[str, str] = {
    "docker": "needs a daemon: played by a program that takes what docker takes, and looks for the Dockerfile and what it copies",
    "kubeadm": "writes to a control-plane node: played by the merge that kubeadm makes of the patch, with kubectl",
    "kubectl exec, logs, port-forward": "need a kubelet: the real kubectl looks up pod, container and port, and a real extender answers",
    "kubectl rollout": "needs the controller of Deployments: its writes are made by hand, and the real kubectl judges them",
    "open": "needs a desktop: the page is fetched",
}
"""Programs that a test plays within a block, and why: tests/e2e/documented_programs.py."""


def all_shell_blocks() -> list[Block]:
    return [block for page in (*PAGES, *BESIDE_PAGES) for block in shell_blocks(page)]


def keys_of(block: Block) -> list[tuple[str, str]]:
    """The rows that are about the block."""
    page = str(block.page.relative_to(PROJECT))
    return [key for key in (*RUN_BY, *NOT_RUN) if key[0] == page and block.first_line.startswith(key[1])]


def blocks_run_by(test: str) -> list[Block]:
    """Those that a test has to run, in the order of the pages."""
    return [block for block in all_shell_blocks() if any(RUN_BY.get(key) == test for key in keys_of(block))]
