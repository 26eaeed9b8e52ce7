//! The levels and values that spans show are those that reading the file gives, shredded by the
//! naive twin.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::TimeUnit;
use bytes::Bytes;
use marquetry::arrow_array::{
    ArrayRef, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
};
use marquetry::format::{Encoding, LogicalType};
use marquetry::inspect::{SpanKind, Value};
use marquetry::io::WriteSink;
use marquetry::schema::Physical;
use marquetry::{PageVersion, Reader, WriteOptions, Writer};

use super::spans::{Tree, files, tree};
use crate::support::cells::{Entry, Shredder, columns, leaves};

/// The levels and values of a column chunk, as its spans show them.
#[derive(Default)]
struct Shown {
    def: Vec<usize>,
    rep: Vec<usize>,
    values: Vec<Vec<u8>>,
}

/// A value as PLAIN has it, without a length.
fn plain(value: &Value, physical: Physical) -> Vec<u8> {
    let width = physical.byte_width().unwrap_or(1);
    match value {
        Value::Bool(value) => vec![u8::from(*value)],
        Value::Int(value) => value.to_le_bytes()[..width].to_vec(),
        Value::UInt(value) => value.to_le_bytes()[..width].to_vec(),
        Value::Float(value) => value.to_le_bytes().to_vec(),
        Value::Double(value) => value.to_le_bytes().to_vec(),
        Value::Text(text) => text.as_bytes().to_vec(),
        Value::Bytes(bytes) => bytes.to_vec(),
        other => panic!("{other:?} is no value"),
    }
}

fn items(value: Option<&Value>) -> Vec<Value> {
    match value {
        Some(Value::List(items)) => items.iter().collect(),
        Some(other) => vec![other.clone()],
        None => Vec::new(),
    }
}

/// The values under a span of values: their list, or each of them in its place.
fn values(tree: &Tree, dictionary: &[Vec<u8>], physical: Physical) -> Vec<Vec<u8>> {
    if let Some(Value::List(items)) = &tree.span.value {
        return items.iter().map(|value| plain(&value, physical)).collect();
    }
    let is_coded = tree.span.text.as_ref().is_some_and(|text| text.contains("DICTIONARY"));
    let mut out = Vec::new();
    tree.walk(&mut |found| {
        let span = &found.span;
        let n = match span.kind {
            SpanKind::Value | SpanKind::Packed => 1,
            SpanKind::RleRun => span.count.unwrap(),
            // Of numbers of no bits.
            SpanKind::BitPackedRun if span.is_leaf() => span.count.unwrap(),
            SpanKind::BitWidth if is_coded && span.count.is_some() => span.count.unwrap(),
            _ => return,
        };
        for value in items(span.value.as_ref()) {
            let bytes = match &value {
                Value::UInt(index) if is_coded => dictionary[*index as usize].clone(),
                value => plain(value, physical),
            };
            out.extend((0..n).map(|_| bytes.clone()));
        }
    });
    out
}

/// The levels and values that the spans of a file show, by row group and leaf.
fn shown(trees: &[Tree], physical: &HashMap<String, Physical>) -> HashMap<(usize, String), Shown> {
    let mut out = HashMap::new();
    for chunk in trees.iter().filter(|tree| tree.span.kind == SpanKind::ColumnChunk) {
        let place =
            (chunk.span.row_group.unwrap(), chunk.span.column.as_deref().unwrap().to_owned());
        let of: &mut Shown = out.entry(place.clone()).or_default();
        let physical = physical[&place.1];
        let mut dictionary = Vec::new();
        for page in &chunk.children {
            let found = page.all(SpanKind::Values);
            if page.span.kind == SpanKind::DictionaryPage {
                dictionary = found.first().map_or_else(Vec::new, |v| values(v, &[], physical));
                continue;
            }
            if page.span.page.is_none() {
                continue;
            }
            let slots = page
                .all(SpanKind::Field)
                .iter()
                .find(|tree| tree.span.name == "num_values")
                .map(|tree| match tree.span.value {
                    Some(Value::Int(n)) => n as usize,
                    _ => panic!("no number"),
                })
                .unwrap();
            for (kind, levels) in [
                (SpanKind::DefinitionLevels, &mut of.def),
                (SpanKind::RepetitionLevels, &mut of.rep),
            ] {
                let before = levels.len();
                for block in page.all(kind) {
                    let list = items(block.span.value.as_ref());
                    levels.extend(list.iter().map(|level| match level {
                        Value::Int(level) => *level as usize,
                        other => panic!("{other:?}"),
                    }));
                }
                if levels.len() == before {
                    levels.extend((0..slots).map(|_| 0));
                }
            }
            of.values.extend(found.iter().flat_map(|v| values(v, &dictionary, physical)));
        }
    }
    out
}

/// Holds what the spans of a file show against what reading it gives. Says how many leaves were
/// compared; a reason if none can be.
fn check(bytes: &[u8]) -> Result<usize, String> {
    let reader = Reader::new(Bytes::copy_from_slice(bytes)).map_err(|e| e.to_string())?;
    // Nanoseconds have no year 9999, and the values of INT96 are not compared.
    let reader = reader.int96(TimeUnit::Microsecond);
    let footer = reader.metadata();
    let leaf_of = |i| footer.schema().leaf(i);
    let all: Vec<_> = (0..footer.schema().leaves_len())
        .map(leaf_of)
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    let physical: Vec<Physical> = all.iter().map(|leaf| leaf.physical).collect();
    let by_path: HashMap<String, Physical> =
        all.iter().map(|leaf| (leaf.path.dotted(), leaf.physical)).collect();
    if by_path.len() < all.len() {
        return Err("two columns of one path".to_owned());
    }
    let schema = reader.schema().map_err(|e| e.to_string())?;
    let fields: Vec<_> = schema.fields().iter().flat_map(|field| leaves(field)).collect();
    if fields.len() != physical.len() {
        return Err("groups that are no columns".to_owned());
    }
    let trees = tree(bytes, None);
    let shown = shown(&trees, &by_path);
    let mut compared = 0;
    for row_group in 0..footer.row_groups() {
        let part = reader.clone().row_groups([row_group]).map_err(|e| e.to_string())?;
        let batches = part
            .batches()
            .and_then(|batches| batches.collect::<Result<Vec<_>, _>>().map_err(Into::into));
        let batches = batches.map_err(|e| e.to_string())?;
        let mut entries: Vec<Vec<Entry>> = vec![Vec::new(); physical.len()];
        let mut first = 0;
        for (field, column) in schema.fields().iter().zip(&columns(&schema, &batches)) {
            for cell in column {
                let mut shredder = Shredder { physical: &physical, out: &mut entries };
                shredder.cell(field, cell, (0, 0, 0), first);
            }
            first += leaves(field).len();
        }
        for (leaf, entries) in all.iter().zip(&entries) {
            let path = leaf.path.dotted();
            let Some(of) = shown.get(&(row_group, path.clone())) else {
                assert!(entries.is_empty(), "{path} has no spans");
                continue;
            };
            // Of UNKNOWN, values may be stored, and are read as nulls. Keys of a map may be
            // OPTIONAL, and are not in Arrow: a key that is there has one level more.
            let is_unknown = matches!(leaf.logical, Some(LogicalType::Unknown));
            let most = usize::from(leaf.max_def);
            let read_as =
                |def: usize| if is_unknown { def.min(most.saturating_sub(1)) } else { def };
            let shown: Vec<usize> = of.def.iter().map(|&def| read_as(def)).collect();
            let def =
                entries.iter().map(|entry| if entry.value.is_some() { most } else { entry.def });
            let rep: Vec<usize> = entries.iter().map(|entry| entry.rep).collect();
            assert_eq!(
                shown,
                def.collect::<Vec<_>>(),
                "definition levels of row group {row_group}, {path}"
            );
            assert_eq!(of.rep, rep, "repetition levels of row group {row_group}, {path}");
            // The naive twin has no INT96, and no decimals of different lengths.
            let is_decimal = matches!(leaf.logical, Some(LogicalType::Decimal(_)));
            let has_twin = !is_unknown
                && leaf.physical != Physical::Int96
                && !(leaf.physical == Physical::ByteArray && is_decimal);
            if has_twin {
                let values: Vec<Vec<u8>> =
                    entries.iter().filter_map(|entry| entry.value.clone()).collect();
                assert_eq!(of.values, values, "values of row group {row_group}, {path}");
            }
            compared += 1;
        }
    }
    Ok(compared)
}

#[test]
fn levels_and_values_of_files_of_all_writers_are_those_that_reading_gives() {
    let mut compared = 0;
    for path in files(Path::new("testdata")) {
        println!("{path:?}");
        // Reading drops the entries by which DuckDB pads lists; spans show all that is stored.
        if path.ends_with("duckdb_arrays.parquet") {
            continue;
        }
        compared += check(&std::fs::read(&path).unwrap()).unwrap_or(0);
    }
    assert!(compared > 500, "{compared}");
}

/// Writes all columns in an encoding, and checks their values.
fn check_encoded(batch: &RecordBatch, encoding: Encoding) {
    for version in [PageVersion::V1, PageVersion::V2] {
        let options = WriteOptions::new().with_column("*", |column| column.with_encoding(encoding));
        let options = options.with_page_version(version).with_page_rows(1_500);
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(batch).unwrap();
        let (_, file) = writer.into_inner().unwrap();
        assert_eq!(check(&file), Ok(batch.num_columns()));
    }
}

#[test]
#[cfg_attr(not(feature = "preview"), ignore = "PFOR is a preview")]
fn values_in_pfor_are_those_that_reading_gives() {
    let seed = 20_261_128;
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    // Values, and differences, with and without exceptions and nulls.
    for (step, exceptions, nulls) in [(0, 0.0, 0.0), (0, 0.05, 0.3), (1_000, 0.05, 0.1)] {
        let mut value = |i: i64| {
            let near = i * step + rng.i64(0..100);
            let value = if rng.f64() < exceptions { rng.i64(..) } else { near };
            (rng.f64() >= nulls).then_some(value)
        };
        let wide: Vec<Option<i64>> = (0..5_000).map(&mut value).collect();
        let narrow: Int32Array = wide.iter().map(|value| value.map(|value| value as i32)).collect();
        let dates = Date32Array::from(narrow.iter().collect::<Vec<_>>());
        let columns: [(&str, ArrayRef); 3] = [
            ("int", Arc::new(narrow)),
            ("date", Arc::new(dates)),
            ("long", Arc::new(Int64Array::from(wide))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        check_encoded(&batch, Encoding::Pfor);
    }
}

#[test]
fn values_in_alp_are_those_that_reading_gives() {
    let seed = 20_261_127;
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    // With and without values that are no decimals, and nulls.
    for (exceptions, nulls) in [(0.0, 0.0), (0.05, 0.3), (1.0, 0.1)] {
        let mut value = || {
            let price = f64::from(rng.i32(-9_000_000..9_000_000)) / 100.0;
            let value = if rng.f64() < exceptions { f64::from_bits(rng.u64(..)) } else { price };
            (rng.f64() >= nulls).then_some(value)
        };
        let doubles: Vec<Option<f64>> = (0..5_000).map(|_| value()).collect();
        let floats = doubles.iter().map(|value| value.map(|value| value as f32));
        let columns: [(&str, ArrayRef); 2] = [
            ("float", Arc::new(floats.collect::<Float32Array>())),
            ("double", Arc::new(Float64Array::from(doubles.clone()))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        check_encoded(&batch, Encoding::Alp);
    }
}

/// Files that are named by a list, one path a line:
/// `MARQUETRY_FILES=list cargo test … -- --ignored`.
#[test]
#[ignore = "MARQUETRY_FILES names a list of files of other writers, which are not part of the repository"]
fn levels_and_values_of_listed_files_are_those_that_reading_gives() {
    let list = std::env::var("MARQUETRY_FILES").expect("MARQUETRY_FILES names a list of files");
    let (mut files, mut leaves, mut left_out, mut wrong) = (0, 0, 0, 0);
    for path in std::fs::read_to_string(list).unwrap().lines() {
        let bytes = std::fs::read(path).unwrap();
        match std::panic::catch_unwind(|| check(&bytes)) {
            Ok(Ok(n)) => {
                files += 1;
                leaves += n;
            }
            Ok(Err(why)) => {
                left_out += 1;
                println!("LEFT OUT {path}: {why}");
            }
            Err(_) => {
                wrong += 1;
                println!("WRONG {path}");
            }
        }
    }
    println!("{files} files, {leaves} column chunks right; {left_out} left out, {wrong} wrong");
    assert_eq!(wrong, 0);
}
