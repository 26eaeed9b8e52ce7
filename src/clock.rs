//! Measures how long work takes.
//!
//! A browser's WebAssembly has no clock that Rust could ask: there, nothing takes any time.

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) use std::time::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) use without::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod without {
    use std::time::Duration;

    /// Always the same moment.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Instant;

    impl Instant {
        pub(crate) fn now() -> Self {
            Self
        }

        pub(crate) fn elapsed(self) -> Duration {
            Duration::ZERO
        }
    }
}
