//! Tests of every struct, union and enum, beside the independent codec.

use super::spelled::Spelled;
use super::*;

#[test]
fn page_header_of_parquet_go() {
    let bytes = [
        0x15, 0x06, 0x15, 0x5a, 0x15, 0x5a, 0x15, 0xab, 0xa3, 0x84, 0xb4, 0x03, 0x4c, 0x15, 0x0a,
        0x15, 0x00, 0x15, 0x0a, 0x15, 0x00, 0x15, 0x00, 0x15, 0x00, 0x12, 0x00, 0x00,
    ];
    let mut reader = ThriftReader::new(&bytes);
    let header = PageHeader::read(&mut reader).unwrap();
    assert_eq!(reader.position(), bytes.len());
    let v2 = DataPageHeaderV2 {
        num_values: 5,
        num_nulls: 0,
        num_rows: 5,
        encoding: Encoding::Plain,
        definition_levels_byte_length: 0,
        repetition_levels_byte_length: 0,
        is_compressed: Some(false),
        ..Default::default()
    };
    assert_eq!(
        header,
        PageHeader {
            r#type: PageType::DataPageV2,
            uncompressed_page_size: 45,
            compressed_page_size: 45,
            crc: Some(0xE4BF_772A_u32.cast_signed()),
            data_page_header_v2: Some(v2),
            ..Default::default()
        }
    );
    let mut written = Vec::new();
    header.write(&mut written).unwrap();
    assert_eq!(written, bytes);
}

#[test]
fn both_codecs_and_the_specification_agree_on_every_struct() {
    for_random_values(150, |_, _, read, tree, text, _| {
        let bytes = oracle::write(&tree);
        let ours = read(&bytes).unwrap();
        assert_eq!(ours.text, text, "read from the oracle");
        assert_eq!(ours.read_len, bytes.len());
        assert_eq!(oracle::read(&ours.written), tree, "written for the oracle");
        // The oracle writes the long form from a step of 15 on already.
        assert!(ours.written.len() <= bytes.len());
    });
}

#[test]
fn unknown_fields_of_every_type_survive() {
    for_random_values(60, |spelled, name, read, mut tree, text, rng| {
        // Unions and closed structs leave it to the struct around them.
        if spelled.structs.get(name).is_none_or(|spec| spec.closed) {
            return;
        }
        oracle::add_unknown_fields(&mut tree, rng);
        let ours = read(&oracle::write(&tree)).unwrap();
        let mut back = oracle::read(&ours.written);
        oracle::sort_fields(&mut tree);
        oracle::sort_fields(&mut back);
        assert_eq!(back, tree);
        if !ours.text.contains("UnknownField") {
            assert_eq!(
                ours.text, text,
                "a struct that keeps nothing reads as if there were nothing"
            );
        }
    });
}

#[test]
fn fields_may_come_in_any_order() {
    for_random_values(30, |_, _, read, mut tree, text, rng| {
        oracle::shuffle_fields(&mut tree, rng);
        let ours = read(&oracle::write(&tree)).unwrap();
        assert_eq!(ours.text, text);
    });
}

type ReadText = fn(&[u8]) -> std::result::Result<(String, usize), crate::ErrorKind>;

/// What a struct says, without its name and what only owned ones keep; and how many bytes it took.
macro_rules! pairs {
    ($($Owned:ident $Ref:ident),*) => { &[$((stringify!($Owned), said!($Owned), said!($Ref))),*] };
}
macro_rules! said {
    ($Name:ident) => {
        |bytes| {
            let mut reader = ThriftReader::new(bytes);
            let text = $Name::read(&mut reader).map(|value| format!("{value:?}"));
            let text = text.map_err(|e| e.kind())?;
            Ok((without_unknown(&text.replace("Ref {", " {")), reader.position()))
        }
    };
}
#[test]
fn borrowed_structs_say_what_the_owned_ones_say() {
    const PAIRS: &[(&str, ReadText, ReadText)] = pairs! {
        ColumnChunk ColumnChunkRef, ColumnMetaData ColumnMetaDataRef, Statistics StatisticsRef, SizeStatistics SizeStatisticsRef,
        OffsetIndex OffsetIndexRef, ColumnIndex ColumnIndexRef
    };
    let spelled = Spelled::new();
    for &(name, owned, borrowed) in PAIRS {
        for seed in 0..400 {
            let mut rng = Rng::with_seed(seed);
            let noted = Noted(name, seed);
            let (mut tree, _) = spelled.random(name, &mut rng);
            match rng.u8(..4) {
                0 => oracle::add_unknown_fields(&mut tree, &mut rng),
                1 => oracle::shuffle_fields(&mut tree, &mut rng),
                _ => {}
            }
            let mut bytes = oracle::write(&tree);
            assert!(owned(&bytes).is_ok());
            // Sound first, then broken: what one refuses the other refuses.
            for _ in 0..20 {
                assert_eq!(borrowed(&bytes), owned(&bytes));
                let at = rng.usize(..bytes.len());
                bytes[at] ^= 1 << rng.u8(..8);
            }
            std::mem::forget(noted);
        }
    }
}

fn without_unknown(mut text: &str) -> String {
    let mut out = String::new();
    while let Some((before, rest)) = text.split_once(", unknown: [") {
        out.push_str(before);
        let mut depth = 1;
        let end = rest.bytes().position(|byte| {
            depth += i32::from(byte == b'[') - i32::from(byte == b']');
            depth == 0
        });
        text = &rest[end.unwrap() + 1..];
    }
    out + text
}

#[test]
fn enums_are_spelled_as_in_the_specification() {
    fn check<T>(spelled: &Spelled, ty: &str, all: &[T])
    where
        T: Copy + From<i32> + Into<i32> + std::fmt::Display + std::fmt::Debug + PartialEq,
    {
        let ours: Vec<_> = all.iter().map(|v| (v.to_string(), (*v).into())).collect();
        let theirs = spelled.enums[ty].iter().map(|&(name, number)| (name.to_owned(), number));
        assert_eq!(ours, theirs.collect::<Vec<_>>());
        for number in -2..30 {
            let known = all.iter().find(|v| (**v).into() == number);
            assert_eq!(Into::<i32>::into(T::from(number)), number);
            assert_eq!(known.is_none(), T::from(number).to_string().contains("unknown"));
        }
    }
    let spelled = Spelled::new();
    check(&spelled, "Type", Type::ALL);
    check(&spelled, "FieldRepetitionType", FieldRepetitionType::ALL);
    check(&spelled, "ConvertedType", ConvertedType::ALL);
    check(&spelled, "Encoding", Encoding::ALL);
    check(&spelled, "CompressionCodec", CompressionCodec::ALL);
    check(&spelled, "PageType", PageType::ALL);
    check(&spelled, "BoundaryOrder", BoundaryOrder::ALL);
    check(&spelled, "EdgeInterpolationAlgorithm", EdgeInterpolationAlgorithm::ALL);
}

#[test]
fn every_prefix_is_malformed() {
    for_random_values(3, |_, _, read, tree, _, _| {
        let bytes = oracle::write(&tree);
        let step = bytes.len() / 500 + 1;
        for end in (0..bytes.len()).step_by(step) {
            let error = read(&bytes[..end]).err().unwrap();
            assert!(matches!(error.kind(), ErrorKind::Malformed(Spec::Metadata(_))), "{error}");
        }
    });
}

#[test]
fn mutated_bytes_are_read_or_malformed() {
    for_random_values(40, |_, _, read, tree, _, rng| {
        let whole = oracle::write(&tree);
        for _ in 0..8 {
            let mut bytes = whole.clone();
            for _ in 0..rng.usize(1..6) {
                mutate(&mut bytes, rng);
            }
            match read(&bytes) {
                // What was read can be written and read again, to the same.
                Ok(first) => {
                    let second = read(&first.written).unwrap();
                    assert_eq!(second.written, first.written);
                }
                Err(error) => assert!(is_expected(&error), "{error}"),
            }
        }
    });
}

#[test]
fn constructors_state_what_their_names_say() {
    let decimal = DecimalType::new(9, 2);
    assert_eq!((decimal.precision, decimal.scale), (9, 2));
    let times = [TimeType::utc(TimeUnit::Micros), TimeType::local(TimeUnit::Micros)];
    assert_eq!(times.clone().map(|time| time.is_adjusted_to_utc), [true, false]);
    let stamps = [TimestampType::utc(TimeUnit::Nanos), TimestampType::local(TimeUnit::Nanos)];
    assert_eq!(stamps.clone().map(|stamp| stamp.is_adjusted_to_utc), [true, false]);
    let ints = [IntType::signed(8), IntType::unsigned(16)];
    assert_eq!(ints.map(|int| (int.bit_width, int.is_signed)), [(8, true), (16, false)]);
    assert_eq!(GeometryType::new("EPSG:28992").crs.as_deref(), Some("EPSG:28992"));
    let vincenty = EdgeInterpolationAlgorithm::Vincenty;
    let geography = GeographyType::new("OGC:CRS84").with_algorithm(vincenty);
    assert_eq!(geography.crs.as_deref(), Some("OGC:CRS84"));
    assert_eq!(geography.algorithm, Some(vincenty));
    let sorting = SortingColumn::new(3).with_descending(true).with_nulls_first(true);
    assert_eq!((sorting.column_idx, sorting.descending, sorting.nulls_first), (3, true, true));
    let page = PageLocation::new(4, 100, 7);
    assert_eq!((page.offset, page.compressed_page_size, page.first_row_index), (4, 100, 7));
    // And each is read as it is written.
    let types = [
        LogicalType::Decimal(decimal),
        LogicalType::Time(times[1].clone()),
        LogicalType::Timestamp(stamps[0].clone()),
        LogicalType::Integer(ints[1]),
        LogicalType::Geography(geography),
    ];
    for of in types {
        assert_eq!(LogicalType::from_thrift(&of.to_thrift()).unwrap().0, of);
    }
}
