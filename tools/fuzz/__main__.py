"""python -m fuzz run | one | reduce | table: see docs/fuzzing.md."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Random graphs, optimized and compared by three oracles.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="take seeds, each for all chips; a second call goes on where the first one ended")
    one.add_argument("--records", type=Path, default=Path("build/fuzz/records.jsonl"))
    one.add_argument("--first", type=int, default=0)
    one.add_argument("--count", type=int, default=20000)
    one.add_argument("--jobs", type=int, default=1)
    one.add_argument("--limit", type=float, default=120, help="seconds for one graph; longer is a hang")
    one.add_argument("--seconds", type=float, default=1e9, help="end after this time")
    one = commands.add_parser("worker", help="used by run")
    one.add_argument("seeds", type=int, nargs="*")
    one.add_argument("--no-edge", action="store_true")
    one = commands.add_parser("one", help="take one seed and print all about it")
    one.add_argument("seed", type=int)
    one.add_argument("--save", type=Path, help="write the original there")
    one = commands.add_parser("reduce", help="the smallest graph that shows the first finding of a seed")
    one.add_argument("seed", type=int)
    one.add_argument("--kind", help="the kind of finding; default: the first one")
    one.add_argument("-o", "--output", type=Path, help="default: seed-N.onnx")
    one = commands.add_parser("table", help="what a file of records holds, as tables of Markdown")
    one.add_argument("--records", type=Path, default=Path("build/fuzz/records.jsonl"))
    flags = parser.parse_args()
    return COMMANDS[flags.command](flags)


def run(flags: argparse.Namespace) -> int:
    from fuzz import runs

    flags.records.parent.mkdir(parents=True, exist_ok=True)
    return 3 if runs.run(flags.records, flags.first, flags.count, flags.jobs, flags.limit, flags.seconds) else 0


def worker(flags: argparse.Namespace) -> int:
    from fuzz import runs

    runs.work(flags.seeds, not flags.no_edge)
    return 0


def one(flags: argparse.Namespace) -> int:
    from fuzz import oracles, plan, runs

    chosen = plan.choose(flags.seed)
    if flags.save:
        flags.save.write_bytes(oracles.Subject(chosen).bytes)
    record = runs.examine(flags.seed)
    print(json.dumps({"plan": chosen, **record}, indent=1))
    return 3 if record.get("findings") else 0


def reduce(flags: argparse.Namespace) -> int:
    from fuzz import reducing

    return reducing.main(flags.seed, flags.kind, flags.output or Path(f"seed-{flags.seed}.onnx"))


def table(flags: argparse.Namespace) -> int:
    from fuzz import tables

    print(tables.markdown(flags.records))
    return 0


COMMANDS = {"run": run, "worker": worker, "one": one, "reduce": reduce, "table": table}
if __name__ == "__main__":
    sys.exit(main())
