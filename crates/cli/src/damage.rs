//! Tells which rows a read has left out, or returned as nulls, because the file is damaged.

use marquetry::read::OnDamage;
use marquetry::{At, Batches, DamagedRowGroup, Error, NulledPage, Reader};
use serde_json::{Value, json};

use crate::args::{DamageFlag, Format, Global};
use crate::escape::{escape, escape_json};
use crate::failure::{Failure, Result};

/// A reader that goes on after damage, if that is asked for.
pub(crate) fn configure(reader: Reader, global: &Global) -> Reader {
    match global.on_damage {
        DamageFlag::Fail => reader,
        DamageFlag::SkipRowGroup => reader.on_damage(OnDamage::SkipRowGroup),
        DamageFlag::NullPages => reader.on_damage(OnDamage::NullPages),
    }
}

/// The losses of reads, as lines for standard error.
#[derive(Default)]
pub(crate) struct Losses {
    lines: Vec<String>,
}

impl Losses {
    /// Adds those of a read so far.
    pub(crate) fn add(&mut self, file: &str, batches: &Batches, global: &Global) {
        let (left_out, nulled) = (batches.damage().iter(), batches.nulled().iter());
        if matches!(global.format, Some(Format::Json | Format::Jsonl)) {
            let left_out = left_out.map(|lost| json_of_row_group(file, lost));
            let all = left_out.chain(nulled.map(|lost| json_of_page(file, lost)));
            self.lines.extend(all.map(|line| escape_json(&line.to_string()).into_owned()));
        } else {
            let left_out = left_out.map(|lost| text_of_row_group(file, lost));
            let all = left_out.chain(nulled.map(|lost| text_of_page(file, lost)));
            self.lines.extend(all.map(|line| format!("marq: {}", escape(&line))));
        }
    }

    /// Prints them on standard error.
    ///
    /// # Errors
    /// `Partial` if there are any.
    pub(crate) fn end(&self) -> Result<()> {
        for line in &self.lines {
            eprintln!("{line}");
        }
        if self.lines.is_empty() { Ok(()) } else { Err(Failure::Partial) }
    }
}

fn text_of_row_group(file: &str, lost: &DamagedRowGroup) -> String {
    let DamagedRowGroup { row_group, rows, error, not_nulled, .. } = lost;
    let missing = rows.saturating_sub(lost.rows_returned);
    let reason = not_nulled.map(|reason| format!(" (no page of it is null: {reason})"));
    let reason = reason.unwrap_or_default();
    let (place, fault) = (place(error), error.message());
    format!(
        "{file}: row group {row_group}: {missing} of {rows} rows are left out{reason}: {place}{fault}"
    )
}

/// The place of an error within its row group.
fn place(error: &Error) -> String {
    let At { column, page, is_dictionary_page, offset, .. } = error.at();
    let mut parts: Vec<String> = column.iter().map(|column| format!("column {column}")).collect();
    match page {
        Some(page) => parts.push(format!("page {page}")),
        None if *is_dictionary_page => parts.push("dictionary page".to_owned()),
        None => {}
    }
    parts.extend(offset.map(|offset| format!("byte {offset}")));
    if parts.is_empty() { String::new() } else { parts.join(", ") + ": " }
}

fn text_of_page(file: &str, lost: &NulledPage) -> String {
    let NulledPage { row_group, column, page, rows, error, .. } = lost;
    let (first, len) = (rows.start, rows.end - rows.start);
    format!(
        "{file}: row group {row_group}, column {column}, page {page}: {len} rows from row {first} \
         on are null: {}",
        error.message()
    )
}

fn json_of_row_group(file: &str, lost: &DamagedRowGroup) -> Value {
    let at = lost.error.at();
    let missing = lost.rows.saturating_sub(lost.rows_returned);
    json!({
        "schema": "marq/1/damage", "code": Failure::Partial.code(), "file": file,
        "row_group": lost.row_group, "column": at.column.as_deref(), "page": at.page,
        "offset": at.offset, "rows": lost.rows, "rows_left_out": missing, "rows_null": 0,
        "first_row": null, "not_nulled": lost.not_nulled, "message": lost.error.message(),
    })
}

fn json_of_page(file: &str, lost: &NulledPage) -> Value {
    json!({
        "schema": "marq/1/damage", "code": Failure::Partial.code(), "file": file,
        "row_group": lost.row_group, "column": lost.column, "page": lost.page,
        "offset": lost.error.at().offset, "rows": null, "rows_left_out": 0,
        "rows_null": lost.rows.end - lost.rows.start, "first_row": lost.rows.start,
        "not_nulled": null, "message": lost.error.message(),
    })
}
