"""Rule: what `pi-course compare` runs gives the same trace on the target, each time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pi_course_kit import compare
from pi_course_kit.verify.case import Case
from pi_course_kit.verify.rule import Finding, Rule, swap

SEEDS = (1, 2)  # of the hashes, which decide the order of sets


def scenarios(case: Case) -> Iterator[Finding]:
    for scenario in case.chapter.scenarios:
        where = f"{case.name(case.toml)}, scenario {scenario.id}"
        run = partial(compare.run, case.target_root, scenario.code)
        with ThreadPoolExecutor(len(SEEDS)) as pool:
            first, second = [
                done.result() for done in [pool.submit(run, seed=seed) for seed in SEEDS]
            ]
        end = first.entries[-1]
        values = [entry["value"] for entry in first.entries if entry["kind"] == "value"]
        if end["kind"] != "end":
            yield Finding(
                f"it does not end on the target: {end['kind']} {end['value']}".rstrip(),
                where,
                "Correct its code.",
            )
        elif not values:
            yield Finding("it traces nothing", where, "Call trace(value) for what can differ.")
        elif values != [entry["value"] for entry in second.entries if entry["kind"] == "value"]:
            yield Finding(
                "it traces other values in a second run",
                where,
                "Trace what does not hang on hashes, addresses or time.",
            )


RULES = (
    Rule(
        "scenarios",
        "Each scenario of compare runs on the target and traces the same values each time.",
        scenarios,
        swap("checkpoints/01-hello/checkpoint.toml", 'trace(hello("Ann"))', "pass"),
        needs=("target",),
        more={
            "raises": swap(
                "checkpoints/01-hello/checkpoint.toml", 'trace(hello("Ann"))', "trace(hello())"
            ),
            "hashes": swap(
                "checkpoints/01-hello/checkpoint.toml", 'trace(hello("Ann"))', 'trace(hash("Ann"))'
            ),
        },
        apart=True,
    ),
)
