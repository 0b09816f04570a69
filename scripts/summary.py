"""Sums the results in a folder: C++ test cases (gtest XML), other ctest programs, Python tests (JUnit XML).

The last line is "N passed, N failed", with ", N skipped" if tests were skipped. A program that ended without
writing its results counts as one failure. Exit code 1 if anything failed or nothing ran.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def state_of_case(case: ElementTree.Element) -> str:
    """Returns passed, failed or skipped for a <testcase> of gtest or JUnit."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def cases_of(path: Path) -> Counter[str]:
    """Counts the cases of one XML file, printing the names of those that failed."""
    counts: Counter[str] = Counter()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        state = state_of_case(case)
        counts[state] += 1
        if state == "failed":
            print(f"FAILED {path.stem}: {case.get('classname', '')}.{case.get('name')}")
    return counts


def programs_of(folder: Path) -> Counter[str]:
    """Counts the cases of every program that ctest ran; a program without gtest is one case."""
    counts: Counter[str] = Counter()
    report = folder / "ctest.xml"
    if not report.exists():
        print("FAILED ctest: it wrote no results")
        return Counter(failed=1)
    for program in ElementTree.parse(report).getroot().iter("testcase"):
        name = program.get("name", "")
        state = state_of_case(program)
        if program.get("status") == "fail":
            state = "failed"
        own = folder / "gtest" / f"{name}.xml"
        cases = Counter[str]()
        if own.exists():
            try:
                cases = cases_of(own)
            except ElementTree.ParseError:
                print(f"FAILED {name}: its results cannot be read")
        if not cases:
            cases[state] += 1
        if state == "failed" and not cases["failed"]:
            print(f"FAILED {name}: it ended with an error")
            cases["failed"] += 1
        counts += cases
    return counts


def main() -> int:
    folder = Path(sys.argv[1])
    counts = programs_of(folder)
    report = folder / "pytest.xml"
    if report.exists():
        counts += cases_of(report)
    else:
        print("FAILED pytest: it wrote no results")
        counts["failed"] += 1
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    if counts["skipped"]:
        line += f", {counts['skipped']} skipped"
    print(line)
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
