"""Every bench_*.py of this folder in one table: python -m benchmarks [NAME ...] [--json FILE]."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import Any

from benchmarks.measure import Row

HERE = Path(__file__).resolve().parent
COLUMNS = ("name", "value", "baseline", "ratio", "goal", "")


def collect(chosen: list[str]) -> tuple[list[Row], list[str]]:
    """The rows of all benchmarks, and the names of those that did not run to the end."""
    rows: list[Row] = []
    failed: list[str] = []
    for path in sorted(HERE.glob("bench_*.py")):
        name = path.stem.removeprefix("bench_")
        if chosen and name not in chosen:
            continue
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        try:
            rows += importlib.import_module(f"benchmarks.{path.stem}").rows()
        except Exception:
            traceback.print_exc()
            failed.append(name)
    return rows, failed


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def cells(row: Row, before: dict[str, float]) -> list[str]:
    verdict = {True: "met", False: "MISSED", None: ""}[row["ok"]]
    line = [
        row["name"],
        f"{row['value']:.4g} {row['unit']}".rstrip(),
        row["baseline"],
        "" if row["ratio"] is None else f"{row['ratio']:.2f}x",
        row["goal"] or "",
        verdict,
    ]
    if before:
        old = before.get(row["name"])
        line.append("new" if old is None else f"{row['value'] / old:.2f}x" if old else "")
    return line


def table(rows: list[Row], before: dict[str, float]) -> str:
    head = [*COLUMNS, "to the saved run"] if before else list(COLUMNS)
    lines = [head, *(cells(row, before) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="cli for bench_cli.py; default: all"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="save this run")
    parser.add_argument("--against", type=Path, metavar="FILE", help="show ratios to a saved run")
    options = parser.parse_args()

    before: dict[str, float] = {}
    if options.against:
        saved = json.loads(options.against.read_text(encoding="utf-8"))
        before = {row["name"]: row["value"] for row in saved["rows"]}
    rows, failed = collect(options.names)
    print(table(rows, before))
    goals = [row["ok"] for row in rows if row["ok"] is not None]
    about = machine()
    print(
        f"\n{sum(goals)} of {len(goals)} goals met. Python {about['python']}, {about['system']}, "
        f"{about['cores']} cores; medians, each beside its baseline in the same run."
    )
    if options.json:
        text = json.dumps({"machine": about, "rows": rows}, indent=2) + "\n"
        options.json.write_text(text, encoding="utf-8", newline="\n")
    if failed:
        print(f"Did not run to the end: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
