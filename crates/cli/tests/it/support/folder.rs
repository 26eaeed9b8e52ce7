//! Starts `marq`, in a temporary folder of files where a test has some.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::DataType;
use marquetry::format::{FileMetaData, Thrift as _};
use marquetry::{Reader, Writer};
use serde_json::Value;

use crate::support::{close, testdata};

/// `marq`, with nothing on its standard input, on a screen of unknown width.
pub fn marq(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marq"));
    command.args(args).stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

/// The output and the exit code of a command that is given `input` on its standard input.
pub fn fed(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("marq runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // It may end before it has read all.
        scope.spawn(move || _ = pipe.write_all(input));
        child.wait_with_output().expect("an end")
    })
}

/// A command below a shell that `script` has set the limits of.
pub fn limited(script: &str, plain: &Command) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script}; exec \"$@\""), "sh"]);
    command.arg(plain.get_program()).args(plain.get_args());
    if let Some(folder) = plain.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

/// A scratch folder, in which `marq` runs.
pub struct Folder {
    folder: tempfile::TempDir,
    /// Variables of its environment.
    variables: Vec<(&'static str, &'static str)>,
}

impl Folder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), variables: Vec::new() }
    }

    /// The same with a variable in the environment of `marq`.
    pub fn with_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a file, and the folders above it.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(name).parent().expect("a folder")).expect("a folder");
        std::fs::write(self.path(name), content).expect("a file");
    }

    /// Copies a file of `testdata/`.
    pub fn copy(&self, name: &str) {
        std::fs::copy(testdata(name), self.path(name)).expect("a file");
    }

    /// Makes a copy of a file of `testdata/` whose footer cannot be read. Returns the lengths of
    /// the file and of the footer.
    pub fn copy_with_broken_footer(&self, name: &str, copy: &str) -> (usize, usize) {
        let mut bytes = std::fs::read(testdata(name)).expect("a file");
        let len = bytes.len();
        let stated = bytes[..len - 4].last_chunk().expect("a length");
        let footer = u32::from_le_bytes(*stated) as usize;
        bytes[len - 8 - footer..][..20].fill(0xFF);
        self.put(copy, bytes);
        (len, footer)
    }

    /// Changes the footer of a file.
    pub fn change_footer(&self, name: &str, change: impl FnOnce(&mut FileMetaData)) {
        self.change_footer_bytes(name, |footer| {
            let (mut metadata, _) = FileMetaData::from_thrift(footer).expect("a footer");
            change(&mut metadata);
            *footer = metadata.to_thrift();
        });
    }

    /// Changes the bytes of the footer of a file.
    pub fn change_footer_bytes(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut file = self.content_of(name);
        let end = file.len() - 8;
        let len = u32::from_le_bytes(*file[end..].first_chunk().expect("a length")) as usize;
        file.truncate(end);
        let mut footer = file.split_off(end - len);
        change(&mut footer);
        self.put(name, close(file, &footer));
    }

    /// Gives a column another name in the footer of a flat file: it may be that of another column.
    pub fn rename(&self, file: &str, leaf: usize, name: &str) {
        self.change_footer(file, |footer| {
            name.clone_into(&mut footer.schema[leaf + 1].name);
            for group in &mut footer.row_groups {
                let meta = group.columns[leaf].meta_data.as_mut().expect("metadata");
                meta.path_in_schema = vec![name.to_owned()];
            }
            // The types of Arrow have the old name.
            footer.key_value_metadata = None;
        });
    }

    /// Makes a Parquet file with these columns, which may have nulls.
    pub fn columns(&self, name: &str, columns: Vec<(&str, ArrayRef)>) {
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
        self.put(name, "");
        let mut writer = Writer::create(self.path(name), batch.schema()).expect("a writer");
        writer.write(&batch).expect("written");
        writer.finish().expect("finished");
    }

    /// Like [`marq`], in this folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = marq(args);
        command.current_dir(&self.folder).envs(self.variables.iter().copied());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("marq runs")
    }

    /// The output of a command that succeeds.
    pub fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", error(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The same as JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(args)).expect("JSON")
    }

    /// The message of a command that fails with this code.
    pub fn refused(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", error(&output));
        error(&output)
    }

    /// The bytes of a file.
    pub fn content_of(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file")
    }

    /// The text of a file.
    pub fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file of text")
    }

    /// All rows of a Parquet file.
    pub fn batches(&self, name: &str) -> Vec<RecordBatch> {
        let reader = Reader::open(self.path(name)).expect("a Parquet file");
        reader.batches().expect("rows").collect::<Result<_, _>>().expect("rows")
    }

    pub fn type_of(&self, name: &str, column: &str) -> DataType {
        let schema = Reader::open(self.path(name)).expect("Parquet").schema().expect("a schema");
        schema.field_with_name(column).expect("a column").data_type().clone()
    }

    /// The entries of a folder below, sorted.
    pub fn names(&self, folder: &str) -> Vec<String> {
        crate::support::numbered::names(&self.path(folder))
    }
}

/// The standard error of a command.
pub fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
