//! Tests that Arrow files and streams that state what is not true are refused, and that nothing is
//! allocated for it.

use std::process::Stdio;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, ListArray, NullArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_ipc::{root_as_footer, root_as_message};
use arrow_schema::{DataType, Field};

use crate::support::folder::{Folder, error, fed};

/// More bytes than any machine has, which cannot be allocated.
const HUGE: i64 = 1 << 60;

fn rows() -> RecordBatch {
    let numbers = Int64Array::from_iter_values(0..100);
    RecordBatch::try_from_iter([("n", Arc::new(numbers) as _)]).expect("rows")
}

fn file() -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = FileWriter::try_new(&mut file, &rows().schema()).expect("a file");
    writer.write(&rows()).expect("rows");
    writer.finish().expect("an end");
    file
}

fn stream() -> Vec<u8> {
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &rows().schema()).expect("a stream");
    writer.write(&rows()).expect("rows");
    writer.finish().expect("an end");
    stream
}

/// Changes the one place after `from` that holds these numbers.
fn replaced(mut bytes: Vec<u8>, from: usize, old: [i64; 2], new: [i64; 2]) -> Vec<u8> {
    let of = |numbers: [i64; 2]| numbers.map(i64::to_le_bytes).concat();
    let (old, new) = (of(old), of(new));
    let found: Vec<usize> =
        (from..bytes.len() - 16).filter(|at| bytes[*at..at + 16] == *old).collect();
    assert_eq!(found.len(), 1, "the place of {old:?}");
    bytes[found[0]..found[0] + 16].copy_from_slice(&new);
    bytes
}

/// Holds a file to be refused as one that is wrong, in one line.
fn refuses(folder: &Folder, name: &str) {
    let said = folder.refused(3, &["convert", name, "-o", "out.jsonl"]);
    assert!(said.contains(name) && !said.contains("panicked"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!folder.path("out.jsonl").exists());
}

#[test]
fn blocks_and_footers_beyond_the_file_are_refused() {
    let (folder, file) = (Folder::new(), file());
    let len = file.len();
    let footer_len = i32::from_le_bytes(file[len - 10..len - 6].try_into().expect("four"));
    let footer_start = len - 10 - footer_len as usize;
    let footer = root_as_footer(&file[footer_start..len - 10]).expect("a footer");
    let block = *footer.recordBatches().expect("blocks").get(0);
    let metadata = i64::from(block.metaDataLength());
    for body in [HUGE, i64::MAX, -1, block.bodyLength() + len as i64] {
        let old = [metadata, block.bodyLength()];
        folder.put("a.arrow", replaced(file.clone(), footer_start, old, [metadata, body]));
        refuses(&folder, "a.arrow");
    }
    for offset in [HUGE, -8] {
        let old = [block.offset(), metadata];
        folder.put("a.arrow", replaced(file.clone(), footer_start, old, [offset, metadata]));
        refuses(&folder, "a.arrow");
    }
    for stated in [i32::MAX, -1, footer_len + footer_start as i32 + 1] {
        let mut bytes = file.clone();
        bytes[len - 10..len - 6].copy_from_slice(&stated.to_le_bytes());
        folder.put("a.arrow", bytes);
        refuses(&folder, "a.arrow");
    }
    folder.put("a.arrow", b"ARROW1");
    refuses(&folder, "a.arrow");
}

#[test]
fn panics_of_arrow_are_errors_of_the_file() {
    let (folder, file) = (Folder::new(), file());
    // The lengths of the two buffers of the column.
    folder.put("a.arrow", replaced(file, 0, [0, 800], [HUGE, 800]));
    refuses(&folder, "a.arrow");
    folder.put("a.arrows", replaced(stream(), 0, [0, 800], [HUGE, 800]));
    refuses(&folder, "a.arrows");
}

/// Where the metadata of the message with the rows begin, and the end of its body.
fn message(stream: &[u8]) -> (usize, usize) {
    let mut at = 0;
    loop {
        let len = i32::from_le_bytes(stream[at + 4..at + 8].try_into().expect("four")) as usize;
        let message = root_as_message(&stream[at + 8..at + 8 + len]).expect("a message");
        let end = at + 8 + len + message.bodyLength() as usize;
        if message.header_as_record_batch().is_some() {
            return (at + 8, end);
        }
        at = end;
    }
}

#[test]
fn messages_beyond_the_stream_are_refused_from_files_and_pipes() {
    let (folder, stream) = (Folder::new(), stream());
    let (metadata, end) = message(&stream);
    let message = root_as_message(&stream[metadata..]).expect("a message");
    let body = message.bodyLength().to_le_bytes();
    let at = (metadata..end).find(|at| stream[*at..at + 8] == body).expect("the length");
    let with = |at: usize, bytes: &[u8]| {
        let mut stream = stream.clone();
        stream[at..at + bytes.len()].copy_from_slice(bytes);
        stream
    };
    let wrong = [
        with(at, &HUGE.to_le_bytes()),
        with(at, &(-1i64).to_le_bytes()),
        with(metadata - 4, &i32::MAX.to_le_bytes()),
        with(metadata - 4, &(-5i32).to_le_bytes()),
        stream[..end - 1].to_vec(),
        stream[..metadata - 6].to_vec(),
    ];
    for bytes in wrong {
        folder.put("a.arrows", &bytes);
        refuses(&folder, "a.arrows");
        let args = ["convert", "-", "--from", "arrows", "--to", "jsonl"];
        let output = fed(folder.command(&args).stdin(Stdio::piped()), &bytes);
        assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    }
}

#[test]
fn streams_may_end_without_a_mark_and_have_no_rows() {
    let (folder, stream) = (Folder::new(), stream());
    let (metadata, end) = message(&stream);
    let lines = |bytes: &[u8]| {
        folder.put("a.arrows", bytes);
        folder.text(&["convert", "a.arrows", "--to", "jsonl"]).lines().count()
    };
    assert_eq!(lines(&stream), 100);
    assert_eq!(lines(&stream[..end]), 100);
    assert_eq!(lines(&stream[..metadata - 8]), 0, "only the schema");
    assert_eq!(lines(&[&stream, &b"after the end"[..]].concat()), 100);
    let one = &stream[metadata - 8..end];
    assert_eq!(lines(&[&stream[..end], one, one].concat()), 300);
    // Rows without columns have no bytes.
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(7));
    let none = RecordBatch::try_new_with_options(
        Arc::new(arrow_schema::Schema::empty()),
        Vec::new(),
        &options,
    );
    let none = none.expect("rows");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &none.schema()).expect("a stream");
    writer.write(&none).expect("rows");
    writer.write(&none).expect("rows");
    assert_eq!(lines(&bytes), 14);
}

/// Makes an Arrow file of one batch.
fn put_batch(folder: &Folder, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
    let mut file = Vec::new();
    let mut writer = FileWriter::try_new(&mut file, &batch.schema()).expect("a file");
    writer.write(&batch).expect("rows");
    writer.finish().expect("an end");
    folder.put(name, file);
}

#[test]
fn a_row_whose_text_would_take_more_than_there_is_is_refused() {
    let folder = Folder::new();
    let long = i32::MAX as usize;
    let item = Arc::new(Field::new_list_field(DataType::Null, true));
    let nulls = ListArray::new(
        item,
        OffsetBuffer::from_lengths([long]),
        Arc::new(NullArray::new(long)),
        None,
    );
    put_batch(&folder, "nulls.arrow", vec![("l", Arc::new(nulls))]);
    let item = Arc::new(Field::new_list_field(DataType::Boolean, true));
    let bits: ArrayRef = Arc::new(BooleanArray::from(vec![false; 4_000_000]));
    let bits = ListArray::new(item, OffsetBuffer::from_lengths([4_000_000]), bits, None);
    folder.columns("bits.parquet", vec![("l", Arc::new(bits))]);
    for form in ["jsonl", "json", "csv"] {
        let said = folder.refused(3, &["convert", "nulls.arrow", "--to", form]);
        assert!(said.contains("a row takes") && said.contains("--mem"), "{said}");
        let args = ["convert", "bits.parquet", "--to", form, "--mem"];
        let said = folder.refused(3, &[&args[..], &["8MiB"]].concat());
        assert!(said.contains("a row takes"), "{said}");
        folder.text(&[&args[..], &["64MiB"]].concat());
    }
}

#[test]
fn rows_that_take_no_bytes_are_read_a_few_at_a_time() {
    let folder = Folder::new();
    let nulls = || -> Vec<(&str, ArrayRef)> { vec![("n", Arc::new(NullArray::new(1 << 40)))] };
    put_batch(&folder, "in/k=1/a.arrow", nulls());
    put_batch(&folder, "in/b.arrow", nulls());
    let files = ["convert", "in/k=1/a.arrow", "in/b.arrow", "--to", "jsonl", "--rows"];
    let line = |k: &str| format!("{{\"n\":null,\"k\":{k}}}\n").repeat(2);
    let few = folder.text(&[&files[..], &["5:7"]].concat());
    assert_eq!(few, [line("1"), line("null")].concat());
    let few = folder.text(&[&files[..], &["70000:70002", "--where", "k = 1"]].concat());
    assert_eq!(few, line("1"));
}
