#!/usr/bin/env python3
"""Tests the package in headless Chromium: python3 crates/wasm/tests/browser.py [--screenshot FILE]

Needs pkg/ (made by `build`), Chromium, and Python 3.11 with pyarrow. Two servers on the loopback provide the files: one is
where the page is from, the other is another origin. The page runs tests/browser.js, and sends back what it read; batches are
compared with what pyarrow reads from the same files.
"""

import argparse
import datetime
import decimal
import http.server
import io
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
CRATE = HERE.parent
DATA = CRATE.parent.parent / "testdata"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json"}


class Results:
    """What the page sends."""

    def __init__(self):
        self.done = threading.Event()
        self.checks = []
        self.batches = {}
        self.requests = []
        self.error = None


def hostile_file():
    """A file whose names and values would be HTML, or would steer."""
    name = '<img src=x onerror="parent.pwned=1">'
    table = pa.table({
        name: ["<script>parent.pwned=1</script>", "a\u202eb\x1b[31m", None],
        "]]>&amp;\x07": [1, 2, 3],
    })
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"<b>key</b>": "value"}), out)
    return out.getvalue()


def sorted_file():
    """A file of which a page index leaves little to read."""
    n, rng = 200_000, random.Random(1)
    table = pa.table({"id": pa.array(range(n)), "text": [rng.randbytes(20).hex() for _ in range(n)]})
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=50_000, write_page_index=True, data_page_size=16 << 10, compression="zstd", use_dictionary=False)
    return out.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    results: Results
    made: dict
    allows_others = False
    changes = 0

    def log_message(self, *_):
        pass

    def do_OPTIONS(self):
        self.results.requests.append(("OPTIONS", self.path, self.headers.get("Range"), 0))
        self.answer(204 if self.allows_others else 403, b"", {"Access-Control-Allow-Headers": "Range"})

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind, _, name = self.path.lstrip("/").partition("/")
        name = urllib.parse.unquote(name)
        if kind == "batches":
            self.results.batches.setdefault(name, []).append(body)
        elif kind == "check":
            self.results.checks.append(json.loads(body))
        elif kind == "done":
            self.results.error = json.loads(body)
            self.results.done.set()
        self.answer(204, b"")

    def do_GET(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        kind, _, name = path.lstrip("/").partition("/")
        if kind in ("pkg", "tests"):
            file = (CRATE / kind / name).resolve()
            if not file.is_relative_to(CRATE) or not file.is_file():
                return self.answer(404, b"")
            return self.answer(200, file.read_bytes(), {"Content-Type": TYPES.get(file.suffix, "application/octet-stream")})
        if kind == "requests":
            given = [list(one) for one in self.results.requests]
            self.results.requests.clear()
            return self.answer(200, json.dumps(given).encode(), {"Content-Type": "application/json"})
        if kind == "list":
            return self.answer(200, json.dumps(sorted(file.name for file in DATA.glob("*.parquet"))).encode())
        return self.file(kind, name)

    def file(self, kind, name):
        """A file, in one of the ways in which servers answer."""
        if kind == "status":
            return self.answer(int(name.split("/")[0]), b"no")
        body = self.made.get(name)
        if body is None and (DATA / name).is_file():
            body = (DATA / name).read_bytes()
        if body is None:
            return self.answer(404, b"not found")
        headers = {"Accept-Ranges": "bytes", "ETag": f'"{name}"', "Content-Type": "application/octet-stream"}
        if kind == "changing":
            Handler.changes += 1
            headers["ETag"] = f'"{Handler.changes}"'
        wanted = self.headers.get("Range")
        if kind == "signed" and self.command == "HEAD":
            return self.answer(403, b"")
        if kind == "nosuffix" and wanted and wanted.startswith("bytes=-"):
            return self.answer(400, b"")
        if kind == "ignoring" or wanted is None:
            return self.answer(200, body, headers)
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted).groups()
        if first == "":
            start, end = max(0, len(body) - int(last)), len(body)
        else:
            start, end = int(first), min(len(body), int(last) + 1 if last else len(body))
        if start >= end:
            return self.answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
        part = body[start:end]
        if kind == "short" and first != "":
            headers["Content-Range"] = f"bytes {start}-{end - 2}/{len(body)}"
            part = part[:-1]
        self.answer(206, part, headers)

    def answer(self, status, body, headers=None):
        length = len(body)
        sent = b"" if self.command == "HEAD" or status == 204 else body
        if self.path.split("/")[1] not in ("pkg", "tests", "requests", "check", "batches"):
            self.results.requests.append((self.command, self.path, self.headers.get("Range"), len(sent)))
        try:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            if self.allows_others:
                self.send_header("Access-Control-Allow-Origin", "*")
            if status != 204:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(sent)
        except (BrokenPipeError, ConnectionResetError):
            # The page wants no more of it.
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Connections that the page wants no more.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(results, made, allows_others):
    handler = type("Of", (Handler,), {"results": results, "made": made, "allows_others": allows_others})
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def numbers(table, other):
    """The table with times as numbers, because Python has no nanoseconds; of one unit in both."""
    columns = {}
    for name, column, beside in zip(table.column_names, table.columns, other.columns):
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
            if kind != beside.type:
                column = column.cast(pa.timestamp("ns") if pa.types.is_timestamp(kind) else pa.time64("ns") if pa.types.is_time(kind) else pa.duration("ns"))
            column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        columns[name] = column
    return pa.table(columns)


def plain(value):
    """A value that compares equal whatever Arrow type it had: widths, and NaN."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (datetime.datetime, datetime.timedelta, decimal.Decimal)):
        return str(value)
    return value


def compare(results, made):
    """The names of the files whose batches are those that pyarrow reads, and what differs."""
    wrong, right = [], 0
    for name, streams in sorted(results.batches.items()):
        path, _, query = name.partition("?")
        table = pa.concat_tables([pa.ipc.open_stream(one).read_all() for one in streams])
        table.validate(full=True)
        source = io.BytesIO(made[path]) if path in made else DATA / path
        options = urllib.parse.parse_qs(query)
        try:
            expected = pq.read_table(source)
        except (OSError, pa.ArrowInvalid):
            # What pyarrow does not read: the rows as another reader gave them.
            lines = (DATA / path).with_suffix(".jsonl").read_text().splitlines()
            expected = pa.Table.from_pylist([dict(zip(table.column_names, json.loads(line))) for line in lines])
        if "columns" in options:
            expected = expected.select(options["columns"][0].split(","))
        if "from" in options:
            low, high = int(options["from"][0]), int(options["to"][0])
            ids = expected.column("id")
            expected = expected.filter(pa.compute.and_(pa.compute.greater_equal(ids, low), pa.compute.less(ids, high)))
        if "limit" in options:
            expected = expected.slice(int(options.get("offset", ["0"])[0]), int(options["limit"][0]))
        theirs = plain(numbers(expected, table).to_pylist())
        ours = plain(numbers(table, expected).to_pylist())
        if table.column_names != expected.column_names or theirs != ours:
            at = next((i for i, pair in enumerate(zip(theirs, ours)) if pair[0] != pair[1]), min(len(theirs), len(ours)))
            wrong.append(f"{name}: row {at} of {len(theirs)} and {len(ours)}:\n  {theirs[at:at + 1]}\n  {ours[at:at + 1]}")
        else:
            right += 1
    return right, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome") or "chromium")
    parser.add_argument("--screenshot", type=pathlib.Path, help="where to write a picture of the page")
    parser.add_argument("--seconds", type=int, default=180, help="when to give up")
    args = parser.parse_args()
    if not (CRATE / "pkg" / "bindings_bg.wasm").is_file():
        sys.exit("there is no package: run crates/wasm/build first")

    results = Results()
    made = {"hostile.parquet": hostile_file(), "sorted.parquet": sorted_file(), "empty.parquet": b"", "none.parquet": b"PAR1 is no file PAR1"}
    here, open_port, closed_port = serve(results, made, False), serve(results, made, True), serve(results, made, False)
    address = f"http://127.0.0.1:{here}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = [args.chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}/a", "--enable-logging=stderr"]
        with open(f"{profile}/log", "w+") as log:
            browser = subprocess.Popen([*flags, f"{address}/tests/browser.html?open={open_port}&closed={closed_port}"], stderr=log, stdout=log)
            try:
                ended = results.done.wait(args.seconds)
            finally:
                browser.terminate()
                browser.wait()
            log.seek(0)
            console = [line for line in log if "CONSOLE" in line]
        if args.screenshot:
            flags[-2] = f"--user-data-dir={profile}/b"
            link = urllib.parse.urlencode({"url": f"{address}/data/trips.parquet", "where": "fare > 20 and vendor = 'Amber'", "columns": ""})
            subprocess.run([*flags, f"--screenshot={args.screenshot.resolve()}", "--window-size=1200,1500", "--virtual-time-budget=20000",
                            f"{address}/pkg/page/index.html?{link}"], check=True, stderr=subprocess.DEVNULL, timeout=args.seconds)

    right, wrong = compare(results, made)
    failed = [check for check in results.checks if not check["ok"]]
    for check in failed:
        print(f"FAILED {check['name']}: {check['detail']}")
    for text in wrong:
        print(f"DIFFERS {text}")
    if not ended or results.error:
        print("the page did not come to its end" if not ended else f"the page failed: {results.error}")
    if failed or wrong or not ended or results.error:
        print("".join(console))
        sys.exit(1)
    if right < len(list(DATA.glob("*.parquet"))) or len(results.checks) < 30:
        sys.exit(f"only {right} reads and {len(results.checks)} checks: tests/browser.js did not run all")
    print(f"browser: {right} reads as pyarrow, {len(results.checks)} checks")


if __name__ == "__main__":
    main()
