"""Two builds of the worker in turns, to see that a change made no read slower.

    python3 benches/worker/pairs.py BEFORE AFTER FOLDER [ROUNDS [TEXT]]

Reads every Parquet file below FOLDER (or those whose path holds TEXT) from memory, on one thread, with both workers in
turns. Prints the CPU time of BEFORE divided by that of AFTER: the geometric mean of all files, and the files below 0.9,
which are read again with three times the rounds, because a machine with other work has slow stretches.
"""

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

SECONDS = 0.02


class Worker:
    def __init__(self, path):
        self.process = subprocess.Popen([path, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **task):
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def read(self, file, iters):
        answer = self.ask(op="read", file=str(file), io="mem", threads=1, iters=iters)
        return sum(answer["cpu"]) if answer["ok"] else None


def ratio(before, after, file, rounds):
    once = [worker.read(file, 1) for worker in (before, after)]
    if None in once:
        return None
    iters = max(1, math.ceil(SECONDS / max(once[1], 1e-6)))
    ratios = []
    for turn in range(rounds):
        first, second = (before, after) if turn % 2 == 0 else (after, before)
        times = [first.read(file, iters), second.read(file, iters)]
        ratios.append(times[0] / times[1] if turn % 2 == 0 else times[1] / times[0])
    for worker in (before, after):
        worker.ask(op="clear")
    return statistics.median(ratios)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    before, after = Worker(sys.argv[1]), Worker(sys.argv[2])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 9
    text = sys.argv[5] if len(sys.argv) > 5 else ""
    files = [path for path in sorted(Path(sys.argv[3]).rglob("*.parquet")) if text in str(path)]
    found = {file: at for file in files if (at := ratio(before, after, file, rounds))}
    if not found:
        sys.exit("no file that both read")
    mean = math.exp(statistics.fmean(math.log(at) for at in found.values()))
    print(f"{len(found)} files: before / after is {mean:.3f} in the geometric mean, {min(found.values()):.2f} to {max(found.values()):.2f}")
    for file, at in sorted(found.items(), key=lambda entry: entry[1]):
        if at < 0.9:
            print(f"{at:.2f}, again {ratio(before, after, file, 3 * rounds):.2f}: {file}")


if __name__ == "__main__":
    main()
