//! The heap of an export stays within its memory number, however many rows go through. `MARQUETRY_EXPORT_BYTES` raises the amount.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use marquetry::Export;
use marquetry::arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it is; the counters do not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MEMORY: usize = 64 << 20;

const STREAMS: u64 = 4;

/// About 1 MiB.
fn batch(rng: &mut fastrand::Rng, rows: i64) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        (
            "random",
            Arc::new(Int64Array::from_iter((0..rows).map(|i| (i % 9 != 0).then(|| rng.i64(..))))),
        ),
        ("few", Arc::new(Float64Array::from_iter_values((0..rows).map(|i| (i % 100) as f64)))),
        (
            "text",
            Arc::new(StringArray::from_iter_values(
                (0..rows).map(|_| format!("text {:x}", rng.u64(..))),
            )),
        ),
    ];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

#[test]
fn an_export_stays_within_its_memory() {
    let bytes: u64 = std::env::var("MARQUETRY_EXPORT_BYTES")
        .map_or(320 << 20, |bytes| bytes.parse().expect("a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let of_one = batch(&mut fastrand::Rng::with_seed(0), 25_000).get_array_memory_size() as u64;
    let batches = bytes / STREAMS / of_one + 1;
    for threads in [1, 2, 4] {
        let folder = tempfile::tempdir().expect("a folder");
        let streams = (0..STREAMS).map(|stream| {
            let mut rng = fastrand::Rng::with_seed(seed + stream);
            (0..batches).map(move |_| Ok::<_, marquetry::Error>(batch(&mut rng, 25_000)))
        });
        let schema = batch(&mut fastrand::Rng::new(), 1).schema();
        let before = NOW.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let export = Export::to(folder.path(), schema).expect("a folder");
        let export = export.file_bytes(40 << 20).threads(threads).memory(MEMORY as u64);
        let files = export.run(streams).expect("files");
        let peak = PEAK.load(Ordering::Relaxed) - before;
        let rows: u64 = files.iter().map(|file| file.report.rows).sum();
        let written: u64 = files.iter().map(|file| file.report.bytes).sum();
        println!(
            "{threads} threads: {} bytes of batches into {} files of {written} bytes, peak {peak}",
            STREAMS * batches * of_one,
            files.len()
        );
        assert_eq!(rows, STREAMS * batches * 25_000);
        assert!(peak < MEMORY, "{threads} threads: a peak of {peak} bytes");
    }
}
