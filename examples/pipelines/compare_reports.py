"""Whether a report got worse: exit code 3 where a kind has fewer sites that are fused, or more that are left, than in the report that
is kept beside the model, or where ATC would refuse or misread more.

    python3 compare_reports.py kept.report.json new.report.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import ascend_fuse


def what_got_worse(kept: ascend_fuse.Report, new: ascend_fuse.Report) -> list[str]:
    """Returns a sentence for each kind of construct, and for findings, that is worse than before."""
    worse = []
    for kind, before in kept.summary.sites.items():
        after = new.summary.sites.get(kind, type(before)())
        if after.fused + after.by_ge < before.fused + before.by_ge:
            worse.append(f"{kind}: {before.fused + before.by_ge} were fused, {after.fused + after.by_ge} are")
        elif after.left > before.left:
            worse.append(f"{kind}: {before.left} were left, {after.left} are: {after.commonest_reason}")
    was, now = (sum(finding.fatal for finding in report.findings) for report in (kept, new))
    if now > was:
        worse.append(f"ATC refuses or misreads {now} places instead of {was}")
    return worse


def main() -> int:
    """Prints what is worse."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    kept, new = (ascend_fuse.Report.from_json(Path(path).read_text()) for path in sys.argv[1:])
    worse = what_got_worse(kept, new)
    print("\n".join(worse) or "the report is not worse")
    return 3 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
