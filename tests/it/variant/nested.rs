//! Tests VARIANT columns inside structs, lists and maps: shredded while they are written, and read
//! as stored, put together, in another shape, and as JSON, compared with the values themselves.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeListArray, Int64Array, LargeListArray, ListArray,
    ListViewArray, MapArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use fastrand::Rng;
use marquetry::io::WriteSink;
use marquetry::read::VariantOutput;
use marquetry::schema::MatchBy;
use marquetry::variant::{
    VariantArray, VariantArrayBuilder, VariantInference, VariantShape, VariantShredding,
};
use marquetry::{ErrorKind, Predicate, Reader, Result, WriteOptions, WriteReport, Writer};

/// Objects that mostly have one shape, some other values, and nulls. Where `live` says that a slot
/// is below a null, it is no VARIANT at all.
fn events(live: &[bool], is_nullable: bool, rng: &mut Rng) -> StructArray {
    let mut out = VariantArrayBuilder::new();
    for (i, live) in live.iter().enumerate() {
        match rng.u8(..12) {
            0 if is_nullable => out.append_null(),
            1 => out.append_json(r#"{"event":17,"other":[1,"x"]}"#).unwrap(),
            2 => out.append_json("null").unwrap(),
            3 => out.append_json("[1,2,{}]").unwrap(),
            _ if !live => out.append_json("1").unwrap(),
            _ => {
                let (event, vip) = (rng.u8(..5), rng.bool());
                let text = format!(r#"{{"event":"e{event}","at":{i},"user":{{"vip":{vip}}}}}"#);
                out.append_json(&text).unwrap();
            }
        }
    }
    let made = out.finish().unwrap();
    // What lies below a null may be anything: here, no metadata.
    let junk = |array: &ArrayRef| -> ArrayRef {
        let values = array.as_binary::<i32>().iter().zip(live);
        let values = values.map(|(bytes, live)| if *live { bytes } else { Some(&[][..]) });
        Arc::new(BinaryArray::from_iter(values))
    };
    let columns = made.columns().iter().map(junk).collect();
    StructArray::new(made.fields().clone(), columns, made.nulls().cloned())
}

fn variant(name: &str, is_nullable: bool) -> FieldRef {
    Arc::new(VariantArray::field(name, is_nullable))
}

/// A struct of a VARIANT and a number; `live` says which slots count.
fn structs(live: &[bool], rng: &mut Rng) -> StructArray {
    let nulls: Vec<bool> = live.iter().map(|_| rng.u8(..6) > 0).collect();
    let there: Vec<bool> = live.iter().zip(&nulls).map(|(a, b)| *a && *b).collect();
    let numbers = Int64Array::from_iter_values((0..live.len()).map(|i| i as i64));
    let fields = vec![
        Arc::new(Field::new("n", DataType::Int64, true)),
        variant("v", true),
        variant("w", false),
    ];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(numbers),
        Arc::new(events(&there, true, rng)),
        Arc::new(events(&there, false, rng)),
    ];
    StructArray::new(fields.into(), columns, Some(NullBuffer::from(nulls)))
}

/// Offsets of lists from a number on, which are null, and which of the elements count. There are
/// elements before, between in null lists, and after.
fn lists(rows: usize, rng: &mut Rng) -> (Vec<i32>, Vec<bool>, Vec<bool>) {
    let (mut offsets, mut nulls) = (vec![3], Vec::new());
    let mut live = vec![false; 3];
    for _ in 0..rows {
        let (len, valid) = (rng.usize(..4), rng.u8(..5) > 0);
        nulls.push(valid);
        live.extend(vec![valid; len]);
        offsets.push(live.len() as i32);
    }
    live.extend([false; 2]);
    (offsets, nulls, live)
}

/// Every way in which a column can be around a VARIANT.
fn table(rows: usize, seed: u64) -> RecordBatch {
    let mut rng = Rng::with_seed(seed);
    let rng = &mut rng;
    let mut columns: Vec<(FieldRef, ArrayRef)> = Vec::new();
    let mut push = |name: &str, array: ArrayRef| {
        let field = Field::new(name, array.data_type().clone(), name != "id");
        columns.push((Arc::new(field), array));
    };
    push("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)));
    push("s", Arc::new(structs(&vec![true; rows], rng)));
    let (offsets, nulls, live) = lists(rows, rng);
    let (ends, nulls) = (OffsetBuffer::new(offsets.clone().into()), Some(NullBuffer::from(nulls)));
    let values = Arc::new(events(&live, false, rng));
    let item = variant("item", false);
    push("l", Arc::new(ListArray::new(item, ends.clone(), values, nulls.clone())));
    let values = Arc::new(structs(&live, rng));
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    push("ls", Arc::new(ListArray::new(item.clone(), ends, values.clone(), nulls.clone())));
    let large = OffsetBuffer::new(offsets.iter().map(|at| i64::from(*at)).collect());
    push("large", Arc::new(LargeListArray::new(item, large, values, nulls.clone())));
    let starts = offsets[..rows].to_vec().into();
    let sizes: Vec<i32> = offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
    let values = Arc::new(events(&live, true, rng));
    let item = variant("item", true);
    let views = ListViewArray::new(item.clone(), starts, sizes.into(), values, nulls.clone());
    push("views", Arc::new(views));
    let live: Vec<bool> =
        nulls.iter().flat_map(|nulls| nulls.iter()).flat_map(|b| [b; 2]).collect();
    let values = Arc::new(events(&live, true, rng));
    push("pairs", Arc::new(FixedSizeListArray::new(item, 2, values, nulls)));
    let (offsets, nulls, live) = lists(rows, rng);
    let keys: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..live.len()).map(|i| format!("k{i}"))));
    let values: ArrayRef = Arc::new(events(&live, true, rng));
    let pair = Fields::from(vec![
        Arc::new(Field::new("keys", DataType::Utf8, false)),
        variant("values", true),
    ]);
    let entries = StructArray::new(pair, vec![keys, values], None);
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let ends = OffsetBuffer::new(offsets.into());
    push("m", Arc::new(MapArray::new(field, ends, entries, Some(nulls.into()), false)));
    let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// A slot as text: VARIANT values as JSON, whether they are stored as that or not.
fn text(field: &Field, array: &ArrayRef, slot: usize) -> String {
    if array.is_null(slot) {
        return "absent".to_owned();
    }
    if VariantArray::is_variant(field) {
        let one = array.slice(slot, 1);
        let value = VariantArray::new(one.as_struct()).unwrap().value(0).unwrap().unwrap();
        value.as_variant().validate().unwrap();
        return value.as_variant().to_json().unwrap();
    }
    let elements = |item: &Field, elements: &ArrayRef| {
        let all: Vec<String> = (0..elements.len()).map(|i| text(item, elements, i)).collect();
        format!("<{}>", all.join(" "))
    };
    match field.data_type() {
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            let all: Vec<String> = columns.map(|(field, of)| text(field, of, slot)).collect();
            format!("({})", all.join(" "))
        }
        DataType::List(item) => elements(item, &array.as_list::<i32>().value(slot)),
        DataType::LargeList(item) => elements(item, &array.as_list::<i64>().value(slot)),
        DataType::ListView(item) => elements(item, &array.as_list_view::<i32>().value(slot)),
        DataType::FixedSizeList(item, _) => elements(item, &array.as_fixed_size_list().value(slot)),
        DataType::Map(entries, _) => {
            elements(entries, &(Arc::new(array.as_map().value(slot)) as ArrayRef))
        }
        DataType::Int64 => array.as_primitive::<Int64Type>().value(slot).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(slot).to_owned(),
        other => panic!("{other}"),
    }
}

/// All slots of all columns.
fn texts(schema: &Schema, batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let of = |(i, field): (usize, &FieldRef)| {
        let slots = batches.iter().flat_map(|batch| {
            (0..batch.num_rows()).map(move |row| text(field, batch.column(i), row))
        });
        slots.collect()
    };
    schema.fields().iter().enumerate().map(of).collect()
}

fn read(reader: &Reader) -> (SchemaRef, Vec<RecordBatch>) {
    let batches: Vec<_> = reader.batches().unwrap().collect::<Result<_, _>>().unwrap();
    let schema = reader.schema().unwrap();
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    (schema, batches)
}

fn written(batches: &[RecordBatch], options: WriteOptions) -> (WriteReport, bytes::Bytes) {
    let mut writer = Writer::new(WriteSink(Vec::new()), batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    let (report, file) = writer.into_inner().unwrap();
    (report, file.into())
}

/// The paths of the VARIANT columns of a table.
const PATHS: [&str; 10] = [
    "s.v",
    "s.w",
    "l.list.element",
    "ls.list.element.v",
    "ls.list.element.w",
    "large.list.element.v",
    "large.list.element.w",
    "views.list.element",
    "pairs.list.element",
    "m.key_value.value",
];

const SHAPE: &str = "{at: int64, event: string, user: {vip: boolean}}";

fn shape() -> VariantShape {
    VariantShape::parse(SHAPE).unwrap()
}

/// Leaves of a file that are the shredded `event` of a VARIANT.
fn shredded(reader: &Reader) -> Vec<String> {
    let schema = reader.metadata().schema();
    let paths = (0..schema.leaves_len()).map(|i| schema.leaf(i).unwrap().path.dotted());
    let found = paths
        .filter_map(|path| path.strip_suffix(".typed_value.event.typed_value").map(str::to_owned));
    found.collect()
}

#[test]
fn values_in_structs_lists_and_maps_are_shredded_and_come_back() {
    for seed in 0..8 {
        let mut rng = Rng::with_seed(seed);
        let batches: Vec<_> = (0..3).map(|i| table(rng.usize(1..60), seed * 10 + i)).collect();
        // The rows of a slice lie somewhere in its arrays.
        let batches: Vec<_> = batches
            .iter()
            .map(|batch| {
                let first = rng.usize(..batch.num_rows());
                batch.slice(first, batch.num_rows() - first)
            })
            .collect();
        let expected = texts(&batches[0].schema(), &batches);
        let settings = [
            VariantShredding::Stored,
            VariantShredding::Shape(shape()),
            VariantShredding::Infer(VariantInference::new()),
        ];
        for shredding in settings {
            let options = WriteOptions::new()
                .with_row_group_rows(rng.u64(20..200))
                .with_shredding("*", shredding.clone());
            let (report, file) = written(&batches, options);
            let reader = Reader::new(file).unwrap();
            match &shredding {
                VariantShredding::Shape(of) => {
                    let shapes = PATHS.map(|path| (path.to_owned(), of.clone()));
                    assert_eq!(report.shapes, shapes);
                    assert_eq!(shredded(&reader), PATHS);
                }
                VariantShredding::Stored => assert!(shredded(&reader).is_empty()),
                // Some have few values.
                _ => {}
            }
            let (schema, found) = read(&reader);
            assert_eq!(texts(&schema, &found), expected, "seed {seed}, stored");
            let plain = reader.clone().variants(VariantOutput::Unshredded);
            let (schema, found) = read(&plain);
            assert_eq!(schema.fields(), batches[0].schema().fields(), "seed {seed}");
            assert_eq!(texts(&schema, &found), expected, "seed {seed}, unshredded");
            let other = VariantShape::parse("{event: string, other: [int64]}").unwrap();
            let other = reader.clone().variants(VariantOutput::Shape(other));
            let (schema, found) = read(&other);
            assert_eq!(texts(&schema, &found), expected, "seed {seed}, in another shape");
            let (schema, found) = read(&reader.variants(VariantOutput::Json));
            assert_eq!(texts(&schema, &found), expected, "seed {seed}, as JSON");
        }
    }
}

#[test]
fn a_shape_is_for_the_path_that_it_was_given_for() {
    let batch = table(300, 7);
    for path in PATHS {
        let shredding = VariantShredding::Shape(shape());
        let options = WriteOptions::new().with_shredding(path, shredding);
        let (_, file) = written(std::slice::from_ref(&batch), options);
        assert_eq!(shredded(&Reader::new(file).unwrap()), [path]);
    }
    let infer = VariantShredding::Infer(VariantInference::new());
    let options = WriteOptions::new()
        .with_shredding("ls.*", infer)
        .with_shredding("*.w", VariantShredding::Shape(shape()));
    let (report, file) = written(std::slice::from_ref(&batch), options);
    let found = shredded(&Reader::new(file).unwrap());
    let expected = ["s.w", "ls.list.element.v", "ls.list.element.w", "large.list.element.w"];
    assert_eq!(found, expected);
    assert_eq!(report.shapes.iter().map(|(path, _)| path).collect::<Vec<_>>(), expected);
    for wrong in ["s", "l", "l.element", "m.value", "s.x"] {
        let options = WriteOptions::new().with_shredding(wrong, VariantShredding::Shape(shape()));
        let error = Writer::new(WriteSink(Vec::new()), batch.schema(), options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{wrong}");
    }
}

/// The type with the VARIANT columns in it as they are in a shape.
fn in_shape(field: &FieldRef, shape: &VariantShape) -> FieldRef {
    let below = |of: &FieldRef| in_shape(of, shape);
    let data_type = match field.data_type() {
        _ if VariantArray::is_variant(field) => shape.data_type(),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(below).collect()),
        DataType::List(item) => DataType::List(below(item)),
        DataType::LargeList(item) => DataType::LargeList(below(item)),
        DataType::ListView(item) => DataType::ListView(below(item)),
        DataType::FixedSizeList(item, n) => DataType::FixedSizeList(below(item), *n),
        DataType::Map(entries, sorted) => DataType::Map(below(entries), *sorted),
        other => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

#[test]
fn a_target_schema_has_the_shapes_of_what_is_nested() {
    let batch = table(200, 3);
    let expected = texts(&batch.schema(), std::slice::from_ref(&batch));
    let shapes = ["{event: string, user: {vip: boolean}}", "{at: int64}", "variant", "[int64]"];
    for from in shapes {
        let from = VariantShredding::Shape(VariantShape::parse(from).unwrap());
        let options = WriteOptions::new().with_shredding("*", from);
        let reader = Reader::new(written(std::slice::from_ref(&batch), options).1).unwrap();
        for to in shapes {
            let to = VariantShape::parse(to).unwrap();
            let schema = batch.schema();
            let fields = schema.fields().iter().map(|field| in_shape(field, &to));
            let target = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let reader = reader.clone().target(target.clone(), MatchBy::Name).unwrap();
            assert_eq!(reader.schema().unwrap(), target);
            let (schema, found) = read(&reader);
            assert_eq!(texts(&schema, &found), expected);
            // Fields of a struct that are not projected are no part of the target.
            let (schema, found) = read(&reader.project(["s.w", "id"]).unwrap());
            assert_eq!(found[0].num_columns(), 2);
            let DataType::Struct(fields) = schema.field(0).data_type() else { panic!("a struct") };
            assert_eq!(fields.len(), 1);
            assert_eq!(*fields[0].data_type(), to.data_type());
        }
    }
}

#[test]
fn parts_and_predicates_of_a_variant_in_a_struct_use_its_shredded_columns() {
    let mut out = VariantArrayBuilder::new();
    (0..5_000).for_each(|i| out.append_json(&format!(r#"{{"at":{i}}}"#)).unwrap());
    let values: ArrayRef = Arc::new(out.finish().unwrap());
    let s = StructArray::new(vec![variant("v", true)].into(), vec![values], None);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5_000));
    let columns: [(&str, ArrayRef); 2] = [("id", ids), ("s", Arc::new(s))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let rows_where = |shredding: VariantShredding, text: &str| {
        let options = WriteOptions::new().with_row_group_rows(1_000).with_shredding("*", shredding);
        let (_, file) = written(std::slice::from_ref(&batch), options);
        let reader = Reader::new(file).unwrap().project(["id"]).unwrap();
        let reader = reader.filter(Predicate::parse(text).unwrap());
        let mut rows = Vec::new();
        for batch in reader.batches().unwrap() {
            rows.extend(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
        }
        (rows, reader.progress().row_groups())
    };
    let text = "variant_get(s.v, '$.at', 'int64') = 1500";
    let shredding = VariantShredding::Shape(VariantShape::parse("{at: int64}").unwrap());
    assert_eq!(rows_where(shredding, text), (vec![1_500], 1));
    assert_eq!(rows_where(VariantShredding::Stored, text), (vec![1_500], 5));
}

#[test]
#[cfg(feature = "encryption")]
fn only_the_leaves_of_a_nested_variant_need_keys_together() {
    use marquetry::crypt::{Encryption, Key, UnlistedColumns};

    let key = || Key::generate(128).unwrap();
    let batch = table(20, 1);
    let written = |columns: &[&str]| {
        let mut encryption = Encryption::new(key()).with_unlisted_columns(UnlistedColumns::Plain);
        for column in columns {
            encryption = encryption.with_column_key(*column, key());
        }
        let shredding = VariantShredding::Shape(shape());
        let options =
            WriteOptions::new().with_encryption(encryption).with_shredding("s.v", shredding);
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options)?;
        writer.write(&batch)?;
        writer.finish()
    };
    written(&["s.n"]).expect("a column beside it");
    assert_eq!(written(&["s.v.value"]).unwrap_err().kind(), ErrorKind::Usage);
}
