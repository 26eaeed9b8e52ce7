//! `concat` and `append` copy files into one.

use std::path::Path;

use marquetry::Reader;
use marquetry::rewrite::Rewrite;

use crate::args::{Append, Concat, Global, Joining};
use crate::failure::{Failure, Result};
use crate::plan_report::PlanReport;
use crate::{crypt, input, interrupt, keys, report, rewriting};

/// Joins files into a new one.
pub(crate) fn concat(command: &Concat, global: &Global) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    let first = |reader: Reader| match command.columns.names() {
        names if names.is_empty() => Ok(reader),
        names => {
            let root = reader.metadata().schema().root();
            let all: Vec<String> = root.children().map(|node| node.name().to_owned()).collect();
            reader.project(input::columns(&all, &names)?).map_err(Failure::from)
        }
    };
    let output = match (&global.output, command.joining.copying.dry_run) {
        (Some(path), _) => path.clone(),
        (None, true) => "-".into(),
        (None, false) => {
            let text = "say the new file with -o; - is standard output, --dry-run shows the plan";
            return Err(Failure::Usage(text.to_owned()));
        }
    };
    let joined = Joined::new(&paths, &command.joining, global, first)?;
    if let (true, false, false) = (joined.has_encrypted, joined.is_encrypted, global.quiet) {
        eprintln!(
            "marq: note: an input is encrypted, and the output is not (--encrypt-footer-key \
             encrypts it)"
        );
    }
    joined.run("concat", &output, &command.joining, global)
}

/// Adds the rows of files to a file.
pub(crate) fn append(command: &Append, global: &Global) -> Result<()> {
    if global.output.is_some() && !command.joining.copying.dry_run {
        return Err(Failure::Usage(
            "append changes its first file: leave out -o, or use concat".to_owned(),
        ));
    }
    if command.file == "-" || !Path::new(&command.file).is_file() {
        return Err(Failure::Usage(format!(
            "{}: append changes a file, and there is no such file",
            command.file
        )));
    }
    let mut paths = vec![command.file.clone()];
    paths.extend(input::paths(&command.files.files)?);
    let joined = Joined::new(&paths, &command.joining, global, Ok)?;
    if joined.has_encrypted && !joined.is_encrypted {
        return Err(Failure::Usage(
            "a file is encrypted, and the result would be in plain text: encrypt it with \
             --encrypt-footer-key"
                .to_owned(),
        ));
    }
    joined.append(command, global)
}

/// Files to be copied into one.
struct Joined {
    paths: Vec<String>,
    rewrite: Rewrite,
    has_encrypted: bool,
    is_encrypted: bool,
}

impl Joined {
    fn new(
        paths: &[String],
        joining: &Joining,
        global: &Global,
        first: impl FnOnce(Reader) -> Result<Reader>,
    ) -> Result<Self> {
        // The prefix is that of the new file.
        let encryption = keys::encryption(&joining.copying.encrypt, global)?;
        let mut readers = Vec::with_capacity(paths.len());
        for path in paths {
            readers.push(input::open(path, global)?);
        }
        if let Some(reader) = readers.first_mut() {
            *reader = first(reader.clone())?;
        }
        let has_encrypted = readers.iter().any(crypt::footer::is_encrypted);
        let is_encrypted = encryption.is_some();
        let rewrite = Rewrite::new(readers)
            .by_name(joining.by_name)
            .verify_checksums(joining.copying.verify_checksums);
        let mut rewrite =
            rewriting::key_values(rewrite, &joining.copying.set_kv, &joining.copying.drop_kv)?;
        if let Some(encryption) = encryption {
            rewrite = rewrite.encryption(encryption);
        }
        Ok(Self { paths: paths.to_vec(), rewrite, has_encrypted, is_encrypted })
    }

    /// The same for a file that becomes longer.
    fn append(&self, command: &Append, global: &Global) -> Result<()> {
        let path = Path::new(&command.file);
        if command.joining.copying.dry_run {
            let to_screen = Global { output: None, ..global.clone() };
            let plan = PlanReport::new(&self.paths, command.file.clone(), self.rewrite.plan()?);
            let plan = plan.with_kept(self.rewrite.kept_bytes()?);
            return report::print(&plan, &to_screen);
        }
        let begun = rewriting::begin(&self.rewrite, global)?;
        let done = self.rewrite.append_over(path, interrupt::create(path)?)?;
        rewriting::end("append", &self.paths, &done, begun, global);
        Ok(())
    }

    /// Shows the plan, or does what it says.
    fn run(
        &self,
        command: &'static str,
        output: &Path,
        joining: &Joining,
        global: &Global,
    ) -> Result<()> {
        if joining.copying.dry_run {
            let plan = self.rewrite.plan()?;
            // The output is that of the command, and the plan is shown.
            let to_screen = Global { output: None, ..global.clone() };
            let output = output.display().to_string();
            return report::print(&PlanReport::new(&self.paths, output, plan), &to_screen);
        }
        rewriting::run(command, &self.rewrite, &self.paths, output, global)
    }
}
