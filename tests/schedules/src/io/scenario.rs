//! Row groups that are encoded by a pool and by the thread that waits for them.

use shuttle::rand::Rng;
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};

use super::job_queue::{ColumnGroup, Job, Queue, Results};
use super::pool::{Mood, Pool};
use crate::error::{Error, ErrorKind};
use crate::write::Parallelism;

/// Columns of a row group.
const COLUMNS: usize = 3;

/// The result of column 1 of row group 1.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    Error,
    Panic,
}

struct Group {
    number: usize,
    fault: Fault,
    /// How often each column was encoded.
    calls: [AtomicUsize; COLUMNS],
    results: Results<Vec<usize>>,
}

impl ColumnGroup for Group {
    fn encode(&self, column: usize, parallelism: &dyn Parallelism) {
        self.results.add(column, || {
            self.calls[column].fetch_add(1, Ordering::Relaxed);
            match self.fault {
                Fault::Error if self.is_faulty(column) => return Err(Error::usage("a fault")),
                Fault::Panic if self.is_faulty(column) => std::panic::resume_unwind(Box::new(())),
                _ => {}
            }
            // Pages, by whatever threads are idle.
            let pages: Vec<_> = (0..2).map(|_| AtomicUsize::new(0)).collect();
            parallelism.for_each(pages.len(), &|page| {
                pages[page].fetch_add(encoded(self.number, column, page), Ordering::Relaxed);
            });
            Ok(pages.iter().map(|page| page.load(Ordering::Relaxed)).collect())
        });
    }
}

impl Group {
    fn is_faulty(&self, column: usize) -> bool {
        (self.number, column) == (1, 1)
    }
}

/// A number in place of the bytes of a page.
fn encoded(group: usize, column: usize, page: usize) -> usize {
    1 + 100 * group + 10 * column + page
}

pub(crate) fn run() {
    // Where the caller works alone, another thread still takes a step.
    let other = shuttle::thread::spawn(shuttle::thread::yield_now);
    let mut rng = shuttle::rand::thread_rng();
    let mood = if rng.gen_bool(0.8) { Mood::Works } else { Mood::IsBusy };
    let pool = match rng.gen_range(0..4) {
        0 => None,
        threads => Some(Pool::new(threads, mood)),
    };
    let fault = [Fault::None, Fault::None, Fault::Error, Fault::Panic][rng.gen_range(0..4)];
    let is_cancelled = rng.gen_bool(0.2);
    let queue = Arc::new(Queue::default());
    let groups: Vec<_> = (0..2)
        .map(|number| {
            let calls = std::array::from_fn(|_| AtomicUsize::new(0));
            let results = Results::of_columns(COLUMNS).unwrap();
            Arc::new(Group { number, fault, calls, results })
        })
        .collect();
    for group in &groups {
        let jobs = (0..COLUMNS).map(|column| Job { group: group.clone(), column });
        queue.begin(jobs, pool.as_ref()).unwrap();
    }
    for group in &groups {
        if is_cancelled && group.number == 1 {
            queue.clear();
            group.results.fail(Error::cancelled("a row group"));
            break;
        }
        group.results.wait(&queue, pool.as_ref());
        let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| group.results.take()));
        match (taken, fault) {
            (Err(_), Fault::Panic) if group.number == 1 => {}
            (Ok(Err(error)), Fault::Error) if group.number == 1 => {
                assert_eq!(error.kind(), ErrorKind::Usage);
            }
            (Ok(Ok(columns)), _) if group.number == 0 || fault == Fault::None => {
                let column =
                    |column| (0..2).map(|page| encoded(group.number, column, page)).collect();
                let expected: Vec<Vec<usize>> = (0..COLUMNS).map(column).collect();
                assert_eq!(columns, expected, "the row group of one thread");
                let calls = group.calls.iter().map(|calls| calls.load(Ordering::Relaxed));
                assert!(calls.eq([1; COLUMNS]), "each column is encoded once");
            }
            (taken, fault) => panic!("{:?} of row group {}", (taken.is_ok(), fault), group.number),
        }
    }
    other.join().expect("no thread fails");
    for group in groups {
        for calls in &group.calls {
            assert!(calls.load(Ordering::Relaxed) <= 1, "a column is encoded twice");
        }
    }
}
