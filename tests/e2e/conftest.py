"""The control plane for all e2e tests, built before the first of them; the extender and kube-scheduler for each module.

Without Go (and without KUBEBUILDER_ASSETS) these tests are skipped, which the end of the run says loudly; with CI=true
that is a failure. After every test the recorded history is checked, whatever the test was about.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from tests.e2e.build import Binaries, UnavailableError, binaries, in_ci, with_composites
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair

HERE = Path(__file__).parent
BINARIES = pytest.StashKey[Binaries]()
COMPOSITES = pytest.StashKey[Binaries]()  # with an API server that serves CompositePodGroups
UNAVAILABLE = pytest.StashKey[str]()
NO_COMPOSITES = pytest.StashKey[str]()  # why there is none
FAILED = pytest.StashKey[bool]()


LONG = (
    "test_fault_run",
    "test_page",
    "test_sick_leader",
    "test_service",
    "test_jobs_in_phases",
    "test_hostile_objects",
    "test_mistakes",
)
"""Of a minute and more: first, so that no worker has one of them before it when the others are done. The rest of the end-to-end tests comes
next: each waits now and then, and what needs a processor alone is done beside the last of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In each module those come first that start programs of their own: two pairs at once would act on one cluster."""
    ranks = {name: rank for rank, name in enumerate(LONG)}
    paths = dict.fromkeys(item.path for item in items)
    end_to_end = {path for path in paths if HERE in path.parents}
    modules = sorted(paths, key=lambda path: (ranks.get(path.stem, len(LONG)), path not in end_to_end))
    places = {path: place for place, path in enumerate(modules)}
    items.sort(key=lambda item: (places[item.path], item.path in end_to_end and _with_the_module_s_pair(item)))
    for item in items:
        if item.path in end_to_end:
            item.add_marker(pytest.mark.e2e)


def _with_the_module_s_pair(item: pytest.Item) -> bool:
    return "module_programs" in getattr(item, "fixturenames", ())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds before any test runs, so that no test's own time limit has to cover it."""
    if session.config.option.collectonly or not any(HERE in item.path.parents for item in session.items):
        return
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    say = reporter.write_line if reporter else print
    try:
        session.config.stash[BINARIES] = binaries(say)
    except UnavailableError as error:
        session.config.stash[UNAVAILABLE] = str(error)
        return
    if any(item.get_closest_marker("composites") for item in session.items):
        try:
            session.config.stash[COMPOSITES] = with_composites(session.config.stash[BINARIES], say)
        except UnavailableError as error:
            session.config.stash[NO_COMPOSITES] = str(error)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if reason := config.stash.get(UNAVAILABLE, ""):
        terminalreporter.section("NOT RUN: the real control plane", sep="!", red=True, bold=True)
        terminalreporter.line(f"No test of tests/e2e has run. {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the logs of the programs that took part."""
    report = yield
    if report.failed and HERE in item.path.parents:
        item.session.stash[FAILED] = True
        for name in ("module_programs", "programs"):
            programs: Iterable[Extender | Scheduler] = item.funcargs.get(name, ())  # type: ignore[assignment]
            for program in programs:
                report.sections.append((f"log of {program.program.name}", program.program.tail(60)))
    return report


@pytest.fixture(scope="package")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if reason := request.config.stash.get(UNAVAILABLE, ""):
        if in_ci():
            pytest.fail(f"where CI=true this must run: {reason}", pytrace=False)
        pytest.skip(reason.splitlines()[0])
    started = ControlPlane(request.config.stash[BINARIES], tmp_path_factory.mktemp("control-plane"))
    try:
        started.start()
        Cluster(started).install_crd()
        yield started
    finally:
        started.stop()
        if request.session.stash.get(FAILED, False):
            print(f"\nlogs of the control plane: {started.folder}")


@pytest.fixture
def cluster(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """An empty cluster; at the end its history must be without fault, and so must the books of the module's extender."""
    made = Cluster(plane)
    made.recorder.start()
    try:
        yield made
        assert made.judged or made.violations() == []
        assert _wrong_books(request) == []
    finally:
        made.recorder.stop()
        made.clean()


def _wrong_books(request: pytest.FixtureRequest) -> list[str]:
    """Of the module's extender, where the story has it and has left it running."""
    pair = request.node.funcargs.get("module_programs")
    if not isinstance(pair, Pair) or pair.extender.books is None or not pair.extender.program.running:
        return []
    wrong = pair.extender.books.wrong()
    return ["the extender did not say what is in its books"] if wrong is None else wrong


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One pair for the tests of a module, which leave it running."""
    with Pair.of(plane, tmp_path_factory.mktemp("pair"), asked=True).running() as pair:
        yield pair


@pytest.fixture
def programs() -> Iterator[list[Extender | Scheduler]]:
    """What a test starts for itself: put it in here, and it is stopped, its log shown if the test failed."""
    started: list[Extender | Scheduler] = []
    yield started
    for program in reversed(started):
        program.stop()
