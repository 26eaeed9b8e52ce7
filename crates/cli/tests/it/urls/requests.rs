//! The cost of commands: requests and bytes, as the server counts them, and as `--trace-io` and
//! `explain` say.

use serde_json::Value;

use super::server::Server;
use super::{bare_folder, numbered, with_trips};
use crate::support::folder::{Folder, error};

/// Four row groups of 800 KB.
fn with_large() -> (Folder, Server, String) {
    let server = Server::new();
    server.put("large.parquet", numbered(400_000, 100_000));
    let url = server.url("large.parquet");
    (bare_folder(), server, url)
}

/// Requests and bytes of a command.
fn cost(folder: &Folder, server: &Server, args: &[&str]) -> (usize, usize) {
    server.seen();
    folder.text(args);
    let seen = server.seen();
    (seen.len(), seen.iter().map(|seen| seen.sent).sum())
}

#[test]
fn metadata_are_one_request() {
    let (folder, server, url) = with_large();
    for args in [
        &["info", &url][..],
        &["count", &url],
        &["schema", &url],
        &["stats", &url],
        &["readers", &url],
        &["count", &url, "--where", "id < 0"],
        &["explain", &url, "--where", "id = 7"],
    ] {
        let (requests, bytes) = cost(&folder, &server, args);
        assert!(
            (requests, bytes) <= (1, 256 << 10),
            "{args:?}: {requests} requests, {bytes} bytes"
        );
    }
}

#[test]
fn rows_cost_little_more_than_the_columns_that_are_read() {
    let (folder, server, url) = with_large();
    let whole = server.get("large.parquet").unwrap().len();
    let (requests, bytes) = cost(&folder, &server, &["head", &url]);
    assert!(requests <= 3 && bytes < whole / 2, "head: {requests} requests, {bytes} bytes");
    let (requests, bytes) = cost(&folder, &server, &["count", &url, "--where", "id = 250000"]);
    assert!(requests <= 3 && bytes < whole / 3, "count: {requests} requests, {bytes} bytes");
    let (requests, bytes) = cost(&folder, &server, &["convert", &url, "-o", "x.parquet"]);
    assert!(requests <= 6 && bytes < whole * 5 / 4, "convert: {requests} requests, {bytes} bytes");
}

#[test]
fn small_files_are_one_request() {
    let (folder, server) = (bare_folder(), with_trips());
    let url = server.url("trips.parquet");
    for args in [&["head", &url][..], &["cat", &url], &["check", &url, "--level", "truth"]] {
        assert_eq!(cost(&folder, &server, args).0, 1, "{args:?}");
    }
    // A file that is named twice is opened once.
    assert_eq!(cost(&folder, &server, &["diff", &url, &url]).0, 1);
}

#[test]
fn a_trace_says_what_the_server_saw() {
    let (folder, server, url) = with_large();
    for args in [
        &["info", &url][..],
        &["cat", &url, "-c", "id", "-o", "x.csv"],
        &["cat", &url, "--where", "noise > 0", "-c", "text", "-o", "x.csv"],
        &["check", &url, "--level", "truth", "-o", "x.json"],
    ] {
        server.seen();
        let output = folder.run(&[args, &["--trace-io", "-f", "json"]].concat());
        let trace: Value = serde_json::from_str(error(&output).lines().last().unwrap()).unwrap();
        let seen = server.seen();
        let sent: usize = seen.iter().map(|seen| seen.sent).sum();
        assert_eq!((&trace["requests"], &trace["bytes"]), (&seen.len().into(), &sent.into()));
        let mut ranges: Vec<String> = Vec::new();
        for read in trace["trace_io"].as_array().unwrap() {
            let (offset, bytes) =
                (&read["offset"].as_u64().unwrap(), read["bytes"].as_u64().unwrap());
            ranges.push(format!("bytes={offset}-{}", offset + bytes - 1));
            assert_ne!(read["what"], "");
        }
        let mut asked: Vec<String> =
            seen.iter().map(|seen| seen.headers["range"].clone()).collect();
        // The first is from the end.
        assert!(asked.remove(0).starts_with("bytes=-") && ranges.len() == seen.len());
        ranges.remove(0);
        ranges.sort();
        asked.sort();
        assert_eq!(ranges, asked, "{args:?}");
    }
}

#[test]
fn local_reads_are_traced_too() {
    let folder = bare_folder();
    folder.copy("trips.parquet");
    let output = folder.run(&["cat", "trips.parquet", "-c", "fare", "--trace-io", "-f", "json"]);
    let trace: Value = serde_json::from_str(error(&output).lines().last().unwrap()).unwrap();
    let reads = trace["trace_io"].as_array().unwrap();
    let of = |text: &str| reads.iter().any(|it| it["what"].as_str().unwrap().contains(text));
    assert!(of("footer") && of("fare") && !of("vendor"), "{trace}");
    let table = error(&folder.run(&["cat", "trips.parquet", "--trace-io"]));
    assert!(table.contains("trips.parquet") && table.contains("requests"), "{table}");
}

#[test]
fn explain_says_what_will_be_fetched() {
    let (folder, server, url) = with_large();
    let filter = "id between 150000 and 150010";
    let said = folder.json(&["explain", &url, "--where", filter, "-c", "noise", "-f", "json"]);
    let said = &said["files"][0];
    let (requests, bytes) =
        cost(&folder, &server, &["cat", &url, "--where", filter, "-c", "noise", "-f", "csv"]);
    // The read opens the file, too.
    let opening = 256 << 10;
    let explained = said["bytes"].as_u64().unwrap() as usize + opening;
    assert!(bytes <= explained, "{bytes} bytes came, {explained} were explained");
    assert!(requests <= said["requests"].as_u64().unwrap() as usize + 1);
}
