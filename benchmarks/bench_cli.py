"""How long a command takes to start and end, beside a click program that says hello."""

from __future__ import annotations

import itertools
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.measure import Row, command, compared, environment, limited, medians

ROUNDS = 21
HELLO = """\
import click


@click.command()
def hello():
    click.echo("hello")


hello()
"""
# Runs the same as the installed script, then counts; the exit of click is caught on the way.
COUNT = """\
import sys
from pi_course_kit.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
heavy = {"pydantic", "httpx", "asyncio", "rich", "pytest", "IPython"}
print(len(sys.modules), *sorted(heavy & {*sys.modules}))
"""


def rows() -> list[Row]:
    tool = Path(sysconfig.get_path("scripts")) / "pi-course"
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        hello = scratch / "hello.py"
        hello.write_text(HELLO, encoding="utf-8", newline="\n")
        env = environment(PI_COURSE_WORKSPACE=str(scratch / "workspace"))
        names = (scratch / f"practice-{number}" for number in itertools.count())

        def practice() -> None:
            command([tool, "practice", "03", next(names)], env=env)()

        took = medians(
            {
                "hello": command([sys.executable, hello], env=env),
                "help": command([tool, "--help"], env=env),
                "list": command([tool, "list"], env=env),
                "practice": practice,
            },
            ROUNDS,
        )
        counted = subprocess.run(
            [sys.executable, "-c", COUNT, "practice", "03", str(scratch / "counted")],
            env=env,
            capture_output=True,
            check=True,
            text=True,
            encoding="utf-8",
        )
    modules, *heavy = counted.stdout.strip().split("\n")[-1].split(" ")
    floor = ("hello in click", took["hello"])
    return [
        compared("pi-course --help", took["help"], "ms", floor, at_most=1.5),
        compared("pi-course list", took["list"], "ms", floor),
        compared("pi-course practice 03", took["practice"], "ms", floor, at_most=3),
        limited("modules that practice 03 imports", int(modules), ""),
        limited("heavy ones among them", len(heavy), "", at_most=0),
    ]
