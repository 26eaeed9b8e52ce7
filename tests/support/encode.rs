//! Encodes the bodies of pages in the simplest way that the specification allows, to compare the
//! decoders with.

/// Bits of every value up to `max`.
pub fn bit_width(max: u32) -> u32 {
    u32::BITS - max.leading_zeros()
}

/// The RLE and bit-packing hybrid: runs where eight values or more are equal, groups of eight
/// elsewhere.
pub fn rle(values: &[u32], width: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = values;
    while let Some(first) = rest.first() {
        let equal = rest.iter().take_while(|value| *value == first).count();
        let taken = if equal >= 8 {
            uleb(equal as u64 * 2, &mut out);
            out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
            equal
        } else {
            let group: Vec<u64> = rest.iter().take(8).map(|value| u64::from(*value)).collect();
            uleb(1 << 1 | 1, &mut out);
            packed(&group, 8, width, &mut out);
            group.len()
        };
        rest = &rest[taken..];
    }
    out
}

/// DELTA_BINARY_PACKED: blocks of 128 differences in miniblocks of 32.
pub fn delta<T: Copy + Into<i64>>(values: &[T]) -> Vec<u8> {
    let values: Vec<i64> = values.iter().map(|value| (*value).into()).collect();
    let mut out = Vec::new();
    uleb(128, &mut out);
    uleb(4, &mut out);
    uleb(values.len() as u64, &mut out);
    zigzag(values.first().copied().unwrap_or_default(), &mut out);
    let deltas: Vec<i64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    for block in deltas.chunks(128) {
        let least = *block.iter().min().expect("chunks are not empty");
        zigzag(least, &mut out);
        let miniblocks: Vec<Vec<u64>> = block
            .chunks(32)
            .map(|miniblock| {
                miniblock.iter().map(|delta| delta.wrapping_sub(least).cast_unsigned()).collect()
            })
            .collect();
        let widths: Vec<u32> = miniblocks
            .iter()
            .map(|miniblock| miniblock.iter().map(|v| u64::BITS - v.leading_zeros()).max())
            .map(Option::unwrap_or_default)
            .collect();
        out.extend((0..4).map(|i| widths.get(i).map_or(0, |width| *width as u8)));
        for (miniblock, width) in miniblocks.iter().zip(widths) {
            packed(miniblock, 32, width, &mut out);
        }
    }
    out
}

/// DELTA_LENGTH_BYTE_ARRAY: the lengths, then the bytes.
pub fn delta_length<V: AsRef<[u8]>>(values: &[V]) -> Vec<u8> {
    let lengths: Vec<i64> = values.iter().map(|value| value.as_ref().len() as i64).collect();
    let mut out = delta(&lengths);
    values.iter().for_each(|value| out.extend_from_slice(value.as_ref()));
    out
}

/// DELTA_BYTE_ARRAY: how much of the value before is kept, then what follows.
pub fn delta_bytes<V: AsRef<[u8]>>(values: &[V]) -> Vec<u8> {
    let mut before: &[u8] = &[];
    let (mut prefixes, mut suffixes) = (Vec::new(), Vec::new());
    for value in values {
        let value = value.as_ref();
        let same = value.iter().zip(before).take_while(|(a, b)| a == b).count();
        prefixes.push(same as i64);
        suffixes.push(&value[same..]);
        before = value;
    }
    [delta(&prefixes), delta_length(&suffixes)].concat()
}

/// BYTE_STREAM_SPLIT: the first byte of every value, then the second, and so on.
pub fn split(values: &[u8], width: usize) -> Vec<u8> {
    (0..width).flat_map(|k| values.iter().skip(k).step_by(width).copied()).collect()
}

/// Values of `width` bits, from the lowest bit on; zeros up to `n` of them.
fn packed(values: &[u64], n: usize, width: u32, out: &mut Vec<u8>) {
    let mut bytes = vec![0u8; (n * width as usize).div_ceil(8)];
    for (i, value) in values.iter().enumerate() {
        for bit in 0..width as usize {
            let at = i * width as usize + bit;
            bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
        }
    }
    out.extend(bytes);
}

fn uleb(mut value: u64, out: &mut Vec<u8>) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    uleb((value << 1 ^ value >> 63).cast_unsigned(), out);
}
