"""The report as one static page: matrix, mutation scores, digests, times. No script in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from pi_course_kit.errors import CourseError
from pi_course_kit.verify import text
from pi_course_kit.verify.matrix import Matrix, Row
from pi_course_kit.verify.rule import Rule

STYLE = """\
:root { color-scheme: light dark; --line: #c8c8c8; --good: #1d6b34; --bad: #a3152a; --dim: #666; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444; --good: #7fd196; --bad: #ff8f9c; --dim: #a0a0a0; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: left;
  vertical-align: top; }
th:first-child { white-space: nowrap; position: sticky; left: 0; background: Canvas; }
td { min-width: 3.5rem; }
thead th { font-weight: 600; } tbody th { font-weight: 400; }
.passed { color: var(--good); } .failed { color: var(--bad); font-weight: 700; }
.waits, .na { color: var(--dim); }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
li { margin-bottom: .6rem; overflow-wrap: anywhere; }
"""


def write(found: Matrix, rules: Sequence[Rule], folder: Path) -> None:
    """index.html and report.json in `folder`, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        report = json.dumps(text.to_json(found, rules), indent=2, ensure_ascii=False) + "\n"
        (folder / "report.json").write_text(report, encoding="utf-8", newline="\n")
        (folder / "index.html").write_text(html(found, rules), encoding="utf-8", newline="\n")
    except OSError as error:
        raise CourseError(
            f"The report can't be written to {folder}: {error.strerror or error}. "
            "Name another folder: --report DIR."
        ) from error


def html(found: Matrix, rules: Sequence[Rule]) -> str:
    verdict = "green: every rule holds" if found.green else "red: see the findings"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>pi-course verify: {escape(verdict)}</title>",
        f"<style>\n{STYLE}</style></head><body><main>",
        "<h1>What pi-course proves about itself</h1>",
        f'<p>The verdict is <strong class="{"passed" if found.green else "failed"}">'
        f"{escape(verdict)}</strong>. {escape(text.counts(found, rules))}, "
        f"{found.seconds:.1f} s.</p>",
        *_findings(found),
        "<h2>Chapters and rules</h2>",
        "<p>passed: the rule holds. failed: it does not. waits: another rule has to hold first. "
        "n/a: the rule asks nothing of this chapter.</p>",
        *_matrix(found, rules),
        "<h2>Mutants</h2>",
        "<p>One body removed, one answer made constant or one condition flipped at a time; "
        "noticed if a focused test turns red.</p>",
        *_mutants(found),
        "<h2>Hostile students</h2>",
        *_hostile(found),
        "<h2>Digests and times</h2>",
        *_digests(found),
        "<h2>The rules</h2>",
        *_table(("rule", "what it says"), ((rule.id, escape(rule.sentence)) for rule in rules)),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _findings(found: Matrix) -> Iterator[str]:
    if found.green:
        return
    yield "<h2>Findings</h2><ul>"
    for row in found.rows:
        for rule, finding in row.findings:
            yield (
                f"<li><strong>{row.chapter.nn} {escape(rule)}</strong> "
                f"<code>{escape(finding.where)}</code><br>{escape(finding.what)}"
                + (f"<br>{escape(finding.do)}" if finding.do else "")
                + "</li>"
            )
    yield "</ul>"


def _matrix(found: Matrix, rules: Sequence[Rule]) -> Iterator[str]:
    head = ("rule", *(row.chapter.nn for row in found.rows))
    rows = [(rule.id, *(_state(row, rule.id) for row in found.rows)) for rule in rules]
    yield from _table(head, rows)


def _state(row: Row, rule: str) -> str:
    state = row.states[rule]
    return f'<span class="{state.replace("/", "")}">{state}</span>'


def _mutants(found: Matrix) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    for row in found.rows:
        kept = row.proof.get("mutants")
        if not kept:
            rows.append((row.chapter.id, "not run yet", "", ""))
            continue
        reasons = {mutant.id: mutant.reason for mutant in row.chapter.mutants}
        survivors = [
            f"<code>{escape(m['id'])}</code> ({escape(m['what'])}): "
            f"{escape(reasons.get(m['id'], 'no reason given'))}"
            for m in kept["survivors"]
        ]
        share = f"{100 * kept['noticed'] / max(1, kept['total']):.1f}&nbsp;%"
        score = f"{kept['noticed']}&nbsp;of&nbsp;{kept['total']}"
        rows.append((row.chapter.id, score, share, "<br>".join(survivors) or "none"))
    yield from _table(("chapter", "noticed", "share", "survivors"), rows)


def _hostile(found: Matrix) -> Iterator[str]:
    rows = [row for row in found.rows if "hostile" in row.proof]
    if not rows:
        yield "<p>None was let loose yet.</p>"
        return
    students = list(dict.fromkeys(s for row in rows for s in row.proof["hostile"]["students"]))
    last = rows[-1].proof["hostile"]
    table = [
        (
            escape(student),
            _verdict(rows, student),
            escape(last["students"].get(student, "")),
        )
        for student in students
    ]
    yield from _table(("student", "verdicts", f"what chapter {rows[-1].chapter.nn} says"), table)


def _verdict(rows: Sequence[Row], student: str) -> str:
    """In which chapters it is red, and, if that is not all, in which it is not or was not tried."""
    groups: dict[str, list[str]] = {"red": [], "not red": [], "not tried": []}
    for row in rows:
        kept = row.proof["hostile"]
        tried = not kept["students"].get(student, "not tried").startswith("not tried")
        how = ("not red" if student in kept["wrong"] else "red") if tried else "not tried"
        groups[how].append(row.chapter.nn)
    if len(groups["red"]) == len(rows):
        return '<span class="passed">red in all</span>'
    classes = {"red": "passed", "not red": "failed", "not tried": "waits"}
    return "<br>".join(
        f'<span class="{classes[how]}">{how} in {", ".join(numbers)}</span>'
        for how, numbers in groups.items()
        if numbers
    )


def _digests(found: Matrix) -> Iterator[str]:
    rows = [
        (
            row.chapter.id,
            f"<code>{row.digests['parent'][:12]}</code>",
            f"<code>{row.digests['target'][:12]}</code>",
            f"{row.seconds:.1f} s",
            ", ".join(
                f"{rule} {seconds:.1f}"
                for rule, seconds in sorted(row.times.items(), key=lambda item: -item[1])[:3]
            ),
        )
        for row in found.rows
    ]
    yield from _table(("chapter", "parent", "target", "time", "longest"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Cells are HTML already; the first of a row is its heading."""
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head) + "</tr></thead><tbody>"
    for first, *rest in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in rest)
        yield f'<tr><th scope="row">{first}</th>{cells}</tr>'
    yield "</tbody></table></div>"
