//! What is typed: flags, conditions, help, and what is said of mistakes.

mod flags;
mod help_and_messages;
mod where_language;
