//! The fuzz target of what plans carry between processes.

use marquetry_fuzz::targets::Target;
use marquetry_testkit::heap;

#[path = "../../tests/plan_message/target.rs"]
mod plan_message;

/// The one target.
pub const ALL: &[Target] =
    &[Target { name: "plan_message", run: plan_message::run, seeds: plan_message::seeds }];

// By its path, because it uses a development dependency of either package.
#[cfg(test)]
#[path = "../../../../fuzz/src/front.rs"]
mod front;

/// `fuzz/run` runs `targets::tests::NAME`.
#[cfg(test)]
mod targets {
    mod tests {
        use crate::plan_message;

        #[test]
        fn plan_message() {
            crate::front::test(bolero::check!(), plan_message::run, plan_message::seeds);
        }
    }
}
