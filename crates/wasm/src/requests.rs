//! Requests from the reader to objects of JavaScript.
//!
//! The reader may move between threads, and objects and promises of JavaScript may not. So a task
//! on the thread of JavaScript owns the object; requests go to it through a channel, and each
//! answer comes through one of its own.

use std::future::Future;

use futures_channel::{mpsc, oneshot};
use futures_util::StreamExt;
use marquetry::{Error, Result};
use wasm_bindgen_futures::spawn_local;

/// The end of the channel that the reader has.
#[derive(Debug)]
pub(crate) struct Requests<R> {
    sender: mpsc::UnboundedSender<R>,
    /// The name of the object, for errors.
    name: &'static str,
}

impl<R: 'static> Requests<R> {
    /// Starts the task, which starts `serve` for each request. It ends when the last reader is
    /// dropped.
    pub(crate) fn start<F: Future<Output = ()> + 'static>(
        name: &'static str,
        serve: impl Fn(R) -> F + 'static,
    ) -> Self {
        let (sender, mut queue) = mpsc::unbounded();
        spawn_local(async move {
            while let Some(request) = queue.next().await {
                spawn_local(serve(request));
            }
        });
        Self { sender, name }
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// That of the answer; `Cancelled` if there is none.
    pub(crate) async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T>>) -> R,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let sent = self.sender.unbounded_send(request(answer)).is_ok();
        match answered.await {
            Ok(answer) if sent => answer,
            _ => Err(Error::cancelled(format_args!("the {} is gone: a request to it", self.name))),
        }
    }
}
