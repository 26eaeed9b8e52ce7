//! The C Stream interface, held against pyarrow: `tests/ffi/pyarrow_test.py` writes tables of
//! pyarrow through `examples/ffi_pyarrow`, and reads them back both ways.
//!
//! `MARQUETRY_PYTHON` names the interpreter, else `python3` is tried. Without pyarrow, or where
//! cargo did not build the example, nothing is tested, and that is printed; with
//! `MARQUETRY_PYTHON` set, it is a failure.

use std::path::PathBuf;
use std::process::Command;

/// Where cargo puts the library of the example that it builds with the tests.
fn library() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let name =
        format!("{}ffi_pyarrow{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = exe.parent()?.parent()?.join("examples").join(name);
    path.is_file().then_some(path)
}

fn skip(is_wanted: bool, why: &str) {
    assert!(!is_wanted, "{why}");
    println!("SKIPPED: {why}");
}

#[test]
fn pyarrow_reads_and_writes_the_same_tables_through_c_streams() {
    let asked = std::env::var("MARQUETRY_PYTHON").ok();
    let is_wanted = asked.is_some();
    let python = asked.unwrap_or_else(|| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import pyarrow.parquet"]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        return skip(
            is_wanted,
            &format!("{python} has no pyarrow; MARQUETRY_PYTHON names another"),
        );
    }
    let Some(library) = library() else {
        return skip(
            is_wanted,
            "build the library: cargo build --features ffi --example ffi_pyarrow",
        );
    };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let run = Command::new(&python)
        .arg(root.join("tests/ffi/pyarrow_test.py"))
        .arg(&library)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", root.join("examples/ffi_pyarrow"))
        .output()
        .expect("python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    print!("{}", text(&run.stdout));
    assert!(run.status.success(), "{}{}", text(&run.stdout), text(&run.stderr));
}
