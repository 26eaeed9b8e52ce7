"""Runs `marq` against moto, which imitates S3: python3 crates/cli/tests/s3_moto.py --marq PATH.

Needs `moto[server]` (5.2.0 does not end the uploads of pyarrow, 5.2.5 does) and pyarrow from PyPI. Says what differs, and ends
with 1 then.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def started(port):
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/")
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("moto does not start")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marq", default="marq")
    args = parser.parse_args()
    port = free_port()
    server = os.path.join(os.path.dirname(sys.executable), "moto_server")
    moto = subprocess.Popen([server, "-H", "127.0.0.1", "-p", str(port)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        started(port)
        sys.exit(run(args.marq, f"http://127.0.0.1:{port}"))
    finally:
        moto.terminate()
        moto.wait()


def run(marq, endpoint):
    import pyarrow as pa
    import pyarrow.fs
    import pyarrow.parquet as pq

    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "NO_PROXY": "*",
    }
    folder = tempfile.mkdtemp()
    failed = 0

    def call(*words, code=0):
        words = [marq, *words, "--endpoint", endpoint]
        done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True)
        if done.returncode != code:
            sys.exit(f"{words}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def same(what, found, expected):
        nonlocal failed
        is_same = found == expected
        failed += not is_same
        print("ok  " if is_same else f"FAIL {found!r}, not {expected!r}:", what)

    s3 = pyarrow.fs.S3FileSystem(access_key="test", secret_key="test", region="us-east-1",
                                 endpoint_override=endpoint, allow_bucket_creation=True)
    s3.create_dir("lake")
    for day in range(3):
        table = pa.table({"id": range(day * 100, day * 100 + 100), "x": [day / 7] * 100})
        pq.write_table(table, f"lake/t/dt=2026-01-0{day + 1}/a b%3A.parquet", filesystem=s3)
    glob = "s3://lake/t/dt=*/*.parquet"
    same("count over a glob", call("count", glob), "300\n")
    same("count over a folder", call("count", "s3://lake/t/"), "300\n")
    where = ["--where", "dt > '2026-01-01' and id >= 190"]
    same("a filter on folders", call("count", glob, *where), "110\n")
    # Written by marq, in one request and in parts, and read by pyarrow.
    call("convert", glob, "-o", "s3://lake/small.parquet")
    small = pq.read_table("lake/small.parquet", filesystem=s3)
    same("a small object", (small.num_rows, sorted(small["id"].to_pylist())), (300, list(range(300))))
    noise = pa.table({"noise": [os.urandom(16) for _ in range(2_000_000)]})
    pq.write_table(noise, os.path.join(folder, "noise.parquet"), compression="none")
    call("rewrite", "noise.parquet", "--codec", "none", "-o", "s3://lake/large.parquet")
    large = pq.read_table("lake/large.parquet", filesystem=s3)
    same("an object in parts", large.equals(noise), True)
    same("its rows", call("count", "s3://lake/large.parquet", "--where", "noise is not null"),
         "2000000\n")
    same("rewritten from store to store",
         call("rewrite", "s3://lake/large.parquet", "-o", "s3://lake/copy.parquet"), "")
    same("diff", call("diff", "s3://lake/large.parquet", "s3://lake/copy.parquet", "--what", "data",
                      "-f", "json") != "", True)
    call("split", "s3://lake/small.parquet", "-o", "s3://lake/parts/", "--rows", "100")
    same("split", call("count", "s3://lake/parts/"), "300\n")
    call("check", "s3://lake/small.parquet", "--level", "truth")
    call("info", "s3://lake/none.parquet", code=1)
    call("info", "s3://nowhere/none.parquet", code=1)
    print(f"{failed} differ" if failed else "all as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    main()
