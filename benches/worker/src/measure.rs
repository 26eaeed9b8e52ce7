//! The clock: wall and CPU time, page faults and peak memory of the whole process.

use std::fs;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::Result;

/// The measurements: an entry for each iteration, times in seconds.
#[derive(Debug, Default, Serialize)]
pub struct Measured {
    wall: Vec<f64>,
    /// CPU time of all threads, in user and kernel mode.
    cpu: Vec<f64>,
    /// CPU time of all threads, in kernel mode.
    sys: Vec<f64>,
    /// Page faults without IO.
    minflt: Vec<i64>,
    /// The most bytes that were resident, above those before the first iteration.
    peak: u64,
}

/// Runs `work` `iterations` times, and returns its last result.
///
/// Memory that the process has freed before is returned to the system first, so that every task
/// pays for its page faults, wherever it runs.
pub fn measure<T>(iterations: usize, mut work: impl FnMut() -> Result<T>) -> Result<(Measured, T)> {
    let mut measured = Measured::default();
    let before = trimmed_resident_bytes()?;
    let mut iteration = || -> Result<T> {
        let counters = Counters::now()?;
        let done = work()?;
        counters.since(&mut measured)?;
        Ok(done)
    };
    for _ in 1..iterations {
        iteration()?;
    }
    let done = iteration()?;
    measured.peak = status("VmHWM:")?.saturating_sub(before);
    Ok((measured, done))
}

/// Clocks and counters at some moment.
struct Counters {
    wall: Instant,
    cpu: Duration,
    sys: f64,
    minor_faults: i64,
}

impl Counters {
    fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        Ok(Self {
            sys: usage.system_time().num_microseconds() as f64 * 1e-6,
            minor_faults: usage.minor_page_faults(),
            // Last, as they are what counts.
            cpu: clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into(),
            wall: Instant::now(),
        })
    }

    /// Adds what has passed.
    fn since(&self, measured: &mut Measured) -> Result<()> {
        let wall = self.wall.elapsed();
        let cpu: Duration = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into();
        let usage = Self::now()?;
        measured.wall.push(wall.as_secs_f64());
        measured.cpu.push(cpu.saturating_sub(self.cpu).as_secs_f64());
        measured.sys.push(usage.sys - self.sys);
        measured.minflt.push(usage.minor_faults - self.minor_faults);
        Ok(())
    }
}

/// Returns freed memory to the system, resets the peak of resident bytes, and returns how many are
/// resident.
fn trimmed_resident_bytes() -> Result<u64> {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function is safe to call at any time, from any thread.
    unsafe {
        libc::malloc_trim(0)
    };
    // Where this is not allowed, the peak is that of the life of the process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    status("VmRSS:")
}

/// A line of `/proc/self/status`, in bytes; 0 where there is none.
fn status(key: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kibibytes.map_or(Ok(0), str::parse::<u64>)? * 1024)
}
