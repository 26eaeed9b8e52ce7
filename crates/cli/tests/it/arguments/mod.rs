//! Tests of the command line: flags, conditions, help, and messages about mistakes.

mod flags;
mod help_and_messages;
mod manual;
mod where_language;
