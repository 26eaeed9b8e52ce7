//! Tests of folders named `key=value`.

use marquetry::arrow_array::Array;
use marquetry::arrow_array::cast::AsArray;
use marquetry::{Dataset, ErrorKind};

use crate::support::numbered::write_file;

#[test]
fn keys_of_folders_become_columns() {
    let root = tempfile::tempdir().unwrap();
    let folders = ["y=2024/c=a%20b", "y=2025/c=__HIVE_DEFAULT_PARTITION__"];
    for (folder, (from, count)) in folders.iter().zip([(0, 3), (3, 2)]) {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
        write_file(&root.path().join(folder).join("x.parquet"), from, count).unwrap();
    }
    let dataset = Dataset::open([root.path()]).unwrap().project(["n"]).unwrap();
    let dataset = dataset.with_partitions().unwrap();
    assert_eq!(dataset.rows().unwrap(), 5);
    let batch = dataset.take(&[4, 0]).unwrap();
    let text = |column: usize, row| {
        let column = batch.column(column).as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    assert_eq!((text(1, 0).as_deref(), text(1, 1).as_deref()), (Some("2025"), Some("2024")));
    assert_eq!((text(2, 0), text(2, 1).as_deref()), (None, Some("a b")));
    write_file(&root.path().join("z.parquet"), 0, 1).unwrap();
    let mixed = [root.path()];
    let error = Dataset::open(mixed).unwrap().with_partitions().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}
