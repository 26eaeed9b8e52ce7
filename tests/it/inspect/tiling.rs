//! The leaves of a file are its bytes, and so are those of what is compressed or encrypted.

use std::path::Path;

use marquetry::inspect::SpanKind;

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
