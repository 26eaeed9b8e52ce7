#!/usr/bin/env python3
"""Holds `marq readers` against what readers do with files.

    python3 tests/readers_truth.py --marq PATH [--readers NAMES] [--truth FILE.json] [-v] FILE|FOLDER ...

Each reader reads each top-level column of each file in a process of its own, so that one that dies or hangs is seen;
what it returns is compared with `marq convert`. `marq readers -f json` may not say that a reader reads a column which it
refuses, or of which it returns other values: such a wrong promise makes the exit status 1. The opposite, a refusal of what
is read, is counted as too cautious. Promises rest on the metadata: where a page contradicts its own header, or its levels each other, which
`marq check` reports, they are counted apart.

Needs pyarrow, and of the readers duckdb, polars and pyspark (for spark, spark-rows and parquet-java, with a Java runtime)
those that --readers names; by default all that are installed. --keys names a table of the keys of encrypted files, separated
by tabs, with the columns file (the end of its path), footer_key, column_keys (PATH=KEY,...) and aad_prefix, the keys in
hexadecimal: they are given to marq, pyarrow, duckdb and polars as far as these take keys; other files, and the other
readers, are tried without. --truth keeps what the readers did, so that a second run with other rules needs none of them. arrow-rs is tried by the test
`what_arrow_rs_reads` (`cargo test --features full --test it -- --ignored what_arrow_rs_reads`).
"""
import argparse
import collections
import csv
import importlib.util
import json
import os
import select
import subprocess
import sys
import tempfile
import uuid

SECONDS = 60  # without an answer: the reader hangs
ROWS = 5000  # of each column that are compared
MEMORY = 8 << 30
DEEP = 60  # nodes, beyond which pyarrow itself cannot open the reference
NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


# ---------------------------------------------------------------- values

def plain(array):
    """The values of an Arrow array, in a form that does not depend on how a reader represents them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    t = pa.types
    if isinstance(array, pa.ChunkedArray):
        return [v for chunk in array.chunks for v in plain(chunk)]
    if isinstance(array.type, pa.BaseExtensionType):
        if array.type.extension_name == "arrow.bool8":
            return [None if v is None else bool(v) for v in array.storage.to_pylist()]
        return plain(array.storage)
    kind = array.type
    if t.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if t.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    valid = array.is_valid().to_pylist()
    if t.is_struct(kind):
        columns = [(f.name, plain(c)) for f, c in zip(kind, array.flatten())]
        return [tuple((n, c[i]) for n, c in columns) if v else None for i, v in enumerate(valid)]
    if t.is_map(kind):
        keys, items, at = plain(array.keys), plain(array.items), array.offsets.to_pylist()
        return [list(zip(keys[at[i]:at[i + 1]], items[at[i]:at[i + 1]])) if v else None for i, v in enumerate(valid)]
    if t.is_list(kind) or t.is_large_list(kind):
        values, at = plain(array.values), array.offsets.to_pylist()
        return [values[at[i]:at[i + 1]] if v else None for i, v in enumerate(valid)]
    if t.is_fixed_size_list(kind):
        n = kind.list_size
        values = plain(array.values.slice(array.offset * n, len(array) * n))
        return [values[i * n:(i + 1) * n] if v else None for i, v in enumerate(valid)]
    if t.is_timestamp(kind) or t.is_time64(kind) or t.is_duration(kind) or t.is_time32(kind):
        word = pa.int32() if t.is_time32(kind) else pa.int64()
        return [None if v is None else v * NANOS[kind.unit] for v in array.view(word).to_pylist()]
    if t.is_date32(kind):
        return array.view(pa.int32()).to_pylist()
    if t.is_date64(kind):
        return [None if v is None else v // 86400000 for v in array.view(pa.int64()).to_pylist()]
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        array = array.cast(pa.large_binary())
    if t.is_floating(kind):
        return ["nan" if v is not None and v != v else v for v in array.cast(pa.float64()).to_pylist()]
    return array.to_pylist()


def fits(want, got):
    """Whether a value is the wanted one, also in another representation."""
    if want is None or got is None:
        return want is got
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(fits, want, got))
    if isinstance(want, tuple) and isinstance(got, tuple):
        def bare(pair):  # a pair of a map is (key, value), or (name, value) twice
            return [x[1] if isinstance(x, tuple) and len(x) == 2 else x for x in pair]
        same = len(want) == len(got)
        return same and (all(map(fits, want, got)) or all(map(fits, bare(want), bare(got))))
    if isinstance(want, float) and isinstance(got, float):
        return want == got and str(want) == str(got)
    if isinstance(want, bytes) and isinstance(got, bytes) and len(want) == 16 and len(got) == 36:
        try:
            return uuid.UUID(got.decode()).bytes == want
        except ValueError:
            return False
    return want == got and isinstance(want, bool) == isinstance(got, bool)


def is_out_of_day(value, kind):
    """Whether a value is no time of day, though its type says so."""
    import pyarrow as pa
    return pa.types.is_time(kind) and isinstance(value, int) and not 0 <= value < 86400 * 10**9


# A value that its type does not allow, or memory that does not suffice: nothing that metadata tell.
BY_VALUE = ("Invalid JSON", "Unexpected end of binary data", "Invalid TIME value", "Int96 timestamp is out of range",
            "Data corruption detected", "WKB_PARSE_ERROR", "Invalid decimal encoding", "MemoryError", "Out of Memory")


def compare(want, got):
    """A verdict on a column, and how it differs from the wanted one."""
    if len(want) != len(got):
        return "differs", f"{len(want)} rows expected, {len(got)} found"
    try:
        pairs = list(zip(plain(want.slice(0, ROWS)), plain(got.slice(0, ROWS))))
    except Exception as e:
        return "unknown", f"{type(e).__name__}: {e}"[:300]
    for row, (x, y) in enumerate(pairs):
        if not fits(x, y):
            if is_out_of_day(x, want.type):
                return "by value", f"row {row}: {x} is no time of day"
            return "differs", f"row {row}: {str(x)[:80]} expected, {str(y)[:80]} found; {want.type} as {got.type}"[:400]
    return "reads", ""


# ---------------------------------------------------------------- readers

def open_pyarrow(path, keys):
    import pyarrow.parquet as pq
    properties = None
    if keys:
        import pyarrow.parquet.encryption as encryption
        properties = encryption.create_decryption_properties(
            bytes.fromhex(keys["footer_key"]), aad_prefix=keys["aad_prefix"].encode() or None)
    names = pq.ParquetFile(path, decryption_properties=properties).schema_arrow.names

    def column(i):
        table = pq.ParquetFile(path, decryption_properties=properties).read(columns=[names[i]])
        same = [c for n, c in zip(table.column_names, table.columns) if n == names[i]]
        return same[names[:i].count(names[i])]
    return names, column


def open_duckdb(path, keys):
    import base64
    import duckdb
    con = duckdb.connect()
    con.execute("set timezone='UTC'; set threads=1")
    more = ""
    with open(path, "rb") as f:
        f.seek(-4, os.SEEK_END)
        is_sealed = f.read() == b"PARE"
    if keys and is_sealed:  # else it takes none
        key = bytes.fromhex(keys["footer_key"])
        text = key.decode() if key.isascii() and key.isalnum() else base64.b64encode(key).decode()
        con.execute(f"PRAGMA add_parquet_key('k', '{text}')")
        more = ", encryption_config={footer_key: 'k'}"
    source = "read_parquet('" + path.replace("'", "''") + f"', hive_partitioning=false{more})"
    names = [row[0] for row in con.sql(f"describe select * from {source}").fetchall()]

    def column(i):
        name = names[i].replace('"', '""')
        try:
            return con.sql(f'select "{name}" from {source}').to_arrow_table().column(0)
        except duckdb.Error as e:
            if "to Parquet VARIANT" not in str(e):
                raise
            # It is read, and has no form in Arrow.
            return con.sql(f'select "{name}"::varchar from {source}').to_arrow_table().column(0)
    return names, column


def open_polars(path, keys):
    import polars as pl
    more = {}
    if keys:
        columns = {path: bytes.fromhex(key) for path, key in column_keys(keys)}
        more["decryption"] = pl.ParquetDecryptionProperties(
            footer_key=bytes.fromhex(keys["footer_key"]), column_keys=columns or None,
            aad_prefix=keys["aad_prefix"].encode() or None)
    names = pl.scan_parquet(path, hive_partitioning=False, **more).collect_schema().names()

    def column(i):
        return pl.read_parquet(path, columns=[i], hive_partitioning=False, **more).to_arrow().column(0)
    return names, column


session = None


def open_spark(path, _, vectorized="true"):
    global session
    if session is None:
        from pyspark.sql import SparkSession
        conf = {"spark.ui.enabled": "false", "spark.driver.memory": "3g", "spark.sql.session.timeZone": "UTC",
                "spark.task.maxFailures": "1", "spark.driver.maxResultSize": "0", "spark.log.level": "OFF"}
        builder = SparkSession.builder.master("local[1]")
        for key, value in conf.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    session.conf.set("spark.sql.parquet.enableNestedColumnVectorizedReader", vectorized)
    escaped = "".join("\\" + c if c in "\\[]{}*?" else c for c in path)
    frame = session.read.parquet("file://" + escaped)
    whole = []

    def column(i):
        if not whole:
            try:
                whole.append(frame.toArrow())
            except Exception:
                whole.append(None)
        if whole[0] is not None:
            return whole[0].column(i)
        name = "`" + frame.columns[i].replace("`", "``") + "`"
        return frame.select(name).toArrow().column(0)
    return frame.columns, column


OPENERS = {"pyarrow": open_pyarrow, "duckdb": open_duckdb, "polars": open_polars, "spark": open_spark,
           "spark-rows": lambda path, keys: open_spark(path, keys, "false")}
TAKE_KEYS = ("pyarrow", "duckdb", "polars")


def column_keys(keys):
    """The path and the key, in hexadecimal, of each column that has a key of its own."""
    return [pair.split("=", 1) for pair in keys["column_keys"].split(",") if pair]



def root_cause(e):
    """The text of an error, that of a Java error with what caused it first."""
    texts, cause = [f"{type(e).__name__}: {e}"], getattr(e, "java_exception", None)
    try:
        while cause is not None and cause.getCause() is not None:
            cause = cause.getCause()
        if cause is not None:
            texts.insert(0, cause.toString())
    except Exception:
        pass
    return " || ".join(texts).replace("\n", " ")[:400]


def child(reader):
    """Answers tasks, one a line: a file, its reference, and the first column to read."""
    import pyarrow as pa
    try:
        import resource
        if not reader.startswith("spark"):  # a Java runtime reserves more than it uses
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass
    out = os.fdopen(os.dup(1), "w")
    for fd in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)

    def say(**answer):
        print(json.dumps(answer), file=out, flush=True)

    for line in sys.stdin:
        task = json.loads(line)
        want = pa.ipc.open_file(task["reference"]).read_all() if task["reference"] else None
        try:
            names, column = OPENERS[reader](task["file"], task["keys"])
        except BaseException as e:
            say(done=True, file_error=root_cause(e))
            continue
        count = len(names) if want is None else want.num_columns
        for i in range(task["first"], count):
            say(begin=i)
            try:
                # A reader may show groups without fields, or not.
                got = column(i if len(names) == count else list(names).index(want.schema.names[i]))
            except BaseException as e:
                text = root_cause(e)
                verdict = "by value" if any(of in text for of in BY_VALUE) else "refuses"
                if reader == "pyarrow" and task["keys"] and "Wrong key length: 0" in text:
                    verdict = "unknown"  # it takes no keys of columns, but from a KMS
                say(column=i, verdict=verdict, text=text)
                continue
            verdict, text = ("unknown", "no reference") if want is None else compare(want.column(i), got)
            say(column=i, verdict=verdict, text=text, type=str(got.type)[:200])
        say(done=True)


class Child:
    """A reader in a process of its own, which is started anew after it died."""

    def __init__(self, reader):
        self.reader, self.process = reader, None

    def start(self):
        command = [sys.executable, os.path.abspath(__file__), "--child", self.reader]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answers(self):
        fd, buffer = self.process.stdout.fileno(), b""
        while True:
            while b"\n" in buffer:
                line, buffer = buffer.split(b"\n", 1)
                yield json.loads(line)
            ready, _, _ = select.select([fd], [], [], SECONDS)
            more = os.read(fd, 1 << 16) if ready else b""
            if not more:
                yield {"dead": self.end(hangs=not ready)}
                return
            buffer += more

    def end(self, hangs):
        if hangs:
            self.process.kill()
        code, self.process = self.process.wait(), None
        return f"no answer within {SECONDS} s" if hangs else f"the process died: {code}"

    def read(self, file, reference, keys):
        """What the reader makes of each column; under "file" what befell the whole file."""
        columns, first = {}, 0
        while True:
            if self.process is None:
                self.start()
            task = {"file": file, "reference": reference, "first": first, "keys": keys}
            self.process.stdin.write((json.dumps(task) + "\n").encode())
            self.process.stdin.flush()
            begun = None
            for answer in self.answers():
                if "begin" in answer:
                    begun = answer["begin"]
                elif "column" in answer:
                    columns[str(answer.pop("column"))] = answer
                elif "dead" in answer:
                    if begun is None:
                        return {"file": {"verdict": "refuses", "text": answer["dead"]}}
                    columns[str(begun)] = {"verdict": "refuses", "text": answer["dead"]}
                    first = begun + 1
                else:
                    if "file_error" in answer:
                        columns["file"] = {"verdict": "refuses", "text": answer["file_error"]}
                    return columns


JAVA = r"""
import java.io.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.*;
import org.apache.parquet.schema.MessageType;

class Reads {
  static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') out.append('\\');
      out.append(c < ' ' ? ' ' : c);
    }
    return out.append('"').toString();
  }

  static String cause(Throwable e) {
    String text = "";
    for (Throwable x = e; x != null && text.length() < 300; x = x.getCause()) {
      text += x.getClass().getSimpleName() + ": " + x.getMessage() + "; ";
    }
    return quoted(text.length() > 400 ? text.substring(0, 400) : text);
  }

  static long rows(HadoopInputFile file, MessageType wanted) throws Exception {
    long rows = 0;
    try (ParquetFileReader reader = ParquetFileReader.open(file)) {
      MessageType schema = reader.getFileMetaData().getSchema();
      reader.setRequestedSchema(wanted);
      MessageColumnIO columns = new ColumnIOFactory().getColumnIO(wanted, schema);
      for (PageReadStore pages; (pages = reader.readNextRowGroup()) != null;) {
        RecordReader<Group> records = columns.getRecordReader(pages, new GroupRecordConverter(wanted));
        for (long i = 0; i < pages.getRowCount(); i++, rows++) records.read();
      }
    }
    return rows;
  }

  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String path; (path = in.readLine()) != null; out.flush()) {
      String line = "{";
      try {
        HadoopInputFile file = HadoopInputFile.fromPath(new Path("file://" + path), new Configuration(false));
        MessageType schema;
        try (ParquetFileReader reader = ParquetFileReader.open(file)) {
          schema = reader.getFileMetaData().getSchema();
        }
        for (int i = 0; i < schema.getFieldCount(); i++) {
          line += (i > 0 ? "," : "") + "\"" + i + "\":";
          try {
            rows(file, new MessageType(schema.getName(), schema.getType(i)));
            line += "{\"verdict\":\"reads\",\"text\":\"\"}";
          } catch (Throwable e) {
            line += "{\"verdict\":\"refuses\",\"text\":" + cause(e) + "}";
          }
        }
      } catch (Throwable e) {
        line = "{\"file\":{\"verdict\":\"refuses\",\"text\":" + cause(e) + "}";
      }
      out.println(line + "}");
    }
  }
}
"""


class JavaChild:
    """parquet-java, with the jars that pyspark brings. What it returns is not compared."""

    def __init__(self, tmp):
        import pyspark
        source = os.path.join(tmp, "Reads.java")
        with open(source, "w") as f:
            f.write(JAVA)
        jars = os.path.join(os.path.dirname(pyspark.__file__), "jars", "*")
        self.command = ["java", "-Xmx3g", "-cp", jars, source]
        self.process = None

    def read(self, file, *_):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL)
        self.process.stdin.write((file + "\n").encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"file": {"verdict": "refuses", "text": "the process died"}}


# ---------------------------------------------------------------- promises

def flags(keys):
    """The keys for marq."""
    if not keys:
        return []
    out = ["--footer-key", keys["footer_key"]]
    for path, key in column_keys(keys):
        out += ["--column-key", f"{path}={key}"]
    return out + (["--aad-prefix", keys["aad_prefix"]] if keys["aad_prefix"] else [])


def promised(marq, file, keys):
    """What marq says: for each reader, whether the file is opened, and the verdict on each leaf by its path."""
    p = subprocess.run([marq, "readers", "-f", "json", file] + flags(keys), stdin=subprocess.DEVNULL, capture_output=True)
    if p.returncode:
        return None
    return {of["reader"]: of for of in json.loads(p.stdout)["files"][0]["readers"]}


RANK = ["reads", "reads if given", "reads as", "refuses"]


def of_fields(of, fields):
    """The worst verdict on the leaves of each top-level column, in the order of the file."""
    worst = {}
    leaves = iter(of["columns"])
    for i, count in enumerate(fields):
        group = [next(leaves) for _ in range(count)]
        worst[i] = max(group, key=lambda leaf: RANK.index(leaf["verdict"])) if group else None
    return worst


def lies(marq, file, keys, leaves):
    """Whether pages of one of these leaves contradict their own headers, which some readers believe, or have levels that no
    rows have: `marq check` says so."""
    p = subprocess.run([marq, "check", "--level", "truth", "-f", "json", file] + flags(keys), stdin=subprocess.DEVNULL, capture_output=True)
    findings = [f for of in json.loads(p.stdout)["files"] for f in of["findings"]]
    codes = ("page-", "levels-inconsistent")
    return any(f["severity"] == "error" and f["code"].startswith(codes) and f["column"] in leaves for f in findings)


def judge(promise, done, i, has_keys):
    """How a promise about a column and what the reader did agree."""
    found = done.get("file") or done.get(str(i))
    if found is None or found["verdict"] in ("unknown", "by value"):
        return found["verdict"] if found else "unknown"
    if promise is None:
        return "unknown"
    verdict = promise["verdict"]
    if found["verdict"] == "reads":
        return "too cautious" if verdict == "refuses" else "right"
    if found["verdict"] == "refuses":
        return "right" if verdict == "refuses" or verdict == "reads if given" and not has_keys else "WRONG"
    return "WRONG" if verdict in ("reads", "reads if given") else "right"


def files_of(paths):
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, _, names in sorted(os.walk(path)):
            for name in sorted(names):
                full = os.path.join(folder, name)
                with open(full, "rb") as f:
                    if f.read(4) in (b"PAR1", b"PARE"):
                        yield full


def leaves_of(kind):
    """How many leaves an Arrow type has in Parquet."""
    import pyarrow as pa
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return 1
    if pa.types.is_nested(kind):
        return sum(leaves_of(kind.field(i).type) for i in range(kind.num_fields))
    return 1


def observe(marq, file, children, keys, tmp):
    """What the readers do with a file, and how many leaves each of its top-level columns has."""
    import pyarrow as pa
    reference = os.path.join(tmp, "reference.arrow")
    if os.path.exists(reference):
        os.remove(reference)
    convert = [marq, "convert", file, "-o", reference, "--int96", "us", "-q"] + flags(keys)
    p = subprocess.run(convert, stdin=subprocess.DEVNULL, capture_output=True)
    entry = {"marq": p.returncode, "fields": None, "readers": {}}
    if p.returncode == 0:
        try:
            schema = pa.ipc.open_file(reference).schema
            entry["fields"] = [leaves_of(f.type) for f in schema]
        except (pa.ArrowException, OSError):
            reference = None
    else:
        reference = None
    for reader, of in children.items():
        entry["readers"][reader] = of.read(file, reference, keys)
    return entry


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2])
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--marq", required=True)
    ap.add_argument("--readers", default="pyarrow,duckdb,polars,spark,spark-rows,parquet-java")
    ap.add_argument("--keys", metavar="FILE.tsv", help="the keys of encrypted files")
    ap.add_argument("--truth", help="keeps what the readers did, and is used again")
    ap.add_argument("-v", action="store_true", help="shows what is too cautious, too")
    ap.add_argument("--broken", action="append", default=[], metavar="TEXT",
                    help="leaves out files whose path has this text: they are broken, though marq reads them")
    ap.add_argument("files", nargs="+")
    args = ap.parse_args()
    marq = os.path.abspath(args.marq)
    module = {"spark": "pyspark", "spark-rows": "pyspark", "parquet-java": "pyspark"}
    wanted = [r for r in args.readers.split(",") if importlib.util.find_spec(module.get(r, r))]
    truth = {}
    if args.truth and os.path.exists(args.truth):
        with open(args.truth) as f:
            truth = json.load(f)
    all_keys = {}
    if args.keys:
        with open(args.keys, encoding="utf8", newline="") as f:
            all_keys = {row["file"]: row for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)}
    counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as tmp:
        children = {r: JavaChild(tmp) if r == "parquet-java" else Child(r) for r in wanted}
        for n, file in enumerate(files_of(args.files)):
            if any(text in file for text in args.broken):
                continue
            keys = next((of for end, of in all_keys.items() if file.endswith(end)), None)
            known = truth.setdefault(file, {"readers": {}})
            missing = {r: c for r, c in children.items() if r not in known["readers"]}
            if missing:
                entry = observe(marq, file, missing, keys, tmp)
                known["readers"].update(entry.pop("readers"))
                known.update(entry)
                if args.truth and n % 20 == 0:
                    save(args.truth, truth)
            report(marq, file, known, keys, wanted, counts, args.v)
    if args.truth:
        save(args.truth, truth)
    return summary(counts, wanted)


def save(path, truth):
    with open(path, "w") as f:
        json.dump(truth, f, indent=0)


def report(marq, file, known, keys, wanted, counts, verbose):
    """Counts and prints how the promises about a file and what was done agree."""
    promise = promised(marq, file, keys)
    for reader in wanted:
        done = known["readers"][reader]
        if promise is None or known.get("fields") is None:
            counts[reader]["no promise"] += 1
            if verbose:
                print(f"no promise: {reader}: {file}: marq ended with {known.get('marq')}")
            continue
        of = promise[reader]
        if sum(known["fields"]) != len(of["columns"]):
            counts[reader]["no promise"] += 1
            continue
        for i, verdict in of_fields(of, known["fields"]).items():
            if of["refuses_file"]:
                verdict = {"verdict": "refuses", "detail": of["refuses_file"]["reason"]}
            found = judge(verdict, done, i, keys and reader in TAKE_KEYS)
            if found == "WRONG":
                first = sum(known["fields"][:i])
                leaves = [leaf["column"] for leaf in of["columns"][first:first + known["fields"][i]]]
                found = "page lies" if lies(marq, file, keys, leaves) else found
            counts[reader][found] += 1
            if found in ("WRONG", "page lies") or verbose and found == "too cautious":
                did = done.get("file") or done.get(str(i))
                print(f"{found}: {reader}: {file}: column {i}: promised {verdict['verdict']} {verdict['detail'] or ''}; "
                      f"did: {did['verdict']} {did['text'][:200]}")


def summary(counts, wanted):
    kinds = ["right", "too cautious", "WRONG", "by value", "page lies", "unknown", "no promise"]
    print(f"{'reader':<14}" + "".join(f"{kind:>14}" for kind in kinds))
    for reader in wanted:
        print(f"{reader:<14}" + "".join(f"{counts[reader][kind]:>14}" for kind in kinds))
    wrong = sum(of["WRONG"] for of in counts.values())
    print(f"\nreaders: {sum(of['right'] for of in counts.values())} promises kept, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
