"""Jobs whose members come in phases: what there is starts, and room is kept for the rest; no phase starts in part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.api.quantity import parse_quantity
from extender.api.schedulingv1alpha1 import PodGroup
from extender.plugins.coscheduling.state.pod_group_manager import wall_clock
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, on_node
from tests.unit.plugins.coscheduling.managing import set_wall

Make = Callable[..., World]
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"


def labelled(pod: corev1.Pod, **labels: str) -> corev1.Pod:
    return with_labels(pod, labels)


def with_labels(pod: corev1.Pod, labels: Mapping[str, str]) -> corev1.Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels={**pod.metadata.labels, **labels}))


def asking(made: PodGroup, **resources: str) -> PodGroup:
    amounts = {name: parse_quantity(text) for name, text in resources.items()}
    return structs.replace(made, spec=structs.replace(made.spec, min_resources=amounts))


def initializer(name: str, *, gated: bool = False) -> corev1.Pod:
    return with_labels(member(name, gated=gated), {REPLICATED_JOB: f"{name}-initializer"})


def trainer(name: str, *, gated: bool = False) -> corev1.Pod:
    return with_labels(member(name, cpu=2, gated=gated), {REPLICATED_JOB: "node"})


def driver(name: str, of: str) -> corev1.Pod:
    return with_labels(member(name, of), {"spark-role": "driver"})


def executor(name: str, of: str) -> corev1.Pod:
    return with_labels(member(name, of, cpu=2), {"spark-role": "executor"})


def worker(name: str) -> corev1.Pod:
    return with_labels(member(name, cpu=2), {"training.kubeflow.org/job-role": "worker"})


def launcher() -> corev1.Pod:
    return with_labels(member("launcher"), {"training.kubeflow.org/job-role": "launcher"})


def kept(kube: KubeScheduler, key: str = "default/g") -> list[str]:
    """The nodes on which room is kept for members to come."""
    return sorted(slot.node_name for slot in kube.plugin.manager.slots.to_come(key))


INITIALIZERS = (initializer("dataset"), initializer("model"))
TRAINERS = tuple(trainer(f"node-{number}") for number in range(3))
TRAIN_JOB = asking(group(minimum=5), cpu="8")


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    """Three nodes of 3 CPUs; Trainer's job takes eight of nine."""
    return KubeScheduler(world([node(f"n{number}", "3") for number in range(3)]))


def ended(kube: KubeScheduler, *pods: corev1.Pod) -> None:
    kube.delete(*pods)
    kube.run()


def nodes(count: int = 3, cpu: str = "3") -> list[corev1.Node]:
    return [node(f"n{number}", cpu) for number in range(count)]


def restarts(kube: KubeScheduler, later: World, *succeeded: corev1.Pod, listed: bool = True) -> None:
    """succeeded: pods that a list of those that have shows to the new process. Its condition is what the last one has told."""
    told = [text for text in kube.world.verdicts if "initializers" in text]
    for made in kube.groups.values() if told else ():
        condition = Condition("Scheduled", "False", "MembersToCome", told[0].partition(": ")[2])
        status = structs.replace(made.status, conditions=(condition,))
        kube.groups[made.key] = structs.replace(made, status=status)
    later.connect(
        succeeded_pods=lambda namespace, found: found(succeeded) if listed else None,
        wait=lambda event, seconds: event.is_set(),
    )
    kube.extender_restarts(later)
    kube.plugin.rounds.begun.finish()
    kube.active |= {uid: None for uid, pod in kube.pods.items() if not pod.node_name and not pod.gated}


# Trainer: initializers, then nodes


def test_initializers_start_and_the_nodes_find_their_room(kube: KubeScheduler) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    assert kube.starts == [{"dataset", "model"}]
    assert len(kept(kube)) == 3
    kube.create(*(member(f"single-{number}", "", cpu=2) for number in range(3)))
    kube.run()
    assert not any(kube.pods[f"default/single-{number}"].node_name for number in range(3)), "they find no room"
    ended(kube, *INITIALIZERS)
    assert len(kept(kube)) == 3
    kube.create(*TRAINERS)
    kube.run()
    assert kube.starts == [{"dataset", "model"}, {"node-0", "node-1", "node-2"}]
    assert kept(kube) == []
    assert list(broken(kube)) == []


@pytest.mark.parametrize("gated", [False, True])
def test_nodes_that_come_one_by_one_start_whole(kube: KubeScheduler, gated: bool) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*(initializer(each.name, gated=gated) for each in INITIALIZERS))
    kube.run()
    ended(kube, *INITIALIZERS)
    for number in range(3):
        assert len(kube.starts) == 1, "no fraction of the nodes"
        assert len(kept(kube)) == 3 - number
        kube.create(trainer(f"node-{number}", gated=gated))
        kube.run()
    assert kube.starts[1:] == [{"node-0", "node-1", "node-2"}]
    assert kept(kube) == []


def test_initializers_wait_while_not_all_of_the_job_fits(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "3"), node("n1", "5"), *(node(f"small-{n}", "1") for n in range(4))]))
    other = member("other", "", cpu=2)
    kube.create(structs.replace(other, spec=structs.replace(other.spec, node_name="n1")))
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    assert kube.starts == []
    assert kept(kube) == []
    assert "minMember of 5 does not fit: Insufficient cpu" in kube.told["dataset"]
    kube.delete(kube.pods[other.uid])
    kube.run()
    assert kube.starts == [{"dataset", "model"}]


def test_an_initializer_that_comes_while_the_first_is_planned_without_it(world: Make) -> None:
    """Of four members to come each is thought to be larger than a node is: they are three, and an initializer."""
    kube = KubeScheduler(world([node(f"n{number}", "4") for number in range(3)]))
    late = [INITIALIZERS[1]]

    def plan_meanwhile(function: Callable[..., object], *args: object) -> object:
        found = function(*args)
        while late:
            kube.create(late.pop())
        return found

    kube.world.connect(offload=plan_meanwhile)
    kube.apply(asking(group(minimum=5), cpu="11"))
    kube.create(INITIALIZERS[0])
    kube.run()
    assert {name for start in kube.starts for name in start} == {"dataset", "model"}
    assert len(kept(kube)) == 3


def test_nodes_wait_for_their_room_where_it_has_gone_meanwhile(kube: KubeScheduler) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    ended(kube, *INITIALIZERS)
    important = [structs.replace(member(f"h{n}", "", cpu=3)) for n in range(2)]
    important = [structs.replace(pod, spec=structs.replace(pod.spec, priority=10)) for pod in important]
    kube.create(*important)
    kube.run()
    assert all(kube.pods[pod.uid].node_name for pod in important), "a higher priority takes the room at once"
    kube.create(*TRAINERS)
    kube.run()
    assert not any(kube.pods[each.uid].node_name for each in TRAINERS)
    kube.delete(*(kube.pods[pod.uid] for pod in important))
    kube.run()
    assert kube.starts[-1] == {"node-0", "node-1", "node-2"}


def test_a_node_that_is_larger_than_foreseen_is_planned_anew_with_the_others(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "4"), node("n1", "4"), node("n2", "4")]))
    kube.apply(asking(group(minimum=5), cpu="8"))
    kube.create(*INITIALIZERS)
    kube.run()
    ended(kube, *INITIALIZERS)
    kube.create(with_labels(member("large", cpu=4), {REPLICATED_JOB: "node"}), *TRAINERS[:2])
    kube.run()
    assert kube.starts[1:] == [{"large", "node-0", "node-1"}]
    assert kept(kube) == []


def test_a_restart_knows_how_many_have_ended_and_keeps_the_room_on(kube: KubeScheduler, world: Make) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    told = [text for text in kube.world.verdicts if "initializers" in text]
    assert told == [
        "default/g GangWaiting: 2 initializers of minMember 5 have started: room is kept for the members that come later"
    ]
    condition = Condition("Scheduled", "False", "MembersToCome", told[0].partition(": ")[2])
    made = structs.replace(TRAIN_JOB, status=structs.replace(TRAIN_JOB.status, conditions=(condition,)))
    kube.apply(made)
    kube.extender_restarts(world([node(f"n{number}", "3") for number in range(3)]))
    kube.run()
    kube.plugin.rounds.begun.finish()
    assert len(kept(kube)) == 3
    ended(kube, *INITIALIZERS)
    kube.create(*TRAINERS[:2])
    kube.run()
    assert len(kube.starts) == 1
    kube.create(TRAINERS[2])
    kube.run()
    assert kube.starts[1:] == [{"node-0", "node-1", "node-2"}]
    assert kube.world.verdicts[-1] == (
        "default/g GangScheduled: 2 initializers of minMember 5 have ended, the others are complete: the gang starts"
    )


@pytest.mark.parametrize(("away", "left"), [(400, 200), (601, 0)])
def test_after_a_restart_the_room_is_kept_for_what_is_left_of_its_time(
    kube: KubeScheduler, world: Make, away: int, left: int
) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    later = world([node(f"n{number}", "3") for number in range(3)])
    set_wall(later.plugin.manager, lambda: wall_clock() + timedelta(seconds=away))
    kube.extender_restarts(later)
    kube.plugin.rounds.begun.finish()
    expire = {slot.expires - later.clock.now for slot in kube.plugin.manager.slots.to_come("default/g")}
    assert len(expire) == bool(left)
    assert all(abs(each - left) < 60 for each in expire)


def test_initializers_that_are_made_again_have_not_ended(kube: KubeScheduler) -> None:
    kube.apply(TRAIN_JOB)
    for attempt in range(3):
        again = [initializer(f"{each.name}-{attempt}") for each in INITIALIZERS]
        kube.create(*again)
        kube.run()
        assert len(kube.starts) == attempt + 1
        ended(kube, *again)
    kube.create(*TRAINERS[:2])
    kube.run()
    assert len(kube.starts) == 3
    kube.create(TRAINERS[2])
    kube.run()
    assert len(kube.starts) == 4


def test_initializers_that_had_succeeded_before_we_came_count(world: Make) -> None:
    """No condition tells of them: the API server is asked for pods that have Succeeded."""
    kube = KubeScheduler(world([node(f"n{number}", "3") for number in range(3)]))
    ended = [on_node(each, "n0") for each in INITIALIZERS]
    kube.world.connect(succeeded_pods=lambda namespace, found: found(ended))
    kube.apply(TRAIN_JOB)
    kube.create(*TRAINERS[:2])
    kube.run()
    seconds_pass(kube)
    assert kube.starts == []
    kube.create(TRAINERS[2])
    kube.run()
    seconds_pass(kube)
    assert kube.starts == [{"node-0", "node-1", "node-2"}]


def seconds_pass(kube: KubeScheduler) -> None:
    for _ in range(3):
        kube.world.clock.now += 1
        kube.plugin.tick()
        kube.run()


def test_the_room_goes_with_the_group(kube: KubeScheduler) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    kube.delete(*INITIALIZERS)
    kube.remove(TRAIN_JOB)
    assert not list(kube.plugin.manager.slots)


def test_the_room_goes_when_its_time_is_up(kube: KubeScheduler) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    single = member("single", "", cpu=2)
    kube.create(single)
    kube.run()
    kube.world.clock.now += 601
    kube.plugin.tick()
    kube.plugin.tick()
    assert kept(kube) == []
    kube.active[single.uid] = None
    kube.run()
    assert kube.pods[single.uid].node_name
    assert kube.pods[INITIALIZERS[0].uid].node_name


def test_without_time_for_it_the_gang_waits_for_all_its_members(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "9")], members_to_come_seconds=0))
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    assert "current pods number: 2, minMember of group: 5" in kube.told["dataset"]


# MPI: workers, then the launcher


def test_the_workers_start_and_the_launcher_finds_its_room(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "3"), node("n1", "2")]))
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(worker("w0"), worker("w1"))
    kube.run()
    assert kube.starts == [{"w0", "w1"}]
    assert kept(kube) == ["n0"]
    kube.create(member("single", ""))
    kube.run()
    assert not kube.pods["default/single"].node_name
    kube.create(launcher())
    kube.run()
    assert kube.pods["default/launcher"].node_name == "n0"
    assert kept(kube) == []


def test_workers_of_which_one_is_missing_wait(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "9")]))
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(worker("w0"))
    kube.run()
    assert "current pods number: 1, minMember of group: 3" in kube.told["w0"]
    assert kept(kube) == []


def test_a_plain_gang_that_lacks_a_member_waits(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "9")]))
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(member("a"), member("b"))
    kube.run()
    assert "current pods number: 2, minMember of group: 3" in kube.told["a"]
    assert kept(kube) == []


# Trainer: nodes, then the launcher that waits until they are ready


def node_of(name: str, jobs: int) -> corev1.Pod:
    """jobs: of its JobSet."""
    return with_labels(member(name, cpu=2), {REPLICATED_JOB: "node", "jobset.sigs.k8s.io/global-replicas": str(jobs)})


def test_nodes_of_a_train_job_start_whole_and_the_launcher_finds_its_room(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "3"), node("n1", "2")]))
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(node_of("node-0", 2))
    kube.run()
    assert kube.starts == []
    kube.create(node_of("node-1", 2))
    kube.run()
    assert kube.starts == [{"node-0", "node-1"}]
    assert kept(kube) == ["n0"]
    restarts(kube, world([node("n0", "3"), node("n1", "2")]))
    assert kept(kube) == ["n0"]
    kube.create(with_labels(member("launcher"), {REPLICATED_JOB: "launcher"}))
    kube.run()
    assert kube.pods["default/launcher"].node_name == "n0"
    assert kept(kube) == []


def test_nodes_after_initializers_and_before_the_launcher(world: Make) -> None:
    kube = KubeScheduler(world([node(f"n{number}", "3") for number in range(3)]))
    kube.apply(asking(group(minimum=5), cpu="8"))
    kube.create(*INITIALIZERS)
    kube.run()
    ended(kube, *INITIALIZERS)
    for number in range(2):
        assert len(kube.starts) == 1
        kube.create(node_of(f"node-{number}", 4))
        kube.run()
    assert kube.starts[1:] == [{"node-0", "node-1"}]
    assert len(kept(kube)) == 1


def test_nodes_after_initializers_without_a_launcher_start_whole(kube: KubeScheduler) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    ended(kube, *INITIALIZERS)
    for number in range(3):
        assert len(kube.starts) == 1
        kube.create(node_of(f"node-{number}", 3))
        kube.run()
    assert kube.starts[1:] == [{"node-0", "node-1", "node-2"}]


# Where no label says so: by time, if that is configured


def test_what_there_is_starts_once_no_member_has_come_for_so_long(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "3"), node("n1", "2")], in_part_after_seconds=60))
    kube.apply(asking(group(minimum=3), cpu="5"))
    first, second, last = member("a", cpu=2), member("b", cpu=2), member("c")
    kube.create(first)
    kube.run()
    kube.world.clock.now += 59
    kube.create(second)
    kube.run()
    kube.world.clock.now += 59
    seconds_pass(kube)
    assert kube.starts == [{"a", "b"}]
    assert kept(kube) == ["n0"]
    kube.create(last)
    kube.run()
    assert kube.pods[last.uid].node_name == "n0"
    assert kept(kube) == []


def test_not_before_and_not_without_that(world: Make) -> None:
    for seconds in (60, 0):
        kube = KubeScheduler(world([node("n0", "9")], in_part_after_seconds=seconds))
        kube.apply(asking(group(minimum=3), cpu="5"))
        kube.create(member("a", cpu=2), member("b", cpu=2))
        kube.run()
        kube.world.clock.now += 55 if seconds else 10_000
        seconds_pass(kube)
        assert kube.starts == []
        assert "current pods number: 2, minMember of group: 3" in kube.told["a"]


def test_members_of_the_next_phase_wait_for_each_other_whatever_the_match_policy(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "9")], in_part_after_seconds=60))
    kube.apply(group(minimum=4, match_policy="once-satisfied"))
    kube.create(member("a"), member("b"))
    kube.run()
    kube.world.clock.now += 60
    seconds_pass(kube)
    assert kube.starts == [{"a", "b"}]
    kube.create(member("c"))
    kube.run()
    assert len(kube.starts) == 1
    kube.create(member("d"))
    kube.run()
    assert kube.starts[1:] == [{"c", "d"}]


# Spark: a driver, and executors that only minResources speaks of


@pytest.fixture
def sparks(world: Make) -> KubeScheduler:
    """Two applications of five CPUs on two nodes of three: one fits."""
    kube = KubeScheduler(world([node("n0", "3"), node("n1", "3")]))
    for name in "ab":
        kube.apply(asking(group(name, minimum=1), cpu="5"))
        kube.create(driver(f"{name}-driver", name))
    return kube


def test_two_applications_that_do_not_fit_side_by_side_start_one_after_the_other(sparks: KubeScheduler) -> None:
    sparks.run()
    assert sparks.starts == [{"a-driver"}]
    executors = [executor(f"a-{number}", "a") for number in range(2)]
    sparks.create(*executors)
    sparks.run()
    assert all(sparks.pods[each.uid].node_name for each in executors)
    assert kept(sparks, "default/a") == []
    assert not sparks.pods["default/b-driver"].node_name
    sparks.delete(*executors, sparks.pods["default/a-driver"])
    sparks.run()
    assert sparks.pods["default/b-driver"].node_name


def with_memory(pod: corev1.Pod, memory: str) -> corev1.Pod:
    asked = {**pod.spec.containers[0].resources.requests, "memory": parse_quantity(memory)}
    container = structs.replace(pod.spec.containers[0], resources=corev1.ResourceRequirements(requests=asked))
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))


def test_executors_have_the_room_that_is_kept_though_minresources_names_no_memory(sparks: KubeScheduler) -> None:
    """spark-operator reads `4g` as a quantity of Kubernetes, which it is not, and leaves it out."""
    sparks.run()
    executors = [with_memory(executor(f"a-{number}", "a"), "1Gi") for number in range(2)]
    sparks.create(*executors)
    assert kept(sparks, "default/a") == [], "each has a part of it at once"
    sparks.run()
    assert all(sparks.pods[each.uid].node_name for each in executors)
    assert not sparks.pods["default/b-driver"].node_name


def test_the_room_is_kept_until_executors_of_another_shape_have_nodes(sparks: KubeScheduler) -> None:
    """They have none of it, since on which nodes their own resource is was not asked; no other gang has it meanwhile."""
    sparks.run()
    before = kept(sparks, "default/a")
    asked = {"cpu": parse_quantity("2"), "example.com/fpga": parse_quantity("1")}
    container = corev1.Container(resources=corev1.ResourceRequirements(requests=asked))
    late = executor("a-0", "a")
    late = structs.replace(late, spec=structs.replace(late.spec, containers=(container,)))
    sparks.create(late)
    del sparks.active[late.uid]  # kube-scheduler finds no such node yet
    sparks.run()
    assert kept(sparks, "default/a") == before
    assert not sparks.pods["default/b-driver"].node_name
    sparks.pods[late.uid] = sparks.world.on_nodes[late.uid] = on_node(late, before[1])
    sparks.plugin.on_pod(late, sparks.pods[late.uid])
    assert kept(sparks, "default/a") == before[:1], "the room of its own node goes"


def test_what_an_executor_leaves_of_a_piece_is_kept_for_the_next(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "9")]))
    kube.apply(asking(group("a", minimum=1), cpu="5"))
    kube.create(driver("a-driver", "a"))
    kube.run()
    assert kept(kube, "default/a") == ["n0"]
    kube.create(executor("a-0", "a"))
    kube.run()
    (rest,) = kube.plugin.manager.slots.to_come("default/a")
    assert rest.pod_info.requests.milli_cpu == 2000
    kube.create(executor("a-1", "a"))
    kube.run()
    assert kept(kube, "default/a") == []


def test_the_room_goes_with_the_driver(sparks: KubeScheduler) -> None:
    sparks.run()
    sparks.delete(sparks.pods["default/a-driver"])
    sparks.run()
    assert kept(sparks, "default/a") == []
    assert sparks.pods["default/b-driver"].node_name


def test_executors_beyond_what_was_asked_for_take_no_others_room(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "9")]))
    for name in "ab":
        kube.apply(asking(group(name, minimum=1), cpu="3"))
        kube.create(driver(f"{name}-driver", name))
    kube.run()
    kube.create(*(executor(f"a-{number}", "a") for number in range(4)))
    kube.run()
    assert sum(bool(kube.pods[f"default/a-{number}"].node_name) for number in range(4)) == 2
    kube.create(executor("b-0", "b"))
    kube.run()
    assert kube.pods["default/b-0"].node_name


def test_an_application_whose_executors_come_elsewhere_gives_back_what_is_too_much(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "9"), node("n1", "9")]))
    kube.apply(asking(group("a", minimum=1), cpu="3"))
    kube.create(driver("a-driver", "a"))
    kube.run()
    (first,) = kept(kube, "default/a")
    late = executor("a-0", "a")
    elsewhere = "n1" if first == "n0" else "n0"
    kube.create(structs.replace(late, spec=structs.replace(late.spec, node_name=elsewhere)))
    assert kept(kube, "default/a") == []


# What is asked for without measure


@pytest.mark.parametrize("cpu", ["1" + "0" * 30, "9"])
def test_what_is_asked_for_without_measure_costs_no_more(world: Make, cpu: str) -> None:
    kube = KubeScheduler(world([node("n0", "9")]))
    kube.apply(asking(group(minimum=2_000_000), cpu=cpu))
    kube.create(*INITIALIZERS)
    kube.run()
    assert kube.starts == []
    assert kube.world.plans <= 4
    assert len(list(kube.plugin.manager.slots)) == 0


def test_one_that_another_group_names_waits_for_all_its_members_and_comes_in_phases_without_that(
    kube: KubeScheduler,
) -> None:
    """Within a namespace the naming of one is enough, and one that starts with others comes in no phases."""
    kube.apply(TRAIN_JOB, group("beside", 1, groups="g"))
    kube.create(*INITIALIZERS, member("other", "beside"))
    kube.run()
    assert kube.starts == []
    assert kube.told["dataset"].endswith("minMember of group: 5")
    kube.apply(group("beside", 1))
    kube.run()
    assert kube.running() == {"dataset", "model", "other"}
    assert len(kept(kube)) == 3


def test_one_that_is_named_once_it_has_begun_goes_on_in_phases(kube: KubeScheduler) -> None:
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    kube.apply(group("beside", 1, groups="g"))
    kube.create(member("other", "beside"))
    kube.run()
    assert kube.running() == {"dataset", "model", "other"}
