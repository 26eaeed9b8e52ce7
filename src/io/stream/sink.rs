//! [`AsyncSink`] receives the bytes of a file asynchronously.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::future::BoxFuture;

use crate::error::Result;

/// Receives the bytes of a file asynchronously, one piece after the other.
///
/// After an error nothing more is written, and [`AsyncSink::abort`] is called. A sink that is
/// dropped unfinished must leave nothing that looks like a whole file.
pub trait AsyncSink: Send {
    /// Appends all of the bytes. It may keep some for later; it waits while too many are being
    /// uploaded.
    ///
    /// # Errors
    /// `Io` if they, or earlier ones, cannot be written.
    fn write(&mut self, bytes: Vec<Bytes>) -> BoxFuture<'_, Result<()>>;

    /// Continues uploads that are in progress, while the caller waits for something else.
    ///
    /// # Errors
    /// `Io` if earlier bytes cannot be written.
    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let _ = cx;
        Poll::Ready(Ok(()))
    }

    /// Makes the file whole: everything is written, nothing more comes.
    ///
    /// # Errors
    /// `Io` if what was written may be lost.
    fn finish(&mut self) -> BoxFuture<'_, Result<()>>;

    /// Aborts: nothing that was written becomes visible, now or later.
    ///
    /// # Errors
    /// `Io` if something may be left.
    fn abort(&mut self) -> BoxFuture<'_, Result<()>>;
}

impl<S: AsyncSink + ?Sized> AsyncSink for Box<S> {
    fn write(&mut self, bytes: Vec<Bytes>) -> BoxFuture<'_, Result<()>> {
        (**self).write(bytes)
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        (**self).poll_progress(cx)
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<()>> {
        (**self).finish()
    }

    fn abort(&mut self) -> BoxFuture<'_, Result<()>> {
        (**self).abort()
    }
}
