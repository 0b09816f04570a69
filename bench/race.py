#!/usr/bin/env python3
"""Whole-process races: load + save against cp, load against libprotobuf. Commands run in turn, one warm-up round dropped;
a ratio is taken in each round and the median of the ratios is printed. Files go to a temporary directory.

    bench/race.py build/bench/io_bench [--models A,D0] [--rounds 9]
"""
import argparse
import os
import statistics
import tempfile
import time


def run(command):
    """Wall seconds and peak resident kilobytes of one process."""
    start = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: status {status}")
    return wall, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", default="A,D0")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ascend_fuse_race_") as directory:
        for model in options.models.split(","):
            source = f"{directory}/{model}.onnx"
            target = f"{directory}/out.onnx"
            run([options.program, "--generate", model, source])
            size = os.path.getsize(source)
            commands = {
                "cp": ["cp", source, target],
                "copy": [options.program, "--copy", source, target],
                "change": [options.program, "--change", source, target],
                "load": [options.program, "--load", source],
            }
            if size < 1 << 30:
                commands["parse"] = [options.program, "--parse", source]
            times = {name: [] for name in commands}
            memory = {}
            for round_number in range(options.rounds + 1):
                for name, command in commands.items():
                    if os.path.exists(target):
                        os.unlink(target)
                    wall, peak = run(command)
                    if round_number > 0:
                        times[name].append(wall)
                        memory[name] = max(memory.get(name, 0), peak)
            print(f"{model}: {size / 1e6:.1f} MB")
            for name in commands:
                line = f"  {name:7} {1000 * statistics.median(times[name]):8.1f} ms   {memory[name] / 1024:6.1f} MB"
                for base in ("cp", "parse"):
                    if base in times and base != name:
                        ratio = statistics.median(a / b for a, b in zip(times[name], times[base]))
                        line += f"   {ratio:5.2f} x {base}"
                print(line, flush=True)
            os.unlink(source)


if __name__ == "__main__":
    main()
