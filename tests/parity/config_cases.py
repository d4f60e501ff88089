"""KubeSchedulerConfigurations with mistakes, each with one or a few: what the oracle of configurations is asked.

tests/parity/record_configs.py records the answers, test_configs.py compares. JSON values as they stand in files.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
VERSION = "kubescheduler.config.k8s.io/v1"
LONG = "x" * 64


def profile(*config: Json, **fields: Any) -> Json:
    body: Json = {"schedulerName": "default-scheduler", **fields}
    if config:
        body["pluginConfig"] = list(config)
    return body


def plugin(name: str, **args: Any) -> Json:
    return {"name": name, "args": args}


def configuration(*profiles: Json, **fields: Any) -> Json:
    body: Json = {"apiVersion": VERSION, "kind": "KubeSchedulerConfiguration", **fields}
    if profiles:
        body["profiles"] = list(profiles)
    return body


def args(name: str, **fields: Any) -> Json:
    return configuration(profile(plugin(name, **fields)))


def fit(type_: Any = "LeastAllocated", **fields: Any) -> Json:
    return args("NodeResourcesFit", scoringStrategy={"type": type_, **fields})


def ratio(*points: tuple[int, int]) -> Json:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return fit("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


def affinity(*expressions: Json, field: str = "matchExpressions") -> Json:
    term = {"nodeSelectorTerms": [{field: list(expressions)}]}
    return args("NodeAffinity", addedAffinity={"requiredDuringSchedulingIgnoredDuringExecution": term})


def preferred(*terms: Json) -> Json:
    return args("NodeAffinity", addedAffinity={"preferredDuringSchedulingIgnoredDuringExecution": list(terms)})


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def spread(*constraints: Json, type_: str | None = "List") -> Json:
    fields: Json = {"defaultConstraints": list(constraints)}
    if type_ is not None:
        fields["defaultingType"] = type_
    return args("PodTopologySpread", **fields)


def constraint(**fields: Any) -> Json:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


def extender(**fields: Any) -> Json:
    return {"urlPrefix": "http://localhost", **fields}


def managed(*names: str) -> Json:
    return extender(managedResources=[{"name": name} for name in names])


ARGUMENTS: dict[str, Json] = {
    "preemption: percentage below": args("DefaultPreemption", minCandidateNodesPercentage=-1),
    "preemption: percentage above": args("DefaultPreemption", minCandidateNodesPercentage=101),
    "preemption: absolute below": args("DefaultPreemption", minCandidateNodesAbsolute=-1),
    "preemption: both zero": args("DefaultPreemption", minCandidateNodesPercentage=0, minCandidateNodesAbsolute=0),
    "preemption: both wrong": args("DefaultPreemption", minCandidateNodesPercentage=-1, minCandidateNodesAbsolute=-2),
    "affinity weight below": args("InterPodAffinity", hardPodAffinityWeight=-1),
    "affinity weight above": args("InterPodAffinity", hardPodAffinityWeight=101),
    "fit: no such strategy": fit("Random"),
    "fit: no strategy named": fit(""),
    "fit: no strategy named, and a ratio": fit(
        "", requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 0}]}
    ),
    "fit: no strategy": args("NodeResourcesFit", scoringStrategy=None),
    "fit: weight above": fit(resources=[{"name": "cpu", "weight": 101}]),
    "fit: weight below": fit(
        "MostAllocated", resources=[{"name": "cpu", "weight": -1}, {"name": "memory", "weight": 1}]
    ),
    "fit: weight zero is the default": fit(resources=[{"name": "cpu", "weight": 0}]),
    "fit: one resource twice": fit(resources=[{"name": "cpu"}, {"name": "cpu"}]),
    "fit: ratio missing": fit("RequestedToCapacityRatio"),
    "fit: ratio of another strategy": fit(requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 0}]}),
    "fit: empty ratio of another strategy": fit(requestedToCapacityRatio={}),
    "ratio: no points": ratio(),
    "ratio: not sorted": ratio((50, 1), (50, 2), (40, 3)),
    "ratio: out of range": ratio((-1, -1), (101, 11)),
    "ratio: all of it": ratio((101, 11), (-1, -1)),
    "ignored resources": args("NodeResourcesFit", ignoredResources=["example.com/ok", "-bad", "a/b/c", "", LONG]),
    "ignored groups": args(
        "NodeResourcesFit", ignoredResourceGroups=["example.com", "example.com/foo", "a/b/c", "-", ""]
    ),
    "balanced: weight": args("NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 2}]),
    "balanced: weight zero is the default": args(
        "NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 0}]
    ),
    "balanced: twice": args(
        "NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}, {"name": "cpu", "weight": 3}]
    ),
    "volumes: time below": args("VolumeBinding", bindTimeoutSeconds=-10),
    "volumes: a shape": args("VolumeBinding", shape=[{"utilization": 0, "score": 0}]),
    "volumes: an empty shape": args("VolumeBinding", shape=[]),
    "devices: filter time below": args("DynamicResources", filterTimeout="-1s"),
    "devices: filter time zero": args("DynamicResources", filterTimeout="0s"),
    "devices: binding time": args("DynamicResources", bindingTimeout="500ms"),
    "devices: both": args("DynamicResources", filterTimeout="-1h", bindingTimeout="0s"),
    "spread: no such type": spread(type_="Other"),
    "spread: no such type and constraints": spread(constraint(), type_="Other"),
    "spread: constraints of the system": spread(constraint(), type_="System"),
    "spread: constraints without a type": spread(constraint(), type_=None),
    "spread: skew zero": spread(constraint(maxSkew=0)),
    "spread: skew below": spread(constraint(maxSkew=-3)),
    "spread: no skew": spread({"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}),
    "spread: no key": spread(constraint(topologyKey="")),
    "spread: bad key": spread(constraint(topologyKey="a/b/c")),
    "spread: no action": spread({"maxSkew": 1, "topologyKey": "zone"}),
    "spread: no such action": spread(constraint(whenUnsatisfiable="Never")),
    "spread: a selector": spread(constraint(labelSelector={"matchLabels": {"a": "b"}})),
    "spread: an empty selector": spread(constraint(labelSelector={})),
    "spread: twice": spread(constraint(), constraint(maxSkew=2), constraint(whenUnsatisfiable="ScheduleAnyway")),
    "spread: three times": spread(constraint(), constraint(), constraint()),
    "spread: twice, no such action": spread(constraint(whenUnsatisfiable="X"), constraint(whenUnsatisfiable="X")),
    "spread: everything": spread({"maxSkew": 0}, {"labelSelector": {}}, type_="System"),
    "spread: domains and policies": spread(constraint(minDomains=-1, nodeAffinityPolicy="x", nodeTaintsPolicy="y")),
    "affinity: values missing": affinity(expression("a", "In")),
    "affinity: values too many": affinity(expression("a", "Exists", "v")),
    "affinity: not a number": affinity(expression("a", "Gt", "x")),
    "affinity: two numbers": affinity(expression("a", "Lt", "1", "2")),
    "affinity: no such operator": affinity(expression("a", "Near", "v")),
    "affinity: no operator": affinity({"key": "a", "values": ["v"]}),
    "affinity: bad key": affinity(expression("a/b/c", "In", "v")),
    "affinity: no key": affinity(expression("", "In", "v")),
    "affinity: bad value": affinity(expression("a", "In", "-v-")),
    "affinity: several": affinity(expression("a", "In"), expression("b", "Near"), expression("c", "Gt", "x")),
    "affinity: a field": affinity(expression("metadata.name", "In", "n"), field="matchFields"),
    "affinity: a field with two values": affinity(expression("metadata.name", "In", "n", "m"), field="matchFields"),
    "affinity: a field that exists": affinity(expression("metadata.name", "Exists"), field="matchFields"),
    "affinity: another field": affinity(expression("metadata.uid", "In", "n"), field="matchFields"),
    "affinity: an empty term": args(
        "NodeAffinity",
        addedAffinity={"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}},
    ),
    "affinity: no terms": args(
        "NodeAffinity", addedAffinity={"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    ),
    "preferred: weight": preferred({"weight": 0, "preference": {"matchExpressions": [expression("a", "In")]}}),
    "preferred: bad": preferred({"weight": 2, "preference": {"matchExpressions": [expression("a", "In")]}}),
    "preferred: weight above": preferred(
        {"weight": 200, "preference": {"matchExpressions": [expression("a", "In", "v")]}}
    ),
}

FILES: dict[str, Json] = {
    "empty": configuration(),
    "parallelism zero": configuration(parallelism=0),
    "parallelism below": configuration(parallelism=-1),
    "percentage below": configuration(percentageOfNodesToScore=-1),
    "percentage above": configuration(percentageOfNodesToScore=101),
    "percentage of a profile": configuration(profile(percentageOfNodesToScore=101)),
    "back-off zero": configuration(podInitialBackoffSeconds=0),
    "back-off below": configuration(podInitialBackoffSeconds=-1, podMaxBackoffSeconds=-2),
    "back-off less than the first": configuration(podInitialBackoffSeconds=5, podMaxBackoffSeconds=2),
    "back-off first above the default": configuration(podInitialBackoffSeconds=20),
    "no name in two": configuration({"percentageOfNodesToScore": 1}, {"percentageOfNodesToScore": 2}),
    "no name in one": configuration({"percentageOfNodesToScore": 1}),
    "the same name": configuration(profile(), profile()),
    "the same name three times": configuration(profile(), profile(schedulerName="b"), profile(), profile()),
    "two queue sorts": configuration(
        profile(plugins={"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}),
    ),
    "unlike queue sorts": configuration(
        profile(),
        profile(
            schedulerName="b",
            plugins={"queueSort": {"enabled": [{"name": "A"}], "disabled": [{"name": "*"}]}},
        ),
    ),
    "removed plugins": configuration(
        profile(plugin("EBSLimits"), plugins={"filter": {"enabled": [{"name": "AzureDiskLimits"}]}})
    ),
    "a removed plugin at multiPoint": configuration(
        profile(plugins={"multiPoint": {"enabled": [{"name": "CinderLimits"}]}})
    ),
    "a removed plugin disabled": configuration(profile(plugins={"filter": {"disabled": [{"name": "GCEPDLimits"}]}})),
    "arguments twice": configuration(profile(plugin("InterPodAffinity"), plugin("InterPodAffinity"))),
    "arguments twice, the second wrong": configuration(
        profile(plugin("InterPodAffinity"), plugin("InterPodAffinity", hardPodAffinityWeight=-1))
    ),
    "arguments of an unknown plugin": configuration(profile(plugin("Mine", anything=[1]))),
    "extender: weight missing": configuration(extenders=[extender(prioritizeVerb="p")]),
    "extender: weight below": configuration(extenders=[extender(prioritizeVerb="p", weight=-1)]),
    "extender: weight below without the verb": configuration(extenders=[extender(weight=-1)]),
    "extender: two bind": configuration(extenders=[extender(bindVerb="b"), extender(bindVerb="b")]),
    "extender: resources": configuration(
        extenders=[managed("example.com/a", "cpu", "kubernetes.io/b", "-x", "a/b/c", "")]
    ),
    "extender: resources twice": configuration(
        extenders=[managed("example.com/a", "example.com/a"), managed("example.com/a")]
    ),
    "extender: quota": configuration(extenders=[managed("requests.example.com/a")]),
    "leader election: no times": configuration(
        leaderElection={"leaderElect": True, "leaseDuration": "0s", "renewDeadline": "0s", "retryPeriod": "0s"}
    ),
    "leader election: below": configuration(
        leaderElection={"leaderElect": True, "leaseDuration": "-1s", "renewDeadline": "-1s", "retryPeriod": "-1s"}
    ),
    "leader election: order": configuration(
        leaderElection={"leaderElect": True, "leaseDuration": "5s", "renewDeadline": "10s", "retryPeriod": "2s"}
    ),
    "leader election: no lock of this kind": configuration(
        leaderElection={"leaderElect": True, "resourceLock": "endpoints"}
    ),
    "leader election: off": configuration(leaderElection={"leaderElect": False, "leaseDuration": "-1s"}),
    "leader election: no name": configuration(leaderElection={"resourceName": "", "resourceNamespace": ""}),
    "client: burst": configuration(clientConnection={"burst": -1}),
    "everything at once": configuration(
        profile(plugin("InterPodAffinity", hardPodAffinityWeight=-1), plugin("VolumeBinding", bindTimeoutSeconds=-1)),
        profile(plugin("DefaultPreemption", minCandidateNodesAbsolute=-1)),
        parallelism=0,
        percentageOfNodesToScore=200,
        podInitialBackoffSeconds=0,
        extenders=[extender(prioritizeVerb="p"), extender(bindVerb="a"), extender(bindVerb="b")],
    ),
}

CASES: dict[str, Json] = {**ARGUMENTS, **FILES}
