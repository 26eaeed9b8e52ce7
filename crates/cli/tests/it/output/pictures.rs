//! `marq map` and `marq report`: pictures that are well formed, whatever stands in a file.

use std::process::Output;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use marquetry::format::{Encoding, Statistics, Type};
use marquetry::{WriteOptions, Writer};
use roxmltree::{Document, Node};
use serde_json::Value;

use crate::support::folder::{Folder, error};
use crate::support::{Chunk, file, page, required, testdata, texts, v1_header};

/// Text that means something somewhere: in HTML, XML, shells, terminals, or to the eye.
const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "a]]>b",
    "\"q' onload='alert(1)'",
    "evil\u{202e}gpj",
    "line\nfeed\u{1b}[31m",
    "</style></svg><img src=x onerror=alert(1)>",
    "\u{0}\u{fffe}\u{ffff}",
    "<!-- ${x}`",
    "&lt;amp&#60;",
];

/// Makes a file with hostile names, values and metadata.
fn hostile(folder: &Folder, name: &str) {
    let column = |text: &str| -> ArrayRef {
        Arc::new(StringArray::from(vec![Some(text.to_owned()), Some(format!("z{text}")), None]))
    };
    let columns = HOSTILE.map(|text| (text, column(text), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
    let keys = HOSTILE
        .iter()
        .fold(WriteOptions::new(), |options, text| options.with_key_value(*text, *text));
    let path = folder.path(name);
    let mut writer = Writer::create_with(path, batch.schema(), keys).expect("a writer");
    writer.write(&batch).expect("written");
    writer.finish().expect("finished");
}

/// Fifty thousand sorted numbers in pages and row groups of their own.
fn sorted(folder: &Folder, name: &str) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..50_000));
    let other: ArrayRef = Arc::new(Int64Array::from_iter_values((0..50_000).map(|i| i * 7 % 11)));
    let batch = RecordBatch::try_from_iter([("id", ids), ("other", other)]).expect("a batch");
    let options = WriteOptions::new().with_row_group_rows(10_000).with_page_rows(1000);
    let path = folder.path(name);
    let mut writer = Writer::create_with(path, batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("written");
    writer.finish().expect("finished");
}

fn svg(folder: &Folder, args: &[&str]) -> String {
    folder.text(&[&["map", "--to", "svg"], args].concat())
}

fn with_class<'a>(document: &'a Document<'a>, class: &str) -> Vec<Node<'a, 'a>> {
    let has = |node: &Node<'_, '_>| {
        node.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
    };
    document.descendants().filter(has).collect()
}

/// Holds a picture to be passive: no scripts, no handlers, nothing that is fetched, and no text
/// that steers.
fn check_passive(text: &str) {
    let document = Document::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let known = ["svg", "title", "desc", "style", "g", "rect", "path", "text"];
        assert!(known.contains(&name), "an element {name}");
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(!name.starts_with("on") && !name.contains("href"), "an attribute {name}");
        }
    }
    check_clean(text);
}

fn check_clean(text: &str) {
    let steers = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{fffe}'..='\u{ffff}')
    };
    assert!(!text.contains(steers), "a character that steers");
}

#[test]
fn pictures_of_all_files_are_well_formed_and_always_the_same() {
    let folder = Folder::new();
    let names = std::fs::read_dir(testdata("")).expect("a folder");
    let mut seen = 0;
    for entry in names {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        if !name.ends_with(".parquet") {
            continue;
        }
        folder.copy(&name);
        let first = svg(&folder, &[&name, "--color-by", "ratio"]);
        check_passive(&first);
        assert_eq!(first, svg(&folder, &[&name, "--color-by", "ratio"]), "{name}");
        seen += 1;
    }
    assert!(seen > 20);
}

#[test]
fn picture_of_trips_is_as_it_was() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let found = svg(&folder, &["trips.parquet", "--color-by", "encoding"]);
    // `marq map trips.parquet --to svg --color-by encoding` in `testdata` renews it.
    let wanted = include_str!("trips.svg");
    assert!(found == wanted, "the picture has changed:\n{found}");
}

#[test]
fn no_text_of_a_file_is_markup() {
    let folder = Folder::new();
    hostile(&folder, "<img src=x onerror=alert(2)>.parquet");
    hostile(&folder, "a.parquet");
    for name in ["<img src=x onerror=alert(2)>.parquet", "a.parquet"] {
        let text = svg(&folder, &[name]);
        check_passive(&text);
        let document = Document::parse(&text).expect("XML");
        let titles: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(titles.iter().any(|text| text.starts_with("<script>alert(1)</script>, row group")));
        assert!(titles.iter().any(|text| text.contains("evil\\u{202e}gpj")));

        for page in [folder.text(&["report", name]), folder.text(&["map", "--to", "html", name])] {
            check_clean(&page);
            assert_eq!(page.matches("<script").count(), 1, "the script of the page alone");
            assert_eq!(page.matches("<style").count(), 1);
            for tag in ["<img", "<iframe", "<object", "<link", "<base", "<form", "<!--"] {
                assert!(!page.contains(tag), "{tag}");
            }
            assert!(
                page.contains("Content-Security-Policy") && page.contains("default-src 'none'")
            );
            for part in page.split("<svg ").skip(1) {
                let inner = part.split("</svg>").next().expect("an end");
                let tag = if inner.starts_with("viewBox") { "<svg " } else { continue };
                check_passive(&format!("{tag}{inner}</svg>"));
            }
        }
        let term = folder.text(&["map", "--to", "term", name]);
        check_clean(&term);
    }
}

#[test]
fn script_of_a_page_is_the_one_that_its_policy_allows() {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let page = folder.text(&["report", "trips.parquet"]);
    let script = page.split("<script>").nth(1).and_then(|rest| rest.split("</script>").next());
    let hash = Sha256::digest(script.expect("a script"));
    let hash = base64::engine::general_purpose::STANDARD.encode(hash);
    assert!(page.contains(&format!("script-src 'sha256-{}'", hash)));
    for section in ["Summary", "Map", "Strip", "Pages", "Where the bytes go"] {
        assert!(page.contains(&format!(">{section}</h2>")), "{section}");
    }
    let page = folder.text(&["report", "trips.parquet", "--sections", "bytes,strip"]);
    assert!(page.contains(">Strip</h2>") && !page.contains(">Map</h2>"));
}

#[test]
fn doctor_is_a_section_on_request() {
    let folder = Folder::new();
    hostile(&folder, "a.parquet");
    folder.copy("duckdb.parquet");
    let heading = ">What could be better</h2>";
    assert!(!folder.text(&["report", "a.parquet"]).contains(heading));
    let page = folder.text(&["report", "a.parquet", "--sections", "summary,doctor"]);
    check_clean(&page);
    assert!(page.contains(heading) && !page.contains(">Map</h2>"));
    let page = folder.text(&["report", "duckdb.parquet", "--sections", "doctor"]);
    assert!(page.contains("checksums-missing"));
    assert!(page.contains("marq fill duckdb.parquet -o NEW.parquet"));
    let found = folder.json(&["report", "a.parquet", "--sections", "doctor", "-f", "json"]);
    assert!(found["doctor"]["findings"].is_array() && found.get("pages").is_none());
}

#[test]
fn overlay_fades_what_the_filter_prunes() {
    let folder = Folder::new();
    sorted(&folder, "a.parquet");
    let condition = "id >= 12000 and id < 13000";
    let overlay = format!("where={condition}");
    let text = svg(&folder, &["a.parquet", "--overlay", &overlay]);
    check_passive(&text);
    let document = Document::parse(&text).expect("XML");
    // The first row group and the others from the third on, and parts of the second.
    assert_eq!(with_class(&document, "veil").len(), 4 + 2);
    assert!(
        with_class(&Document::parse(&svg(&folder, &["a.parquet"])).expect("XML"), "veil")
            .is_empty()
    );
    let found = folder.json(&["map", "a.parquet", "--overlay", &overlay]);
    assert_eq!(found["overlay"]["rows_left"], 1000);
    assert_eq!(found["overlay"]["row_groups_pruned"], 4);

    let found = folder.json(&["report", "a.parquet", "--overlay", &overlay, "-f", "json"]);
    let pages = found["pages"][0]["boxes"].as_array().expect("pages");
    let kept: Vec<u64> = pages
        .iter()
        .filter(|page| page["is_pruned"] == false)
        .map(|page| page["rows"]["start"].as_u64().expect("a row"))
        .collect();
    assert_eq!(kept, [12_000]);
    let page = folder.text(&["report", "a.parquet", "--overlay", &overlay]);
    assert_eq!(page.matches("class=\"out\"").count(), 2 * 49);
    assert!(folder.refused(2, &["map", "a.parquet", "--overlay", "id < 7"]).contains("where="));
    assert!(
        folder
            .refused(2, &["map", "a.parquet", "--overlay", "where=nothing < 7"])
            .contains("nothing")
    );
}

#[test]
fn pages_lie_where_their_bounds_are() {
    let folder = Folder::new();
    sorted(&folder, "a.parquet");
    let found = folder.json(&["report", "a.parquet", "--sections", "pages", "-f", "json"]);
    let ids = &found["pages"][0];
    assert_eq!(
        (&ids["pages"], &ids["min"], &ids["max"]),
        (&50.into(), &"0".into(), &"49999".into())
    );
    let boxes = ids["boxes"].as_array().expect("pages");
    let number = |value: &Value| value.as_f64().expect("a number");
    let mut row = 0.0;
    for page in boxes {
        assert_eq!(number(&page["rows"]["start"]), row);
        row = number(&page["rows"]["end"]);
        let lower = number(&page["position"][0]);
        assert!((lower - number(&page["rows"]["start"]) / 49_999.0).abs() < 1e-9, "{page}");
    }
    assert_eq!(row, 50_000.0);
    let other = &found["pages"][1]["boxes"][0];
    assert_eq!(other["position"], serde_json::json!([0.0, 1.0]));
}

#[test]
fn facts_have_every_chunk_and_regions_are_the_file() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let found = folder.json(&["map", "trips.parquet"]);
    assert_eq!(found["schema"], "marq/1/map");
    let (chunks, columns) =
        (found["chunks"].as_array().unwrap(), found["columns"].as_array().unwrap());
    let groups = found["row_groups"].as_array().unwrap();
    assert_eq!(chunks.len(), columns.len() * groups.len());
    let mut at = 0;
    for region in found["regions"].as_array().unwrap() {
        assert_eq!(region["offset"].as_u64(), Some(at));
        at += region["bytes"].as_u64().unwrap();
    }
    assert_eq!(found["file_bytes"].as_u64(), Some(at));
    let csv = folder.text(&["map", "trips.parquet", "-f", "csv"]);
    assert_eq!(csv.lines().count(), chunks.len() + 1);
    let table = folder.text(&["map", "trips.parquet", "-f", "table"]);
    assert!(table.contains("row group 3") && table.contains("fare"), "{table}");
}

#[test]
fn forms_follow_the_flags_and_the_extension() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder.text(&["map", "trips.parquet", "-o", "a.svg"]);
    assert!(folder.content("a.svg").starts_with("<svg "));
    folder.text(&["map", "trips.parquet", "-o", "a.html"]);
    assert!(folder.content("a.html").starts_with("<!DOCTYPE html>"));
    folder.text(&["map", "trips.parquet", "-o", "a.json"]);
    assert!(folder.content("a.json").starts_with('{'));
    folder.refused(2, &["map", "trips.parquet", "--to", "svg", "-f", "json"]);
    folder.refused(2, &["map", "trips.parquet", "-o", "trips.parquet"]);
}

#[test]
fn terminal_picture_fits_80_columns_and_has_letters_without_colours() {
    let folder = Folder::new().with_variable("COLUMNS", "80");
    sorted(&folder, "a.parquet");
    for name in ["trips.parquet", "nested.parquet", "many_columns.parquet"] {
        folder.copy(name);
    }
    for name in ["trips.parquet", "nested.parquet", "many_columns.parquet", "a.parquet"] {
        let text = folder.text(&["map", name, "--to", "term"]);
        assert!(!text.contains('\u{1b}'));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("footer") && text.contains("codec"), "{text}");
    }
    // No environment makes lines of any length.
    folder.columns("one.parquet", vec![("n", Arc::new(Int64Array::from(vec![1, 2])))]);
    for columns in ["70000", "18446744073709551615"] {
        let mut command = folder.command(&["map", "one.parquet", "--to", "term"]);
        let output = command.env("COLUMNS", columns).output().expect("marq runs");
        assert!(output.status.success() && output.stdout.len() < 10 << 20, "{columns}");
    }
    let text = folder.text(&["map", "a.parquet", "--to", "term", "--overlay", "where=id < 10000"]);
    assert!(text.contains('·'), "{text}");
    let colored = Folder::new().with_variable("CLICOLOR_FORCE", "1");
    colored.copy("trips.parquet");
    let text = colored.text(&["map", "trips.parquet", "--to", "term"]);
    assert!(text.contains("\u{1b}[38;5;") && text.contains('▀'));
    let text = colored.text(&["map", "trips.parquet", "--to", "term", "--no-color"]);
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_wide_file_has_a_small_picture() {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let names: Vec<String> = (0..3000).map(|i| format!("column {i}")).collect();
    folder
        .columns("a.parquet", names.iter().map(|name| (name.as_str(), numbers.clone())).collect());
    let text = svg(&folder, &["a.parquet"]);
    check_passive(&text);
    assert!(text.matches("<rect").count() < 5000, "{}", text.matches("<rect").count());
    assert!(text.contains("3 000 columns in "));
    let error = folder.refused(3, &["map", "a.parquet", "--to", "svg", "--mem", "10KiB"]);
    assert!(error.contains("--mem"), "{error}");
}

/// The picture and the message of a file that is not wholly known.
fn partial(folder: &Folder, code: i32, args: &[&str]) -> (String, String) {
    let output: Output = folder.run(args);
    assert_eq!(output.status.code(), Some(code), "{}", error(&output));
    (String::from_utf8(output.stdout.clone()).expect("text"), error(&output))
}

#[test]
fn of_a_broken_footer_the_strip_is_left_and_the_error_is_named() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder.copy_with_broken_footer("trips.parquet", "broken.parquet");
    let (text, message) = partial(&folder, 3, &["map", "broken.parquet", "--to", "svg"]);
    check_passive(&text);
    assert!(text.contains("unparsed") && text.contains("The footer cannot be read"));
    assert!(message.contains("broken.parquet"));
    let (page, _) = partial(&folder, 3, &["report", "broken.parquet"]);
    assert!(page.contains("The footer cannot be read") && page.contains(">Strip</h2>"));
    let (term, _) = partial(&folder, 3, &["map", "broken.parquet", "--to", "term"]);
    assert!(term.contains("the footer cannot be read"));
    folder.put("a.csv", "id,name\n1,x\n");
    assert!(folder.refused(3, &["map", "a.csv"]).contains("CSV"));
}

#[test]
fn encrypted_files_show_what_the_keys_open() {
    const KEY: &str = "000102030405060708090a0b0c0d0e0f";
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder.text(&[
        "crypt",
        "encrypt",
        "trips.parquet",
        "-o",
        "e.parquet",
        "--encrypt-footer-key",
        KEY,
    ]);
    let (text, message) = partial(&folder, 6, &["map", "e.parquet", "--to", "svg"]);
    check_passive(&text);
    assert!(text.contains("modules without key") && message.contains("--footer-key"));
    let (text, _) = partial(&folder, 6, &["map", "e.parquet", "-f", "table"]);
    assert!(text.contains("its footer cannot be read") && !text.contains("row groups"), "{text}");
    assert!(text.contains("modules without key"), "{text}");
    let (text, _) = partial(&folder, 0, &["map", "e.parquet", "--to", "svg", "--footer-key", KEY]);
    check_passive(&text);
    assert!(text.contains("▌ encrypted") && text.contains("fare"));
    folder.text(&["report", "e.parquet", "--footer-key", KEY]);
    folder.refused(6, &["report", "e.parquet", "--footer-key", &KEY.replace('0', "f")]);
}

#[test]
fn bounds_in_the_headers_of_pages_are_counted_while_they_are_read() {
    let folder = Folder::new();
    let bound = vec![b'x'; 50_000];
    let body = texts(&["x"]);
    let mut header = v1_header(1, Encoding::Plain, body.len(), body.len());
    let mut statistics = Statistics::default();
    (statistics.min_value, statistics.max_value) = (Some(bound.clone()), Some(bound));
    header.data_page_header.as_mut().expect("version 1").statistics = Some(statistics);
    let chunk = Chunk::new(Type::ByteArray, 100, &vec![page(header, &body); 100]);
    let bytes = file(vec![required("v", Type::ByteArray)], 100, vec![chunk]);
    let len = bytes.len() as u64;
    folder.put("a.parquet", bytes);
    let args = ["report", "a.parquet", "--sections", "pages", "-f", "json", "--trace-io"];
    let output = folder.run(&[&args[..], &["--mem", "2MiB"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let said = error(&output);
    assert!(said.contains("raise --mem"), "{said}");
    let records = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let read = records.filter_map(|record| record["bytes"].as_u64()).next().expect("a trace");
    assert!(read < len / 2, "{read} of {len} bytes were read before it was refused");
    let found = folder.json(&args[..6]);
    assert_eq!(found["pages"][0]["pages"], 100);
}
