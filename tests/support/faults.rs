//! Sources and sinks that fail as a seed says, and markers of what must have happened in some run.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use fastrand::Rng;
use marquetry::io::{Sink, Source};
use marquetry::read::Latency;
use marquetry::{Error, Result};

/// The kind of one answer of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    Right,
    /// An error, and the source works again afterwards.
    Error,
    /// Fewer bytes than were asked for.
    Short,
    /// More bytes than were asked for.
    Long,
    /// Other bytes than those of the file.
    Changed,
    /// From now on the file ends before the range that was asked for.
    Truncated,
}

/// The plan of a source: what goes wrong, and when.
#[derive(Debug)]
pub struct Plan {
    rng: Rng,
    /// One answer in this number is not right; 0 for none.
    pub faults: u32,
    /// The answers that it may give.
    pub kinds: Vec<Answer>,
    /// Polls that an asynchronous answer may take.
    pub late: u32,
    /// The end of the file, once it is truncated.
    end: Option<u64>,
    /// The answers that were not right.
    pub given: Vec<Answer>,
    pub requests: usize,
}

impl Plan {
    pub fn new(seed: u64, faults: u32, kinds: &[Answer]) -> Self {
        let rng = Rng::with_seed(seed);
        let (end, given) = (None, Vec::new());
        Self { rng, faults, kinds: kinds.to_vec(), late: 0, end, given, requests: 0 }
    }

    fn answer(&mut self) -> Answer {
        self.requests += 1;
        if self.faults == 0 || self.kinds.is_empty() || self.rng.u32(..self.faults) > 0 {
            return Answer::Right;
        }
        let answer = self.kinds[self.rng.usize(..self.kinds.len())];
        self.given.push(answer);
        answer
    }
}

/// A file whose bytes come as a [`Plan`] says. The clones have one plan.
#[derive(Clone, Debug)]
pub struct FaultSource {
    pub file: Bytes,
    plan: Arc<Mutex<Plan>>,
    pub latency: Latency,
}

impl FaultSource {
    pub fn new(file: Bytes, plan: Plan) -> Self {
        Self { file, plan: Arc::new(Mutex::new(plan)), latency: Latency::LOCAL }
    }

    pub fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing goes wrong any more; the file has its whole length again.
    pub fn heal(&self) {
        let mut plan = self.plan();
        (plan.faults, plan.end) = (0, None);
    }

    fn give(&self, range: Range<u64>) -> Result<Bytes> {
        let mut plan = self.plan();
        let right = self.file.slice(range.start as usize..range.end as usize);
        let answer = plan.answer();
        if answer == Answer::Truncated {
            plan.end.get_or_insert(range.start);
        }
        let end = plan.end.unwrap_or(u64::MAX);
        if range.end > end {
            // As a file that is read to its end: what is left of it, or an error.
            let left = end.saturating_sub(range.start).min(range.end - range.start) as usize;
            return match plan.rng.bool() {
                true => Ok(right.slice(..left)),
                false => Err(fault()),
            };
        }
        match answer {
            Answer::Error => Err(fault()),
            Answer::Short => {
                let len = plan.rng.usize(..right.len().max(1));
                Ok(right.slice(..len.min(right.len())))
            }
            Answer::Long => Ok([&right[..], &[7; 100][..plan.rng.usize(1..100)]].concat().into()),
            Answer::Changed if !right.is_empty() => {
                let mut bytes = right.to_vec();
                let at = plan.rng.usize(..bytes.len());
                for byte in bytes.iter_mut().skip(at).take(plan.rng.usize(1..9)) {
                    *byte ^= plan.rng.u8(1..);
                }
                Ok(bytes.into())
            }
            _ => Ok(right),
        }
    }

    fn len(&self) -> Result<u64> {
        let mut plan = self.plan();
        match plan.answer() {
            Answer::Error => Err(fault()),
            // The other answers are those of bytes.
            _ => Ok(plan.end.unwrap_or(u64::MAX).min(self.file.len() as u64)),
        }
    }
}

/// The text of the errors made here.
pub const FAULT: &str = "a planned fault";

fn fault() -> Error {
    Error::io("far away", io::Error::other(FAULT))
}

impl Source for FaultSource {
    fn len(&self) -> Result<u64> {
        Self::len(self)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.give(range)
    }

    fn latency(&self) -> Latency {
        self.latency
    }
}

/// Is pending for some polls, each time after it has woken the task: once, or twice.
pub async fn late(polls: u32) {
    let mut left = polls;
    poll_fn(move |cx: &mut Context<'_>| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        if left % 2 == 1 {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
}

impl marquetry::io::AsyncSource for FaultSource {
    fn len(&self) -> futures_util::future::BoxFuture<'_, Result<u64>> {
        Box::pin(async {
            late(self.polls()).await;
            Self::len(self)
        })
    }

    fn read(&self, range: Range<u64>) -> futures_util::future::BoxFuture<'_, Result<Bytes>> {
        Box::pin(async {
            late(self.polls()).await;
            self.give(range)
        })
    }

    fn latency(&self) -> Latency {
        self.latency
    }
}

impl FaultSource {
    fn polls(&self) -> u32 {
        let mut plan = self.plan();
        let late = plan.late;
        if late == 0 { 0 } else { plan.rng.u32(..=late) }
    }
}

/// How a sink fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SinkFault {
    /// The call of this number fails, and later ones work.
    Once(usize),
    /// A call fails when some of its bytes are there, and so do all after it.
    Broken(usize),
    /// There is space for this number of bytes.
    Full(usize),
    /// All is written, but it cannot be made whole.
    Finish,
    /// It is made whole, and then says that it was not.
    FinishedAndLost,
    None,
}

/// The contents of a sink; they outlive the writer.
#[derive(Default, Debug)]
pub struct Written {
    pub bytes: Vec<u8>,
    pub calls: usize,
    pub failed: bool,
    /// The bytes that became visible under the final name.
    pub published: Option<Vec<u8>>,
    pub aborted: bool,
}

/// A sink that fails as [`SinkFault`] says.
#[derive(Debug, Clone)]
pub struct FaultSink {
    written: Arc<Mutex<Written>>,
    fault: SinkFault,
    /// Polls that each asynchronous call takes.
    pub late: u32,
}

impl FaultSink {
    pub fn new(fault: SinkFault) -> Self {
        Self { written: Arc::default(), fault, late: 0 }
    }

    pub fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        let mut written = self.written();
        assert!(written.published.is_none(), "written to after it was finished");
        let call = written.calls;
        written.calls += 1;
        let kept = match self.fault {
            SinkFault::Once(at) if call == at => 0,
            SinkFault::Broken(at) if call == at => bytes.len() / 2,
            SinkFault::Broken(at) if call > at => 0,
            SinkFault::Full(space) if written.bytes.len() + bytes.len() > space => {
                space - written.bytes.len().min(space)
            }
            _ => bytes.len(),
        };
        written.bytes.extend_from_slice(&bytes[..kept]);
        let is_right =
            kept == bytes.len() && !matches!(self.fault, SinkFault::Once(at) if call == at);
        written.failed |= !is_right;
        if is_right { Ok(()) } else { Err(fault()) }
    }

    fn publish(&self) -> Result<()> {
        let mut written = self.written();
        let fails = match self.fault {
            SinkFault::Finish => true,
            SinkFault::Once(at) => written.calls == at,
            SinkFault::Broken(at) => written.calls >= at,
            _ => false,
        };
        written.calls += 1;
        if !fails {
            written.published = Some(written.bytes.clone());
        }
        written.failed |= fails || self.fault == SinkFault::FinishedAndLost;
        if written.failed { Err(fault()) } else { Ok(()) }
    }
}

impl Sink for FaultSink {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.append(&bytes)
    }

    fn finish(&mut self) -> Result<()> {
        self.publish()
    }
}

impl marquetry::io::AsyncSink for FaultSink {
    fn write(&mut self, bytes: Vec<Bytes>) -> futures_util::future::BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            late(self.late).await;
            self.append(&bytes.concat())
        })
    }

    fn finish(&mut self) -> futures_util::future::BoxFuture<'_, Result<()>> {
        Box::pin(async {
            late(self.late).await;
            self.publish()
        })
    }

    fn abort(&mut self) -> futures_util::future::BoxFuture<'_, Result<()>> {
        Box::pin(async {
            late(self.late).await;
            let mut written = self.written();
            assert!(written.published.is_none() || self.fault == SinkFault::FinishedAndLost);
            written.aborted = true;
            Ok(())
        })
    }
}

/// Counts what happened, by name.
#[derive(Default, Debug)]
pub struct Markers(Mutex<BTreeMap<&'static str, u64>>);

impl Markers {
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// It happened.
    pub fn reach(&self, name: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }

    /// It happened if `is` is true.
    pub fn reach_if(&self, is: bool, name: &'static str) {
        if is {
            self.reach(name);
        }
    }

    /// # Panics
    /// If one of the names was never reached, or another one was.
    pub fn assert_reached(&self, names: &[&str]) {
        let reached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{reached:#?}");
        let missing: Vec<_> = names.iter().filter(|name| !reached.contains_key(*name)).collect();
        assert!(missing.is_empty(), "never reached: {missing:?}");
        let unknown: Vec<_> = reached.keys().filter(|name| !names.contains(name)).collect();
        assert!(unknown.is_empty(), "not in the list: {unknown:?}");
    }
}

/// Polls a future at most `polls` times, and drops it then.
pub fn poll_some<T>(polls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(std::task::Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        // What works for it meanwhile, on threads of a pool.
        std::thread::yield_now();
    }
    None
}
