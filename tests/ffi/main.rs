//! Tests the C Stream interface against pyarrow: `tests/ffi/pyarrow_test.py` writes tables of
//! pyarrow through `examples/ffi_pyarrow`, and reads them back both ways.
//!
//! It needs a Python with pyarrow, so it is one of the tests that are ignored by default:
//!
//! ```text
//! cargo test --features full --test ffi -- --ignored
//! ```
//!
//! `MARQUETRY_PYTHON` names the interpreter, else it is `python3`.

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

#[test]
#[ignore = "it needs a Python with pyarrow"]
fn pyarrow_reads_and_writes_the_same_tables_through_c_streams() {
    let python = std::env::var("MARQUETRY_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import pyarrow.parquet"]).output();
    let has_pyarrow = found.is_ok_and(|found| found.status.success());
    assert!(has_pyarrow, "{python} has no pyarrow; MARQUETRY_PYTHON names another");
    let library = library();
    let library = library.expect("cargo build --features ffi --example ffi_pyarrow builds it");
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
