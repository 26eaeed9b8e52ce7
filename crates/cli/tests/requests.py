"""What `marq` asks a web server for, in requests and bytes, beside polars and pyarrow with fsspec.

    python3 crates/cli/tests/requests.py --marq PATH --file FILE --columns a,b --where "a < 10" [--https]

Needs pyarrow; polars, fsspec and aiohttp where their rows are wanted; openssl for --https. The server is a
plain one with ranges, on the loopback, and counts. Two files: FILE, a large one, of which the columns are read
and the condition is counted, and one of 10,000 columns that is made here. Prints a Markdown table, and ends
with 1 where a command fails.
"""

import argparse
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Counted(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files, lock = {}, threading.Lock()
    requests = bytes = 0

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        path = self.files.get(self.path.lstrip("/"))
        if path is None:
            self.send_error(404)
            return
        size = os.path.getsize(path)
        start, end, status = 0, size, 200
        if asked := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            first, last = asked.groups()
            start = int(first) if first else max(0, size - int(last))
            end = min(int(last) + 1, size) if first and last else size
            status = 206
        if start >= end:
            self.send_error(416)
            return
        self.send_response(status)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{size}-{os.stat(path).st_mtime_ns}"')
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        with Counted.lock:
            Counted.requests += 1
            Counted.bytes += (end - start) * with_body
        if with_body:
            with open(path, "rb") as file:
                file.seek(start)
                left = end - start
                while left and (part := file.read(min(left, 1 << 20))):
                    left -= len(part)
                    try:
                        self.wfile.write(part)
                    except OSError:
                        return

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marq", default="marq")
    parser.add_argument("--file", required=True)
    parser.add_argument("--columns", required=True, help="two columns of it, joined with a comma")
    parser.add_argument("--where", required=True, help="a condition on it")
    parser.add_argument("--https", action="store_true")
    args = parser.parse_args()
    folder = tempfile.mkdtemp()
    wide = os.path.join(folder, "wide.parquet")
    make_wide(wide)
    Counted.files = {"big.parquet": os.path.abspath(args.file), "wide.parquet": wide}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counted)
    server.daemon_threads = True
    authority = []
    scheme = "http"
    if args.https:
        scheme = "https"
        key, certificate = (os.path.join(folder, name) for name in ("key.pem", "cert.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key,
                        "-out", certificate, "-subj", "/CN=localhost", "-addext", "basicConstraints=critical,CA:FALSE",
                        "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        authority = ["--ca-file", certificate]
        os.environ["SSL_CERT_FILE"] = certificate
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["NO_PROXY"] = "*"
    base = f"{scheme}://localhost:{server.server_port}"
    failed = ours(args, base, authority, folder)
    if not args.https:
        others(args, base)
    sys.exit(failed)


def make_wide(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({f"c{i}": pa.array(range(i, i + 1000)) for i in range(10_000)})
    pq.write_table(table, path, write_page_index=True, row_group_size=250)


def counted(what, run):
    with Counted.lock:
        Counted.requests = Counted.bytes = 0
    try:
        failed = run()
    except Exception as error:
        failed = error
    print(f"| {what} | {Counted.requests} | {Counted.bytes / 1e6:.2f} |" + (f" failed: {failed}" if failed else ""))
    return bool(failed)


def ours(args, base, authority, folder):
    big, wide = f"{base}/big.parquet", f"{base}/wide.parquet"
    out = os.path.join(folder, "out.parquet")
    commands = [
        ["info", big],
        ["head", big],
        ["count", big, "--where", args.where],
        ["explain", big, "--where", args.where],
        ["convert", big, "--columns", args.columns, "-o", out],
        ["info", wide],
        ["head", wide],
        ["head", wide, "--columns", "c7,c9000"],
        ["count", wide, "--where", "c7 < 100"],
        ["explain", wide, "--where", "c7 < 100"],
        ["convert", wide, "--columns", "c7,c9000", "-o", out],
    ]
    print("| | requests | MB |\n|---|--:|--:|")
    failed = False
    for words in commands:
        def run():
            done = subprocess.run([args.marq, *words, *authority], capture_output=True, text=True)
            return done.returncode and done.stderr
        what = " ".join(word.replace(f"{base}/", "") for word in words if word not in ("-o", out))
        failed |= counted(f"marq {what}", run)
    return failed


def others(args, base):
    big, wide = f"{base}/big.parquet", f"{base}/wide.parquet"
    columns = args.columns.split(",")
    try:
        import polars as pl

        counted("polars, big: head", lambda: pl.scan_parquet(big).head(10).collect() is None)
        where = lambda: pl.scan_parquet(big).filter(pl.sql_expr(args.where)).select(pl.len()).collect() is None
        counted(f"polars, big: count {args.where}", where)
        counted("polars, big: the columns", lambda: pl.scan_parquet(big).select(columns).collect() is None)
        counted("polars, wide: head", lambda: pl.scan_parquet(wide).head(10).collect() is None)
        counted("polars, wide: two columns", lambda: pl.scan_parquet(wide).select("c7", "c9000").collect() is None)
    except ImportError:
        print("polars is not installed")
    try:
        import fsspec
        import pyarrow.parquet as pq

        def opened(url, read):
            with fsspec.open(url) as file:
                return read(pq.ParquetFile(file)) is None

        counted("pyarrow, big: metadata", lambda: opened(big, lambda file: file.metadata))
        counted("pyarrow, big: head", lambda: opened(big, lambda file: next(file.iter_batches(10))))
        counted("pyarrow, big: the columns", lambda: opened(big, lambda file: file.read(columns)))
        counted("pyarrow, wide: metadata", lambda: opened(wide, lambda file: file.metadata))
        counted("pyarrow, wide: two columns", lambda: opened(wide, lambda file: file.read(["c7", "c9000"])))
    except ImportError as missing:
        print(f"pyarrow's rows need {missing.name}")


if __name__ == "__main__":
    main()
