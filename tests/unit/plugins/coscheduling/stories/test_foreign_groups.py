"""Gangs by other systems' PodGroups: pods of ours that name one start by what it says, and nothing is written to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1, koordinatorv1alpha1, volcanov1beta1
from extender.client.unreadable import convert
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, on_node

Make = Callable[..., World]
NAME = "scheduling.k8s.io/group-name"


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4")]))


def volcano(minimum: Any = 2, name: str = "v", uid: str = "v", **spec: Any) -> volcanov1beta1.PodGroup:
    metadata = {"name": name, "namespace": "default", "uid": uid}
    return convert({"metadata": metadata, "spec": {"minMember": minimum, **spec}}, volcanov1beta1.PodGroup)


def task(name: str, group: str = "v", spec: str = "", **more: Any) -> corev1.Pod:
    annotations = {NAME: group, **({"volcano.sh/task-spec": spec} if spec else {})}
    return member(name, "", annotations=annotations, **more)


def of_koordinator(name: str, group: str = "k") -> corev1.Pod:
    made = member(name, "")
    labels = {"pod-group.scheduling.sigs.k8s.io": group}
    return structs.replace(made, metadata=structs.replace(made.metadata, labels=labels))


def test_pods_wait_for_the_object_that_they_name_and_start_whole(kube: KubeScheduler) -> None:
    kube.create(task("p0"), task("p1"))
    kube.run()
    assert "PodGroup not found" in kube.told["p0"]
    kube.plugin.on_foreign_pod_group(None, volcano())
    kube.wake()
    kube.run()
    assert kube.starts == [{"p0", "p1"}]
    assert list(broken(kube)) == []


def test_koordinator_s_label_likewise(kube: KubeScheduler) -> None:
    metadata = {"name": "k", "namespace": "default", "uid": "k"}
    made = convert({"metadata": metadata, "spec": {"minMember": 2}}, koordinatorv1alpha1.PodGroup)
    kube.plugin.on_foreign_pod_group(None, made)
    kube.create(of_koordinator("p0"))
    kube.run()
    assert "current pods number: 1, minMember of group: 2" in kube.told["p0"]
    kube.create(of_koordinator("p1"))
    kube.run()
    assert kube.starts == [{"p0", "p1"}]


def test_an_object_that_no_pod_of_ours_names_is_no_group(kube: KubeScheduler) -> None:
    kube.plugin.on_foreign_pod_group(None, volcano())
    assert kube.plugin.manager.groups == {}
    kube.create(task("p0", "other"))
    assert kube.plugin.manager.groups.keys() == {"default/other"}


def test_tasks_have_their_minima(kube: KubeScheduler) -> None:
    kube.plugin.on_foreign_pod_group(None, volcano(3, minTaskMember={"ps": 1, "worker": 2}))
    kube.create(task("w0", spec="worker"), task("w1", spec="worker"), task("w2", spec="worker"))
    kube.run()
    assert "of role ps" in kube.told["w0"]
    kube.create(task("ps", spec="ps"))
    kube.run()
    assert kube.starts == [{"ps", "w0", "w1", "w2"}] or kube.starts[0] >= {"ps", "w0", "w1"}


def test_a_change_of_the_object_counts_and_its_status_does_not(kube: KubeScheduler) -> None:
    before, after = volcano(3), volcano(2)
    kube.plugin.on_foreign_pod_group(None, before)
    kube.create(task("p0"), task("p1"))
    kube.run()
    assert kube.starts == []
    epoch = kube.plugin.manager.notes.epoch
    kube.plugin.on_foreign_pod_group(before, volcano(3))
    assert kube.plugin.manager.notes.epoch == epoch
    kube.plugin.on_foreign_pod_group(before, after)
    kube.wake()
    kube.run()
    assert kube.starts == [{"p0", "p1"}]


@pytest.mark.parametrize(
    ("type_", "phase", "running"),
    [
        pytest.param(volcanov1beta1.PodGroup, "Running", {"a", "b"}, id="Volcano has started it"),
        pytest.param(volcanov1beta1.PodGroup, "Completed", {"a", "b"}, id="minMember of it have ended"),
        pytest.param(volcanov1beta1.PodGroup, "Inqueue", {"a"}, id="Volcano lets its pods be made"),
        pytest.param(volcanov1beta1.PodGroup, "Unknown", {"a"}, id="Volcano says that a part of it runs"),
        pytest.param(volcanov1beta1.PodGroup, {}, {"a"}, id="no phase"),
        pytest.param(koordinatorv1alpha1.PodGroup, "Running", {"a", "b"}, id="Koordinator has started it"),
        pytest.param(koordinatorv1alpha1.PodGroup, "Scheduling", {"a"}, id="Koordinator gathers it"),
    ],
)
def test_what_the_object_says_of_a_start_before_ours(
    type_: type[Any], phase: Any, running: set[str], kube: KubeScheduler
) -> None:
    metadata = {"name": "k", "namespace": "default", "uid": "k"}
    made = convert({"metadata": metadata, "spec": {"minMember": 3}, "status": {"phase": phase}}, type_)
    kube.plugin.on_foreign_pod_group(None, made)
    one, other = (
        task(name, "k") if type_ is volcanov1beta1.PodGroup else of_koordinator(name, "k") for name in ("a", "b")
    )
    kube.create(on_node(one, "n1"), other)
    kube.plugin.tick()
    kube.run()
    assert kube.running() == running


def test_the_object_goes_while_a_member_is_held(kube: KubeScheduler) -> None:
    object_ = volcano(2)
    kube.plugin.on_foreign_pod_group(None, object_)
    kube.create(task("p0", gated=True), task("p1", gated=True))
    kube.world.run_tasks()
    assert len(list(kube.plugin.manager.slots)) == 2
    kube.plugin.on_foreign_pod_group(object_, None)
    assert list(kube.plugin.manager.slots) == []
    assert kube.plugin.manager.specs.of(kube.plugin.manager.groups["default/v"]) is None
    assert list(broken(kube)) == []


def test_our_own_pod_group_comes_first_and_the_other_s_end_is_no_news_then(kube: KubeScheduler) -> None:
    object_ = volcano(9)
    kube.apply(group("v", 2))
    kube.plugin.on_foreign_pod_group(None, object_)
    kube.create(task("p0", gated=True), task("p1", gated=True))
    kube.world.run_tasks()
    assert len(list(kube.plugin.manager.slots)) == 2
    kube.plugin.on_foreign_pod_group(object_, None)
    assert len(list(kube.plugin.manager.slots)) == 2


def test_the_end_of_an_object_that_its_pods_do_not_name_is_no_news(kube: KubeScheduler) -> None:
    """Volcano's, of the same name as Koordinator's."""
    metadata = {"name": "k", "namespace": "default", "uid": "k"}
    kube.plugin.on_foreign_pod_group(
        None, convert({"metadata": metadata, "spec": {"minMember": 2}}, koordinatorv1alpha1.PodGroup)
    )
    other = volcano(9, "k")
    kube.plugin.on_foreign_pod_group(None, other)
    gates = (corev1.PodSchedulingGate(name="scheduling.x-k8s.io/gang"),)
    pods = [of_koordinator(name) for name in ("p0", "p1")]
    kube.create(*(structs.replace(each, spec=structs.replace(each.spec, scheduling_gates=gates)) for each in pods))
    kube.world.run_tasks()
    assert len(list(kube.plugin.manager.slots)) == 2
    kube.plugin.on_foreign_pod_group(other, None)
    assert len(list(kube.plugin.manager.slots)) == 2


def test_one_that_makes_no_sense_harms_its_own_gang_only(kube: KubeScheduler) -> None:
    kube.plugin.on_foreign_pod_group(None, volcano("3", "bad", "bad"))
    kube.plugin.on_foreign_pod_group(None, volcano(1))
    kube.create(task("b0", "bad"), task("p0"))
    kube.run()
    assert "spec.minMember: Invalid value" in kube.told["b0"]
    assert kube.starts == [{"p0"}]


def test_pods_of_other_schedulers_are_no_members(world: Make) -> None:
    made = world([node("n1", "4")])
    made.connect(ours=lambda pod: pod.spec.scheduler_name != "volcano")
    elsewhere = task("p0")
    elsewhere = structs.replace(elsewhere, spec=structs.replace(elsewhere.spec, scheduler_name="volcano"))
    made.plugin.on_foreign_pod_group(None, volcano(1))
    made.plugin.on_pod(None, elsewhere)
    assert made.plugin.manager.groups == {}
    made.plugin.on_pod(None, task("p1"))
    assert made.plugin.manager.groups["default/v"].members.keys() == {"default/p1"}


def test_what_is_not_honoured_is_told(kube: KubeScheduler) -> None:
    kube.plugin.on_foreign_pod_group(None, volcano(1, queue="research"))
    kube.create(task("p0"))
    kube.run()
    assert kube.starts == [{"p0"}]
    assert kube.world.verdicts[-1].endswith("; not honoured: spec.queue")


ASKED = "gang-extender.dev/topology-required"
POLICY = "gang-extender.dev/match-policy"


@pytest.mark.parametrize(
    ("of_object", "of_pods", "invalid", "policy"),
    [
        pytest.param({}, [{POLICY: "once-satisfied"}, {}], "", "once-satisfied", id="one pod speaks for all"),
        pytest.param({}, [{POLICY: " once-satisfied"}, {POLICY: "once-satisfied"}], "", "once-satisfied", id="alike"),
        pytest.param(
            {"match_policy": "only-waiting"},
            [{POLICY: "once-satisfied"}, {}],
            "",
            "only-waiting",
            id="the PodGroup's own win",
        ),
        pytest.param(
            {"match_policy": "only-waiting"}, [{ASKED: "rack"}, {}], "", "only-waiting", id="all of them, or none"
        ),
        pytest.param(
            {},
            [{POLICY: "once-satisfied"}, {POLICY: "only-waiting"}],
            f"PodGroup default/g is invalid: annotation {POLICY}: its pods differ: 'once-satisfied' and 'only-waiting'",
            "waiting-and-running",
            id="pods that differ",
        ),
        pytest.param(
            {},
            [{POLICY: "never"}, {}],
            f"PodGroup default/g is invalid: annotation {POLICY}: Unsupported value: 'never'",
            "waiting-and-running",
            id="nonsense on a pod",
        ),
    ],
)
def test_pods_annotations_beside_a_pod_group_that_has_none(
    of_object: dict[str, str], of_pods: list[dict[str, str]], invalid: str, policy: str, kube: KubeScheduler
) -> None:
    kube.apply(group("g", 2, **of_object))
    kube.create(*(member(f"p{number}", "g", annotations=asked) for number, asked in enumerate(of_pods)))
    manager = kube.plugin.manager
    spec = manager.specs.of(manager.groups["default/g"])
    assert spec is not None
    assert (spec.invalid.startswith(invalid), bool(spec.invalid)) == (True, bool(invalid))
    assert spec.match_policy == policy


def test_the_pod_that_differs_goes_and_the_others_start(kube: KubeScheduler) -> None:
    kube.apply(group("g", 2))
    odd = member("odd", "g", annotations={POLICY: "only-waiting"})
    kube.create(odd, *(member(f"p{number}", "g", annotations={POLICY: "once-satisfied"}) for number in range(2)))
    kube.run()
    assert "its pods differ" in kube.told["p0"]
    assert kube.starts == []
    kube.delete(odd)
    kube.wake()
    kube.run()
    assert kube.starts == [{"p0", "p1"}]
    assert list(broken(kube)) == []


def test_groups_that_pods_name_beside_a_pod_group_start_together(kube: KubeScheduler) -> None:
    kube.apply(group("a", 1), group("b", 1))
    kube.create(member("a0", "a", annotations={"gang-extender.dev/groups": "b"}))
    kube.run()
    assert kube.starts == []
    kube.create(member("b0", "b"))
    kube.wake()
    kube.run()
    assert kube.starts == [{"a0", "b0"}]


KINDS = pytest.mark.parametrize(
    ("kind", "keys"),
    [
        pytest.param(volcanov1beta1.PodGroup, ({}, {NAME: "g"}), id="Volcano"),
        pytest.param(koordinatorv1alpha1.PodGroup, ({"pod-group.scheduling.sigs.k8s.io": "g"}, {}), id="Koordinator"),
    ],
)
Keys = tuple[dict[str, str], dict[str, str]]


def asks_for(kind: type[Any], minimum: int, cpu: str, name: str = "g") -> Any:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert({"metadata": metadata, "spec": {"minMember": minimum, "minResources": {"cpu": cpu}}}, kind)


def at_step(name: str, keys: Keys, labels: dict[str, str], cpu: int) -> corev1.Pod:
    """labels: those by which its controller tells its step."""
    made = member(name, "", cpu=cpu, annotations=keys[1])
    return structs.replace(made, metadata=structs.replace(made.metadata, labels={**keys[0], **labels}))


@KINDS
def test_a_driver_by_another_system_s_object_starts_with_room_for_its_executors(
    kube: KubeScheduler, kind: type[Any], keys: Keys
) -> None:
    kube.plugin.on_foreign_pod_group(None, asks_for(kind, 1, "4"))
    kube.create(at_step("driver", keys, {"spark-role": "driver"}, 1), member("single", ""))
    kube.run()
    assert kube.starts == [{"driver"}]
    assert sum(slot.pod_info.requests.milli_cpu for slot in kube.plugin.manager.slots.to_come("default/g")) == 3000
    assert not kube.pods["default/single"].node_name
    kube.create(at_step("executor", keys, {"spark-role": "executor"}, 3))
    kube.run()
    assert kube.pods["default/executor"].node_name
    assert not list(kube.plugin.manager.slots)


@KINDS
def test_workers_by_another_system_s_object_start_and_their_launcher_has_room(
    kube: KubeScheduler, kind: type[Any], keys: Keys
) -> None:
    kube.plugin.on_foreign_pod_group(None, asks_for(kind, 3, "4"))
    role = "training.kubeflow.org/job-role"
    kube.create(*(at_step(f"w{number}", keys, {role: "worker"}, 1) for number in range(2)))
    kube.run()
    assert kube.starts == [{"w0", "w1"}]
    kube.create(member("single", ""))
    kube.run()
    assert not kube.pods["default/single"].node_name
    kube.create(at_step("launcher", keys, {role: "launcher"}, 2))
    kube.run()
    assert kube.pods["default/launcher"].node_name
    assert not list(kube.plugin.manager.slots)
