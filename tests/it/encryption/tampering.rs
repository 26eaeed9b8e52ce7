//! Tests encrypted files that were changed: nothing that the key protects is trusted.

use std::ops::Range;

use arrow_array::RecordBatch;
use bytes::Bytes;
use marquetry::crypt::{Algorithm, Decryption, Encryption};
use marquetry::read::PageIndexUse;
use marquetry::{Compression, Error, ErrorKind, Reader, Result, WriteOptions, col};

use super::{FOOTER_KEY, batch, key, keys, open, write};
use crate::support::{read_with, rows};

/// Two row groups, some pages each, everything encrypted, and nothing compressed: pages are alike.
fn small(algorithm: Algorithm, plaintext_footer: bool, from: i64) -> Bytes {
    let encryption = Encryption::new(key(FOOTER_KEY))
        .with_algorithm(algorithm)
        .with_plaintext_footer(plaintext_footer);
    let options = WriteOptions::new()
        .with_encryption(encryption)
        .with_compression(Compression::Uncompressed)
        .with_page_rows(6)
        .with_row_group_rows(12)
        .with_checksums(false)
        .with_column("id", |of| of.with_bloom(Default::default()))
        .with_column("secret", |of| of.with_dictionary(true));
    write(options, &[rows_of(from)]).unwrap()
}

fn rows_of(from: i64) -> RecordBatch {
    batch(from, 48).project(&[0, 1, 4]).unwrap()
}

/// All contents of a file: its rows, its page indexes, and the results of its bloom filters.
fn everything(file: &Bytes) -> Result<String> {
    let reader = open(file, &keys())?;
    let mut text = format!("{:?}", rows(&read_with(reader.clone())?));
    for group in 0..reader.metadata().row_groups() {
        for leaf in 0..reader.metadata().schema().leaves_len() {
            let chunk = reader.metadata().column_chunk(group, leaf)?;
            let index = reader.page_index(group, leaf)?;
            text += &format!("{:?} {index:?}", chunk.meta_data.map(|meta| meta.statistics));
        }
    }
    let mut options = reader.read_options().clone();
    options.page_index = PageIndexUse::Always;
    let reader = reader.options(options);
    for id in [3, 17, 27, 40, 5_000] {
        let found = read_with(reader.clone().filter(col("id").eq(id)))?;
        text += &format!("{:?}", rows(&found));
    }
    Ok(text)
}

/// Where the modules of a file are, and what they are.
fn modules(file: &Bytes) -> Vec<(String, Range<usize>)> {
    let reader = open(file, &keys()).unwrap();
    let mut found = Vec::new();
    let at = |n: i64| usize::try_from(n).unwrap();
    let module = |start: usize| {
        let len = u32::from_le_bytes(*file[start..].first_chunk::<4>().unwrap()) as usize;
        start..start + 4 + len
    };
    for group in 0..reader.metadata().row_groups() {
        for leaf in 0..reader.metadata().schema().leaves_len() {
            let name = |what: &str| format!("row group {group}, column {leaf}: {what}");
            let chunk = reader.metadata().column_chunk(group, leaf).unwrap();
            let meta = chunk.meta_data.unwrap();
            let index = reader.page_index(group, leaf).unwrap().offset_index.unwrap();
            let mut page = |what: &str, start: usize| {
                let header = module(start);
                found.push((name(&format!("{what} header")), header.clone()));
                found.push((name(&format!("{what} body")), module(header.end)));
            };
            if let Some(start) = meta.dictionary_page_offset {
                page("dictionary", at(start));
            }
            for (i, location) in index.page_locations.iter().enumerate() {
                page(&format!("page {i}"), at(location.offset));
            }
            let indexes = [
                ("column index", chunk.column_index_offset),
                ("offset index", chunk.offset_index_offset),
                ("bloom header", meta.bloom_filter_offset),
            ];
            for (what, start) in indexes {
                let Some(start) = start else { continue };
                let range = module(at(start));
                if what == "bloom header" {
                    found.push((name("bloom bits"), module(range.end)));
                }
                found.push((name(what), range));
            }
        }
    }
    found
}

/// The footer and the tail.
fn footer(file: &Bytes) -> Range<usize> {
    let end = file.len() - 8;
    let len = u32::from_le_bytes(*file[end..].first_chunk::<4>().unwrap()) as usize;
    end - len..file.len()
}

fn with(file: &Bytes, range: Range<usize>, bytes: &[u8]) -> Bytes {
    let mut changed = file.to_vec();
    changed.splice(range, bytes.iter().copied());
    changed.into()
}

/// Whether the error is one that a changed file may give.
fn is_clean(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Arrow | ErrorKind::Usage | ErrorKind::Io)
}

#[test]
fn no_flipped_bit_of_a_gcm_file_changes_what_is_read() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for plaintext_footer in [false, true] {
        let file = small(Algorithm::AesGcmV1, plaintext_footer, 0);
        let expected = everything(&file).unwrap();
        let mut same = Vec::new();
        for i in 0..file.len() {
            let changed = with(&file, i..i + 1, &[file[i] ^ (1 << random.u8(..8))]);
            match everything(&changed) {
                Err(e) => {
                    assert!(is_clean(&e), "byte {i}, seed {seed}: {e}");
                }
                Ok(found) => {
                    assert_eq!(found, expected, "byte {i}, seed {seed}");
                    same.push(i);
                }
            }
        }
        // The metadata before an encrypted footer are not protected; without their key metadata
        // nothing can be decrypted, but a field can become an unknown one.
        let start = footer(&file).start;
        let head = start..start + if plaintext_footer { 0 } else { 24 };
        let mut allowed = Vec::from([head]);
        // A bloom filter that is no module is as if it were not there.
        for (_, range) in modules(&file).into_iter().filter(|(name, _)| name.contains("bloom")) {
            allowed.push(range.start..range.start + 4);
        }
        let is_allowed = |i: &usize| allowed.iter().any(|range| range.contains(i));
        assert!(same.iter().all(is_allowed), "{plaintext_footer}: bytes {same:?}");
    }
}

#[test]
fn flipped_bits_of_a_ctr_file_change_nothing_but_the_bodies_of_pages() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let file = small(Algorithm::AesGcmCtrV1, false, 0);
    let expected = everything(&file).unwrap();
    let mut bodies = vec![false; file.len()];
    for (_, range) in modules(&file).into_iter().filter(|(name, _)| name.ends_with("body")) {
        // Without the length, which the header of the page states too.
        bodies[range.start + 4..range.end].fill(true);
    }
    for i in 0..file.len() {
        let changed = with(&file, i..i + 1, &[file[i] ^ (1 << random.u8(..8))]);
        match everything(&changed) {
            Err(e) => assert!(is_clean(&e) || bodies[i], "byte {i}, seed {seed}: {e}"),
            Ok(found) => assert!(bodies[i] || found == expected, "byte {i}, seed {seed}"),
        }
    }
}

#[test]
fn no_module_stands_for_another() {
    for plaintext_footer in [false, true] {
        let file = small(Algorithm::AesGcmV1, plaintext_footer, 0);
        let modules = modules(&file);
        assert!(modules.len() >= 40, "{}", modules.len());
        let mut swaps = 0;
        for (a, to) in &modules {
            for (b, from) in modules.iter().filter(|(_, from)| from.len() == to.len()) {
                if a != b {
                    let changed = with(&file, to.clone(), &file[from.clone()]);
                    let found = everything(&changed);
                    assert!(found.is_err(), "{b} was taken for {a}");
                    swaps += 1;
                }
            }
        }
        assert!(swaps > 100, "{swaps}");
    }
}

#[test]
fn no_module_of_another_file_with_the_same_key_is_taken() {
    for plaintext_footer in [false, true] {
        let (file, other) = (
            small(Algorithm::AesGcmV1, plaintext_footer, 0),
            small(Algorithm::AesGcmV1, plaintext_footer, 1_000),
        );
        let theirs = modules(&other);
        let mut swaps = 0;
        for ((name, to), (same, from)) in modules(&file).iter().zip(&theirs) {
            assert_eq!(name, same);
            if to.len() == from.len() {
                let changed = with(&file, to.clone(), &other[from.clone()]);
                assert!(everything(&changed).is_err(), "{name}");
                swaps += 1;
            }
        }
        assert!(swaps > 20, "{swaps}");
        // The whole footer.
        let changed = with(&file, footer(&file), &other[footer(&other)]);
        assert!(everything(&changed).is_err());
    }
}

#[test]
fn a_module_that_lies_about_its_length_or_is_cut_is_refused() {
    for algorithm in [Algorithm::AesGcmV1, Algorithm::AesGcmCtrV1] {
        let file = small(algorithm, false, 0);
        let expected = everything(&file).unwrap();
        for (name, range) in modules(&file) {
            let len = (range.len() - 4) as u32;
            for lie in [0, 1, 11, 12, 27, 28, len - 1, len + 1, len - 16, u32::MAX] {
                if lie == len {
                    continue;
                }
                let changed = with(&file, range.start..range.start + 4, &lie.to_le_bytes());
                match everything(&changed) {
                    // A bloom filter that is no module is as if it were not there.
                    Ok(found) => {
                        assert!(name.contains("bloom") && found == expected, "{name} {lie}")
                    }
                    Err(e) => assert!(is_clean(&e), "{name} {lie}: {e}"),
                }
            }
        }
        // The file ends within.
        for (_, range) in modules(&file) {
            for end in [range.start, range.start + 2, range.end - 1] {
                assert!(everything(&file.slice(..end)).is_err());
            }
        }
    }
}

#[test]
fn a_protected_file_that_is_replaced_by_one_in_plain_text_is_refused() {
    let plain = write(WriteOptions::new(), &[rows_of(0)]).unwrap();
    assert_eq!(everything(&plain).unwrap_err().kind(), ErrorKind::Crypto);
    // A signed one that another has signed.
    let encryption = Encryption::new(key(b"another key, 16B")).with_plaintext_footer(true);
    let options = WriteOptions::new().with_encryption(encryption);
    let other = write(options, &[rows_of(0)]).unwrap();
    assert_eq!(everything(&other).unwrap_err().kind(), ErrorKind::Crypto);
    assert!(Reader::new(other).is_ok(), "its footer can be read without a key");
}

/// A file of a number that compresses, in pages of Snappy.
fn compressed(of: Encryption) -> Bytes {
    let options = WriteOptions::new().with_encryption(of).with_compression(Compression::Snappy);
    write(options, &[rows_of(0)]).unwrap()
}

#[test]
fn a_gcm_file_is_not_taken_for_a_ctr_file_which_would_not_be_authenticated() {
    let file = compressed(Encryption::new(key(FOOTER_KEY)));
    // FileCryptoMetaData: field 1, the union; its member 1 is AES_GCM_V1, 2 is AES_GCM_CTR_V1.
    let start = footer(&file).start;
    assert_eq!(file[start..start + 2], [0x1c, 0x1c]);
    let changed = with(&file, start + 1..start + 2, &[0x2c]);
    let strict = keys().with_unauthenticated_pages(false);
    let refused = open(&changed, &strict).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    assert!(refused.to_string().contains("AES_GCM_CTR_V1"), "{refused}");
    assert!(open(&file, &strict).is_ok());
    // A signed footer protects the algorithm.
    let encryption = Encryption::new(key(FOOTER_KEY)).with_plaintext_footer(true);
    let ctr = compressed(encryption.with_algorithm(Algorithm::AesGcmCtrV1));
    let reader = open(&ctr, &strict).unwrap();
    assert!(reader.metadata().has_unauthenticated_pages());
    // So long as it is verified.
    let column_key = || key(super::COLUMN_KEY);
    let encryption = Encryption::new(key(FOOTER_KEY)).with_plaintext_footer(true);
    let encryption = encryption.with_column_key("secret", column_key());
    let ctr = compressed(encryption.with_algorithm(Algorithm::AesGcmCtrV1));
    let unverified = Decryption::new().with_column_key("secret", column_key());
    let unverified = unverified.with_unverified_footers(true);
    let secret = |keys: &Decryption| read_with(open(&ctr, keys)?.project(["secret"])?);
    let refused = secret(&unverified).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    assert!(refused.to_string().contains("AES_GCM_CTR_V1"), "{refused}");
    assert!(secret(&unverified.with_unauthenticated_pages(true)).is_ok());
}

#[test]
fn an_aad_prefix_is_not_passed_off_as_another_that_it_begins_with() {
    let of = |prefix: &str| compressed(Encryption::new(key(FOOTER_KEY)).with_aad_prefix(prefix));
    let long = of("table/part-12");
    assert!(open(&long, &keys().with_aad_prefix("table/part-12")).is_ok());
    // The last byte of the prefix is moved to the front of aad_file_unique: 9 bytes, and not 8.
    let start = footer(&long).start;
    let at = start + long[start..].windows(2).position(|two| two == [0x28, 8]).unwrap();
    let mut changed = long.to_vec();
    changed[at + 1] = 9;
    changed.insert(at + 2, b'2');
    let end = changed.len() - 8;
    let len = u32::from_le_bytes(*changed[end..].first_chunk::<4>().unwrap()) + 1;
    changed[end..end + 4].copy_from_slice(&len.to_le_bytes());
    let refused = open(&changed.into(), &keys().with_aad_prefix("table/part-1")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    assert!(refused.to_string().contains("aad_file_unique has 9 bytes"), "{refused}");
}

#[test]
fn a_column_in_plain_text_is_not_taken_for_one_whose_key_is_given() {
    // All that the reader has is the key of the column.
    let column_key = Decryption::new().with_column_key("secret", key(super::COLUMN_KEY));
    let other = Encryption::new(key(b"another key, 16B"))
        .with_plaintext_footer(true)
        .with_column_key("id", key(b"another key, 16B"));
    let file = write(WriteOptions::new().with_encryption(other), &[rows_of(0)]).unwrap();
    // The signature cannot be verified: that must be allowed.
    assert_eq!(open(&file, &column_key).unwrap_err().kind(), ErrorKind::Crypto);
    let allowed = column_key.with_unverified_footers(true);
    let reader = open(&file, &allowed).unwrap().project(["secret"]).unwrap();
    let refused = read_with(reader).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    assert!(refused.to_string().contains("it is not encrypted"), "{refused}");
    let allowed = allowed.with_plaintext_files(true);
    let reader = open(&file, &allowed).unwrap().project(["secret"]).unwrap();
    assert!(read_with(reader).is_ok());
}

#[test]
fn changed_pages_are_crypto_errors_whatever_their_checksums_say() {
    let file = compressed(Encryption::new(key(FOOTER_KEY)));
    for (name, range) in modules(&file).into_iter().filter(|(name, _)| !name.contains("bloom")) {
        let last = range.end - 1;
        let changed = with(&file, last..last + 1, &[file[last] ^ 0x80]);
        assert_eq!(everything(&changed).unwrap_err().kind(), ErrorKind::Crypto, "{name}");
    }
}

#[test]
fn a_sort_order_that_was_found_in_protected_values_is_not_in_plain_text() {
    for (name, encryption) in super::modes() {
        let file = write(super::options(Some(encryption)), &[batch(0, 300)]).unwrap();
        let reader = open(&file, &keys()).unwrap();
        let sorted = &reader.metadata().index().head().row_groups[0].sorting_columns;
        // "id" ascends; if it is protected and the footer is not, nothing states that.
        let is_hidden = name.contains("signed") && !name.ends_with("columns");
        let says_id = sorted.iter().flatten().any(|column| column.column_idx == 0);
        assert_eq!(says_id, !is_hidden, "{name}");
    }
}

#[test]
fn mutants_of_encrypted_files_end_in_errors_or_in_the_same_rows() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for algorithm in [Algorithm::AesGcmV1, Algorithm::AesGcmCtrV1] {
        for plaintext_footer in [false, true] {
            let file = small(algorithm, plaintext_footer, 0);
            let expected = everything(&file).unwrap();
            for _ in 0..1_000 {
                let mut changed = file.to_vec();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..changed.len());
                    let n = random.usize(..16).min(changed.len() - at);
                    match random.u8(..4) {
                        0 => changed[at..at + n].iter_mut().for_each(|b| *b = random.u8(..)),
                        1 => drop(changed.drain(at..at + n)),
                        2 => {
                            let more: Vec<u8> = changed[at..at + n].to_vec();
                            changed.splice(at..at, more);
                        }
                        _ => changed[at..at + n].fill(0xff),
                    }
                }
                if changed.is_empty() {
                    continue;
                }
                // Without keys there are no panics either.
                let _ = Reader::new(Bytes::from(changed.clone())).and_then(read_with);
                let _ = open(&changed.clone().into(), &Decryption::new()).and_then(read_with);
                if let Ok(found) = everything(&changed.into()) {
                    let is_gcm = algorithm == Algorithm::AesGcmV1;
                    assert!(!is_gcm || found == expected, "seed {seed}");
                }
            }
        }
    }
}
