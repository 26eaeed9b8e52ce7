#!/usr/bin/env python3
"""Holds `marq hexdump -f json` against files: the leaves lie end to end, and their hex is the file.

    tests/hexdump_tiles.py MARQ LIST [FLAG ...]

LIST has a path a line, and after it, behind tabs, flags for this file, such as keys. What something decompresses or decrypts to must lie end to
end as well. Files with something that could not be parsed are listed; the last line counts. Exit status 1 if the spans of a file are wrong.
"""

import json
import subprocess
import sys


def walk(spans, start, out, unparsed):
    at = start
    for span in spans:
        assert span["offset"] == at, f"{span['kind']} at {span['offset']}, expected at {at}"
        before = len(out)
        if span["kind"] == "unparsed":
            unparsed.append(f"{span['offset']:#x}: {span.get('text', '')}")
        if "children" in span:
            assert "hex" not in span
            walk(span["children"], span["offset"], out, unparsed)
        else:
            out += bytes.fromhex(span["hex"])
        assert len(out) - before == span["length"], f"{span['kind']} at {span['offset']} has other bytes"
        at += span["length"]
        for inside in ("decompressed", "decrypted"):
            if inside in span:
                walk(span[inside], 0, bytearray(), unparsed)


def check(marq, path, flags):
    done = subprocess.run([marq, "hexdump", path, "-f", "json", *flags], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    found, out, unparsed = json.loads(done.stdout), bytearray(), []
    with open(path, "rb") as file:
        data = file.read()
    assert found["schema"] == "marq/1/hexdump" and found["file_bytes"] == len(data)
    walk(found["spans"], 0, out, unparsed)
    assert out == data, "the leaves are not the file"
    return unparsed


def main():
    marq, listed, *flags = sys.argv[1:]
    right = wrong = partly = 0
    for line in open(listed):
        path, *own = line.rstrip("\n").split("\t")
        try:
            unparsed = check(marq, path, flags + own)
            right += 1
        except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            wrong += 1
            print(f"WRONG {path}: {error}")
            continue
        if unparsed:
            partly += 1
            print(f"partly {path}: {len(unparsed)}, the first at {unparsed[0]}")
    print(f"hexdump: {right} of {right + wrong} files are tiled, {partly} of them with something that is not parsed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
