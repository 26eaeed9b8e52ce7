//! In place of the library's module of this name: locks, atomics and threads of the scheduler.

use std::ops::{Deref, DerefMut};
use std::sync::LockResult;
use std::time::Duration;

use shuttle::rand::Rng;
pub(crate) use shuttle::sync::{Arc, Weak, atomic};
pub(crate) use std::sync::PoisonError;

/// The scheduler's mutex, which a guard knows.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    guard: shuttle::sync::MutexGuard<'a, T>,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(MutexGuard { guard, mutex: self })
    }

    pub(crate) fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition variable whose waits all time out, some sooner than others. (The scheduler's own
/// never do, and where a thread of the pool has left because the caller did its work, only the time
/// ends a wait.)
#[derive(Debug, Default)]
pub(crate) struct Condvar;

impl Condvar {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn notify_all(&self) {
        shuttle::thread::yield_now();
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let mutex = guard.mutex;
        drop(guard);
        for _ in 0..shuttle::rand::thread_rng().gen_range(1..4) {
            shuttle::thread::yield_now();
        }
        mutex.lock().map(|guard| (guard, ())).map_err(|_| unreachable!("no lock is poisoned here"))
    }
}

/// As in the library; one thread of two may not start.
pub(crate) fn work_with(helpers: usize, _name: &str, work: impl Fn() + Sync) {
    shuttle::thread::scope(|scope| {
        for _ in 0..helpers {
            if shuttle::rand::thread_rng().gen_bool(0.5) {
                scope.spawn(&work);
            }
        }
        work();
    });
}
