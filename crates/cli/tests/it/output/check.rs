//! `marq check`: findings in each form, exit codes, contracts.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use marquetry::format::FieldRepetitionType::{self, Optional, Repeated};
use marquetry::format::{ConvertedType, SchemaElement, Type};
use serde_json::Value;

use crate::support::folder::Folder;

/// A folder with a true file, and one whose first page has another checksum.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let mut bytes = std::fs::read(folder.path("trips.parquet")).expect("a file");
    let info = folder.json(&["pages", "trips.parquet", "-c", "fare", "--row-group", "1"]);
    let page = &info["chunks"][0]["pages"];
    let last = page.as_array().and_then(|pages| pages.last()).expect("a page");
    let end = last["offset"].as_u64().expect("a number") as usize
        + last["compressed_bytes"].as_u64().expect("a number") as usize;
    bytes[end - 1] ^= 1;
    folder.put("lies\u{1b}[2J.parquet", bytes);
    folder
}

const LIES: &str = "lies\u{1b}[2J.parquet";

#[test]
fn a_true_file_has_no_findings_at_any_level() {
    let folder = folder();
    for level in ["footer", "pages", "values", "truth"] {
        let found = folder.json(&["check", "trips.parquet", "--level", level]);
        assert_eq!(found["schema"], "marq/1/check");
        let file = &found["files"][0];
        assert_eq!((&file["level"], &file["errors"]), (&level.into(), &0.into()), "{found}");
        assert_eq!(file["findings"], Value::Array(Vec::new()), "{found}");
    }
    let text = folder.text(&["check", "trips.parquet", "-f", "table"]);
    assert!(text.contains("trips.parquet: level pages, nothing found"), "{text}");
}

#[test]
fn errors_are_exit_code_4_and_their_places_stand_in_every_form() {
    let folder = folder();
    let run = |args: &[&str]| {
        let output = folder.run(&[&["check", "trips.parquet", LIES], args].concat());
        assert_eq!(output.status.code(), Some(4));
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(error.contains("1 error") && !error.contains('\u{1b}'), "{error:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let json: Value = serde_json::from_str(&run(&[])).expect("JSON");
    let finding = &json["files"][1]["findings"][0];
    assert_eq!(finding["code"], "page-checksum-wrong");
    assert_eq!((&finding["row_group"], &finding["column"]), (&1.into(), &"fare".into()));
    let csv = run(&["-f", "csv"]);
    assert!(csv.lines().nth(1).is_some_and(|line| line.contains(",page-checksum-wrong,1,fare,")));
    let table = run(&["-f", "table"]);
    assert!(table.contains("page-checksum-wrong") && !table.contains('\u{1b}'), "{table}");
    let sarif: Value = serde_json::from_str(&run(&["-f", "sarif"])).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "page-checksum-wrong");
    let result = &run["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&"page-checksum-wrong".into(), &"error".into())
    );
    let place = &result["locations"][0];
    assert_eq!(place["physicalLocation"]["artifactLocation"]["uri"], "lies%1B%5B2J.parquet");
    assert!(place["physicalLocation"]["region"]["byteOffset"].is_u64(), "{place}");
    folder.refused(2, &["info", "trips.parquet", "-f", "sarif"]);
}

#[test]
fn what_is_cut_off_is_explained_and_what_is_no_parquet_is_refused() {
    let folder = folder();
    let bytes = std::fs::read(folder.path("trips.parquet")).expect("a file");
    folder.put("cut.parquet", &bytes[..bytes.len() / 2]);
    let output = folder.run(&["check", "cut.parquet"]);
    assert_eq!(output.status.code(), Some(4));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["files"][0]["findings"][0]["code"], "magic-wrong");
    folder.put("rows.csv", "a,b\n1,2\n");
    folder.refused(3, &["check", "rows.csv"]);
    folder.refused(1, &["check", "absent.parquet"]);
}

#[test]
fn contracts_are_kept_or_their_broken_terms_are_listed() {
    let folder = folder();
    folder.put(
        "kept.toml",
        "[file]\nrows = { min = 1000, max = 1000 }\nbytes = { max = \"1MiB\" }\n\
         [columns.id]\ntype = \"int64\"\nnullable = false\n",
    );
    let kept = folder.json(&["check", "trips.parquet", "--contract", "kept.toml"]);
    assert_eq!(kept["files"][0]["errors"], 0, "{kept}");
    folder.put(
        "broken.toml",
        "[file]\ncolumns = \"exactly\"\nrows = { max = 9 }\nsorted_by = [\"id\"]\ncodecs = [\"LZO\"]\n\
         row_groups = { max = 1 }\n[columns.id]\ntype = \"utf8\"\nnullable = true\n\
         bloom_filter = true\n[columns.absent]\n",
    );
    let output = folder.run(&["check", "trips.parquet", "--contract", "broken.toml"]);
    assert_eq!(output.status.code(), Some(4));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = found["files"][0]["findings"].as_array().expect("findings");
    for term in [
        "rows",
        "row-groups",
        "sorted-by",
        "codec",
        "type",
        "nullable",
        "bloom-filter",
        "column-missing",
        "column-unexpected",
    ] {
        let code = format!("contract-{term}");
        assert!(findings.iter().any(|finding| finding["code"] == *code), "{code}: {found}");
    }
    for wrong in [
        "[file]\nrow = 1\n",
        "[columns.id]\ntype = \"int65\"\n",
        "[file]\nbytes = { max = \"1XB\" }\n",
        "[",
    ] {
        folder.put("wrong.toml", wrong);
        folder.refused(3, &["check", "trips.parquet", "--contract", "wrong.toml"]);
    }
}

#[test]
fn a_contract_states_orders_as_the_flags_do() {
    let folder = Folder::new();
    folder.put("in.csv", "p,q\n3,1\n2,2\n,3\n");
    let sorted = |flags: &[&str]| {
        folder.text(&[&["convert", "in.csv", "-o", "a.parquet"], flags].concat());
    };
    let is_kept = |orders: &str| {
        broken_terms(&folder, "a.parquet", &format!("[file]\nsorted_by = [{orders}]\n")).is_empty()
    };
    sorted(&["--sort", "p:desc", "--sort", "q"]);
    let kept =
        [r#""p:desc""#, r#""p descending""#, r#""p:desc:nulls-last""#, r#""p:desc", "q:asc""#];
    assert_eq!(kept.map(is_kept), [true; 4]);
    let broken = [r#""p""#, r#""p:desc:nulls-first""#, r#""p:asc""#, r#""p:desc", "q", "p""#];
    assert_eq!(broken.map(is_kept), [false; 4]);
    sorted(&["--sort", "p:nulls-first"]);
    let orders = [r#""p""#, r#""p:nulls-first""#, r#""p:nulls-last""#];
    assert_eq!(orders.map(is_kept), [true, true, false]);
    folder.put("wrong.toml", "[file]\nsorted_by = [\":desc\"]\n");
    folder.refused(3, &["check", "a.parquet", "--contract", "wrong.toml"]);
}

/// The codes and columns of the findings about a file with this contract.
fn broken_terms(folder: &Folder, file: &str, contract: &str) -> Vec<(String, String)> {
    folder.put("terms.toml", contract);
    let output = folder.run(&["check", file, "--contract", "terms.toml"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = found["files"][0]["findings"].as_array().expect("findings");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings.iter().map(|finding| (text(&finding["code"]), text(&finding["column"]))).collect()
}

#[test]
fn contracts_hold_for_all_that_is_inside_a_column() {
    let folder = Folder::new();
    folder.put(
        "a.jsonl",
        r#"{"tags":["a"],"m":{"x":1},"l":[{"b":1,"c":[2]}],"a":{"b":1},"a.b":"t"}"#,
    );
    let schema = "m: map<utf8, int64>";
    let args = ["convert", "a.jsonl", "--schema", schema, "--codec", "snappy", "-o", "a.parquet"];
    folder.text(&args);
    let (codec, bloom) = ("contract-codec", "contract-bloom-filter");
    for (contract, wanted) in [
        // All leaves below.
        (
            "[columns.tags]\ncodecs = [\"ZSTD\"]\nbloom_filter = true\n",
            &[(codec, "tags.list.element"), (bloom, "tags.list.element")][..],
        ),
        (
            "[columns.m]\ncodecs = [\"ZSTD\"]\n",
            &[(codec, "m.key_value.key"), (codec, "m.key_value.value")],
        ),
        // The longest path decides, and the file where none does.
        (
            "[file]\ncodecs = [\"SNAPPY\"]\n[columns.l]\ncodecs = [\"ZSTD\"]\n\
             [columns.\"l.list.element.b\"]\ncodecs = [\"SNAPPY\"]\n",
            &[(codec, "l.list.element.c.list.element")],
        ),
        // Paths of leaves and of fields, in lists and maps.
        (
            "[columns.\"tags.list.element\"]\ntype = \"utf8\"\nnullable = true\n\
             [columns.\"l.list.element.c.list.element\"]\ntype = \"int64\"\n\
             [columns.\"l.c\"]\ntype = \"list<int64>\"\n\
             [columns.\"m.key_value.key\"]\ntype = \"utf8\"\n\
             [columns.\"m.value\"]\ntype = \"int64\"\n",
            &[],
        ),
        (
            "[columns.\"tags.list.element\"]\ntype = \"int64\"\n\
             [columns.\"l.list.element.c\"]\nnullable = false\n\
             [columns.\"m.key_value.value\"]\ntype = \"int32\"\n",
            &[
                ("contract-nullable", "l.list.element.c"),
                ("contract-type", "m.key_value.value"),
                ("contract-type", "tags.list.element"),
            ],
        ),
        // A column whose name has a dot comes before a member of another.
        ("[columns.\"a.b\"]\ntype = \"utf8\"\n", &[]),
        ("[columns.\"tags.x\"]\n", &[("contract-column-missing", "tags.x")]),
        (
            "[file]\ncolumns = \"exactly\"\n[columns.tags]\n[columns.m]\n[columns.\"l.b\"]\n\
             [columns.\"a.b\"]\n",
            &[("contract-column-unexpected", "a")],
        ),
    ] {
        let wanted: Vec<(String, String)> =
            wanted.iter().map(|(code, column)| (code.to_string(), column.to_string())).collect();
        assert_eq!(broken_terms(&folder, "a.parquet", contract), wanted, "{contract}");
    }
}

#[test]
fn contracts_hold_for_lists_of_every_form() {
    let folder = Folder::new();
    let element = |name: &str, repetition: FieldRepetitionType, children: i32, is_list: bool| {
        let mut element = SchemaElement::new(name);
        element.repetition_type = Some(repetition);
        match children {
            0 => element.r#type = Some(Type::Int64),
            children => element.num_children = Some(children),
        }
        element.converted_type = is_list.then_some(ConvertedType::List);
        element
    };
    let group = |name: &str, children| element(name, Optional, children, false);
    let list = || element("l", Optional, 1, true);
    let repeated = |name: &str, children| element(name, Repeated, children, false);
    for (above, leaves, path) in [
        // Three levels, two, and one; groups of one field that are elements by their names.
        (&[list(), repeated("list", 1), group("element", 2)][..], 2, "l.list.element.x1"),
        (&[list(), repeated("list", 1), group("element", 1)], 1, "l.list.element.x0"),
        (&[list(), repeated("bag", 2)], 2, "l.bag.x1"),
        (&[list(), repeated("array", 1)], 1, "l.array.x0"),
        (&[list(), repeated("l_tuple", 1), group("s", 2)], 2, "l.l_tuple.s.x1"),
        (&[list(), repeated("list", 1)], 1, "l.list.x0"),
        (&[repeated("r", 2)], 2, "r.x1"),
        (&[repeated("r", 1), repeated("r", 1), repeated("r", 2)], 2, "r.r.r.x0"),
        (&[group("s", 1), list(), repeated("list", 2)], 2, "s.l.list.x0"),
    ] {
        let columns = ["x0", "x1"].into_iter().take(leaves);
        let column = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        folder.columns("a.parquet", columns.clone().map(|name| (name, column())).collect());
        folder.change_footer("a.parquet", |footer| {
            let leaves = columns.map(|name| group(name, 0));
            footer.schema.truncate(1);
            footer.schema[0].num_children = Some(1);
            footer.schema.extend(above.iter().cloned().chain(leaves));
            footer.key_value_metadata = None;
        });
        // The pages do not match the schema, and the check says so, too.
        let broken = |contract: &str| {
            let mut terms = broken_terms(&folder, "a.parquet", contract);
            terms.retain(|(code, _)| code.starts_with("contract-"));
            terms
        };
        let contract = format!("[columns.\"{path}\"]\ntype = \"int64\"\nnullable = true\n");
        assert_eq!(broken(&contract), [], "{path}");
        let contract = format!("[columns.\"{path}\"]\ntype = \"boolean\"\n");
        assert_eq!(broken(&contract), [("contract-type".to_owned(), path.to_owned())], "{path}");
    }
}

#[test]
fn a_contract_that_cannot_be_checked_is_an_error() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder.put("terms.toml", "[columns.id]\ntype = \"utf8\"\n");
    let args = ["check", "trips.parquet", "--limit-footer", "100"];
    folder.text(&args);
    let output = folder.run(&[&args[..], &["--contract", "terms.toml"]].concat());
    assert_eq!(output.status.code(), Some(4));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let file = &found["files"][0];
    assert_eq!(
        (&file["errors"], &file["findings"][0]["code"]),
        (&1.into(), &"contract-unchecked".into())
    );
    // What was found already says why.
    folder.copy_with_broken_footer("trips.parquet", "broken.parquet");
    let found = broken_terms(&folder, "broken.parquet", "[columns.id]\ntype = \"utf8\"\n");
    assert!(!found.is_empty() && found.iter().all(|(code, _)| !code.starts_with("contract")));
}

#[test]
fn a_quiet_check_prints_no_report_unless_one_is_asked_for() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    assert_eq!(folder.text(&["check", "-q", "trips.parquet"]), "");
    assert!(folder.text(&["check", "-q", "trips.parquet", "-f", "json"]).contains("marq/1/check"));
    folder.text(&["check", "-q", "trips.parquet", "-o", "report.json"]);
    assert!(folder.content("report.json").contains("marq/1/check"));
}
