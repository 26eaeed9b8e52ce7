//! [`PossibleResults`]: the set of results (true, false, null) that a predicate may have for some
//! rows.

/// The conclusion about some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PruneResult {
    /// The predicate is true of none of them: they need not be read.
    Cannot,
    /// Nothing is proven.
    Might,
    /// The predicate is true of all of them: it need not be evaluated.
    Always,
}

/// Set of results that may occur; no others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PossibleResults(u8);

impl PossibleResults {
    pub(super) const NOTHING: Self = Self(0);
    pub(super) const TRUE: Self = Self(1);
    pub(super) const FALSE: Self = Self(2);
    pub(super) const NULL: Self = Self(4);
    pub(super) const EITHER: Self = Self(3);
    pub(super) const ALL: Self = Self(7);

    pub(super) fn only(result: Option<bool>) -> Self {
        match result {
            Some(true) => Self::TRUE,
            Some(false) => Self::FALSE,
            None => Self::NULL,
        }
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn with_if(self, condition: bool, other: Self) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// Intersects the results that two proofs leave. If nothing is left, one of them is wrong, and
    /// neither counts.
    pub(super) fn meet(self, other: Self) -> Self {
        match Self(self.0 & other.0) {
            Self::NOTHING if self != Self::NOTHING && other != Self::NOTHING => Self::ALL,
            meet => meet,
        }
    }

    pub(super) fn not(self) -> Self {
        Self::NOTHING
            .with_if(self.has(Self::TRUE), Self::FALSE)
            .with_if(self.has(Self::FALSE), Self::TRUE)
            .with_if(self.has(Self::NULL), Self::NULL)
    }

    pub(super) fn and(self, other: Self) -> Self {
        let either_null = self.has(Self::NULL) || other.has(Self::NULL);
        let no_false = |side: Self| side.has(Self::TRUE) || side.has(Self::NULL);
        Self::NOTHING
            .with_if(self.has(Self::TRUE) && other.has(Self::TRUE), Self::TRUE)
            .with_if(self.has(Self::FALSE) || other.has(Self::FALSE), Self::FALSE)
            .with_if(either_null && no_false(self) && no_false(other), Self::NULL)
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    /// Results for lists whose elements may have these results, where one true makes the list true
    /// and all false make it false. `empty` and `null` say whether a list may be empty or null.
    pub(super) fn any(self, empty: bool, null: bool) -> Self {
        self.with_if(empty, Self::FALSE).with_if(null, Self::NULL)
    }

    pub(super) fn prune_result(self) -> PruneResult {
        if !self.has(Self::TRUE) {
            PruneResult::Cannot
        } else if self == Self::TRUE {
            PruneResult::Always
        } else {
            PruneResult::Might
        }
    }
}
