"""Tests mirror the gang room: what tests `state/group.py` is `state/test_group.py`, or `state/test_group_<aspect>.py`.

Stories, of gangs on their way through all of it, are in `stories/`, state machines that draw their steps at random in `machines/`.
"""

from __future__ import annotations

from pathlib import Path

import extender.plugins.coscheduling

ROOM = Path(extender.plugins.coscheduling.__file__).parent
TESTS = Path(__file__).parent

NO_FILE_OF_ITS_OWN = {
    "dependencies.py": "Protocols and values without a rule of their own",
    "events/gang_scheduler.py": "a Protocol",
    "builder.py": "puts the parts together: every story is of what it makes",
    "plugin.py": "it hands on what the framework asks: every story goes through it",
    "events/group_events.py": "hands each event on: stories/test_lifetimes.py",
    "events/object_events.py": "what follows from objects is a story: stories/test_lifetimes.py, machines/test_lifetimes_machine.py",
    "events/void_plans.py": "likewise: stories/test_races.py, stories/test_lifetimes.py",
    **dict.fromkeys(
        (
            "report/outlook.py",
            *(f"questions/{name}.py" for name in ("asked", "drain", "places", "what_if")),
        ),
        "a question and its answer: tests/unit/scheduler/test_what_if_stories.py, tests/unit/scheduler/test_drain_stories.py",
    ),
    "scheduling/plan/attempt.py": "what a plan begins with: scheduling/test_plan_request.py has the question itself",
}
OF_ALL_FILES = {
    "test_docs.py": "the pages for users",
    "test_locking.py": "what the manager's lock guards, in every file",
    "test_mirror.py": "this one",
}


def modules() -> set[str]:
    return {str(file.relative_to(ROOM)) for file in ROOM.rglob("*.py") if file.name != "__init__.py"}


def mirrors(test: Path, module: str) -> bool:
    name = test.stem.removeprefix("test_")
    stem = Path(module).stem
    return test.parent.relative_to(TESTS) == Path(module).parent and (name == stem or name.startswith(f"{stem}_"))


def files_of_tests() -> list[Path]:
    return [
        file for file in TESTS.rglob("test_*.py") if file.relative_to(TESTS).parts[0] not in ("stories", "machines")
    ]


def test_each_file_of_the_room_has_tests_of_its_own() -> None:
    without = {module for module in modules() if not any(mirrors(test, module) for test in files_of_tests())}
    assert without == NO_FILE_OF_ITS_OWN.keys()


def test_each_file_of_tests_is_named_after_a_file_of_the_room() -> None:
    known = modules()
    named = {
        str(test.relative_to(TESTS)) for test in files_of_tests() if not any(mirrors(test, module) for module in known)
    }
    assert named == OF_ALL_FILES.keys()


def test_what_stands_in_for_a_missing_file_is_there() -> None:
    files = [word.rstrip(",:;") for why in NO_FILE_OF_ITS_OWN.values() for word in why.split() if ".py" in word]
    places = [TESTS, TESTS.parents[3]]
    assert [file for file in files if not any((place / file).exists() for place in places)] == []


def test_no_folder_has_more_than_fourteen_files() -> None:
    folders = {folder.parent for folder in ROOM.rglob("*.py")}
    crowded = {str(folder.relative_to(ROOM)) for folder in folders if len(list(folder.glob("*.py"))) > 14}
    assert crowded == set()
