//! The leaves of a file are its bytes, and so are those of what is compressed or encrypted.

use std::collections::BTreeSet;
use std::path::Path;

use marquetry::Reader;
use marquetry::inspect::{Inspector, SpanKind};

use super::spans::{Tree, files, tree, unparsed};

#[test]
fn leaves_of_files_of_all_writers_are_their_bytes_and_all_is_explained() {
    for path in files(Path::new("testdata")) {
        let trees = tree(&std::fs::read(&path).unwrap(), None);
        assert!(unparsed(&trees).is_empty(), "{path:?}: {:#?}", unparsed(&trees));
        let gaps: Vec<_> = trees.iter().flat_map(|tree| tree.all(SpanKind::Gap)).collect();
        assert!(gaps.is_empty(), "{path:?}: {gaps:?}");
    }
}

#[cfg(feature = "encryption")]
#[test]
fn encrypted_files_are_explained_with_their_keys_and_without() {
    for (name, keys) in crate::encryption::keys::files_of_pyarrow() {
        let bytes = std::fs::read(format!("testdata/encrypted/{name}")).unwrap();
        let trees = tree(&bytes, Some(&keys));
        assert!(unparsed(&trees).is_empty(), "{name}: {:#?}", unparsed(&trees));
        let values: Vec<_> = trees.iter().flat_map(|tree| tree.all(SpanKind::Values)).collect();
        assert!(!values.is_empty(), "{name}");
        // Without keys, what is encrypted is framed all the same.
        let framed = tree(&bytes, None);
        assert!(unparsed(&framed).is_empty(), "{name}: {:#?}", unparsed(&framed));
        let nonces = |trees: &[Tree]| -> Vec<u64> {
            let all = trees.iter().flat_map(|tree| tree.all(SpanKind::Nonce));
            all.map(|tree| tree.span.offset).collect()
        };
        let expected = nonces(&trees);
        assert!(!expected.is_empty() && nonces(&framed) == expected, "{name}");
    }
}

#[cfg(feature = "encryption")]
#[test]
fn modules_are_found_up_to_what_is_none() {
    for mode in ["gcm", "ctr"] {
        let name = format!("testdata/encrypted/{mode}_128_encrypted_uniform.parquet");
        let mut bytes = std::fs::read(&name).unwrap();
        let trees = tree(&bytes, None);
        let modules: Vec<_> = trees.iter().flat_map(|tree| tree.all(SpanKind::Module)).collect();
        // All but the footer lie between the magic number and the footer.
        let (footer, modules) = modules.split_last().unwrap();
        assert!(modules.len() > 4 && footer.span.name == "footer", "{name}");
        let third = modules[2].span.offset;
        bytes[third as usize..][..4].fill(0xFF);
        let broken = tree(&bytes, None);
        let kinds: Vec<_> = broken.iter().map(|tree| tree.span.kind).collect();
        use SpanKind::{Footer, FooterLength, Magic, Module, Unparsed};
        let expected = [Magic, Module, Module, Unparsed, Footer, FooterLength, Magic];
        assert_eq!(kinds, expected, "{name}");
        let text = broken[3].span.text.as_deref().unwrap();
        assert!(text.contains("4294967295 of the"), "{text}");
        assert_eq!(broken[3].span.offset, third);
    }
}

#[test]
fn fields_have_the_names_of_the_specification() {
    let mut names = BTreeSet::new();
    for path in files(Path::new("testdata")) {
        for tree in tree(&std::fs::read(&path).unwrap(), None) {
            tree.walk(&mut |tree| {
                names.extend(tree.span.field.map(|_| tree.span.name.to_string()));
            });
        }
    }
    for name in ["logicalType", "bitWidth", "isSigned", "isAdjustedToUTC", "num_values", "type"] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    let is_other = |name: &&String| {
        ["logical_type", "bit_width", "is_signed", "is_adjusted_to_utc", "num_bytes"]
            .contains(&name.as_str())
    };
    assert_eq!(names.iter().find(is_other), None);
}

#[test]
fn headers_of_pages_are_those_that_a_walk_over_the_pages_finds() {
    for path in files(Path::new("testdata")) {
        let reader = Reader::open(&path).unwrap();
        let inspector = Inspector::new(std::fs::File::open(&path).unwrap()).unwrap();
        for row_group in 0..reader.metadata().row_groups() {
            for leaf in 0..reader.metadata().schema().leaves_len() {
                let chunk = inspector.column_chunk(row_group, leaf).unwrap();
                assert!(chunk.page_header().is_none());
                let spans: Vec<_> = chunk.children().unwrap().map(|span| span.unwrap()).collect();
                let found = spans.iter().filter_map(|span| span.page_header().map(|of| (span, of)));
                let found = found.map(|(span, of)| (span.offset, of.length, of.header.clone()));
                let pages = reader.stored_pages(row_group, leaf).unwrap();
                let pages = pages.map(|page| {
                    let page = page.unwrap();
                    (page.offset, page.header_len as u64, page.header)
                });
                assert!(found.eq(pages), "{path:?} {row_group} {leaf}");
            }
        }
    }
}
