//! [`VariantPath`]: the way to a part of a value.

/// The way to a part of a value: fields of objects by name, elements of arrays by their place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VariantPath {
    steps: Vec<VariantStep>,
}

/// A step of a [`VariantPath`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VariantStep {
    /// The field of an object.
    Field(String),
    /// The element of an array, from 0.
    Index(usize),
}

impl VariantPath {
    /// The path of these steps; without any it is the value itself.
    pub fn new(steps: impl IntoIterator<Item = VariantStep>) -> Self {
        Self { steps: steps.into_iter().collect() }
    }

    /// The steps, from the outermost on.
    pub fn steps(&self) -> &[VariantStep] {
        &self.steps
    }
}
