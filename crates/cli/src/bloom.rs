//! `bloom` asks the bloom filters of a column for values, and says how full they are.

use marquetry::{BloomFilter, Literal, lit};
use serde::Serialize;

use crate::args::{Bloom, Global};
use crate::dict;
use crate::failure::{Failure, Result};
use crate::input;
use crate::report::{self, Column, Report, Tables};

#[derive(Serialize)]
struct BloomReport {
    file: String,
    column: String,
    row_groups: Vec<RowGroupBloom>,
}

/// The bloom filter of a column chunk.
#[derive(Serialize)]
struct RowGroupBloom {
    row_group: usize,
    filter: Option<Filling>,
    values: Vec<ProbedValue>,
}

/// How large a filter is, and how full.
#[derive(Clone, Copy, Serialize)]
struct Filling {
    bytes: u64,
    blocks: u64,
    set_bits: u64,
    fill: f64,
    false_positive_rate: f64,
}

/// The answer of a filter for a value.
#[derive(Serialize)]
struct ProbedValue {
    value: String,
    answer: &'static str,
}

/// Prints what each filter says about each value.
pub(crate) fn run(command: &Bloom, global: &Global) -> Result<()> {
    let path = &command.source.file;
    let reader = input::open(path, global)?;
    let schema = reader.metadata().schema();
    let leaf = schema.leaf_named(&command.column).map_err(|e| e.at_file(path.as_str()))?;
    let column = schema.leaf(leaf)?.path.dotted();
    let wanted = command.values.iter().map(|text| literal(text).map(|value| (text, value)));
    let wanted: Vec<(&String, Literal)> = wanted.collect::<Result<_>>()?;
    let mut row_groups = Vec::new();
    for row_group in dict::groups(&reader, path, command.row_group)? {
        let filter = reader.bloom_filter(row_group, leaf)?;
        let values = wanted.iter().map(|(text, value)| {
            Ok(ProbedValue { value: (*text).clone(), answer: answer(filter.as_ref(), value)? })
        });
        let values = values.collect::<Result<_>>()?;
        let filter = filter.as_ref().map(Filling::new);
        row_groups.push(RowGroupBloom { row_group, filter, values });
    }
    report::print(&BloomReport { file: path.clone(), column, row_groups }, global)
}

fn answer(filter: Option<&BloomFilter>, value: &Literal) -> Result<&'static str> {
    Ok(match filter {
        None => "no filter",
        Some(filter) if filter.might_contain(value.clone())? => "maybe",
        Some(_) => "no",
    })
}

/// The literal that a value on the command line is: bytes as x'0aff', else text that takes the type
/// of the column.
fn literal(text: &str) -> Result<Literal> {
    let digits = text.strip_prefix("x'").and_then(|rest| rest.strip_suffix('\''));
    let Some(digits) = digits else { return Ok(lit(text).by_value()) };
    let byte = |pair: &[u8]| {
        // A sign is no digit, and would be read as one.
        let is_pair = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|_| is_pair)?, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.map(lit).ok_or_else(|| Failure::Usage(format!("{text} are no hexadecimal digits")))
}

impl Filling {
    fn new(filter: &BloomFilter) -> Self {
        let bytes = filter.byte_len() as u64;
        let set_bits = filter.set_bits();
        #[expect(clippy::cast_precision_loss, reason = "a share, which is shown with few digits")]
        let fill = set_bits as f64 / (bytes * 8).max(1) as f64;
        Self {
            bytes,
            blocks: filter.blocks() as u64,
            set_bits,
            fill,
            false_positive_rate: filter.false_positive_rate(),
        }
    }
}

/// A value in a row group; without values, the filter of a row group.
#[derive(Serialize)]
struct BloomLine<'a> {
    row_group: usize,
    value: Option<&'a str>,
    answer: Option<&'static str>,
    bytes: Option<u64>,
    blocks: Option<u64>,
    set_bits: Option<u64>,
    fill: Option<f64>,
    false_positive_rate: Option<f64>,
}

impl BloomReport {
    fn rows(&self) -> impl Iterator<Item = BloomLine<'_>> {
        self.row_groups.iter().flat_map(|RowGroupBloom { row_group, filter, values }| {
            let found = values.iter().map(|found| (Some(found.value.as_str()), Some(found.answer)));
            let alone = values.is_empty().then_some((None, None));
            found.chain(alone).map(|(value, answer)| BloomLine {
                row_group: *row_group,
                value,
                answer: answer.or_else(|| filter.is_none().then_some("no filter")),
                bytes: filter.map(|of| of.bytes),
                blocks: filter.map(|of| of.blocks),
                set_bits: filter.map(|of| of.set_bits),
                fill: filter.map(|of| of.fill),
                false_positive_rate: filter.map(|of| of.false_positive_rate),
            })
        })
    }
}

impl Report for BloomReport {
    const COMMAND: &'static str = "bloom";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.rows()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = [
            Column::number("row group", |line: &BloomLine<'_>| line.row_group.to_string()),
            Column::text("value", |line| line.value.unwrap_or_default().to_owned()),
            Column::text("answer", |line| line.answer.unwrap_or_default().to_owned()),
            Column::bytes("size", |line| line.bytes),
            Column::count("bits set", |line| line.set_bits),
            Column::number("fill", |line| line.fill.map(percent_of).unwrap_or_default()),
            Column::number("false positives", |line| {
                line.false_positive_rate.map(percent_of).unwrap_or_default()
            }),
        ];
        let rows: Vec<_> = self.rows().collect();
        out.show(&format!("{}: column {}", self.file, self.column), &columns, &rows, &["bits set"])
    }
}

/// A share in percent, with two digits that count.
fn percent_of(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        10.0.. => format!("{percent:.0} %"),
        0.1.. => format!("{percent:.1} %"),
        0.001.. => format!("{percent:.3} %"),
        _ => format!("{percent:.0e} %"),
    }
}
