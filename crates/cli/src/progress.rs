//! Shows a progress bar on standard error, and in the end what was written.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressState, ProgressStyle};
use marquetry::read::Progress;

use crate::args::{Global, When};
use crate::output;

/// Where the bytes of the input are counted.
#[derive(Clone, Default)]
pub(crate) struct Read {
    /// Bytes of files that are read from their beginning to their end.
    pub(crate) streamed: Arc<AtomicU64>,
    /// Progress of Parquet files.
    pub(crate) fetched: Vec<Progress>,
}

impl Read {
    fn bytes(&self) -> u64 {
        let fetched: u64 = self.fetched.iter().map(Progress::bytes_fetched).sum();
        self.streamed.load(Ordering::Relaxed) + fetched
    }
}

/// How much there is to do.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    Rows(u64),
    /// Bytes of files that do not say their rows.
    Bytes(u64),
    /// It is not known before the end.
    Unknown,
}

impl Extent {
    /// Whether the work is long enough for a bar.
    fn is_long(self) -> bool {
        match self {
            Self::Rows(rows) => rows >= BAR_FROM,
            Self::Bytes(bytes) => bytes >= BAR_FROM_BYTES,
            Self::Unknown => true,
        }
    }
}

/// A progress bar on standard error, which moves while nothing comes.
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    work: Extent,
    read: Read,
    rows: u64,
    begun: Instant,
}

impl Bar {
    pub(crate) fn new(work: Extent, global: &Global, read: Read) -> Self {
        let wanted = match global.progress {
            When::Always => true,
            When::Never => false,
            When::Auto => !global.quiet && work.is_long() && std::io::stderr().is_terminal(),
        };
        let bar = wanted.then(|| {
            let (bar, template) = match work {
                Extent::Rows(rows) => (
                    ProgressBar::new(rows),
                    "{bar:30} {human_pos} of {human_len} rows, {eta} left {msg}",
                ),
                Extent::Bytes(bytes) => (
                    ProgressBar::new(bytes),
                    "{bar:30} {binary_bytes} of {binary_total_bytes}, {eta} left {msg}",
                ),
                Extent::Unknown => (
                    ProgressBar::new_spinner(),
                    "{spinner} {elapsed}, {read} read, {human_pos} rows {msg}",
                ),
            };
            let live = read.clone();
            let style = ProgressStyle::with_template(template).map(|style| {
                style.with_key("read", move |_: &ProgressState, out: &mut dyn Write| {
                    let _ = write!(out, "{}", HumanBytes(live.bytes()));
                })
            });
            let bar = match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            };
            // A row group may take a while: the bar moves meanwhile, to show that the program runs.
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, work, read, rows: 0, begun: Instant::now() }
    }

    /// Rows that went out so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows went out.
    pub(crate) fn gave(&mut self, rows: usize) {
        self.rows += rows as u64;
        let Some(bar) = &self.bar else { return };
        match self.work {
            Extent::Bytes(_) => bar.set_position(self.read.bytes()),
            Extent::Rows(_) | Extent::Unknown => bar.set_position(self.rows),
        }
    }

    /// All rows went out; the last of them are still to be written.
    pub(crate) fn finishing(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message("(writing the rest)");
        }
    }

    /// Removes the bar, and prints what was written, on a terminal or with -v. `more` is appended.
    pub(crate) fn done(&self, bytes: u64, more: &str, global: &Global) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let to = global.output.as_deref().filter(|path| *path != std::path::Path::new("-"));
        let at_terminal = std::io::stderr().is_terminal() && to.is_some();
        if global.quiet || !(at_terminal || global.verbose > 0) {
            return;
        }
        let plural = if self.rows == 1 { "" } else { "s" };
        let to = to.map(|to| format!(" to {}", to.display())).unwrap_or_default();
        eprintln!(
            "{} row{plural}, {more}{}, {}{to}",
            output::count(self.rows, global),
            output::bytes(bytes, global),
            seconds(self.begun.elapsed()),
        );
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        // The bar must not overwrite an error.
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn seconds(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 {
        return format!("{} min {} s", seconds / 60, seconds % 60);
    }
    format!("{:.1} s", time.as_secs_f64())
}

/// Minimum rows for which a bar is shown.
const BAR_FROM: u64 = 1_000_000;
/// Minimum bytes for which a bar is shown.
const BAR_FROM_BYTES: u64 = 64 << 20;
const TICK: Duration = Duration::from_millis(200);
