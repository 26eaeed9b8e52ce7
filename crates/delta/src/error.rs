//! Errors of the library as errors of the kernel.

use std::io;

use delta_kernel::KernelError;
use url::Url;

/// `error`, met in the file at `location`. A file that is not there is an error of its own kind.
#[cold]
pub(crate) fn at(location: &Url) -> impl Fn(marquetry::Error) -> KernelError + use<'_> {
    move |error| {
        let is_absent = error.get_ref().is_some_and(|cause| {
            let io = cause.downcast_ref::<io::Error>();
            let store = cause.downcast_ref::<object_store::Error>();
            io.is_some_and(|e| e.kind() == io::ErrorKind::NotFound)
                || matches!(store, Some(object_store::Error::NotFound { .. }))
        });
        match is_absent {
            true => KernelError::file_not_found(location),
            false => KernelError::generic_err(error),
        }
    }
}

/// The error of a file at `location` that this handler does not read or write.
#[cold]
pub(crate) fn refused(location: &Url, what: std::fmt::Arguments<'_>) -> KernelError {
    KernelError::generic(format_args!("{location}: {what}"))
}
