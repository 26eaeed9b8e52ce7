//! Objects of a store with the interface of S3.

use std::process::Stdio;
use std::sync::OnceLock;

use super::server::{Mode, Server};
use super::{SECRET, bare_folder, folder, numbered};
use crate::support::folder::{Folder, error};

/// A folder, a store, and its flags.
struct Store {
    folder: Folder,
    server: Server,
    endpoint: String,
}

impl Store {
    fn new() -> Self {
        let server = Server::new();
        let endpoint = server.url("").trim_end_matches('/').to_owned();
        Self { folder: folder(), server, endpoint }
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [args, &["--endpoint", &self.endpoint]].concat()
    }

    fn text(&self, args: &[&str]) -> String {
        self.folder.text(&self.args(args))
    }

    fn refused(&self, code: i32, args: &[&str]) -> String {
        self.folder.refused(code, &self.args(args))
    }
}

/// A file of more than one part of an upload.
fn large() -> Vec<u8> {
    static LARGE: OnceLock<Vec<u8>> = OnceLock::new();
    LARGE.get_or_init(|| numbered(1_300_000, 650_000)).clone()
}

/// Three days of ten rows each, and names that are passed over.
fn with_days() -> Store {
    let store = Store::new();
    for day in ["2026-01-01", "2026-01-02", "2026-01-03"] {
        store.server.put(&format!("b/t/dt={day}/part-0.parquet"), numbered(10, 10));
    }
    store.server.put("b/t/dt=2026-01-01/_SUCCESS", Vec::new());
    store.server.put("b/t/_delta_log/x.parquet", numbered(1, 1));
    store.server.put("b/t/readme.txt", b"text".to_vec());
    store.server.put("b/other.parquet", numbered(5, 5));
    store
}

#[test]
fn globs_and_folders_are_listed() {
    let store = with_days();
    for (url, rows) in [
        ("s3://b/t/dt=2026-01-01/part-0.parquet", 10),
        ("s3://b/t/dt=*/*.parquet", 30),
        ("s3://b/t/dt=2026-01-0[12]/*", 20),
        ("s3://b/t/*-03/", 10),
        ("s3://b/t/", 30),
        ("s3://b/t/**/*.parquet", 30),
        ("s3://b/t/_delta_log/*.parquet", 1),
        ("s3://b/*.parquet", 5),
        ("s3://b/", 35),
        ("s3a://b/o?her.parquet", 5),
    ] {
        assert_eq!(store.text(&["count", url]), format!("{rows}\n"), "{url}");
    }
    for url in ["s3://b/none/*.parquet", "s3://b/none/", "s3://b/[", "s3://b/t/*.txt/"] {
        store.refused(2, &["count", url]);
    }
    store.refused(1, &["count", "s3://b/t"]);
    store.refused(1, &["count", "s3://b/none.parquet"]);
}

#[test]
fn folders_of_keys_are_columns_and_prune() {
    let store = with_days();
    let url = "s3://b/t/dt=*/*.parquet";
    let rows = store.text(&[
        "cat",
        url,
        "-c",
        "dt,id",
        "--where",
        "dt > '2026-01-02' and id < 2",
        "-f",
        "csv",
    ]);
    assert_eq!(rows, "dt,id\n2026-01-03,0\n2026-01-03,1\n");
    store.server.seen();
    store.text(&["count", url, "--where", "dt = '2026-01-02'"]);
    let gets = store.server.seen().into_iter().filter(|it| it.target.contains("part-0"));
    assert_eq!(gets.count(), 1, "the other days are not opened");
}

#[test]
fn keys_are_taken_as_they_are() {
    let store = Store::new();
    for key in ["a b.parquet", "a%20b.parquet", "ts=10%3A00/x+y.parquet", "ä&=.parquet"] {
        store.server.put(&format!("b/{key}"), numbered(3, 3));
        assert_eq!(store.text(&["count", &format!("s3://b/{key}")]), "3\n", "{key}");
        assert_eq!(store.text(&["count", "s3://b/"]), "3\n", "{key}");
        let copy = format!("s3://c/{key}");
        store.text(&["rewrite", &format!("s3://b/{key}"), "-o", &copy]);
        assert!(store.server.get(&format!("c/{key}")).is_some(), "{:?}", store.server.paths());
        store.server.remove(&format!("b/{key}"));
    }
}

#[test]
fn an_object_whose_key_is_a_glob_goes_before_what_matches() {
    let store = Store::new();
    for (key, rows) in [("a[1].parquet", 1), ("a1.parquet", 2), ("d?/x*.parquet", 3)] {
        store.server.put(&format!("b/{key}"), numbered(rows, 3));
    }
    store.server.put("b/d1/x1.parquet", numbered(4, 4));
    for (url, rows) in [
        ("s3://b/a[1].parquet", 1),
        ("s3://b/a[12].parquet", 2),
        ("s3://b/d?/x*.parquet", 3),
        ("s3://b/d?/x*", 7),
    ] {
        assert_eq!(store.text(&["count", url]), format!("{rows}\n"), "{url}");
    }
}

#[test]
fn a_failure_of_an_object_is_not_taken_for_its_status() {
    let store = Store::new();
    store.server.put("b/data-416.parquet", numbered(3, 3));
    store.server.set(Mode::Failing(400, 9));
    store.refused(1, &["count", "s3://b/data-416.parquet", "--retries", "0"]);
    assert_eq!(store.server.seen().len(), 1);
    store.server.set(Mode::NoSuffix);
    assert_eq!(store.text(&["count", "s3://b/data-416.parquet"]), "3\n");
}

#[test]
fn settings_that_are_refused_are_an_error_of_the_url() {
    let folder = bare_folder().with_variable("GOOGLE_SERVICE_ACCOUNT", "/nonexistent/key.json");
    let text = folder.refused(1, &["count", "gs://b/x.parquet", "-f", "json"]);
    let said: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(said["file"], "gs://b/x.parquet");
}

#[test]
fn small_outputs_are_one_request_and_large_ones_parts() {
    let store = Store::new();
    store.folder.copy("trips.parquet");
    store.text(&["convert", "trips.parquet", "-o", "s3://b/x.parquet"]);
    store.folder.text(&["convert", "trips.parquet", "-o", "x.parquet"]);
    assert_eq!(store.server.get("b/x.parquet").unwrap(), store.folder.content_of("x.parquet"));
    let methods: Vec<String> = store.server.seen().into_iter().map(|it| it.method).collect();
    assert_eq!(methods, ["PUT"]);
    store.text(&["cat", "trips.parquet", "-c", "id", "-o", "s3://b/x.csv.gz"]);
    assert!(store.server.get("b/x.csv.gz").unwrap().starts_with(&[0x1f, 0x8b]));
    store.folder.put("large.parquet", large());
    for args in [
        &["rewrite", "large.parquet", "--codec", "none"][..],
        &["convert", "large.parquet"],
        &["concat", "large.parquet", "large.parquet"],
        &["fill", "large.parquet", "-q"],
        &["salvage", "large.parquet", "-q"],
    ] {
        store.server.seen();
        store.text(&[args, &["-o", "s3://b/large.parquet"]].concat());
        store.folder.text(&[args, &["-o", "same.parquet"]].concat());
        let written = store.server.get("b/large.parquet").unwrap();
        assert!(written == store.folder.content_of("same.parquet"), "{args:?}");
        let seen = store.server.seen();
        assert!(seen.iter().filter(|it| it.target.contains("partNumber")).count() > 1, "{args:?}");
    }
    // It decides by trials, and not always in the same way.
    store.text(&["optimize", "large.parquet", "-q", "-o", "s3://b/large.parquet"]);
    assert_eq!(store.text(&["count", "s3://b/large.parquet"]), "1300000\n");
    assert_eq!(store.server.open_uploads(), 0);
}

#[test]
fn a_file_goes_from_store_to_store_in_parts() {
    let store = Store::new();
    store.server.put("b/in.parquet", numbered(10_000, 2_000));
    store.text(&["split", "s3://b/in.parquet", "-o", "s3://b/parts/", "--rows", "4000"]);
    assert_eq!(store.text(&["count", "s3://b/parts/"]), "10000\n");
    let parts = store.server.paths().into_iter().filter(|path| path.starts_with("b/parts/in-00"));
    assert_eq!(parts.count(), 3);
    store.refused(2, &["split", "s3://b/in.parquet", "-o", "s3://b/parts/", "--rows", "4000"]);
    store.refused(2, &["split", "s3://b/in.parquet", "-o", "s3://b/by/", "--by", "text"]);
}

#[test]
fn a_failing_upload_leaves_nothing() {
    let store = Store::new();
    store.server.put("b/out.parquet", b"before".to_vec());
    store.folder.put("large.parquet", large());
    for n in [0, 1] {
        store.server.set(Mode::PartsFail(n));
        let text = store.refused(1, &["convert", "large.parquet", "-o", "s3://b/out.parquet"]);
        assert!(text.contains("s3://b/out.parquet"), "{text}");
        assert_eq!(store.server.open_uploads(), 0);
        assert_eq!(store.server.get("b/out.parquet").unwrap(), b"before");
    }
    // The input fails in the middle.
    store.server.set(Mode::Plain);
    let mut broken = large();
    let middle = broken.len() * 9 / 10;
    broken[middle..middle + 1000].fill(0xFF);
    store.folder.put("broken.parquet", broken);
    store.refused(3, &["convert", "broken.parquet", "-o", "s3://b/out.parquet"]);
    assert_eq!(store.server.open_uploads(), 0);
    assert_eq!(store.server.get("b/out.parquet").unwrap(), b"before");
}

#[cfg(unix)]
#[test]
fn an_interrupted_upload_leaves_nothing() {
    let store = Store::new();
    store.folder.put("large.parquet", large());
    store.server.set(Mode::PartsHang);
    let args = store.args(&["convert", "large.parquet", "-o", "s3://b/out.parquet"]);
    let mut command = store.folder.command(&args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    store.server.wait_for(|seen| seen.target.contains("partNumber"));
    assert_eq!(store.server.open_uploads(), 1);
    let id = rustix::process::Pid::from_child(&child);
    // A shell lets what it starts in the background ignore SIGINT.
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", error(&output));
    assert_eq!(store.server.open_uploads(), 0);
    assert_eq!(store.server.get("b/out.parquet"), None);
}

#[test]
fn keys_come_from_the_environment_or_a_profile() {
    let store = with_days();
    let url = "s3://b/other.parquet";
    let id = |store: &Store| {
        let seen = store.server.seen();
        let authorization = seen[0].headers.get("authorization").cloned().unwrap_or_default();
        let (_, rest) = authorization.split_once("Credential=").unwrap_or_default();
        rest.split('/').take(3).filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    store.text(&["count", url]);
    assert_eq!(id(&store)[0], "AKIDEXAMPLE");
    store.text(&["count", url, "--region", "eu-north-1"]);
    assert_eq!(id(&store)[2], "eu-north-1");
    store.text(&["count", url, "--anonymous"]);
    assert!(id(&store).is_empty());
    let folder = bare_folder();
    folder.put(
        "config",
        format!("[profile work]\nregion = eu-west-3\nendpoint_url = {}\n", store.endpoint),
    );
    folder.put("credentials", "[work]\naws_access_key_id = WORK\naws_secret_access_key = x\n");
    let mut command = folder.command(&["count", url]);
    command.env("AWS_PROFILE", "work").env("AWS_CONFIG_FILE", folder.path("config"));
    command.env("AWS_SHARED_CREDENTIALS_FILE", folder.path("credentials"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", error(&output));
    let id = id(&store);
    assert_eq!((id[0].as_str(), id[2].as_str()), ("WORK", "eu-west-3"));
}

#[test]
fn missing_credentials_are_an_error_before_any_request() {
    let store = with_days();
    let folder = bare_folder();
    folder.put("config", "[profile corp]\nsso_session = corp\nregion = x\n");
    folder.put("role", "[profile corp]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = y\n");
    for (config, word) in
        [("none", "AWS_ACCESS_KEY_ID"), ("config", "single sign-on"), ("role", "role")]
    {
        let args = ["count", "s3://b/other.parquet", "--endpoint", &store.endpoint];
        let mut command = folder.command(&args);
        command.env("AWS_PROFILE", "corp").env("AWS_CONFIG_FILE", folder.path(config));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", error(&output));
        assert!(error(&output).contains(word), "{}", error(&output));
    }
    for url in
        ["gs://b/x.parquet", "az://c/x.parquet", "abfss://c@a.dfs.core.windows.net/x.parquet"]
    {
        let mut command = folder.command(&["count", url, "--timeout", "1", "--retries", "0"]);
        assert_eq!(command.output().unwrap().status.code(), Some(1), "{url}");
    }
    assert!(store.server.seen().is_empty());
}

#[test]
fn secrets_of_a_store_are_never_shown() {
    let store = with_days();
    let modes = [
        Mode::Plain,
        Mode::Failing(403, 9),
        Mode::Failing(500, 9),
        Mode::ChangingTag,
        Mode::Short(9),
    ];
    for mode in modes {
        store.server.set(mode);
        for url in ["s3://b/other.parquet", "s3://b/none.parquet", "s3://b/t/"] {
            let args = ["cat", url, "--trace-io", "-v", "--retries", "0", "--timeout", "1"];
            let output = store.folder.run(&store.args(&args));
            let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), error(&output));
            assert!(!text.contains(SECRET) && !text.contains("Signature"), "{mode:?}: {text}");
        }
    }
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_an_error() {
    let store = Store::new();
    store.server.put("b/big.parquet", numbered(200_000, 50_000));
    store.server.set(Mode::ChangingTag);
    let args = ["count", "s3://b/big.parquet", "--where", "noise > 0", "--retries", "0"];
    let text = store.refused(1, &args);
    assert!(text.contains("s3://b/big.parquet"), "{text}");
}

#[test]
fn a_failing_store_is_asked_again_a_few_times() {
    let store = with_days();
    let args = ["count", "s3://b/other.parquet"];
    store.server.set(Mode::Failing(503, 2));
    assert_eq!(store.text(&args), "5\n");
    store.server.seen();
    store.server.set(Mode::Failing(500, 99));
    store.refused(1, &[&args[..], &["--retries", "2"]].concat());
    assert_eq!(store.server.seen().len(), 3);
}

#[test]
fn objects_of_google_and_azure_are_read() {
    let store = with_days();
    let folder = bare_folder().with_variable("AZURE_STORAGE_ACCOUNT_NAME", "account");
    for (url, rows) in [
        ("gs://b/other.parquet", 5),
        ("gs://b/t/dt=*/*.parquet", 30),
        ("az://b/other.parquet", 5),
        ("abfss://b@other.dfs.core.windows.net/other.parquet", 5),
    ] {
        let args = ["count", url, "--endpoint", &store.endpoint, "--anonymous"];
        assert_eq!(folder.text(&args), format!("{rows}\n"), "{url}");
    }
}
