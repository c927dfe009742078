"""For the schemathesis process: what it draws is led to topics and groups that exist, and costs little."""

from typing import Any

import schemathesis

EXISTING = {"topic": "orders", "group": "billing", "partition": 0, "offset": 0}
SMALL = {"num_partitions": 4, "count": 4, "timeout": "10ms", "wait": "10ms", "max_wait": "10ms"}
LARGEST = {"num_partitions": 10_000, "count": 10_000}
SOME = 3

_calls = 0


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: Any, kwargs: dict[str, Any]) -> None:
    global _calls  # noqa: PLW0603  a hook has no place of its own
    _calls += 1
    is_meant_well = case.meta is None or not case.meta.generation.mode.is_negative
    if is_meant_well and case.method != "DELETE" and _calls % SOME and isinstance(case.path_parameters, dict):
        case.path_parameters.update({k: v for k, v in EXISTING.items() if k in case.path_parameters})
    for given in (case.query, case.body):
        if isinstance(given, dict):
            for name, value in SMALL.items():
                if name not in given:
                    continue
                is_number = isinstance(given[name], int) and 0 < given[name] <= LARGEST.get(name, 0)
                if is_number or (name not in LARGEST and is_meant_well):
                    given[name] = value
