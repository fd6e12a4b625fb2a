"""The report as text, 80 columns wide, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from pi_course_kit.output import WIDTH
from pi_course_kit.verify.matrix import Matrix, Row
from pi_course_kit.verify.rule import Finding, Rule
from pi_course_kit.verify.trial import Trial

COLUMN = 8
FIRST = 10


def matrix(found: Matrix, rules: Sequence[Rule]) -> str:
    """Rules down, chapters across, a word in each place."""
    fit = (WIDTH - FIRST) // COLUMN
    blocks = [found.rows[i : i + fit] for i in range(0, len(found.rows), fit)]
    return "\n\n".join("\n".join(_block(rows, rules)) for rows in blocks)


def _block(rows: Sequence[Row], rules: Sequence[Rule]) -> Iterator[str]:
    yield _line("rule", [row.chapter.nn for row in rows])
    for rule in rules:
        yield _line(rule.id, [_word(row.states[rule.id]) for row in rows])
    yield _line("noticed", [_score(row.proof) for row in rows])
    yield _line("faults", [str(len(row.chapter.faults)) for row in rows])
    yield _line("seconds", [f"{row.seconds:.1f}" for row in rows])


def _line(name: str, words: list[str]) -> str:
    return (f"{name:<{FIRST}}" + "".join(f"{word:<{COLUMN}}" for word in words)).rstrip()


def _score(proof: dict[str, Any]) -> str:
    kept = _mutants(proof)
    return f"{kept['noticed']}/{kept['total']}" if kept else "none"


def _mutants(proof: dict[str, Any]) -> dict[str, Any]:
    kept = proof.get("mutants", {})
    return {name: kept[name] for name in ("total", "noticed", "survivors") if name in kept}


def _word(state: str) -> str:
    return state.upper() if state == "failed" else state


def findings(found: Matrix) -> str:
    """Each failure: chapter and rule, what and where, what next."""
    parts: list[str] = []
    for row in found.rows:
        for rule, finding in row.findings:
            parts.append("\n".join(_finding(row.chapter.nn, rule, finding)))
    return "\n\n".join(parts)


def _finding(number: str, rule: str, finding: Finding) -> Iterator[str]:
    yield f"{number} {rule}: {finding.where}"
    for text in (finding.what, finding.do):
        for paragraph in text.split("\n"):
            if paragraph.strip():
                yield textwrap.fill(
                    " ".join(paragraph.split()),
                    WIDTH,
                    initial_indent="  ",
                    subsequent_indent="  ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )


def counts(found: Matrix, rules: Sequence[Rule]) -> str:
    return f"{len(found.rows)} snapshots, {found.faults} faults, {len(rules)} rules"


def trial(found: Trial) -> str:
    """One planted fault: caught, or what went red in place of it."""
    name = f"{found.name or 'nothing':<{2 * FIRST}}"
    if found.caught:
        return f"{name}{'caught' if found.name else 'green'}"
    if found.error:
        return f"{name}ERROR: {found.error}"
    return f"{name}NOT CAUGHT ALONE: red are {', '.join(found.red) or 'no rules'}"


def to_json(found: Matrix, rules: Sequence[Rule]) -> dict[str, Any]:
    return {
        "verdict": "green" if found.green else "red",
        "seconds": round(found.seconds, 2),
        "rules": {rule.id: rule.sentence for rule in rules},
        "chapters": [_row(row) for row in found.rows],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "chapter": row.chapter.id,
        "rules": dict(row.states),
        "faults": len(row.chapter.faults),
        "mutants": _mutants(row.proof),
        "digests": row.digests,
        "times": {rule: round(seconds, 2) for rule, seconds in row.times.items()},
        "seconds": round(row.seconds, 2),
        "findings": [
            {"rule": rule, "what": finding.what, "where": finding.where, "do": finding.do}
            for rule, finding in row.findings
        ],
    }
