//! The target that `MARQUETRY_TARGET` names, under libFuzzer: `./run` builds and starts it.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use marquetry_fuzz::targets::{Target, find};

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("MARQUETRY_TARGET").expect("MARQUETRY_TARGET names a target");
        find(&name).unwrap_or_else(|| panic!("there is no target {name}"))
    });
    (target.run)(data);
});
