//! Tests `marq crypt`, and keys on the command line.

use std::ops::Deref;
use std::process::Output;

use marquetry::crypt::kms::{KeyMaterials, KeyRing, KmsEncryption};
use marquetry::crypt::{Algorithm, Encryption, Key};
use marquetry::io::PathSink;
use marquetry::rewrite::recrypt;
use marquetry::{BloomOptions, PageVersion, Reader, WriteOptions, Writer};
use serde_json::Value;

use crate::support::folder::{self, error};
use crate::support::testdata;

/// Keys in hexadecimal digits.
const FOOTER: &str = "000102030405060708090a0b0c0d0e0f";
const COLUMN: &str = "f0e1d2c3b4a5968778695a4b3c2d1e0ff0e1d2c3b4a59687";
const OTHER: &str = "aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899";

/// A folder, and `marq` in it, which has the keys in its environment.
struct Folder(folder::Folder);

impl Deref for Folder {
    type Target = folder::Folder;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

impl Folder {
    fn new() -> Self {
        let folder = folder::Folder::new().with_variable("FOOTER_KEY", FOOTER);
        Self(folder.with_variable("COLUMN_KEY", COLUMN).with_variable("OTHER_KEY", OTHER))
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file")
    }

    fn run(&self, args: &str) -> Output {
        self.0.run(&words(args))
    }

    /// Runs `marq`, which succeeds.
    fn done(&self, args: &str) -> String {
        self.text(&words(args))
    }

    fn json(&self, args: &str) -> Value {
        self.0.json(&words(args))
    }

    /// Runs `marq`, which fails with this code; returns its message.
    fn refused(&self, args: &str, code: i32) -> String {
        self.0.refused(code, &words(args))
    }

    /// Some columns of trips.parquet in small pages, with bloom filters: `plain.parquet`.
    fn trips(&self, version: PageVersion) {
        let trips = Reader::open(testdata("trips.parquet")).unwrap().limit(300);
        let bloom = |of: marquetry::ColumnOptions| of.with_bloom(BloomOptions::default());
        let options = WriteOptions::new()
            .with_page_version(version)
            .with_row_group_rows(150)
            .with_page_rows(40)
            .with_column("id", bloom);
        let path = self.path("plain.parquet");
        let mut writer = Writer::create_with(path, trips.schema().unwrap(), options).unwrap();
        for batch in trips.batches().unwrap() {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.finish().unwrap();
    }

    /// `plain.parquet`, encrypted.
    fn encrypt(&self, name: &str, encryption: &Encryption) {
        let reader = Reader::open(self.path("plain.parquet")).unwrap();
        recrypt(&reader, PathSink::create(self.path(name)).unwrap(), Some(encryption)).unwrap();
    }
}

fn key(hex: &str) -> Key {
    Key::from_hex(hex).unwrap()
}

/// The pages of a file that is not encrypted, byte for byte.
fn pages(path: &std::path::Path) -> Vec<Vec<u8>> {
    let reader = Reader::open(path).unwrap();
    let file = std::fs::read(path).unwrap();
    let mut out = Vec::new();
    for row_group in 0..reader.metadata().row_groups() {
        for leaf in 0..reader.metadata().schema().leaves_len() {
            for page in reader.stored_pages(row_group, leaf).unwrap() {
                let page = page.unwrap();
                let start = page.offset as usize;
                let len = page.header_len + page.header.compressed_page_size as usize;
                out.push(file[start..start + len].to_vec());
            }
        }
    }
    out
}

#[test]
fn encrypted_rekeyed_and_decrypted_pages_are_the_same() {
    for version in [PageVersion::V1, PageVersion::V2] {
        let folder = Folder::new();
        folder.trips(version);
        folder.put("column.key", COLUMN);
        let rows = folder.done("cat plain.parquet");
        for flags in [
            "",
            "--plaintext-footer",
            "--algorithm gcm-ctr",
            "--algorithm gcm-ctr --plaintext-footer",
        ] {
            folder.done(&format!(
                "crypt encrypt plain.parquet -o a.parquet --encrypt-footer-key env:FOOTER_KEY {flags}"
            ));
            let keys = format!("--footer-key {FOOTER}");
            assert_eq!(folder.done(&format!("cat a.parquet {keys}")), rows, "{flags}");
            folder.done(&format!(
                "crypt rekey a.parquet -o b.parquet {keys} --encrypt-footer-key {OTHER} \
                 --encrypt-column-key id=@column.key {flags}"
            ));
            let keys = "--footer-key env:OTHER_KEY --column-key id=@column.key";
            assert_eq!(folder.done(&format!("cat b.parquet {keys}")), rows, "{flags}");
            folder.done(&format!("crypt decrypt b.parquet -o c.parquet {keys}"));
            assert_eq!(folder.done("cat c.parquet"), rows, "{flags}");
            assert!(
                pages(&folder.path("plain.parquet")) == pages(&folder.path("c.parquet")),
                "{flags}"
            );
        }
    }
}

#[test]
fn every_codec_and_layout_comes_back() {
    for name in [
        "nested",
        "nested_v2",
        "codec_brotli",
        "codec_gzip",
        "codec_lz4",
        "codec_snappy",
        "codec_zstd",
        "delta_byte_array_v2",
        "no_rows",
        "many_columns",
        "int96",
        "duckdb",
        "polars",
    ] {
        let folder = Folder::new();
        let plain = testdata(&format!("{name}.parquet"));
        let shown = plain.display();
        folder.done(&format!("crypt encrypt {shown} -o a.parquet --encrypt-footer-key {FOOTER}"));
        folder.done(&format!("crypt decrypt a.parquet -o b.parquet --footer-key {FOOTER}"));
        assert!(pages(&plain) == pages(&folder.path("b.parquet")), "{name}");
        assert_eq!(folder.done(&format!("cat {shown}")), folder.done("cat b.parquet"), "{name}");
    }
}

#[test]
fn a_file_that_was_changed_leaves_no_output() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    folder.encrypt("a.parquet", &Encryption::new(key(FOOTER)));
    let file = folder.bytes("a.parquet");
    for at in [100, file.len() / 2, file.len() - 100] {
        let mut changed = file.clone();
        changed[at] ^= 1;
        folder.put("changed.parquet", changed);
        for command in ["decrypt", "rekey --encrypt-footer-key env:OTHER_KEY"] {
            let args =
                format!("crypt {command} changed.parquet -o out.parquet --footer-key {FOOTER}");
            folder.refused(&args, 6);
            assert!(!folder.path("out.parquet").exists());
        }
    }
    let left = folder.names("").len();
    assert_eq!(left, 3, "no temporary file is left");
}

#[test]
fn what_is_not_meant_is_refused() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let one_column = Encryption::new(key(FOOTER)).with_column_key("id", key(COLUMN));
    folder.encrypt("a.parquet", &one_column.with_plaintext_footer(true));
    for (args, code, says) in [
        ("crypt decrypt plain.parquet -o b.parquet", 6, "not encrypted"),
        (
            "crypt rekey plain.parquet -o b.parquet --encrypt-footer-key env:OTHER_KEY",
            6,
            "not encrypted",
        ),
        ("crypt encrypt a.parquet -o b.parquet --encrypt-footer-key env:OTHER_KEY", 2, "rekey"),
        ("crypt encrypt plain.parquet -o b.parquet", 2, "--encrypt-footer-key"),
        ("crypt encrypt plain.parquet --encrypt-footer-key env:OTHER_KEY", 2, "-o"),
        (
            "crypt encrypt plain.parquet -o plain.parquet --encrypt-footer-key env:OTHER_KEY",
            2,
            "input",
        ),
        ("crypt decrypt a.parquet -o b.parquet", 6, "signature"),
        ("crypt decrypt a.parquet -o b.parquet --column-key id=env:COLUMN_KEY", 6, "signature"),
        ("crypt decrypt a.parquet -o b.parquet --footer-key env:FOOTER_KEY", 6, "id"),
        ("crypt decrypt a.parquet -o b.parquet --footer-key env:OTHER_KEY", 6, "authentic"),
        ("cat a.parquet -c id", 6, "id"),
        ("pages a.parquet -c id", 6, "id"),
        ("cat a.parquet --footer-key env:NO_SUCH_KEY", 2, "NO_SUCH_KEY"),
        ("cat a.parquet --key footer=00", 2, "--key"),
        ("cat a.parquet --footer-key env:FOOTER_KEY --key footer=env:FOOTER_KEY", 2, "twice"),
        ("cat a.parquet --key-file missing", 1, "missing"),
    ] {
        let said = folder.refused(args, code);
        assert!(said.contains(says), "{args}: {said}");
        assert!(!folder.path("b.parquet").exists(), "{args}");
    }
    folder.put("wrong.keys", "# keys\n\nfooter = 00 11\n");
    let said = folder.refused("cat a.parquet --key-file wrong.keys", 2);
    assert!(said.contains("wrong.keys, line 3"), "{said}");
}

#[test]
fn keys_are_found_by_name_column_and_key_metadata() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let encryption = Encryption::new(key(FOOTER))
        .with_footer_key_metadata("the footer")
        .with_column_key_and_metadata("id", key(COLUMN), "the = column");
    folder.encrypt("a.parquet", &encryption);
    let rows = folder.done("cat plain.parquet");
    folder.put("footer.key", FOOTER);
    folder.put("column.key", key(COLUMN).expose_bytes());
    folder.put("columns", format!("footer={FOOTER}\ncolumn:id = {COLUMN}\n"));
    folder.put("names", format!("# by metadata\nthe footer = {FOOTER}\nthe = column = {COLUMN}\n"));
    for keys in [
        "--key-file columns",
        "--key-file names",
        "--key footer=@footer.key --key column:id=@column.key",
        "--key footer=env:FOOTER_KEY --column-key id=@column.key",
    ] {
        assert_eq!(folder.done(&format!("cat a.parquet {keys}")), rows, "{keys}");
    }
    let said = folder.refused("cat a.parquet --key other=env:FOOTER_KEY", 6);
    assert!(said.contains("the footer"), "{said}");
}

#[test]
fn key_material_is_unwrapped_with_master_keys_and_wrapped_anew() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let ring = KeyRing::new().with_key("old", key(FOOTER)).with_key("people", key(COLUMN));
    let of = KmsEncryption::new("old").with_column("id", "people");
    folder.encrypt("internal.parquet", &of.internal(&ring).unwrap());
    let (encryption, materials) = of.external(&ring).unwrap();
    folder.encrypt("external.parquet", &encryption);
    let beside = KeyMaterials::path_for(folder.path("external.parquet"));
    std::fs::write(&beside, materials.to_json()).unwrap();

    let rows = folder.done("cat plain.parquet");
    let old = "--key old=env:FOOTER_KEY --key people=env:COLUMN_KEY";
    let new = "--key new=env:OTHER_KEY --key people=env:COLUMN_KEY";
    for name in ["internal", "external"] {
        assert_eq!(folder.done(&format!("cat {name}.parquet {old}")), rows);
        folder.refused(&format!("cat {name}.parquet {new}"), 6);
        let audit = folder.json(&format!("crypt audit {name}.parquet"));
        assert_eq!(audit["files"][0]["footer"]["key"]["id"], "old");
        assert_eq!(audit["files"][0]["footer"]["key"]["storage"], name);
    }

    let before = folder.bytes("external.parquet");
    let report = folder.json(&format!(
        "crypt rewrap external.parquet --master-key old=new {old} --key new=env:OTHER_KEY"
    ));
    assert_eq!(
        (&report["files"][0]["keys"], &report["files"][0]["wrapped_anew"]),
        (&2.into(), &1.into())
    );
    assert_eq!(folder.bytes("external.parquet"), before);
    assert_eq!(folder.done(&format!("cat external.parquet {new}")), rows);
    folder.refused(&format!("cat external.parquet {old}"), 6);
    let audit = folder.json(&format!("crypt audit external.parquet {new}"));
    assert_eq!(audit["files"][0]["footer"]["key"]["id"], "new");

    // Nothing changes where a key is missing, and material in the file is not wrapped anew.
    let before = std::fs::read(&beside).unwrap();
    let missing = "crypt rewrap external.parquet --master-key new=old --key old=env:FOOTER_KEY";
    folder.refused(missing, 6);
    assert_eq!(std::fs::read(&beside).unwrap(), before);
    let said =
        folder.refused(&format!("crypt rewrap internal.parquet --master-key old=new {old}"), 2);
    assert!(said.contains("rekey"), "{said}");
}

/// A column of the audit of the one file.
fn column<'a>(audit: &'a Value, name: &str) -> &'a Value {
    let columns = audit["files"][0]["columns"].as_array().expect("columns");
    columns.iter().find(|column| column["column"] == name).expect("the column")
}

#[test]
fn an_audit_says_what_protects_each_column() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let audit = folder.json("crypt audit plain.parquet -f json");
    assert_eq!(audit["schema"], "marq/1/crypt-audit");
    let file = &audit["files"][0];
    assert_eq!(
        (&file["footer"]["mode"], &file["footer"]["signature"]),
        (&"plain".into(), &"none".into())
    );
    let id = column(&audit, "id");
    assert_eq!(
        (&id["protection"], &id["statistics"], &id["pages"]),
        (&"plain".into(), &"plain".into(), &"plain".into())
    );
    let leaks = id["leaks"].to_string();
    assert!(
        ["values", "page_index", "bloom_filter", "statistics"]
            .iter()
            .all(|leak| leaks.contains(leak)),
        "{leaks}"
    );

    let uniform = Encryption::new(key(FOOTER)).with_footer_key_metadata("kf");
    folder.encrypt("uniform.parquet", &uniform.clone().with_aad_prefix("here"));
    folder.encrypt(
        "signed.parquet",
        &uniform.clone().with_plaintext_footer(true).with_stored_aad_prefix("stored"),
    );
    let ctr = uniform.with_column_key_and_metadata("id", key(COLUMN), [0, 255]);
    folder.encrypt("ctr.parquet", &ctr.with_algorithm(Algorithm::AesGcmCtrV1));

    // Without keys, as far as it can be seen.
    let audit = folder.json("crypt audit uniform.parquet");
    let footer = &audit["files"][0]["footer"];
    assert_eq!(
        (&footer["mode"], &footer["algorithm"]),
        (&"encrypted".into(), &"AES_GCM_V1".into())
    );
    assert_eq!(
        (&footer["signature"], &footer["aad_prefix"]),
        (&"unknown".into(), &"needed".into())
    );
    assert_eq!(footer["key"]["id"], "kf");
    assert!(audit["files"][0]["columns"].is_null() && footer["problem"].is_string());
    let audit =
        folder.json("crypt audit uniform.parquet --footer-key env:FOOTER_KEY --aad-prefix here");
    assert_eq!(audit["files"][0]["footer"]["signature"], "authenticated");
    let id = column(&audit, "id");
    assert_eq!((&id["protection"], &id["statistics"]), (&"footer_key".into(), &"encrypted".into()));
    assert_eq!((&id["access"], &id["key"]["id"]), (&"readable".into(), &"kf".into()));
    assert_eq!(id["leaks"], serde_json::json!([]));

    let audit = folder.json("crypt audit signed.parquet");
    let file = &audit["files"][0];
    assert_eq!(
        (&file["footer"]["mode"], &file["footer"]["signature"]),
        (&"signed".into(), &"unverified".into())
    );
    assert_eq!(file["footer"]["aad_prefix_text"], "stored");
    assert!(file["leaks"].to_string().contains("ARROW:schema"), "{}", file["leaks"]);
    assert_eq!(column(&audit, "id")["statistics"], "stripped");
    let audit = folder.json("crypt audit signed.parquet --key footer=env:FOOTER_KEY");
    assert_eq!(audit["files"][0]["footer"]["signature"], "verified");

    let audit = folder.json("crypt audit ctr.parquet --footer-key env:FOOTER_KEY");
    let id = column(&audit, "id");
    assert_eq!(
        (&id["protection"], &id["pages"]),
        (&"column_key".into(), &"unauthenticated".into())
    );
    assert_eq!((&id["access"], &id["key"]["id"]), (&"key_missing".into(), &"00ff".into()));
    let plain = audit["files"][0]["plain_columns"].as_u64().unwrap();
    assert!(plain > 3);

    // Keys that do not open what they are for.
    folder.refused("crypt audit uniform.parquet --footer-key env:OTHER_KEY --aad-prefix here", 6);
    folder.refused("crypt audit signed.parquet --footer-key env:OTHER_KEY", 6);
    let wrong = "crypt audit ctr.parquet --footer-key env:FOOTER_KEY --column-key id=env:OTHER_KEY";
    let output = folder.run(wrong);
    assert_eq!(output.status.code(), Some(6), "{}", error(&output));
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(column(&audit, "id")["access"], "not_authentic");
}

#[test]
fn a_plaintext_footer_whose_statistics_were_not_stripped_is_noticed() {
    use marquetry::format::Thrift;
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    folder.encrypt("signed.parquet", &Encryption::new(key(FOOTER)).with_plaintext_footer(true));
    let (plain, signed) = ["plain.parquet", "signed.parquet"]
        .map(|name| Reader::open(folder.path(name)).unwrap())
        .into();
    let statistics = plain.metadata().column_chunk(0, 0).unwrap().meta_data.unwrap().statistics;
    assert!(statistics.is_some());
    let mut metadata = signed.metadata().index().to_file_meta_data().unwrap();
    metadata.row_groups[0].columns[0].meta_data.as_mut().unwrap().statistics = statistics;
    // As another writer would, except the signature.
    let mut footer = metadata.to_thrift();
    footer.extend_from_slice(&[0; 28]);
    let mut file = folder.bytes("signed.parquet");
    file.truncate(file.len() - 8 - 28 - signed.metadata().index().byte_len());
    file.extend_from_slice(&footer);
    file.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    file.extend_from_slice(b"PAR1");
    folder.put("leaks.parquet", file);
    let audit = folder.json("crypt audit leaks.parquet");
    let first = &audit["files"][0]["columns"][0];
    assert_eq!(first["statistics"], "leaked");
    assert!(first["leaks"].to_string().contains("statistics"));
    assert_eq!(audit["files"][0]["columns"][1]["statistics"], "stripped");
}

#[test]
fn columns_that_must_be_protected_and_are_not_are_a_finding() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let one =
        Encryption::new(key(FOOTER)).with_column_key("id", key(COLUMN)).with_plaintext_footer(true);
    folder.encrypt("one.parquet", &one);
    folder.encrypt("all.parquet", &Encryption::new(key(FOOTER)));
    let names: Vec<String> = folder.json("crypt audit plain.parquet")["files"][0]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["column"].as_str().unwrap().to_owned())
        .collect();

    folder.done("crypt audit one.parquet --require id");
    let output = folder.run("crypt audit one.parquet plain.parquet --require i[d] -f json");
    assert_eq!(output.status.code(), Some(4));
    let said = error(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("plain.parquet") && said.contains("id"), "{said}");
    let audit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(audit["violations"].as_array().unwrap().len(), 1);
    let said = folder.refused("crypt audit one.parquet --require *", 4);
    assert_eq!(said.lines().count(), names.len() - 1, "{said}");

    folder.done("crypt audit all.parquet --require * --footer-key env:FOOTER_KEY");
    // Unknown.
    folder.refused("crypt audit all.parquet --require id", 6);
    let said = folder.refused("crypt audit one.parquet --require no_such", 2);
    assert!(said.contains("no_such"), "{said}");
}

#[test]
fn an_audit_for_people_fits_on_the_screen() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let long = "a key whose name is longer than most, in a service that is called by an address";
    let of = Encryption::new(key(FOOTER)).with_footer_key_metadata(long);
    folder.encrypt(
        "a.parquet",
        &of.with_column_key_and_metadata("id", key(COLUMN), long).with_plaintext_footer(true),
    );
    for file in ["plain.parquet", "a.parquet", "plain.parquet a.parquet"] {
        let args = [words("crypt audit -f table"), words(file)].concat();
        let mut command = folder.command(&args);
        let output = command.env("COLUMNS", "80").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("protection") && text.contains("id"), "{text}");
    }
}

#[test]
fn pages_and_info_of_encrypted_files_are_shown_with_keys() {
    let folder = Folder::new();
    folder.trips(PageVersion::V2);
    let of = Encryption::new(key(FOOTER)).with_column_key("id", key(COLUMN));
    folder.encrypt("a.parquet", &of);
    let keys = "--footer-key env:FOOTER_KEY --column-key id=env:COLUMN_KEY";
    let plain = folder.json("pages plain.parquet -c id");
    let encrypted = folder.json(&format!("pages a.parquet -c id {keys}"));
    let of = |listing: &Value, name: &str| -> Vec<Value> {
        let chunks = listing["chunks"].as_array().unwrap().iter();
        chunks
            .flat_map(|chunk| chunk["pages"].as_array().unwrap())
            .map(|page| page[name].clone())
            .collect()
    };
    for name in ["type", "encoding", "values", "rows", "uncompressed_bytes"] {
        assert_eq!(of(&plain, name), of(&encrypted, name), "{name}");
    }
    let by_page = format!("stats a.parquet --by page -c id {keys}");
    assert_eq!(
        folder.json("stats plain.parquet --by page -c id")["lines"][0]["min"],
        folder.json(&by_page)["lines"][0]["min"]
    );
    let said = folder.refused("pages a.parquet -c id --footer-key env:FOOTER_KEY", 6);
    assert!(said.contains("--column-key"), "{said}");
    let said = folder.refused("pages a.parquet", 6);
    assert!(said.contains("--footer-key"), "{said}");
    for command in ["info", "schema", "count", "stats", "head"] {
        folder.refused(&format!("{command} a.parquet"), 6);
    }
    let info = folder.json(&format!("info a.parquet {keys}"));
    assert_eq!(info["encryption"]["algorithm"], "AES_GCM_V1");
    assert_eq!(info["encryption"]["footer"], "encrypted");
    let parts: u64 = info["bytes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(Some(parts), info["file_bytes"].as_u64(), "every byte is accounted for");
    assert_eq!(info["bytes"]["other"], 4, "the magic number");
    // Without the key of the column, all else is there.
    let info = folder.json("info a.parquet --footer-key env:FOOTER_KEY");
    assert_eq!(info["rows"], 300);
    folder.done("schema a.parquet --footer-key env:FOOTER_KEY");
    assert!(folder.json("info plain.parquet")["encryption"].is_null());
}

#[test]
fn no_output_repeats_a_key() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let of = Encryption::new(key(FOOTER)).with_column_key("id", key(COLUMN));
    folder.encrypt("a.parquet", &of);
    folder.put("keys", format!("footer = {FOOTER}\nmaster = {OTHER}\n"));
    folder.put("wrong", format!("footer : {FOOTER}\n"));
    for args in [
        format!("crypt audit a.parquet -f json --footer-key {FOOTER} --column-key id={COLUMN}"),
        format!("crypt audit a.parquet -f table --footer-key {FOOTER} --column-key id={OTHER}"),
        format!(
            "crypt decrypt a.parquet -o b.parquet -v --footer-key {FOOTER} --column-key id={COLUMN}"
        ),
        format!("crypt decrypt a.parquet -o b.parquet -f json --footer-key {OTHER}"),
        format!(
            "crypt rekey a.parquet -v -o b.parquet --key-file keys --column-key id={COLUMN} --encrypt-footer-key {OTHER}"
        ),
        "cat a.parquet --key-file wrong".to_owned(),
        format!("cat a.parquet --key-file keys --footer-key {OTHER}"),
        format!("cat a.parquet --footer-key {FOOTER}0 --column-key {COLUMN}"),
        format!("cat a.parquet --key footer={FOOTER}"),
        format!("crypt encrypt plain.parquet -o b.parquet --encrypt-footer-key {FOOTER}x"),
        format!(
            "crypt encrypt plain.parquet -o b.parquet --encrypt-footer-key {FOOTER} --encrypt-column-key nothing={COLUMN}"
        ),
        format!("explain a.parquet --footer-key {FOOTER} --column-key id={COLUMN}"),
        format!("info a.parquet --footer-key {FOOTER} --column-key id={COLUMN}"),
    ] {
        let output = folder.run(&args);
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text).to_ascii_lowercase();
            for key in [FOOTER, COLUMN, OTHER] {
                assert!(!text.contains(&key[..16]), "{args}: {text}");
            }
        }
    }
}

#[test]
fn files_in_plain_text_are_refused_where_keys_are_given_unless_they_are_allowed() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let said = folder.refused(&format!("count plain.parquet --footer-key {FOOTER}"), 6);
    assert!(said.contains("--allow-plain"), "{said}");
    let rows = folder.done(&format!("count plain.parquet --footer-key {FOOTER} --allow-plain"));
    assert_eq!(rows.trim(), "300");
    // A prefix alone is for writing.
    let write = format!("--encrypt-footer-key {FOOTER} --aad-prefix p");
    folder.done(&format!("convert plain.parquet -o encrypted.parquet {write}"));
    let read = format!("--footer-key {FOOTER} --aad-prefix p");
    assert_eq!(folder.done(&format!("count encrypted.parquet {read}")).trim(), "300");
}

#[test]
fn an_encrypted_file_is_not_replaced_by_one_in_plain_text() {
    let folder = Folder::new();
    folder.trips(PageVersion::V2);
    folder.encrypt("e.parquet", &Encryption::new(key(FOOTER)));
    let before = folder.bytes("e.parquet");
    let said = folder.refused(&format!("convert e.parquet --in-place --footer-key {FOOTER}"), 2);
    assert!(said.contains("left in plain text"), "{said}");
    assert_eq!(folder.bytes("e.parquet"), before);
    let both = format!("--footer-key {FOOTER} --encrypt-footer-key {OTHER}");
    folder.done(&format!("convert e.parquet --in-place {both}"));
    assert_eq!(folder.done(&format!("count e.parquet --footer-key {OTHER}")).trim(), "300");
}

#[test]
fn pages_that_are_not_authenticated_are_said_to_be_so_once() {
    let folder = Folder::new();
    folder.trips(PageVersion::V1);
    let ctr = Encryption::new(key(FOOTER)).with_algorithm(Algorithm::AesGcmCtrV1);
    folder.encrypt("a.parquet", &ctr);
    folder.encrypt("b.parquet", &ctr);
    let output = folder.run(&format!("cat a.parquet b.parquet --footer-key {FOOTER}"));
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(error(&output).matches("not authenticated").count(), 1, "{}", error(&output));
    let quiet = folder.run(&format!("cat a.parquet b.parquet -q --footer-key {FOOTER}"));
    assert_eq!(error(&quiet), "");
}

#[test]
fn a_copy_in_plain_text_of_an_encrypted_file_is_noted() {
    let folder = Folder::new();
    folder.trips(PageVersion::V2);
    folder.encrypt("e.parquet", &Encryption::new(key(FOOTER)));
    for (flags, is_noted) in [
        ("-o a.parquet".to_owned(), true),
        ("-o a.parquet -q".to_owned(), false),
        ("-o parts --partition-by vendor".to_owned(), true),
        (format!("-o a.parquet --encrypt-footer-key {OTHER}"), false),
    ] {
        let output = folder.run(&format!("convert e.parquet --footer-key {FOOTER} {flags}"));
        assert!(output.status.success(), "{}", error(&output));
        let said = error(&output);
        assert_eq!(said.contains("the output is not (--encrypt-footer-key"), is_noted, "{said}");
    }
    let output = folder.run("convert plain.parquet -o a.parquet");
    assert!(!error(&output).contains("encrypt"), "{}", error(&output));
}

#[test]
fn doctor_names_no_command_that_refuses_an_encrypted_file() {
    let folder = Folder::new();
    folder.trips(PageVersion::V2);
    folder.done("crypt encrypt plain.parquet -o a.parquet --encrypt-footer-key env:FOOTER_KEY");
    let found = folder.json("doctor a.parquet --footer-key env:FOOTER_KEY -f json");
    let findings = found["findings"].as_array().unwrap().iter();
    let commands: Vec<&str> = findings.map(|of| of["command"].as_str().unwrap()).collect();
    let decrypt = "marq crypt decrypt a.parquet -o PLAIN.parquet; marq optimize PLAIN.parquet -o ";
    assert!(commands.iter().any(|command| command.starts_with(decrypt)), "{commands:?}");
    for command in commands {
        assert!(!command.contains("marq optimize a.parquet"), "{command}");
        assert!(!command.contains("marq fill a.parquet"), "{command}");
    }
}
