//! Tests that commands keep what their exit codes say where the reader of their output has closed
//! the pipe: `marq diff A B | head -1`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};

use crate::support::folder::{Folder, error};

#[test]
fn a_closed_pipe_does_not_change_the_exit_code() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    folder.columns("n.parquet", vec![("n", numbers)]);
    folder.put("contract.toml", "[file]\nrows = { max = 1 }\n");
    for (code, args) in [
        (0, &["cat", "trips.parquet"][..]),
        (0, &["diff", "n.parquet", "n.parquet"]),
        (4, &["diff", "n.parquet", "trips.parquet"]),
        (4, &["check", "n.parquet", "--contract", "contract.toml"]),
        (4, &["check", "n.parquet", "--contract", "contract.toml", "-f", "sarif"]),
        (4, &["crypt", "audit", "n.parquet", "--require", "n"]),
        (5, &["cat", "n.parquet", "absent.parquet"]),
        (5, &["info", "n.parquet", "absent.parquet"]),
        (5, &["stats", "n.parquet", "absent.parquet"]),
        (5, &["count", "n.parquet", "absent.parquet"]),
        (5, &["schema", "n.parquet", "absent.parquet", "-f", "json"]),
    ] {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", error(&output));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let unread = folder.command(args).stdout(writer).output().expect("marq runs");
        assert_eq!(unread.status.code(), Some(code), "{args:?}: {}", error(&unread));
        assert_eq!(error(&unread), error(&output), "{args:?}");
    }
}
