"""`whatif`: whether a gang that is not there yet would fit: where, or what is missing, and what would make it fit.

A gang of alike members by flags, or what a manifest makes: the files are read here, their workloads expanded into pods, and priorities
looked up, so that the extender is asked about pods and PodGroups alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from extender.cli import asking, namespaces, output
from extender.cli.errors import NoAnswerError, UsageError

if TYPE_CHECKING:
    from extender.client.connection import Connection
    from extender.client.embedded.load import Places

Raw = dict[str, Any]

NAME = "what-if"
IN_REQUEST = re.compile(
    r"(?P<text>.*) - at `\$\.(?P<list>pods|podGroups)(?:\[(?P<number>[0-9]+)\](?P<field>.*))?`", re.DOTALL
)
"""How the extender names the place of what is wrong in a question."""
MOST_MEMBERS = 10_000  # the extender itself takes no more than it can hold bind calls

NATIVE = ("cpu", "memory", "ephemeral-storage")
"""Resources of containers that need no domain, beside hugepages-SIZE. Go: helper.IsStandardContainerResourceName"""

EXAMPLES = {
    "whatif --members 8 --requests cpu=4,nvidia.com/gpu=8": "would eight such pods start now, and where",
    "whatif --members 8 --requests cpu=4 --topology-required rack": "all of them in one rack",
    "whatif --members 8 --requests cpu=4 --priority-class high": "and whose room they would take",
    "whatif -f job.yaml": "what a manifest makes, before it is applied",
    "whatif -f -": "the same from standard input, as in `helm template . | kubectl gang whatif -f -`",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--members", type=int, metavar="N", help="of the gang; all of them have to start")
    parser.add_argument(
        "--requests",
        action="append",
        default=[],
        metavar="NAME=AMOUNT,...",
        help="of each member, as in cpu=4,memory=16Gi,nvidia.com/gpu=8",
    )
    parser.add_argument(
        "--topology-required", default="", metavar="LEVEL", help="all of them in one domain of this level"
    )
    parser.add_argument("--topology-preferred", default="", metavar="LEVEL", help="if that can be")
    parser.add_argument(
        "--node-selector",
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="of each member; may be given again",
    )
    parser.add_argument("--priority-class", default="", metavar="NAME", help="of the cluster; its default without one")
    parser.add_argument("--priority", type=int, metavar="N", help="in place of a class, where no cluster is named")
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="pods, PodGroups and workloads that make them, in place of --members; - for standard input; may be given again",
    )
    namespaces.add_arguments(parser, lists=False)
    output.add_arguments(parser, "wide")
    asking.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 with an answer, whatever it says."""
    from msgspec.structs import replace

    from extender.api import codec
    from extender.cli import outlook_text, quotas, terminal
    from extender.plugins.coscheduling.report.outlook import WhatIf

    _check(args)
    with asking.named_cluster(args) as cluster:
        classes = _listed(cluster) if cluster is not None and args.priority is None else {}
        places: Places = {}
        question = of_files(args.filename, classes, places) if args.filename else of_flags(args, classes)
        try:
            body = asking.answer(asking.extender_in(args, cluster), _path(question), body=codec.encode(question))
        except UsageError as error:
            raise UsageError(located(str(error), question, places)) from error
        found = codec.decode(body, WhatIf)
        if cluster is not None:
            found = replace(found, quotas=quotas.refusals(cluster, question))
    if args.output in output.FOR_PROGRAMS:
        output.dump(codec.encode(found), args.output)
    else:
        output.show(outlook_text.of_what_if(found, terminal.of(), wide=args.output == "wide"))
    return 0


def located(message: str, question: Raw, places: Places) -> str:
    """What the extender says of the question, with the place in the file in place of that in the request. places: empty where no file
    is asked about."""
    told = IN_REQUEST.fullmatch(message)
    if told is None:
        return message
    objects = question.get(told["list"]) or []
    if told["number"] is None or int(told["number"]) >= len(objects):
        return f"whatif: {told['text']}"
    metadata, field = objects[int(told["number"])]["metadata"], told["field"].lstrip(".")
    kind = "Pod" if told["list"] == "pods" else "PodGroup"
    namespace, name = metadata.get("namespace") or namespaces.DEFAULT, metadata["name"]
    parts = [places.get((kind, namespace, name), "whatif"), f"{kind} {namespace}/{name}", *([field] if field else [])]
    return f"{': '.join(parts)}: {told['text']}"


def _path(question: Raw) -> str:
    """A question about one namespace is one that its own users may ask."""
    objects = (*question["podGroups"], *question["pods"])
    about = {each["metadata"].get("namespace") or namespaces.DEFAULT for each in objects}
    return f"/whatif?{urlencode({'namespace': about.pop()})}" if len(about) == 1 else "/whatif"


def _check(args: argparse.Namespace) -> None:
    flags = {
        "--members": args.members,
        "--requests": ",".join(args.requests),
        "--topology-required": args.topology_required,
        "--topology-preferred": args.topology_preferred,
        "--node-selector": ",".join(args.node_selector),
        "--priority-class": args.priority_class,
        "--priority": args.priority,
    }
    given = [name for name, value in flags.items() if value not in (None, "")]
    if args.filename and given:
        raise UsageError(f"whatif: {given[0]} says of members what the files of -f say themselves")
    if not args.filename and args.members is None:
        raise UsageError("whatif: wanted --members N, or -f FILE")
    if args.members is not None and not 1 <= args.members <= MOST_MEMBERS:
        raise UsageError(f"whatif: --members {args.members}: wanted 1 to {MOST_MEMBERS}")
    if args.priority_class and args.priority is not None:
        raise UsageError("whatif: --priority and --priority-class do not go together")


Classes = Mapping[str, Raw]
"""PriorityClasses by name, as the API server has them."""


def _listed(cluster: Connection) -> Classes:
    """None where the cluster does not let us see them."""
    from extender.api import codec
    from extender.client.errors import ApiError, ForbiddenError
    from extender.client.interface import PRIORITY_CLASSES, list_all

    try:
        return {each.metadata.name: codec.to_builtins(each) for each in list_all(cluster, PRIORITY_CLASSES)}
    except ForbiddenError:
        return {}
    except ApiError as error:
        raise NoAnswerError(f"the PriorityClasses cannot be read: {error}") from error


def of_flags(args: argparse.Namespace, classes: Classes) -> Raw:
    """The body of the question. Raises UsageError."""
    from extender.api.schedulingv1alpha1 import GROUP, POD_GROUP_LABEL, VERSION
    from extender.client.embedded.defaults import BUILT_IN_PRIORITIES

    namespace = namespaces.chosen(args) or namespaces.DEFAULT
    requests = pairs("--requests", ",".join(args.requests))
    _check_amounts(requests)
    spec: Raw = {"schedulerName": "", "containers": [{"name": "member", "resources": {"requests": requests}}]}
    if selector := pairs("--node-selector", ",".join(args.node_selector)):
        spec["nodeSelector"] = selector
    known = {name: {"value": value} for name, value in BUILT_IN_PRIORITIES.items()} | dict(classes)
    if args.priority_class and args.priority_class not in known:
        raise UsageError(
            f"whatif: --priority-class {args.priority_class}: no such PriorityClass is known; --priority N says a number"
        )
    chosen = known.get(args.priority_class) or default_class(classes)
    if args.priority_class:
        spec["priorityClassName"] = args.priority_class  # quotas may be of a class
    spec["priority"] = args.priority if args.priority is not None else chosen.get("value", 0)
    if policy := chosen.get("preemptionPolicy"):
        spec["preemptionPolicy"] = policy
    levels = {"topology-required": args.topology_required, "topology-preferred": args.topology_preferred}
    group = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PodGroup",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "annotations": {f"gang-extender.dev/{key}": level for key, level in levels.items() if level},
        },
        "spec": {"minMember": args.members},
    }
    metadata = {"namespace": namespace, "labels": {POD_GROUP_LABEL: NAME}}
    pods = [{"metadata": {**metadata, "name": f"{NAME}-{number}"}, "spec": spec} for number in range(args.members)]
    return {"podGroups": [group], "pods": pods}


def _check_amounts(requests: Mapping[str, str]) -> None:
    """What an API server refuses of a container: a resource that no node can have would be left out of the count."""
    from extender.api.quantity import parse_quantity
    from extender.config.validation import qualified_name

    for name, amount in requests.items():
        where = f"whatif: --requests {name}={amount}"
        native = "/" not in name
        if qualified_name(name) or (native and name not in NATIVE and not name.startswith("hugepages-")):
            raise UsageError(
                f"{where}: no such resource: wanted {', '.join(NATIVE)}, or DOMAIN/NAME as in nvidia.com/gpu"
            )
        try:
            quantity = parse_quantity(amount)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from error
        if quantity.milli_value < 0:
            raise UsageError(f"{where}: wanted zero or more")
        if not native and quantity.milli_value % 1000:
            raise UsageError(f"{where}: wanted a whole number")


def pairs(flag: str, text: str) -> dict[str, str]:
    """`a=1,b=2`. Raises UsageError."""
    found: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, equals, value = part.partition("=")
        if not (key and equals and value) or key in found:
            raise UsageError(f"whatif: {flag} {part}: wanted each NAME=VALUE once, with commas between them")
        found[key] = value
    return found


def default_class(classes: Classes) -> Raw:
    """Go: admission/priority: of several the one of the lowest value."""
    found = [each for each in classes.values() if each.get("globalDefault")]
    return min(found, key=lambda each: int(each.get("value", 0)), default={})


def of_files(files: Sequence[str], classes: Classes, places: Places | None = None) -> Raw:
    """The body of the question, of all pods and PodGroups that the files make. places: filled in with where each stands. Raises
    UsageError."""
    from extender.api.codec import DecodeError, to_builtins
    from extender.client.embedded import EmbeddedAPI
    from extender.client.embedded.documents import read_documents
    from extender.client.embedded.load import load_documents
    from extender.client.interface import (
        FOREIGN_POD_GROUPS,
        IN_TREE_GROUPS,
        POD_GROUPS,
        PODS,
        PRIORITY_CLASSES,
        ResourceType,
        list_all,
    )

    api = EmbeddedAPI()
    try:
        documents = [document for file in files for document in read_documents(Path(file))]
        own = {
            document.object.get("metadata", {}).get("name")
            for document in documents
            if document.object["kind"] == PRIORITY_CLASSES.kind
        }
        for name in classes.keys() - own:  # what a file says comes before what the cluster has
            api.create(PRIORITY_CLASSES, {**classes[name], "metadata": {"name": name}})
        loaded = load_documents(api, documents, places=places)
    except DecodeError as error:
        raise UsageError(str(error)) from error
    if loaded.misspelt:
        raise UsageError(f"no such field: {'; '.join(loaded.misspelt[:3])}")
    default = default_class(classes).get("value", 0)
    pods = [_asked(to_builtins(pod), default) for pod in list_all(api, PODS) if not pod.node_name]
    kinds: tuple[ResourceType[Any], ...] = (POD_GROUPS, *IN_TREE_GROUPS, *FOREIGN_POD_GROUPS)
    groups = [
        {**to_builtins(group), "apiVersion": resource.api_version, "kind": resource.kind}
        for resource in kinds
        for group in list_all(api, resource)
    ]
    if not pods:
        raise UsageError(f"{', '.join(files)}: no pod is made by what is in it")
    return {"podGroups": groups, "pods": pods}


def _asked(pod: Raw, default: int) -> Raw:
    """Without what an API server adds. default: the priority of a pod without a class."""
    metadata = {key: value for key, value in pod["metadata"].items() if key not in ("uid", "creationTimestamp")}
    spec = dict(pod.get("spec", {}))
    if not spec.get("priorityClassName"):
        spec["priority"] = spec.get("priority") or default
    return {"metadata": metadata, "spec": spec}
