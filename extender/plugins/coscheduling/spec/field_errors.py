"""What is wrong with a value that a user has written, in the API server's words.

The parsers of spec raise these, `Reading` puts the key or the field before them. A value is quoted up to 63 characters.
Kubernetes: k8s.io/apimachinery/pkg/util/validation/field/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable

QUOTED = 63  # characters of a value


class FieldError(ValueError):
    """A value that its owner has to correct; the text says what is wrong with it."""


def invalid(value: object, wanted: str) -> FieldError:
    return FieldError(f"Invalid value: {quoted(value)}: {wanted}")


def unsupported(value: str, supported: Iterable[str]) -> FieldError:
    known = ", ".join(f'"{each}"' for each in supported)
    return FieldError(f"Unsupported value: {quoted(value)}: supported values: {known}")


def duplicate(value: str) -> FieldError:
    return FieldError(f"Duplicate value: {quoted(value)}")


def too_long(value: str, longest: int) -> FieldError:
    return FieldError(f"Too long: {quoted(value)}: may not be more than {longest} characters")


def too_many(most: int, things: str, number: int | None = None) -> FieldError:
    """number: how many there are; None where they were not counted to the end."""
    counted = f"{number}: " if number is not None else ""
    return FieldError(f"Too many: {counted}must have at most {most} {things}")


def quoted(value: object) -> str:
    """On one line, with no control characters, and cut."""
    if isinstance(value, str):
        return repr(value[:QUOTED]) + ("..." if len(value) > QUOTED else "")
    if isinstance(value, int) and abs(value) >= 10**QUOTED:
        return f"a number of more than {QUOTED} digits"  # Python refuses to write thousands of them
    return str(value)[: 2 * QUOTED]
