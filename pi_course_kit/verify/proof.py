"""proof.json: the results that take minutes, kept with the digest of what they were made from.

`verify --deep` makes them again where the digest no longer fits; the fast `verify` only compares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from pi_course_kit import data, practice, snapshot
from pi_course_kit.errors import CourseError
from pi_course_kit.limits import Limits
from pi_course_kit.verify import hostile, mutants, prose, sources
from pi_course_kit.verify.case import Case
from pi_course_kit.verify.mutants import Mutant
from pi_course_kit.verify.rule import Finding, Plant, Rule, rebuilt
from pi_course_kit.verify.runs import why_not_green

NAME = "proof.json"
NOTICED = 0.95
# A red run starts no further test: one failure is enough to notice a mutant.
LIMITS = Limits(test_seconds=3.0, grace_seconds=1.0, red_seconds=0.0)
# What decides whether a run is red; how a failure is told may change without a new attack.
GUARD = (
    "asserts audit canary guard limits processes reach records seal session source verdict witness"
)
# These wait for a person or run on; that they parse is what can be asked.
INTERACTIVE = {"watch", "lab", "accept", "chat", "agent", "demo", "verify", "dev"}
COMMAND_SECONDS = 60

Proof = dict[str, Any]


def path_of(case: Case) -> Path:
    return case.chapter.folder / NAME


def read(case: Case) -> Proof:
    try:
        found: object = json.loads(path_of(case).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast(Proof, found) if isinstance(found, dict) else {}


def write(case: Case, proof: Proof) -> None:
    text = json.dumps(proof, indent=1, ensure_ascii=False) + "\n"
    path_of(case).write_text(text, encoding="utf-8", newline="\n")


# Digests


def mutants_digest(case: Case) -> str:
    """Of the test, every file it can reach, and the tool."""
    files = snapshot.snapshot_files(case.number)
    test = sources.read(case.test)
    reached = sorted(sources.reached(test, files) | set(case.chapter.files))
    before = snapshot.snapshot_files(case.number - 1)
    old = [before[path] for path in case.chapter.files if path in before]
    parts = [str(mutants.VERSION), *case.chapter.files]
    read = [files[path] for path in reached] + old + test_files(case)
    return sources.digest(
        [*(part.encode() for part in parts), *(file.read_bytes() for file in read)]
    )[:16]


def test_files(case: Case) -> list[Path]:
    """The focused test and the data beside it."""
    return list(sources.tree(case.test.parent).values())


def hostile_digest(case: Case) -> str:
    """Of what watches over a run, the test, and the students."""
    own = [(data.PACKAGE / f"{name}.py").read_bytes() for name in GUARD.split()]
    names = [student.name for student in hostile.STUDENTS]
    own += [file.read_bytes() for file in test_files(case)]
    parts = [str(hostile.VERSION), *names, *case.chapter.files]
    return sources.digest([*(part.encode() for part in parts), *own])[:16]


def commands_digest(case: Case) -> str:
    return sources.digest(command.encode() for command in run_commands(case))[:16]


def run_commands(case: Case) -> list[str]:
    """Quoted commands in the order of the texts, those aside that need a person."""
    quoted = [command for _, command in prose.quoted_commands(case)]
    return [command for command in quoted if (command.split() + [""])[1] not in INTERACTIVE]


# Making


def prove(case: Case, say: Callable[[str], None]) -> None:
    """Bring the chapter's proof.json up to date; parts whose digest fits are kept."""
    if not case.target.green:
        return  # there is nothing to prove yet: the rule `target` says so
    proof = read(case)
    parts: list[tuple[str, Callable[[Case], str], Callable[[Case], Proof]]] = [
        ("mutants", mutants_digest, _mutants),
        ("hostile", hostile_digest, _hostile),
        ("commands", commands_digest, _commands),
    ]
    if not rebuilt(case):
        del parts[1]
    for name, digest, make in parts:
        wanted = digest(case)
        if proof.get(name, {}).get("digest") != wanted:
            say(f"{case.chapter.nn} {name}")
            proof[name] = {"digest": wanted, **make(case)}
            write(case, proof)


def chapter_mutants(case: Case) -> list[Mutant]:
    return [
        mutant
        for file in case.chapter.files
        for mutant in mutants.mutants(file, case.target_text(file), case.before_text(file))
    ]


def _mutants(case: Case) -> Proof:
    made = chapter_mutants(case)
    workers = min(2, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        parts = [pool.submit(_survivors, case, made[i::workers], i) for i in range(workers)]
        survivors = [mutant for part in parts for mutant in part.result()]
    order = {mutant.id: index for index, mutant in enumerate(made)}
    return {
        "total": len(made),
        "noticed": len(made) - len(survivors),
        "survivors": [
            {"id": m.id, "line": m.line, "what": m.what}
            for m in sorted(survivors, key=lambda m: order[m.id])
        ],
    }


def _survivors(case: Case, made: Sequence[Mutant], worker: int) -> list[Mutant]:
    root = case.scratch / f"mutants-{worker}"
    snapshot.write(snapshot.snapshot_files(case.number), root)
    session = case.session([case.test], LIMITS)
    found: list[Mutant] = []
    for mutant in made:
        path = root / mutant.file
        path.write_text(mutant.text, encoding="utf-8", newline="\n")
        if session.run(root).green:
            found.append(mutant)
        path.write_text(case.target_text(mutant.file), encoding="utf-8", newline="\n")
    if not (after := session.run(root)).green:
        raise CourseError(f"The target is not green after its mutants: {why_not_green(after)}.")
    return found


def _hostile(case: Case) -> Proof:
    students: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for student in hostile.STUDENTS:
        if reason := hostile.skipped(student):
            students[student.name] = f"not tried: {reason}"
            continue
        outcome = hostile.attempt(student, case.chapter, case.practice_copy("hostile"))
        if outcome.seconds > hostile.SECONDS:  # once more: others may have been busy
            outcome = hostile.attempt(student, case.chapter, case.practice_copy("hostile"))
        students[outcome.student] = outcome.said[:200]
        if outcome.wrong:
            wrong[outcome.student] = outcome.wrong
    return {"students": students, "wrong": wrong}


def _commands(case: Case) -> Proof:
    """Each command in a workspace of its own, beside a practice folder that was made for it."""
    ran: list[str] = []
    wrong: dict[str, str] = {}
    for command in run_commands(case):
        words = prose.arguments(command, case.chapter)
        home = case.folder("command")
        folder = practice.create(case.chapter, home / case.chapter.id).folder
        fresh = [str(home / "new") if word == "DIR" else word for word in words]
        if words[:1] == ["practice"] and "DIR" not in words:
            fresh = [*fresh, str(home / "new")]
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "pi_course_kit.cli", *fresh],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                timeout=COMMAND_SECONDS,
                env={**os.environ, "PI_COURSE_WORKSPACE": str(home)},
            )
        except subprocess.TimeoutExpired:
            wrong[command] = f"it did not end within {COMMAND_SECONDS} s"
            continue
        ran.append(command)
        # 1 is what a red practice folder gives: the command works.
        if done.returncode not in (0, 1) or "Traceback (most recent" in done.stderr:
            wrong[command] = (done.stderr or done.stdout).strip()[-300:]
    return {"ran": ran, "wrong": wrong}


# Rules


def _current(case: Case, name: str, digest: str) -> Iterator[Finding]:
    kept = read(case).get(name, {})
    if not kept:
        what = f"it holds no results for {name}"
    elif kept.get("digest") != digest:
        what = f"its results for {name} are of an earlier state"
    else:
        return
    yield Finding(
        what, case.name(path_of(case)), f"Run `pi-course verify {case.chapter.nn} --deep`."
    )


def mutants_noticed(case: Case) -> Iterator[Finding]:
    stale = list(_current(case, "mutants", mutants_digest(case)))
    yield from stale
    kept, where = read(case).get("mutants", {}), case.name(path_of(case))
    if stale or not kept:
        return
    listed = {mutant.id: mutant.reason for mutant in case.chapter.mutants}
    survivors = {mutant["id"]: mutant for mutant in kept["survivors"]}
    for name, mutant in survivors.items():
        if name not in listed:
            yield Finding(
                f"no test notices {name} (line {mutant['line']}: {mutant['what']})",
                where,
                "Add a test, or list it under [[mutants]] with the reason.",
            )
    for name in sorted(listed.keys() - survivors.keys()):
        yield Finding(f"{name} is listed and did not survive", case.name(case.toml), "Unlist it.")
    if kept["noticed"] < NOTICED * kept["total"]:
        yield Finding(
            f"{kept['noticed']} of {kept['total']} mutants are noticed, fewer than 95 %", where, ""
        )


def hostile_red(case: Case) -> Iterator[Finding]:
    stale = list(_current(case, "hostile", hostile_digest(case)))
    yield from stale
    if stale:
        return
    kept = read(case)["hostile"]
    for name in [s.name for s in hostile.STUDENTS if not kept["students"].get(s.name)]:
        yield Finding(f"{name}: nothing is said", case.name(path_of(case)), "")
    for name, wrong in kept["wrong"].items():
        yield Finding(f"{name}: {wrong}", case.name(path_of(case)), "Make the guard notice it.")


def commands_ran(case: Case) -> Iterator[Finding]:
    stale = list(_current(case, "commands", commands_digest(case)))
    yield from stale
    wrong: dict[str, str] = {} if stale else read(case)["commands"]["wrong"]
    for command, why in wrong.items():
        yield Finding(f"`{command}`: {why}", case.name(path_of(case)), "Quote one that works.")


def _edit(change: Callable[[Proof], None]) -> Plant:
    def plant(course: Path) -> None:
        path = course / "checkpoints" / "01-hello" / NAME
        proof: Proof = json.loads(path.read_text(encoding="utf-8"))
        change(proof)
        path.write_text(json.dumps(proof), encoding="utf-8", newline="\n")

    return plant


def _survivor(proof: Proof) -> None:
    proof["mutants"]["survivors"].append({"id": "greet.py:hello/body", "line": 9, "what": "gone"})


def _green(proof: Proof) -> None:
    proof["hostile"]["wrong"]["deleted tests"] = "it is green"


def _other(proof: Proof) -> None:
    proof["commands"]["digest"] = "0" * 16


RULES = (
    Rule(
        "mutants",
        "95 % of the mutants are noticed (proof.json), survivors are listed with reasons.",
        mutants_noticed,
        _edit(_survivor),
        needs=("files",),
        settled=True,
        more={"stale": _edit(lambda proof: proof["mutants"].update(digest="0" * 16))},
    ),
    Rule(
        "hostile",
        "Every hostile student is red, with a sentence of its own (proof.json).",
        hostile_red,
        _edit(_green),
        needs=("files",),
        applies=rebuilt,
        settled=True,
    ),
    Rule(
        "executed",
        "Every quoted command was run as it stands (proof.json).",
        commands_ran,
        _edit(_other),
        needs=("files", "commands"),
        settled=True,
    ),
)
