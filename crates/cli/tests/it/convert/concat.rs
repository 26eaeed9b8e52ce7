//! Tests of `marq concat` and `marq append`.

use crate::support::folder::Folder;

