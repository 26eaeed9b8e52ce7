//! The peak of the heap does not follow the size of the file: a file twice as long with the same row groups takes the same.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array_60 as arrow;
use marquetry::Reader;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

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

const ROWS_OF_A_GROUP: usize = 100_000;

/// A file of this many row groups, in a folder.
fn write(folder: &std::path::Path, groups: usize) -> std::path::PathBuf {
    let n = ROWS_OF_A_GROUP * groups;
    let mut rng = fastrand::Rng::with_seed(1);
    let numbers = arrow::Int64Array::from_iter((0..n).map(|i| (i % 9 != 0).then(|| rng.i64(..))));
    let texts = arrow::StringArray::from_iter_values(
        (0..n).map(|i| format!("text number {}", i * 7 % 10_007)),
    );
    let columns: [(&str, arrow::ArrayRef); 2] =
        [("n", std::sync::Arc::new(numbers)), ("t", std::sync::Arc::new(texts))];
    let batch = arrow::RecordBatch::try_from_iter(columns).expect("a batch");
    let path = folder.join(format!("{groups}.parquet"));
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(ROWS_OF_A_GROUP)).build();
    let file = std::fs::File::create(&path).expect("a file");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("a footer");
    path
}

/// The most heap that reading takes, of a few times: how far the threads are ahead when a batch is let go is chance.
fn peak(path: &std::path::Path, threads: usize) -> usize {
    (0..3).map(|_| peak_of_one(path, threads)).max().expect("a read")
}

fn peak_of_one(path: &std::path::Path, threads: usize) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let reader = Reader::open(path).expect("a file").threads(threads).memory(64 << 20);
    let mut rows = 0;
    for batch in reader.batches().expect("a plan") {
        rows += batch.expect("a batch").num_rows();
        if threads > 1 {
            // Held until the threads have decoded all that they may: else it is a matter of luck how much is held at a time.
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    assert_eq!(rows as u64, reader.rows().expect("a count"));
    PEAK.load(Ordering::Relaxed) - before
}

#[test]
fn twice_the_file_takes_the_same_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    // Both larger than all that is held at a time: two waves, and memory that is kept to be used again.
    let (one, two) = (write(folder.path(), 24), write(folder.path(), 48));
    for threads in [1, 2] {
        // The first read pays for what is made once.
        peak_of_one(&one, threads);
        let (a, b) = (peak(&one, threads), peak(&two, threads));
        println!("{threads} threads: {a} bytes for 24 row groups, {b} for 48");
        assert!(b <= a + a / 5, "{threads} threads: {a} bytes for 24 row groups, {b} for 48");
        assert!(a < 64 << 20, "within the budget");
    }
}
