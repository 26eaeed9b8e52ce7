//! The meaning of the colour of a cell.

use marquetry::format::{CompressionCodec, Encoding};

use super::palette::{CATEGORY_COUNT, STEP_COUNT, Tone};
use super::xml::real;
use crate::args::{ColorBy, Global};
use crate::layout::{Grid, GridCell};
use crate::output::{bytes, count, share};

pub(super) const fn name(by: ColorBy) -> &'static str {
    match by {
        ColorBy::Codec => "codec",
        ColorBy::Encoding => "encoding",
        ColorBy::Ratio => "ratio",
        ColorBy::Size => "size",
        ColorBy::Nulls => "nulls",
        ColorBy::Age => "age",
    }
}

/// The measure, in some words.
pub(super) const fn title(by: ColorBy) -> &'static str {
    match by {
        ColorBy::Codec => "codec of most bytes",
        ColorBy::Encoding => "encoding of most data pages",
        ColorBy::Ratio => "stored bytes of uncompressed ones",
        ColorBy::Size => "stored bits of a value",
        ColorBy::Nulls => "nulls among values",
        ColorBy::Age => "place in the file: the first is the oldest",
    }
}

/// The upper ends of all steps but the last.
const RATIOS: [f64; STEP_COUNT - 1] = [0.1, 0.2, 0.35, 0.5, 0.75, 0.95];
const BITS: [f64; STEP_COUNT - 1] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
const NULLS: [f64; STEP_COUNT - 1] = [0.0, 0.01, 0.1, 0.25, 0.5, 0.9];

/// The meaning of a colour.
pub(super) struct Meaning {
    pub(super) tone: Tone,
    pub(super) label: String,
    /// Where there are no colours.
    pub(super) letter: char,
}

/// The colour of a cell of a file of `file_bytes` bytes.
pub(super) fn tone(cell: &GridCell, by: ColorBy, file_bytes: u64) -> Tone {
    let step = |part: u64, whole: u64, ends: &[f64]| match whole {
        0 => Tone::Unknown,
        whole => {
            let value = real(part) / real(whole);
            Tone::Step(ends.iter().take_while(|end| value > **end).count())
        }
    };
    match by {
        ColorBy::Codec => {
            cell.codecs.first().map_or(Tone::Unknown, |(codec, _)| codec_tone(*codec))
        }
        ColorBy::Encoding => {
            cell.encodings.first().map_or(Tone::Unknown, |(encoding, _)| encoding_tone(*encoding))
        }
        ColorBy::Ratio => step(cell.bytes, cell.uncompressed_bytes, &RATIOS),
        ColorBy::Size => step(cell.bytes.saturating_mul(8), cell.values, &BITS),
        ColorBy::Nulls => step(cell.nulls, cell.values_with_nulls, &NULLS),
        ColorBy::Age => match cell.offset {
            Some(offset) => {
                let place = u128::from(offset) * STEP_COUNT as u128 / u128::from(file_bytes.max(1));
                Tone::Step(usize::try_from(place).unwrap_or(usize::MAX).min(STEP_COUNT - 1))
            }
            None => Tone::Unknown,
        },
    }
}

fn codec_tone(codec: CompressionCodec) -> Tone {
    use CompressionCodec as C;
    Tone::Category(match codec {
        C::Uncompressed => 0,
        C::Zstd => 1,
        C::Snappy => 2,
        C::Gzip => 3,
        C::Lzo => 4,
        C::Lz4 => 5,
        C::Lz4Raw => 6,
        C::Brotli => 7,
        _ => return Tone::Unknown,
    })
}

fn encoding_tone(encoding: Encoding) -> Tone {
    use Encoding as E;
    Tone::Category(match encoding {
        E::Plain => 0,
        E::PlainDictionary | E::RleDictionary => 1,
        E::Rle | E::BitPacked => 2,
        E::DeltaBinaryPacked => 3,
        E::DeltaLengthByteArray => 4,
        E::DeltaByteArray => 5,
        E::ByteStreamSplit => 6,
        E::Alp => 7,
        E::Pfor => 8,
        _ => return Tone::Unknown,
    })
}

/// The colours that occur, and what they mean.
pub(super) fn legend(grid: &Grid, by: ColorBy, file_bytes: u64) -> Vec<Meaning> {
    let tones: Vec<Tone> = grid.cells().iter().map(|cell| tone(cell, by, file_bytes)).collect();
    let mut out = Vec::new();
    for category in 0..CATEGORY_COUNT {
        if tones.contains(&Tone::Category(category)) {
            let (label, letter) = category_name(by, category);
            let label = label.to_owned();
            out.push(Meaning { tone: Tone::Category(category), label, letter });
        }
    }
    for step in 0..STEP_COUNT {
        let tone = Tone::Step(step);
        if tones.contains(&tone) {
            out.push(Meaning { tone, label: step_name(by, step), letter: tone.letter() });
        }
    }
    if tones.contains(&Tone::Unknown) {
        let label = "not known".to_owned();
        out.push(Meaning { tone: Tone::Unknown, label, letter: '?' });
    }
    out
}

fn category_name(by: ColorBy, category: usize) -> (&'static str, char) {
    const CODECS: [(&str, char); 8] = [
        ("UNCOMPRESSED", 'U'),
        ("ZSTD", 'Z'),
        ("SNAPPY", 'S'),
        ("GZIP", 'G'),
        ("LZO", 'O'),
        ("LZ4", 'H'),
        ("LZ4_RAW", 'L'),
        ("BROTLI", 'B'),
    ];
    const ENCODINGS: [(&str, char); 9] = [
        ("PLAIN", 'P'),
        ("dictionary", 'D'),
        ("RLE", 'R'),
        ("DELTA_BINARY_PACKED", 'B'),
        ("DELTA_LENGTH_BYTE_ARRAY", 'L'),
        ("DELTA_BYTE_ARRAY", 'Y'),
        ("BYTE_STREAM_SPLIT", 'S'),
        ("ALP", 'A'),
        ("PFOR", 'F'),
    ];
    let names = if by == ColorBy::Codec { &CODECS[..] } else { &ENCODINGS };
    names.get(category).copied().unwrap_or(("", '?'))
}

fn step_name(by: ColorBy, step: usize) -> String {
    let between = |ends: &[f64; STEP_COUNT - 1], show: &dyn Fn(f64) -> String| match (
        step.checked_sub(1).and_then(|below| ends.get(below)),
        ends.get(step),
    ) {
        (None, Some(end)) if *end == 0.0 => show(0.0),
        (_, Some(end)) => format!("≤ {}", show(*end)),
        (Some(below), None) => format!("> {}", show(*below)),
        (None, None) => String::new(),
    };
    let percent = |n: f64| format!("{} %", (n * 100.0).round());
    match by {
        ColorBy::Ratio => between(&RATIOS, &percent),
        ColorBy::Nulls => between(&NULLS, &percent),
        ColorBy::Size => {
            between(&BITS, &|n: f64| if n == 1.0 { "1 bit".into() } else { format!("{n} bits") })
        }
        _ if step == 0 => "first".to_owned(),
        _ if step == STEP_COUNT - 1 => "last seventh".to_owned(),
        _ => format!("{}.", step + 1),
    }
}

/// All that is known of a cell, in words.
pub(super) fn facts(cell: &GridCell, global: &Global) -> Vec<String> {
    let mut out = vec![bytes(cell.bytes, global)];
    let kinds = |names: Vec<String>| names.join(", ");
    if !cell.codecs.is_empty() {
        out.push(kinds(cell.codecs.iter().take(4).map(|(codec, _)| codec.to_string()).collect()));
    }
    if !cell.encodings.is_empty() {
        let names = cell.encodings.iter().take(4).map(|(encoding, _)| encoding.to_string());
        out.push(kinds(names.collect()));
    }
    if cell.uncompressed_bytes > 0 {
        let raw = bytes(cell.uncompressed_bytes, global);
        out.push(format!("{} of {raw} uncompressed", share(cell.bytes, cell.uncompressed_bytes)));
    }
    if cell.values > 0 {
        out.push(format!("{} values", count(cell.values, global)));
        out.push(format!("{} bits a value", tenths(real(cell.bytes) * 8.0 / real(cell.values))));
    }
    if cell.values_with_nulls > 0 {
        out.push(format!("{} nulls", share(cell.nulls, cell.values_with_nulls)));
    }
    let all = cell.chunks;
    for (n, what) in [
        (cell.dictionary_fallbacks, "dictionary given up"),
        (cell.bloom_filters, "bloom filter"),
        (cell.page_indexes, "page index"),
        (cell.encrypted, "encrypted"),
        (cell.problems, cell.problem.as_deref().unwrap_or_default()),
    ] {
        match n {
            0 => {}
            n if n == all => out.push(what.to_owned()),
            n => out.push(format!("{what} in {n} of {all} chunks")),
        }
    }
    out
}

/// A number with one digit after the point.
pub(super) fn tenths(n: f64) -> String {
    format!("{n:.1}")
}
