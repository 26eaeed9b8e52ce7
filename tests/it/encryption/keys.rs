//! Tests where keys come from, and what can be read without them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use marquetry::crypt::kms::{KeyMaterials, KeyRing, Kms, KmsEncryption, KmsKeys};
use marquetry::crypt::{Decryption, Encryption, Key, KeyRequest, KeyRetriever, Signature};
use marquetry::{Error, ErrorKind, Limits, Reader, Result};

use super::{COLUMN_KEY, FOOTER_KEY, batch, key, keys, modes, open, options, write};
use crate::support::{read_with, rows, testdata};

/// The key management service of `testdata/generate_encrypted.py`: the master key precedes the key.
struct Prefixes;

impl Kms for Prefixes {
    fn wrap(&self, _: &Key, _: &str) -> Result<String> {
        Err(Error::usage("nothing is written"))
    }

    fn unwrap(&self, wrapped: &str, master_key: &str) -> Result<Key> {
        let prefix = match master_key {
            "kf" => "MASTERKEY-FOOTER",
            "ka" => "MASTERKEY-COLUMN",
            "kb" => "MASTERKEY-OTHERS",
            other => return Err(Error::crypto(format_args!("no master key {other}"))),
        };
        let bytes = base64::engine::general_purpose::STANDARD.decode(wrapped).unwrap();
        Key::new(bytes.strip_prefix(prefix.as_bytes()).expect("the master key"))
    }
}

/// The files of pyarrow, with the keys to each.
pub fn files_of_pyarrow() -> Vec<(String, Decryption)> {
    let table = std::fs::read_to_string(testdata("encrypted/keys.tsv")).unwrap();
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let is_ctr = fields[0].starts_with("ctr");
        let mut keys = Decryption::new().with_unauthenticated_pages(is_ctr);
        if fields[1] == "kms" {
            let beside = KeyMaterials::path_for(testdata(&format!("encrypted/{}", fields[0])));
            let mut retriever = KmsKeys::new(Prefixes);
            if let Ok(json) = std::fs::read(beside) {
                retriever = retriever.with_materials(KeyMaterials::from_json(&json).unwrap());
            }
            keys = keys.with_retriever(retriever);
        } else {
            keys = keys.with_footer_key(Key::from_hex(fields[1]).unwrap());
        }
        if !fields[3].is_empty() {
            keys = keys.with_aad_prefix(fields[3]);
        }
        (fields[0].to_owned(), keys)
    };
    table.lines().skip(1).map(of_line).collect()
}

#[test]
fn files_of_pyarrow_in_all_24_modes_and_with_key_material_read_as_the_plain_one() {
    let plain = Reader::open(testdata("encrypted/plain.parquet")).unwrap();
    let expected = rows(&read_with(plain.clone()).unwrap());
    let files = files_of_pyarrow();
    assert_eq!(files.len(), 24 + 4);
    for (name, keys) in files {
        let path = testdata(&format!("encrypted/{name}"));
        let reader = Reader::open_encrypted(&path, &keys).unwrap();
        let signature = reader.metadata().signature();
        let is_signed = name.contains("signed");
        assert_eq!(signature == Signature::Verified, is_signed, "{name}");
        assert_eq!(reader.metadata().is_encrypted(), !is_signed, "{name}");
        assert_eq!(rows(&read_with(reader.clone()).unwrap()), expected, "{name}");
        // By page indexes.
        let some = [59, 0, 31];
        assert_eq!(
            rows(&[reader.take(&some).unwrap()]),
            rows(&[plain.take(&some).unwrap()]),
            "{name}"
        );
        let filter = marquetry::col("id").gt(40);
        assert_eq!(
            rows(&read_with(reader.filter(filter.clone())).unwrap()),
            rows(&read_with(plain.clone().filter(filter)).unwrap()),
            "{name}"
        );
        // Without keys.
        let without = Reader::open(&path);
        match is_signed {
            true => assert_eq!(without.unwrap().metadata().signature(), Signature::Unverified),
            false => assert_eq!(without.unwrap_err().kind(), ErrorKind::Crypto, "{name}"),
        }
    }
}

fn footer_key_alone() -> Decryption {
    Decryption::new().with_footer_key(key(FOOTER_KEY)).with_unauthenticated_pages(true)
}

#[test]
fn columns_in_plain_text_are_read_without_keys_and_others_are_errors_that_name_them() {
    for (name, encryption) in modes().into_iter().filter(|(name, _)| name.ends_with("columns")) {
        let file = write(options(Some(encryption)), &[batch(0, 200)]).unwrap();
        let readers = match name.contains("signed") {
            true => vec![
                Reader::new(file.clone()).unwrap(),
                open(&file, &Decryption::new().with_unverified_footers(true)).unwrap(),
                open(&file, &footer_key_alone()).unwrap(),
            ],
            false => vec![open(&file, &footer_key_alone()).unwrap()],
        };
        for reader in readers {
            let names = ["id", "amount", "list"];
            let found = read_with(reader.clone().project(names).unwrap()).unwrap();
            let expected = batch(0, 200).project(&[0, 2, 3]).unwrap();
            assert_eq!(rows(&found), rows(&[expected]), "{name}");
            assert_eq!(reader.rows().unwrap(), 200);
            for (column, path) in [("secret", "secret"), ("nested", "nested.text")] {
                let refused = read_with(reader.clone().project([column]).unwrap()).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Crypto, "{name}");
                let text = refused.to_string();
                assert!(text.contains(path) && text.contains("was not given"), "{name}: {text}");
            }
            // A filter reads its column too.
            let filter = marquetry::col("secret").eq("x");
            let refused = read_with(reader.clone().project(["id"]).unwrap().filter(filter));
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Crypto, "{name}");
            let refused = reader.page_index(0, 1).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Crypto, "{name}");
            let chunk = reader.metadata().column_chunk(0, 1).unwrap();
            assert!(chunk.meta_data.is_none_or(|meta| meta.statistics.is_none()));
        }
        // One key of two.
        let one = footer_key_alone().with_column_key("secret", key(COLUMN_KEY));
        let reader = open(&file, &one).unwrap();
        assert!(read_with(reader.clone().project(["secret"]).unwrap()).is_ok(), "{name}");
        assert!(read_with(reader.project(["nested"]).unwrap()).is_err(), "{name}");
    }
}

#[test]
fn wrong_keys_are_refused_whichever_key_is_wrong() {
    let other = key(b"the-wrong-key-16");
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &[batch(0, 100)]).unwrap();
        for wrong in [&other, &key(&[7; 24]), &key(&[7; 32])] {
            let footer = keys().with_footer_key(wrong.clone());
            let refused = open(&file, &footer).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Crypto, "{name}");
            assert!(refused.to_string().contains("not authentic"), "{name}: {refused}");
            if name.ends_with("uniform") {
                continue;
            }
            let column = keys().with_column_key("secret", wrong.clone());
            let refused = open(&file, &column).and_then(read_with).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Crypto, "{name}");
            assert!(refused.to_string().contains("not authentic"), "{name}: {refused}");
        }
    }
}

#[test]
fn the_aad_prefix_must_be_that_of_the_writer() {
    let base = || Encryption::new(key(FOOTER_KEY));
    let batches = [batch(0, 50)];
    for plaintext_footer in [false, true] {
        let file = |of: Encryption| {
            write(options(Some(of.with_plaintext_footer(plaintext_footer))), &batches).unwrap()
        };
        let (none, stored, supplied) = (
            file(base()),
            file(base().with_stored_aad_prefix("table/1")),
            file(base().with_aad_prefix("table/1")),
        );
        let (right, wrong) = (keys().with_aad_prefix("table/1"), keys().with_aad_prefix("table/2"));
        for (file, keys, is_read) in [
            (&none, keys(), true),
            (&none, right.clone(), false),
            (&stored, keys(), true),
            (&stored, right.clone(), true),
            (&stored, wrong.clone(), false),
            (&supplied, keys(), false),
            (&supplied, right, true),
            (&supplied, wrong, false),
        ] {
            let found = open(file, &keys).and_then(read_with);
            match found {
                Ok(found) => assert!(is_read && rows(&found) == rows(&batches)),
                Err(e) => assert!(!is_read && e.kind() == ErrorKind::Crypto, "{e}"),
            }
        }
    }
}

#[test]
fn files_in_plain_text_are_refused_where_keys_are_given_unless_they_are_allowed() {
    let file = write(options(None), &[batch(0, 10)]).unwrap();
    let refused = open(&file, &keys()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    let allowed = open(&file, &keys().with_plaintext_files(true)).unwrap();
    assert_eq!(allowed.metadata().signature(), Signature::None);
    assert_eq!(rows(&read_with(allowed).unwrap()), rows(&[batch(0, 10)]));
}

struct Counting {
    keys: HashMap<Vec<u8>, Key>,
    asked: Arc<AtomicUsize>,
}

impl KeyRetriever for Counting {
    fn retrieve(&self, request: &KeyRequest<'_>) -> Result<Key> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let metadata = request.key_metadata.unwrap_or_default();
        assert_eq!(request.column.is_none(), metadata == b"kf");
        let found = self.keys.get(metadata).cloned();
        found.ok_or_else(|| Error::crypto("the service denies it"))
    }
}

#[test]
fn a_retriever_is_asked_for_what_is_read_and_for_each_key_metadata_once() {
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &[batch(0, 300)]).unwrap();
        let keys = [(b"kf".to_vec(), key(FOOTER_KEY)), (b"kc".to_vec(), key(COLUMN_KEY))];
        let asked = Arc::new(AtomicUsize::new(0));
        let retriever = Counting { keys: keys.into(), asked: asked.clone() };
        // The other column's key has no metadata, and is given.
        let keys = Decryption::new()
            .with_retriever(retriever)
            .with_column_key("nested", key(COLUMN_KEY))
            .with_unauthenticated_pages(true)
            .with_plaintext_files(true);
        let reader = open(&file, &keys).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{name}: the footer");
        read_with(reader.clone().project(["id", "amount"]).unwrap()).unwrap();
        assert_eq!(
            asked.load(Ordering::Relaxed),
            1,
            "{name}: columns in plain text or of the footer key"
        );
        for _ in 0..2 {
            assert_eq!(rows(&read_with(reader.clone()).unwrap()), rows(&[batch(0, 300)]));
        }
        let expected = if name.ends_with("uniform") { 1 } else { 2 };
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{name}");
    }
}

#[test]
fn a_key_that_the_service_denies_is_an_error_of_its_column_with_the_words_of_the_service() {
    let columns = modes().remove(1).1;
    let file = write(options(Some(columns)), &[batch(0, 30)]).unwrap();
    let denying = |footer: &[u8]| {
        let keys = [(footer.to_vec(), key(FOOTER_KEY))].into();
        Decryption::new().with_retriever(Counting { keys, asked: Arc::default() })
    };
    let reader = open(&file, &denying(b"kf")).unwrap();
    assert!(read_with(reader.clone().project(["id"]).unwrap()).is_ok());
    let refused = read_with(reader).unwrap_err().to_string();
    assert!(refused.contains("secret") && refused.contains("the service denies it"), "{refused}");
    let refused = open(&file, &denying(b"other")).unwrap_err().to_string();
    assert!(refused.contains("the footer") && refused.contains("denies"), "{refused}");
    // A signature that could not be verified is an error too, unless the caller allows it.
    let signed = modes().into_iter().find(|(name, _)| name.contains("signed columns")).unwrap().1;
    let file = write(options(Some(signed)), &[batch(0, 30)]).unwrap();
    assert_eq!(open(&file, &denying(b"other")).unwrap_err().kind(), ErrorKind::Crypto);
    let reader = open(&file, &denying(b"other").with_unverified_footers(true)).unwrap();
    assert_eq!(reader.metadata().signature(), Signature::Unverified);
    assert!(read_with(reader.project(["id"]).unwrap()).is_ok());
}

#[cfg(feature = "async")]
#[test]
fn keys_that_come_asynchronously_are_asked_for_side_by_side_when_a_file_is_opened() {
    use futures_util::TryStreamExt;
    use futures_util::future::BoxFuture;
    use marquetry::crypt::AsyncKeyRetriever;

    struct Far(Counting);
    impl AsyncKeyRetriever for Far {
        fn retrieve<'a>(&'a self, request: KeyRequest<'a>) -> BoxFuture<'a, Result<Key>> {
            Box::pin(async move {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                self.0.retrieve(&request)
            })
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &[batch(0, 300)]).unwrap();
        let all = [(b"kf".to_vec(), key(FOOTER_KEY)), (b"kc".to_vec(), key(COLUMN_KEY))];
        let asked = Arc::new(AtomicUsize::new(0));
        let far = Far(Counting { keys: all.into(), asked: asked.clone() });
        let keys = Decryption::new()
            .with_async_retriever(far)
            .with_column_key("nested.text", key(COLUMN_KEY))
            .with_unauthenticated_pages(true)
            .with_plaintext_files(true);
        runtime.block_on(async {
            let source = file.clone();
            let reader =
                Reader::open_async_encrypted(source, Limits::default(), &keys).await.unwrap();
            let expected = if name.ends_with("uniform") { 1 } else { 2 };
            assert_eq!(asked.load(Ordering::Relaxed), expected, "{name}");
            let found: Vec<_> = reader.stream().unwrap().try_collect().await.unwrap();
            assert_eq!(rows(&found), rows(&[batch(0, 300)]), "{name}");
            assert_eq!(asked.load(Ordering::Relaxed), expected, "{name}");
        });
        // A reader that cannot wait has no such keys.
        let refused = open(&file, &keys).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Crypto, "{name}");
    }
}

#[test]
fn keys_that_a_service_wraps_read_what_was_written_with_them() {
    let ring =
        || KeyRing::new().with_key("finance", key(FOOTER_KEY)).with_key("people", key(COLUMN_KEY));
    for is_double in [false, true] {
        for bits in [128, 192, 256] {
            let of = KmsEncryption::new("finance")
                .with_column("secret", "people")
                .with_double_wrapping(is_double)
                .with_data_key_bits(bits);
            let internal = of.internal(&ring()).unwrap();
            let file = write(options(Some(internal)), &[batch(0, 50)]).unwrap();
            let keys = Decryption::new().with_retriever(KmsKeys::new(ring()));
            let found = read_with(open(&file, &keys).unwrap()).unwrap();
            assert_eq!(rows(&found), rows(&[batch(0, 50)]));

            let (external, mut materials) = of.external(&ring()).unwrap();
            let file = write(options(Some(external)), &[batch(0, 50)]).unwrap();
            let read = |materials: &KeyMaterials, ring: KeyRing| {
                let retriever = KmsKeys::new(ring).with_materials(materials.clone());
                open(&file, &Decryption::new().with_retriever(retriever)).and_then(read_with)
            };
            assert_eq!(rows(&read(&materials, ring()).unwrap()), rows(&[batch(0, 50)]));
            // Other master keys; the file is as it was.
            let new = ring().with_key("new", key(&[9; 32]));
            materials.rewrap(&new, |_| Some("new".to_owned())).unwrap();
            let only_new = KeyRing::new().with_key("new", key(&[9; 32]));
            assert_eq!(rows(&read(&materials, only_new).unwrap()), rows(&[batch(0, 50)]));
            assert_eq!(read(&materials, ring()).unwrap_err().kind(), ErrorKind::Crypto);
        }
    }
}

#[test]
fn no_message_and_no_debug_form_shows_a_key() {
    let secret = b"KEYKEYKEYKEYKEY1";
    let hex: String = secret.iter().map(|b| format!("{b:02x}")).collect();
    let shown = |text: String| {
        assert!(!text.contains("KEYKEY") && !text.contains(&hex[..12]), "{text}");
    };
    let encryption = Encryption::new(key(secret)).with_column_key("secret", key(secret));
    shown(format!("{encryption:?} {:?}", options(Some(encryption.clone()))));
    let keys = Decryption::new().with_footer_key(key(secret)).with_column_key("a", key(secret));
    shown(format!("{keys:?} {:?}", KeyRing::new().with_key("a", key(secret))));
    let file = write(options(Some(encryption)), &[batch(0, 10)]).unwrap();
    let reader = open(&file, &keys).unwrap();
    shown(format!("{reader:?}"));
    shown(format!("{:?}", read_with(reader).unwrap_err()));
    let mut changed = file.to_vec();
    let middle = changed.len() - 40;
    changed[middle] ^= 1;
    shown(format!("{:?}", open(&changed.into(), &keys).unwrap_err()));
}

#[test]
fn a_key_at_its_limit_ends_the_writing() {
    let worn = key(FOOTER_KEY).with_invocations(Key::MAX_INVOCATIONS - 10);
    let refused = write(options(Some(Encryption::new(worn))), &[batch(0, 300)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Crypto);
    assert!(refused.to_string().contains("2^32"), "{refused}");
}

#[test]
fn a_key_for_a_column_that_is_not_there_is_refused() {
    let of = Encryption::new(key(FOOTER_KEY)).with_column_key("secrets", key(COLUMN_KEY));
    let refused = write(options(Some(of)), &[batch(0, 1)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    assert!(refused.to_string().contains("\"secrets\""), "{refused}");
}

#[test]
fn metadata_that_are_kept_stay_encrypted_and_are_read_back_with_keys() {
    for (name, encryption) in modes() {
        let file = write(options(Some(encryption)), &[batch(0, 200)]).unwrap();
        let mut reader = open(&file, &keys()).unwrap();
        reader.load_page_indexes().unwrap();
        let kept: bytes::Bytes = reader.metadata().to_bytes().into();
        let has = |text: &[u8]| kept.windows(text.len()).any(|at| at == text);
        assert!(!has(super::SENTINEL.as_bytes()), "{name}");
        let limits = Limits::default();
        let back = marquetry::Metadata::from_bytes_encrypted(&kept, &limits, &keys()).unwrap();
        let reader = Reader::with_metadata(file, back).unwrap();
        let taken = reader.take(&[150]).unwrap();
        assert_eq!(rows(&[taken]), rows(&[batch(150, 1)]), "{name}");
        let without = marquetry::Metadata::from_bytes(&kept, &limits);
        assert_eq!(without.is_ok(), name.contains("signed"), "{name}");
    }
}

#[test]
fn one_service_may_give_each_column_another_key_for_the_same_metadata() {
    let of = Encryption::new(key(FOOTER_KEY))
        .with_footer_key_metadata("v1")
        .with_column_key_and_metadata("secret", key(COLUMN_KEY), "v1")
        .with_column_key_and_metadata("amount", key(&[3; 32]), "v1");
    let file = write(options(Some(of)), &[batch(0, 40)]).unwrap();
    let by_column =
        |request: &KeyRequest<'_>| match request.column.map(|path| path.dotted()).as_deref() {
            None => Ok(key(FOOTER_KEY)),
            Some("secret") => Ok(key(COLUMN_KEY)),
            Some("amount") => Ok(key(&[3; 32])),
            Some(other) => Err(Error::crypto(format_args!("no key for {other}"))),
        };
    let keys = Decryption::new().with_retriever(by_column);
    assert_eq!(rows(&read_with(open(&file, &keys).unwrap()).unwrap()), rows(&[batch(0, 40)]));
}

#[test]
fn a_service_that_cannot_be_reached_is_asked_again() {
    let of = modes().remove(1).1;
    let file = write(options(Some(of)), &[batch(0, 40)]).unwrap();
    let counted = AtomicUsize::new(0);
    let flaky = move |request: &KeyRequest<'_>| match request.column {
        None => Ok(key(FOOTER_KEY)),
        Some(_) if counted.fetch_add(1, Ordering::Relaxed) == 0 => {
            Err(Error::io("the key service", std::io::Error::other("timed out")))
        }
        Some(_) => Ok(key(COLUMN_KEY)),
    };
    let reader = open(&file, &Decryption::new().with_retriever(flaky)).unwrap();
    let refused = read_with(reader.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
    assert_eq!(rows(&read_with(reader).unwrap()), rows(&[batch(0, 40)]));
}

#[test]
fn a_wrapped_key_is_never_weaker_than_the_key_that_wraps_it() {
    let ring = KeyRing::new().with_key("a", key(&[1; 32]));
    for bits in [128, 192, 256] {
        let of = KmsEncryption::new("a").with_data_key_bits(bits);
        let (_, materials) = of.external(&ring).unwrap();
        for (_, material) in materials.iter() {
            let kek = material.kek.as_ref().unwrap();
            assert!(ring.unwrap(&kek.wrapped, "a").unwrap().bits() >= bits);
        }
    }
}
