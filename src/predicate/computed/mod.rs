//! Computed values: an [`Expression`](super::calculation::Expression) is bound to types
//! ([`bound`]), which decides what each step converts its operands to ([`types`]), and is then
//! evaluated on batches with the kernels of Arrow ([`evaluate`]). It prunes nothing, because
//! nothing is known of its values before they are computed.

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
