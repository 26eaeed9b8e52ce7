//! The target that `MARQUETRY_TARGET` names, under honggfuzz: `ENGINE=honggfuzz ./run` builds and
//! starts it.

use marquetry_fuzz::targets::chosen;

fn main() {
    let target = chosen();
    loop {
        honggfuzz::fuzz(|data| (target.run)(data));
    }
}
