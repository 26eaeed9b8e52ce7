//! The leaves of a file are its bytes, and so are those of what is compressed or encrypted.

use std::path::Path;

use marquetry::Reader;
use marquetry::inspect::{Inspector, SpanKind};

use super::spans::{files, tree, unparsed};

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
        // Without keys, what is encrypted is framed.
        let trees = tree(&bytes, None);
        let nonces: Vec<_> = trees.iter().flat_map(|tree| tree.all(SpanKind::Nonce)).collect();
        assert!(!nonces.is_empty(), "{name}");
    }
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
