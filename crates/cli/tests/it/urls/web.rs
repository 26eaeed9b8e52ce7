//! Files of web servers, good and bad ones.

use serde_json::Value;

use super::server::{Mode, Server};
use super::{bare_folder, numbered, with_trips};
use crate::support::folder::{Folder, error};

/// The output of a command for a file, and for the same file at a URL.
fn both(folder: &Folder, server: &Server, args: &[&str]) -> (String, String) {
    let url = server.url("trips.parquet");
    let of_url: Vec<&str> =
        args.iter().map(|arg| if *arg == "trips.parquet" { &*url } else { arg }).collect();
    (folder.text(args), folder.text(&of_url).replace(&url, "trips.parquet"))
}

#[test]
fn every_command_that_reads_says_the_same_of_a_url() {
    let (folder, server) = (bare_folder(), with_trips());
    folder.copy("trips.parquet");
    let commands: [&[&str]; 24] = [
        &["info", "trips.parquet"],
        &["schema", "trips.parquet", "--as", "sql:duckdb"],
        &["head", "trips.parquet", "-f", "json"],
        &["tail", "-n", "3", "trips.parquet"],
        &["cat", "trips.parquet", "-f", "csv", "--maps", "object"],
        &["cat", "trips.parquet", "--where", "fare > 20 and payment = 'card'"],
        &["sample", "trips.parquet", "--seed", "7"],
        &["count", "trips.parquet"],
        &["count", "trips.parquet", "--where", "passengers > 2"],
        &["pages", "trips.parquet"],
        &["dict", "trips.parquet", "payment"],
        &["readers", "trips.parquet"],
        &["stats", "trips.parquet"],
        &["stats", "trips.parquet", "--values"],
        &["size", "trips.parquet"],
        &["size", "trips.parquet", "--by", "structure"],
        &["map", "trips.parquet"],
        &["report", "trips.parquet"],
        &["hexdump", "trips.parquet", "-f", "json"],
        &["hexdump", "trips.parquet", "--page", "0/fare/0"],
        &["check", "trips.parquet", "--level", "truth"],
        &["diff", "trips.parquet", "trips.parquet"],
        &["crypt", "audit", "trips.parquet"],
        &["convert", "trips.parquet", "--to", "csv", "--maps", "object", "-o", "-"],
    ];
    for command in commands {
        let (of_file, of_url) = both(&folder, &server, command);
        assert!(of_file == of_url, "{command:?}:\n{of_file}\n{of_url}");
    }
    let url = server.url("trips.parquet");
    // The files that they write are byte for byte the same.
    for command in [
        &["rewrite", "F", "--codec", "zstd:9", "-o", "O"][..],
        &["concat", "F", "F", "-o", "O"],
        &["convert", "F", "-o", "O"],
        &["fill", "F", "-o", "O", "-q"],
        &["salvage", "F", "-o", "O", "-q"],
    ] {
        let with = |file: &str, out: &str| {
            let word = |word: &&str| match *word {
                "F" => file.to_owned(),
                "O" => out.to_owned(),
                word => word.to_owned(),
            };
            let args: Vec<String> = command.iter().map(word).collect();
            folder.text(&args.iter().map(String::as_str).collect::<Vec<_>>());
            folder.content_of(out)
        };
        let (of_file, of_url) = (with("trips.parquet", "a.parquet"), with(&url, "b.parquet"));
        assert!(of_file == of_url, "{command:?}");
    }
    for command in [&["doctor", &url][..], &["explain", &url, "--where", "id < 100"], &[&url]] {
        folder.text(command);
    }
}

#[test]
fn text_and_arrow_are_read_from_urls() {
    let (folder, server) = (bare_folder(), Server::new());
    folder.copy("trips.parquet");
    let flags = ["-c", "id,fare,vendor"];
    for name in ["t.csv", "t.csv.gz", "t.jsonl", "t.arrow", "t.arrows"] {
        folder.text(&[&["convert", "trips.parquet", "-o", name], &flags[..]].concat());
        server.put(name, folder.content_of(name));
        folder.text(&["convert", &server.url(name), "-o", "back.parquet"]);
        folder.text(&["convert", name, "-o", "there.parquet"]);
        assert_eq!(folder.batches("back.parquet"), folder.batches("there.parquet"), "{name}");
    }
}

#[test]
fn a_failing_server_is_asked_again_a_few_times() {
    let (folder, server) = (bare_folder(), with_trips());
    let url = server.url("trips.parquet");
    for mode in [Mode::Failing(503, 2), Mode::Failing(429, 1), Mode::Short(2)] {
        server.set(mode);
        assert_eq!(folder.text(&["count", &url]), "1000\n", "{mode:?}");
        server.seen();
    }
    // The time before each is twice that before the one before, up to a limit.
    server.set(Mode::Failing(429, 80));
    assert_eq!(folder.text(&["count", &url, "--retries", "100"]), "1000\n");
    assert_eq!(server.seen().len(), 81);
    for (retries, requests) in [("0", 1), ("2", 3)] {
        for mode in [Mode::Failing(500, 99), Mode::Short(99)] {
            server.set(mode);
            let text = folder.refused(1, &["count", &url, "--retries", retries]);
            assert!(text.contains(&url), "{text}");
            assert_eq!(server.seen().len(), requests, "{mode:?}, {retries} retries: {text}");
        }
    }
}

#[test]
fn errors_of_a_server_are_errors_of_io_that_name_the_url() {
    let (folder, server) = (bare_folder(), with_trips());
    let url = server.url("trips.parquet");
    let refused = |mode: Mode, url: &str| {
        server.set(mode);
        let text = folder.refused(1, &["cat", url, "--retries", "0", "--timeout", "1"]);
        assert!(text.contains(url), "{mode:?}: {text}");
    };
    refused(Mode::Silent, &url);
    refused(Mode::Failing(403, 1), &url);
    refused(Mode::Failing(400, 1), &url);
    refused(Mode::ClaimsWhole(65 << 20), &url);
    refused(Mode::ClaimsWhole(1000), &url);
    refused(Mode::Plain, &server.url("missing.parquet"));
    refused(Mode::Plain, &server.url("private/x.parquet"));
    refused(Mode::Plain, "http://127.0.0.1:1/x.parquet");
    refused(Mode::Plain, "http://no-such-host.invalid/x.parquet");
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let (folder, server) = (bare_folder(), Server::new());
    server.put("big.parquet", numbered(200_000, 50_000));
    let url = server.url("big.parquet");
    assert_eq!(folder.text(&["count", &url, "--where", "noise > 0 or noise <= 0"]), "200000\n");
    for mode in [Mode::ChangingTag, Mode::ChangingTime, Mode::WrongRange] {
        server.set(mode);
        let text = folder.refused(1, &["count", &url, "--where", "noise > 0", "--retries", "0"]);
        assert!(text.contains(&url), "{mode:?}: {text}");
    }
}

#[test]
fn an_answer_with_other_bytes_than_were_asked_for_is_not_read() {
    let (folder, server) = (bare_folder(), Server::new());
    server.put("big.parquet", numbered(100_000, 50_000));
    let url = server.url("big.parquet");
    server.set(Mode::WholeRange);
    let text = folder.refused(1, &["count", &url]);
    assert!(text.contains(&url), "{text}");
    assert_eq!(server.seen().len(), 1, "it would not answer otherwise a second time");
}

#[test]
fn urls_that_are_shown_alike_are_files_of_their_own() {
    let (folder, server) = (bare_folder(), Server::new());
    server.put("x.csv", b"a\n1\n2\n".to_vec());
    let url = server.url("x.csv");
    let versions = [&*url, &format!("{url}?v=1"), &format!("{url}?v=2")];
    for urls in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
        let urls = urls.map(|at| versions[at]);
        folder.text(&[&["convert"], &urls[..], &["-o", "all.parquet"]].concat());
        assert_eq!(folder.text(&["count", "all.parquet"]), "6\n", "{urls:?}");
        let mut targets: Vec<String> = server.seen().into_iter().map(|seen| seen.target).collect();
        targets.sort();
        targets.dedup();
        assert_eq!(targets.len(), 3, "{urls:?}: {targets:?}");
    }
}

#[test]
fn a_server_that_ignores_ranges_sends_small_files_once() {
    let (folder, server) = (bare_folder(), with_trips());
    server.set(Mode::IgnoresRanges);
    let url = server.url("trips.parquet");
    assert_eq!(folder.text(&["count", &url, "--where", "id >= 0"]), "1000\n");
    assert_eq!(server.seen().len(), 1);
    server.set(Mode::NoSuffix);
    assert_eq!(folder.text(&["count", &url]), "1000\n");
    let methods: Vec<String> = server.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["GET", "HEAD", "GET"]);
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    let (folder, server) = (bare_folder(), Server::new());
    server.put("empty.parquet", Vec::new());
    folder.refused(3, &["info", &server.url("empty.parquet")]);
}

#[test]
fn redirections_are_followed() {
    let (folder, server) = (bare_folder(), with_trips());
    assert_eq!(folder.text(&["count", &server.url("moved/trips.parquet")]), "1000\n");
}

#[test]
fn names_with_any_characters_are_found() {
    let (folder, server) = (bare_folder(), Server::new());
    let bytes = numbered(10, 10);
    for (file, url) in [
        ("a b.parquet", "a%20b.parquet"),
        ("a b.parquet", "a b.parquet"),
        ("ä*[x].parquet", "ä*[x].parquet"),
        ("k=1/x.parquet", "k=1/x.parquet?signature=a/b=c"),
    ] {
        server.put(file, bytes.clone());
        assert_eq!(folder.text(&["count", &server.url(url)]), "10\n", "{url}");
    }
}

#[test]
fn secrets_of_a_url_are_sent_and_never_shown() {
    let (folder, server) = (bare_folder(), with_trips());
    server.put("private/trips.parquet", server.get("trips.parquet").unwrap());
    let host = format!("127.0.0.1:{}", server.port);
    let signed = |path: &str| format!("http://me:hidden1@{host}/{path}?X-Sig=hidden2&a=b#hidden3");
    let url = signed("private/trips.parquet");
    let name = server.url("private/trips.parquet");
    let check = |output: std::process::Output| {
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), error(&output));
        assert!(!text.contains("hidden"), "{text}");
        text
    };
    for args in [
        &["info", &url, "-f", "json"][..],
        &["cat", &url, "--trace-io", "-v"],
        &["cat", &url, "--trace-io", "-f", "json"],
        &["check", &url, "-f", "sarif"],
        &["explain", &url, &url],
        &["rewrite", &url, "-o", "x.parquet", "-v"],
    ] {
        let text = check(folder.run(args));
        assert!(
            ["rewrite", "check"].contains(&args[0]) || text.contains(&name),
            "{args:?}: {text}"
        );
    }
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.target.contains("hidden2")), "{seen:?}");
    // Base64 of me:hidden1.
    let login = "Basic bWU6aGlkZGVuMQ==";
    assert!(seen.iter().all(|seen| seen.headers["authorization"] == login), "{seen:?}");
    for mode in [Mode::Failing(500, 9), Mode::Failing(403, 9), Mode::Short(9), Mode::Silent] {
        server.set(mode);
        let args = ["info", &url, "--retries", "0", "--timeout", "1"];
        check(folder.run(&args));
        check(folder.run(&[&args[..], &["-f", "json"]].concat()));
    }
    server.set(Mode::Plain);
    let dead = url.replace(&host, "127.0.0.1:1");
    check(folder.run(&["info", &dead, "--retries", "0"]));
    check(folder.run(&["info", &url, "-o", &signed("out.json")]));
    check(folder.run(&["rewrite", &url, "--in-place"]));
    check(folder.run(&["concat", &url, "-o", &url]));
}

#[test]
fn passwords_come_from_netrc_unless_anonymous() {
    let server = with_trips();
    server.put("private/trips.parquet", server.get("trips.parquet").unwrap());
    let folder = bare_folder();
    folder.put("netrc", "machine 127.0.0.1\n  login me password secret\n");
    let url = server.url("private/trips.parquet");
    let run = |more: &[&str]| {
        let mut command = folder.command(&[&["count", &url], more].concat());
        command.env("NETRC", folder.path("netrc")).output().unwrap()
    };
    assert!(run(&[]).status.success());
    assert_eq!(run(&["--anonymous"]).status.code(), Some(1));
}

#[test]
fn a_user_without_a_password_is_sent_or_has_that_of_netrc() {
    let server = with_trips();
    let folder = bare_folder();
    folder.put("netrc", "machine 127.0.0.1 login me password se#cret # and no comment within\n");
    for (user, login) in [
        // Base64 of token: and me:se#cret.
        ("token", "Basic dG9rZW46"),
        ("me", "Basic bWU6c2UjY3JldA=="),
        ("", "Basic bWU6c2UjY3JldA=="),
    ] {
        let url = format!("http://{user}@127.0.0.1:{}/trips.parquet", server.port);
        let mut command = folder.command(&["count", &url]);
        let output = command.env("NETRC", folder.path("netrc")).output().unwrap();
        assert!(output.status.success(), "{}", error(&output));
        let seen = server.seen();
        assert!(seen.iter().all(|seen| seen.headers["authorization"] == login), "{seen:?}");
    }
}

#[test]
fn secrets_of_what_is_no_good_url_are_not_shown() {
    let folder = bare_folder();
    folder.copy("trips.parquet");
    for url in [
        "https://u:hid/den@h/x.parquet",
        "https://u:hid?den@h/x.parquet",
        "https:///u:hidden@h.invalid/x.parquet",
        "ftp://u:hidden@h/x.parquet",
        "ftp://u:hid/den@h/x.parquet",
        "ftp://h/x.parquet?hidden",
        "s3://KEY:hidden@b/k.parquet",
        "s3://KEY:hid/den@b/k*.parquet",
        "az://c/k.parquet?sv=1&sig=hidden",
        "gs://hidden@b/folder/",
    ] {
        for args in [
            &["info", url][..],
            &["hexdump", url],
            &["cat", url, "-o", "out.csv"],
            &["convert", "trips.parquet", "-o", url],
            &["convert", url, "-o", "out.parquet"],
            &["diff", "trips.parquet", url],
        ] {
            for format in [&[][..], &["-f", "json"]] {
                let args = [args, format, &["--retries", "0"]].concat();
                let output = folder.run(&args);
                let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), error(&output));
                assert!(!text.contains("hid") && !text.contains("den@"), "{args:?}: {text}");
                assert!(output.status.code().is_some_and(|code| code > 0), "{args:?}: {text}");
            }
        }
    }
}

#[test]
fn file_urls_are_paths() {
    let folder = bare_folder();
    folder.copy("trips.parquet");
    std::fs::rename(folder.path("trips.parquet"), folder.path("a b.parquet")).unwrap();
    let path = folder.path("").display().to_string();
    assert_eq!(folder.text(&["count", &format!("file://{path}a%20b.parquet")]), "1000\n");
    assert_eq!(folder.text(&["count", &format!("file://{path}a b.parquet")]), "1000\n");
    assert_eq!(folder.text(&["count", &format!("file://{path}*.parquet")]), "1000\n");
    let out = format!("file://{path}c%20d.parquet");
    folder.text(&["convert", "a b.parquet", "-o", &out]);
    assert_eq!(folder.text(&["count", "c d.parquet"]), "1000\n");
    folder.refused(2, &["count", "file://server/x.parquet"]);
}

#[test]
fn what_urls_cannot_do_is_a_usage_error() {
    let (folder, server) = (bare_folder(), with_trips());
    folder.copy("trips.parquet");
    let url = server.url("trips.parquet");
    for args in [
        &["info", "hdfs://h/x.parquet"][..],
        &["convert", "trips.parquet", "-o", "ftp://h/x.parquet"],
        &["append", &url, "trips.parquet"],
        &["compact", "s3://b/folder/"],
        &["rewrite", &url, "--in-place", "--codec", "zstd"],
        &["convert", &url, "--in-place"],
        &["fill", &url, "--in-place"],
        &["convert", &url, "-o", &url],
        &["info", "trips.parquet", "--anonymous"],
        &["info", "trips.parquet", "--endpoint", "http://h"],
        &["info", "trips.parquet", "--retries", "3"],
        &["info", "s3://"],
    ] {
        folder.refused(2, args);
    }
    folder.refused(3, &["convert", "trips.parquet", "-o", &server.url("x.parquet")]);
    assert!(server.seen().iter().all(|seen| seen.method == "GET"), "nothing is written");
}

#[test]
fn a_trace_in_json_is_one_record() {
    let (folder, server) = (bare_folder(), with_trips());
    let output = folder.run(&["count", &server.url("trips.parquet"), "--trace-io", "-f", "json"]);
    let trace: Value = serde_json::from_str(&error(&output)).unwrap();
    assert_eq!(trace["requests"], server.seen().len());
}
