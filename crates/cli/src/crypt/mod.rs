//! `crypt` shows and changes the encryption of files.

pub(crate) mod footer;
mod audit;
mod recrypt;
mod rewrap;

use crate::args::{Crypt, Global};
use crate::failure::Result;

/// Runs the subcommand.
pub(crate) fn run(command: &Crypt, global: &Global) -> Result<()> {
    match command {
        Crypt::Audit(command) => audit::run(command, global),
        Crypt::Encrypt(command) => recrypt::encrypt(command, global),
        Crypt::Decrypt(source) => recrypt::decrypt(source, global),
        Crypt::Rekey(command) => recrypt::rekey(command, global),
        Crypt::Rewrap(command) => rewrap::run(command, global),
    }
}
