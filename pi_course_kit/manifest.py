"""The strict model of checkpoint.toml, for verify and the tests.

The learner's commands read the same file through `checkpoint.py`, without pydantic.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from pi_course_kit.errors import CourseError

Text = Annotated[str, StringConstraints(min_length=1)]
Symbol = Annotated[str, StringConstraints(pattern=r"^pi_course/[\w/]+\.py:[A-Za-z_][\w.]*$")]
PackageFile = Annotated[str, StringConstraints(pattern=r"^pi_course/[\w/]+\.py$")]
Given = Annotated[str, StringConstraints(pattern=r"^pi_course/[\w/]+\.py(:[A-Za-z_]\w*)?$")]


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StepRow(Row):
    name: Text
    tests: Annotated[list[Text], Field(min_length=1)]


class LabRow(Row):
    id: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+$")]
    title: Text
    symbols: list[Symbol]
    steps: Annotated[list[StepRow], Field(min_length=1)]
    expect: Text


class FaultRow(Row):
    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: Text
    file: PackageFile
    old: Text
    new: str
    expect: Literal["tests", "types", "nothing"]
    tests: list[Text] = []
    shows: str = ""
    reason: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.expect == "tests") != bool(self.tests):
            raise ValueError(f"fault {self.id}: `tests` belongs to expect = 'tests' and only there")
        if self.expect == "nothing" and not self.reason:
            raise ValueError(f"fault {self.id}: expect = 'nothing' needs a reason")
        return self


class QuestionRow(Row):
    ask: Text
    answer: Text
    show: Text


class TermRow(Row):
    term: Text
    text: Text


class PiRow(Row):
    version: Text
    text: Text


class SurvivorRow(Row):
    id: Text
    reason: Text


class ScenarioRow(Row):
    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: Text
    lab: Text
    code: Annotated[str, StringConstraints(pattern=r"(?m)^async def scenario\(trace\):$")]


class ExampleRow(Row):
    title: Text
    text: Text


class Manifest(Row):
    """One checkpoint.toml. Unknown keys and wrong types are refused with their path."""

    number: Annotated[int, Field(ge=0, le=99)]
    slug: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: Text
    idea: Text
    artifact: Text
    minutes: Annotated[int, Field(gt=0)]
    level: Literal["entry", "core", "advanced"]
    requires: list[Annotated[str, StringConstraints(pattern=r"^\d\d$")]]
    mode: Literal["observe", "rebuild"]
    goals: Annotated[list[Text], Field(min_length=1)]
    files: Annotated[list[PackageFile], Field(min_length=1)]
    given: list[Given] = []
    starters: bool = True
    deletions: list[PackageFile] = []
    first_red: list[Text]
    run: str = ""
    interface: str = ""
    transfer: str = ""
    terms: Annotated[list[TermRow], Field(min_length=1)]
    labs: Annotated[list[LabRow], Field(min_length=1)]
    faults: Annotated[list[FaultRow], Field(min_length=1)]
    questions: Annotated[list[QuestionRow], Field(min_length=4, max_length=6)]
    pi: Annotated[list[PiRow], Field(min_length=1)]
    examples: list[ExampleRow] = []
    mutants: list[SurvivorRow] = []
    scenarios: list[ScenarioRow] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.mode == "rebuild") != bool(self.first_red):
            raise ValueError("first_red belongs to mode = 'rebuild' and only there")
        if any(lab.id.split(".")[0] != str(self.number) for lab in self.labs):
            raise ValueError(f"the labs of chapter {self.number} are named {self.number}.1, …")
        tests = [test for lab in self.labs for step in lab.steps for test in step.tests]
        for kind, values in {
            "lab id": [lab.id for lab in self.labs],
            "fault id": [fault.id for fault in self.faults],
            "scenario id": [scenario.id for scenario in self.scenarios],
            "test": tests,
            "symbol": [symbol for lab in self.labs for symbol in lab.symbols],
        }.items():
            twice = {value for value in values if values.count(value) > 1}
            if twice:
                raise ValueError(f"{kind} listed twice: {', '.join(sorted(twice))}")
        unknown = {test for fault in self.faults for test in fault.tests} - set(tests)
        if unknown:
            raise ValueError(f"faults name tests that no lab has: {', '.join(sorted(unknown))}")
        strange = {scenario.lab for scenario in self.scenarios} - {lab.id for lab in self.labs}
        if strange:
            raise ValueError(f"scenarios name labs that are not there: {', '.join(strange)}")
        return self


def validate(folder: Path) -> Manifest:
    """Read and validate one checkpoint.toml; CourseError lists every field that is wrong."""
    path = folder / "checkpoint.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CourseError(f"{path} can't be read: {error}. Correct that line.") from error
    try:
        return Manifest.model_validate(table)
    except ValidationError as error:
        wrong = "\n".join(
            f"  {'.'.join(map(str, item['loc'])) or 'whole file'}: {item['msg']}"
            for item in error.errors()
        )
        raise CourseError(f"{path} has wrong fields; correct them:\n{wrong}") from error
