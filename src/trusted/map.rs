//! [`MappedFile`]: a file that is mapped into memory, so that its bytes are not copied.

use std::path::Path;

use bytes::Bytes;

/// A local file that is mapped into memory: a [`Source`](crate::io::Source) whose bytes are not
/// copied, and that is read only where it is touched.
///
/// It pays for rows that are read by their numbers again and again from a file in the cache of the
/// system, above all where pages are stored uncompressed. Whole files are read as fast without.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use marquetry::Reader;
/// use marquetry::io::MappedFile;
///
/// // SAFETY: nothing changes the file while it is read.
/// let file = unsafe { MappedFile::open("testdata/trips.parquet") }?;
/// let batch = Reader::new(file)?.take(&[700, 3, 3])?;
/// assert_eq!(batch.num_rows(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MappedFile {
    bytes: Bytes,
}

impl MappedFile {
    /// Maps a file into memory.
    ///
    /// # Errors
    /// Those of the system; `Unsupported` where files cannot be mapped.
    ///
    /// # Safety
    /// While the value, or bytes or arrays that were made of it, exist, the file must not be
    /// changed or truncated: bytes that change under a reader are undefined behaviour, and the
    /// system ends a process that reads beyond a file that became shorter. Network file systems do
    /// so when the server fails.
    pub unsafe fn open(path: impl AsRef<Path>) -> std::io::Result<Self> {
        // SAFETY: promised by the caller.
        unsafe { platform::map(path.as_ref()) }.map(|bytes| Self { bytes })
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

#[cfg(unix)]
mod platform {
    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::ptr::{self, NonNull};

    use bytes::Bytes;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    /// A mapping, which is removed when it is dropped.
    struct MappedRange {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: the memory is only read, and belongs to the mapping alone.
    unsafe impl Send for MappedRange {}
    // SAFETY: as above.
    unsafe impl Sync for MappedRange {}

    impl AsRef<[u8]> for MappedRange {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: `len` bytes from `start` on are mapped for reading until the mapping is
            // dropped, and the caller of `map` promised that they do not change.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl Drop for MappedRange {
        fn drop(&mut self) {
            // SAFETY: it was mapped with this length, and no slice of it outlives the mapping.
            // An error leaves it mapped.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }

    /// # Safety
    /// As [`super::MappedFile::open`].
    pub(super) unsafe fn map(path: &Path) -> io::Result<Bytes> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is a folder, a pipe or a device"));
        }
        let len = usize::try_from(metadata.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        // SAFETY: a new mapping at an address that the system chooses overlaps nothing.
        let start =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Bytes::from_owner(MappedRange { start, len }))
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io;
    use std::path::Path;

    use bytes::Bytes;

    /// # Safety
    /// None is needed: nothing is mapped.
    pub(super) unsafe fn map(_: &Path) -> io::Result<Bytes> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
