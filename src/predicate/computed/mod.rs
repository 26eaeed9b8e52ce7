//! Computed values: an [`Expression`](super::calculation::Expression) is bound to types ([`bound`]),
//! which says what each step is converted to ([`types`]), and then evaluated on batches by the
//! kernels of Arrow ([`evaluate`]). Nothing is known of it beforehand: it prunes nothing.

mod functions;
mod temporal;
mod types;
mod cast;
mod display;
mod calculate;
mod bound;
mod evaluate;

pub(super) use bound::{BoundComputed, BoundExpression, Question};
pub(super) use evaluate::{Load, column_values, compare};
pub(super) use functions::lower;

#[cfg(test)]
mod tests;
