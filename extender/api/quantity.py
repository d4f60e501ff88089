"""Resource quantities, parsed as Go parses them: strictly, exactly, rounding up.

Every struct with resources decodes them into `Quantity` at the edge, so that a bad one is an error with its path.
Kubernetes: k8s.io/apimachinery/pkg/api/resource/quantity.go
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_INT64 = 2**63 - 1

_SYNTAX = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([eE][+-]?[0-9]{1,4})|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?", re.ASCII
)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

MAX_TEXT = 64  # a longer text is no amount that a user means, and would cost time to compute


class QuantityError(ValueError):
    """A text that is no quantity. Says the text, and the form that is wanted."""


class Quantity:
    """An amount of a resource; equal texts share one instance.

    `milli_value` and `value` round away from zero, as Go's MilliValue() and Value() do, and saturate at 2^63-1.
    """

    __slots__ = ("milli_value", "text", "value")

    def __init__(self, text: str, value: int, milli_value: int) -> None:
        self.text = text
        self.value = value
        self.milli_value = milli_value

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return (self.value, self.milli_value) == (other.value, other.milli_value)

    def __hash__(self) -> int:
        return hash((self.value, self.milli_value))


def _saturated(amount: int) -> int:
    return max(-MAX_INT64 - 1, min(MAX_INT64, amount))


def _scaled(digits: int, power_of_ten: int, power_of_two: int) -> int:
    """digits * 10^power_of_ten * 2^power_of_two, rounded away from zero to a whole number."""
    negative, digits = digits < 0, abs(digits)
    digits <<= power_of_two
    if power_of_ten >= 0:
        digits *= 10**power_of_ten
    else:
        digits = -(-digits // 10**-power_of_ten)
    return _saturated(-digits if negative else digits)


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    match = _SYNTAX.fullmatch(text) if len(text) <= MAX_TEXT else None
    if match is None or not (match[2] or match[3]):
        raise QuantityError(
            f"quantity {text[:MAX_TEXT]!r}: wanted a number, with a suffix of Kubernetes or without: 4, 0.5, 500m, 16Gi"
        )
    sign, whole, fraction, exponent, suffix = match.groups()
    fraction = fraction or ""
    digits = int(sign + ((whole or "") + fraction or "0"))
    power = -len(fraction)
    binary = 0
    if exponent is not None:
        power += int(exponent[1:])
        if abs(power) > 400 and digits:
            raise QuantityError(f"quantity {text!r} has an exponent out of range")
        power = max(-400, min(400, power))
    elif suffix in _BINARY:
        binary = _BINARY[suffix]
    elif suffix is not None:
        power += _DECIMAL[suffix]
    return Quantity(text, _scaled(digits, power, binary), _scaled(digits, power + 3, binary))


def parse_quantity(raw: object) -> Quantity:
    """The quantity that a JSON or YAML value means: a string, or a plain number as kubectl accepts it.

    Raises QuantityError for anything else: NaN, `1_000`, non-ASCII digits, absurd exponents, bools.
    """
    if isinstance(raw, str):
        return _parse(raw)
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return _parse(repr(raw))
    raise QuantityError(f"quantity must be a string or a number, got {_KINDS.get(type(raw), type(raw).__name__)}")


_KINDS = {type(None): "null", bool: "a bool", dict: "a mapping", list: "a list"}
"""In the words of YAML and JSON."""


ResourceList = dict[str, Quantity]
"""Resource name -> amount, as in `resources.requests` and `status.allocatable`."""
