//! The target that `MARQUETRY_TARGET` names, under libFuzzer: `./run` builds and starts it.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use marquetry_fuzz::targets::{Target, chosen};

static TARGET: LazyLock<&Target> = LazyLock::new(chosen);

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
