"""Numbers and times of every kind that is read are within Go's ranges, so that all can be computed with and compared."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import inspect

from extender.api.extenderv1 import ExtenderArgs, ExtenderPreemptionArgs
from extender.client.interface import RESOURCE_TYPES
from tests.filled import fields, not_null

TYPES = [*(each.type for each in RESOURCE_TYPES), ExtenderArgs, ExtenderPreemptionArgs]


@pytest.mark.parametrize("type_", TYPES, ids=lambda type_: f"{type_.__module__.rpartition('.')[2]}.{type_.__name__}")
def test_every_number_and_every_time_has_its_range(type_: type[Any]) -> None:
    for place, field in fields(type_):
        of = not_null(field.type)
        if isinstance(of, inspect.DictType | inspect.VarTupleType):
            of = not_null(of.value_type if isinstance(of, inspect.DictType) else of.item_type)
        if isinstance(of, inspect.IntType):
            assert (of.ge, of.le) in [(-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)], place
        if isinstance(of, inspect.DateTimeType):
            assert of.tz, place
        assert not isinstance(of, inspect.FloatType | inspect.AnyType), place
