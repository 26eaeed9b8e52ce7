//! probe

use std::sync::Arc;

use marquetry::arrow_array::*;
use marquetry::arrow_array::types::*;
use marquetry::arrow_schema::*;
use marquetry::io::WriteSink;
use marquetry::{Reader, Result, WriteOptions, Writer};
use arrow_buffer::*;

use crate::support::read_with;

fn file(batch: &RecordBatch, options: WriteOptions) -> Result<bytes::Bytes> {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options)?;
    writer.write(batch)?;
    Ok(writer.into_inner()?.1.into())
}

fn one(array: ArrayRef) -> RecordBatch {
    let field = Field::new("a", array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

fn outcome(array: ArrayRef) -> String {
    let batch = one(array);
    let file = match file(&batch, WriteOptions::new()) {
        Ok(file) => file,
        Err(e) => return format!("REFUSED {e}"),
    };
    let reader = Reader::new(file).unwrap();
    let back = match read_with(reader) { Ok(b) => b, Err(e) => return format!("UNREADABLE {e}") };
    let back = arrow_select::concat::concat_batches(&back[0].schema(), &back).unwrap();
    if back.schema().field(0).data_type() != batch.schema().field(0).data_type() {
        return format!("TYPE {}", back.schema().field(0));
    }
    if back.column(0).to_data() != batch.column(0).to_data() { return format!("VALUES {:?}", back.column(0)); }
    "same".to_owned()
}

#[test]
fn probe() {
    use DataType as D;
    let mut all: Vec<(String, ArrayRef)> = vec![];
    let mut add = |n: &str, a: ArrayRef| all.push((n.to_owned(), a));
    add("null", Arc::new(NullArray::new(3)));
    add("time32s max", Arc::new(Time32SecondArray::from(vec![i32::MIN, 0, i32::MAX])));
    add("time32ms max", Arc::new(Time32MillisecondArray::from(vec![i32::MIN, 0, i32::MAX])));
    add("time64us max", Arc::new(Time64MicrosecondArray::from(vec![i64::MIN, 0, i64::MAX])));
    add("time64ns max", Arc::new(Time64NanosecondArray::from(vec![i64::MIN, 0, i64::MAX])));
    add("ts s max", Arc::new(TimestampSecondArray::from(vec![i64::MIN, 0, i64::MAX])));
    add("ts ms max", Arc::new(TimestampMillisecondArray::from(vec![i64::MIN, 0, i64::MAX])));
    add("ts ns tz", Arc::new(TimestampNanosecondArray::from(vec![i64::MIN, 0, i64::MAX]).with_timezone("+01:00")));
    add("dur s", Arc::new(DurationSecondArray::from(vec![i64::MIN, 0, i64::MAX])));
    add("dur ns", Arc::new(DurationNanosecondArray::from(vec![i64::MIN, 0, i64::MAX])));
    add("date32", Arc::new(Date32Array::from(vec![i32::MIN, 0, i32::MAX])));
    add("date64 days", Arc::new(Date64Array::from(vec![-86_400_000, 0, 86_400_000])));
    add("date64 off", Arc::new(Date64Array::from(vec![-86_400_001, 0, 1])));
    add("date64 max", Arc::new(Date64Array::from(vec![i64::MAX/86_400_000*86_400_000])));
    add("iym", Arc::new(IntervalYearMonthArray::from(vec![i32::MIN, 0, i32::MAX])));
    add("idt", Arc::new(IntervalDayTimeArray::from(vec![IntervalDayTime::MIN, IntervalDayTime::MAX])));
    add("imdn", Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::MIN, IntervalMonthDayNano::MAX])));
    add("d32 neg", Arc::new(Decimal32Array::from(vec![Some(-999), None, Some(999)]).with_precision_and_scale(3, -2).unwrap()));
    add("d64 neg", Arc::new(Decimal64Array::from(vec![Some(-999), None, Some(999)]).with_precision_and_scale(3, -15).unwrap()));
    add("d128 neg", Arc::new(Decimal128Array::from(vec![Some(-999), None, Some(999)]).with_precision_and_scale(38, -38).unwrap()));
    add("d256 neg", Arc::new(Decimal256Array::from(vec![Some(i256::from_i128(-999)), None]).with_precision_and_scale(76, -1).unwrap()));
    add("d32 max", Arc::new(Decimal32Array::from(vec![-999_999_999, 999_999_999]).with_precision_and_scale(9, 9).unwrap()));
    add("d128 over", Arc::new(Decimal128Array::from(vec![1000]).with_precision_and_scale(3, 0).unwrap()));
    add("fsb0", Arc::new(FixedSizeBinaryArray::try_new_with_len(0, Buffer::from_vec(Vec::<u8>::new()), Some(NullBuffer::from(vec![true,false,true])), 3).unwrap()));
    add("empty struct", Arc::new(StructArray::new_empty_fields(3, Some(NullBuffer::from(vec![true,false,true])))));
    let i32s = |n: usize| -> ArrayRef { Arc::new(Int32Array::from_iter_values(0..n as i32)) };
    let item = Arc::new(Field::new_list_field(D::Int32, true));
    add("fsl0", Arc::new(FixedSizeListArray::try_new_with_length(item.clone(), 0, i32s(0), Some(NullBuffer::from(vec![true,false,true])), 3).unwrap()));
    add("fsl0 nonnull", Arc::new(FixedSizeListArray::try_new_with_length(item.clone(), 0, i32s(0), None, 3).unwrap()));
    add("fsl2", Arc::new(FixedSizeListArray::try_new_with_length(item.clone(), 2, i32s(6), Some(NullBuffer::from(vec![true,false,true])), 3).unwrap()));
    add("listview", Arc::new(ListViewArray::new(item.clone(), vec![4,0,2].into(), vec![2,3,0].into(), i32s(6), None)));
    add("largelistview", Arc::new(LargeListViewArray::new(item.clone(), vec![4,0,2].into(), vec![2,3,0].into(), i32s(6), None)));
    let strs: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    add("dict", Arc::new(DictionaryArray::<UInt8Type>::new(vec![0u8,1,0].into(), strs.clone())));
    add("dict of struct", Arc::new(DictionaryArray::<Int8Type>::new(vec![0i8,0].into(), Arc::new(StructArray::from(vec![(Arc::new(Field::new("x", D::Int32, true)), i32s(1))])))));
    let dict2: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(vec![0i8,1].into(), strs.clone()));
    add("dict of dict", Arc::new(DictionaryArray::<Int8Type>::new(vec![0i8,1, 0].into(), dict2.clone())));
    add("ree", Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &strs).unwrap()));
    add("ree of dict", Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &dict2).unwrap()));
    add("ree of ree", Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 5]), &(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![1, 2]), &strs).unwrap())).unwrap()));
    add("ree of list", Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2]), &(FixedSizeListArray::try_new_with_length(item.clone(), 2, i32s(2), None, 1).unwrap())).unwrap()));
    add("dict of neg", Arc::new(DictionaryArray::<Int8Type>::new(vec![0i8,1].into(), Arc::new(Decimal128Array::from(vec![7, 8]).with_precision_and_scale(3, -2).unwrap()))));
    add("utf8view", Arc::new(StringViewArray::from(vec![Some(""), None, Some("more than twelve bytes long")])));
    add("binview", Arc::new(BinaryViewArray::from(vec![Some(&b""[..]), None, Some(b"\xff")])));
    let uf = UnionFields::try_new(vec![0, 1], vec![Field::new("i", D::Int32, true), Field::new("s", D::Utf8, true)]).unwrap();
    add("union", Arc::new(UnionArray::try_new(uf, vec![0i8, 1].into(), None, vec![i32s(2), Arc::new(StringArray::from(vec!["a", "b"]))]).unwrap()));
    let entries = |key: ArrayRef, kn: bool, value: ArrayRef| StructArray::from(vec![(Arc::new(Field::new("k", key.data_type().clone(), kn)), key), (Arc::new(Field::new("v", value.data_type().clone(), true)), value)]);
    let map = |e: StructArray| -> ArrayRef { let n = e.len() as i32; Arc::new(MapArray::new(Arc::new(Field::new("e", e.data_type().clone(), false)), OffsetBuffer::new(vec![0, n, n].into()), e, Some(NullBuffer::from(vec![true,false])), true)) };
    add("map", map(entries(i32s(3), false, i32s(3))));
    add("map of dup keys", map(entries(Arc::new(Int32Array::from(vec![Some(1), Some(1)])), false, Arc::new(NullArray::new(2)))));
    let ls: ArrayRef = Arc::new(FixedSizeListArray::try_new_with_length(item.clone(), 2, i32s(6), None, 3).unwrap());
    add("map list keys", map(entries(ls.clone(), false, i32s(3))));
    add("list of null", Arc::new(ListArray::new(Arc::new(Field::new_list_field(D::Null, true)), OffsetBuffer::new(vec![0, 2, 2, 3].into()), Arc::new(NullArray::new(3)), Some(NullBuffer::from(vec![true,true,false])))));
    add("f16", Arc::new(Float16Array::from(vec![half::f16::NAN, half::f16::NEG_ZERO])));
    add("empty fsl of struct", Arc::new(FixedSizeListArray::try_new_with_length(Arc::new(Field::new("x", D::Struct(Fields::empty()), true)), 2, Arc::new(StructArray::new_empty_fields(4, None)), None, 2).unwrap()));
    for (n, a) in all {
        let t = a.data_type().to_string();
        let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| outcome(a))).unwrap_or_else(|_| "PANIC".into());
        println!("{n:20} {t}: {r}");
    }
    let none = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &RecordBatchOptions::new().with_row_count(Some(5))).unwrap();
    match file(&none, WriteOptions::new()) { Err(e) => println!("no columns: {e}"), Ok(f) => println!("no columns: {:?} {:?}", Reader::new(f.clone()).unwrap().rows(), read_with(Reader::new(f).unwrap()).map(|b| b.iter().map(|b| b.num_rows()).collect::<Vec<_>>())) }
}
