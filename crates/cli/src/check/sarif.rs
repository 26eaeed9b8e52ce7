//! SARIF 2.1.0, which code review and CI understand.

use std::collections::BTreeSet;

use marquetry::check::FindingKind;
use serde_json::{Value, json};

use super::record::{CheckedFiles, FindingRecord};
use crate::args::Global;
use crate::failure::Result;
use crate::output::Sink;
use crate::report;

/// Prints the findings as one run.
pub(super) fn print(files: &CheckedFiles, global: &Global) -> Result<()> {
    let codes: BTreeSet<&str> =
        files.files.iter().flat_map(|file| &file.findings).map(|finding| &*finding.code).collect();
    let rules: Vec<Value> = codes
        .into_iter()
        .map(|code| {
            let kind = FindingKind::ALL.iter().find(|kind| kind.code() == code);
            let text = kind.map_or(code, |kind| kind.text());
            json!({ "id": code, "shortDescription": { "text": text } })
        })
        .collect();
    let results: Vec<Value> = files
        .files
        .iter()
        .flat_map(|file| file.findings.iter().map(|finding| result(&file.file, finding)))
        .collect();
    print_log(rules, results, global)
}

/// Prints results of rules as one run.
pub(crate) fn print_log(rules: Vec<Value>, results: Vec<Value>, global: &Global) -> Result<()> {
    let driver = json!({
        "name": "marq", "version": env!("CARGO_PKG_VERSION"), "rules": rules,
    });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": results }],
    });
    let mut out = Sink::open(global)?;
    report::print_json(&mut out, &log, true)?;
    out.close()?;
    Ok(())
}

fn result(file: &str, finding: &FindingRecord) -> Value {
    let FindingRecord { severity, code, row_group, column, page, offset, message, .. } = finding;
    let mut physical = json!({ "artifactLocation": { "uri": uri(file) } });
    if let (Some(offset), Some(physical)) = (offset, physical.as_object_mut()) {
        physical.insert("region".to_owned(), json!({ "byteOffset": offset }));
    }
    let mut names = Vec::new();
    names.extend(row_group.map(|group| format!("row group {group}")));
    names.extend(column.as_ref().map(|column| format!("column {column}")));
    names.extend(page.map(|page| format!("page {}", page.text())));
    let mut location = json!({ "physicalLocation": physical });
    if let (false, Some(location)) = (names.is_empty(), location.as_object_mut()) {
        let name = names.join(", ");
        location.insert("logicalLocations".to_owned(), json!([{ "fullyQualifiedName": name }]));
    }
    json!({
        "ruleId": code, "level": severity, "message": { "text": message },
        "locations": [location],
        "properties": { "stated": finding.stated, "found": finding.found },
    })
}

/// A path as a relative or absolute reference: all but unreserved characters are escaped.
pub(crate) fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
