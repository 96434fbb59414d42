"""Adds up JUnit files: prints each skipped test's reason once and closes with 'N passed, N failed, N skipped'."""

import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def main(folder: pathlib.Path) -> int:
    counts: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for path in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            outcome, reason = outcome_of(case)
            counts[outcome] += 1
            if outcome == "failed":
                print(f"failed: {path.stem}: {case.get('classname')} {case.get('name')}")
            if outcome == "skipped":
                reasons[f"{path.stem}: {reason}"] += 1
    for reason, count in sorted(reasons.items()):
        print(f"skipped {count}: {reason}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


def outcome_of(case: ElementTree.Element) -> tuple[str, str]:
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        output = case.findtext("system-out") or ""
        lines = [line.strip() for line in output.splitlines() if "Skipped" in line or "not installed" in line]
        return "skipped", (skipped.get("message") if skipped is not None else None) or (lines[-1] if lines else "no reason given")
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed", ""
    return "passed", ""


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
