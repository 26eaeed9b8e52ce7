//! Shared by the tests of spans: reads the whole tree of a file, and checks that it is a tree.

use std::path::{Path, PathBuf};

use marquetry::Limits;
use marquetry::crypt::Decryption;
use marquetry::inspect::{Inspector, Span, SpanKind, Spans};

/// A span, with all that is inside it.
#[derive(Debug)]
pub struct Tree {
    pub span: Span,
    pub children: Vec<Self>,
    pub decompressed: Vec<Self>,
    pub decrypted: Vec<Self>,
}

impl Tree {
    /// All spans, those inside others after them.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        for inside in [&self.children, &self.decompressed, &self.decrypted] {
            inside.iter().for_each(|tree| tree.walk(visit));
        }
    }

    /// The spans of a kind, wherever they are.
    pub fn all(&self, kind: SpanKind) -> Vec<&Self> {
        let mut found = Vec::new();
        self.walk(&mut |tree| found.extend((tree.span.kind == kind).then_some(tree)));
        found
    }
}

/// Spans that lie end to end from `start`; their leaves give `bytes`.
pub fn read(spans: Spans, start: u64, bytes: &mut Vec<u8>) -> Vec<Tree> {
    let mut at = start;
    let mut trees = Vec::new();
    for span in spans {
        let span = span.expect("the file can be read");
        assert_eq!(span.offset, at, "{span:?}");
        at = span.end();
        let before = bytes.len();
        let children = match span.children() {
            Some(children) => read(children, span.offset, bytes),
            None => {
                span.bytes().for_each(|piece| bytes.extend_from_slice(&piece.unwrap()));
                Vec::new()
            }
        };
        assert_eq!((bytes.len() - before) as u64, span.length, "{span:?}");
        let inside = |spans: Option<Spans>| {
            spans.map_or_else(Vec::new, |spans| read(spans, 0, &mut Vec::new()))
        };
        let (decompressed, decrypted) = (inside(span.decompressed()), inside(span.decrypted()));
        // They are made without a panic; what they are, others look at.
        if let Some(slots) = span.slots() {
            assert!(slots.take(1000).all(|slot| slot.is_ok()));
        }
        trees.push(Tree { span, children, decompressed, decrypted });
    }
    trees
}

/// The tree of a file, whose leaves must be its bytes.
pub fn tree(bytes: &[u8], keys: Option<&Decryption>) -> Vec<Tree> {
    let source = bytes::Bytes::copy_from_slice(bytes);
    let inspector = Inspector::with_keys(source, Limits::default(), keys).unwrap();
    let mut found = Vec::new();
    let trees = read(inspector.spans(), 0, &mut found);
    assert!(found == bytes, "the leaves are not the file");
    trees
}

/// The spans that could not be explained, with the reason.
pub fn unparsed(trees: &[Tree]) -> Vec<String> {
    let mut out = Vec::new();
    for tree in trees {
        for found in tree.all(SpanKind::Unparsed) {
            out.push(format!("{:?}", found.span));
        }
    }
    out
}

/// The Parquet files of a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}
