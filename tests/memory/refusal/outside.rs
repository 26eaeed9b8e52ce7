//! Sites whose allocations still end the process when they fail.

/// The file, as [`super::sites::Site`] names it, and what is allocated there. `docs/threats.md` has
/// them, too.
pub const OUTSIDE: &[(&str, &str)] = &[];
