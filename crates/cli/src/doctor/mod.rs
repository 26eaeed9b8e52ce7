//! `doctor` finds what could be better in a file, and what that would bring: each price is that of
//! a trial with a sample of the file.

mod advice;
mod exam;
mod columns;
mod lookups;
mod orders;
mod structure;

use std::io::Write;
use std::path::Path;

use marquetry::Reader;
use marquetry::io::WriteSink;
use marquetry::rewrite::Rewrite;
use marquetry::schema::Projection;
use serde::Serialize;
use serde_json::json;

pub(crate) use self::advice::{Advice, percent};
use self::exam::{Exam, Goal, is_encrypted, quoted};
use crate::args::{Doctor, FailOn, Format, Global, GoalFlags, GoalName};
use crate::check::sarif;
use crate::escape::escape;
use crate::failure::{Failure, Result, after_printing};
use crate::recipe::{self, Recipe};
use crate::report::{self, Column, Report, Tables};
use crate::trial::{SamplePlan, SampleRows, TrialFile};
use crate::{input, output};

/// Bytes that indexes and metadata may add to any file: of a small one they are a large share.
const MAX_OVERHEAD: u64 = 64 << 10;

/// The findings about a file.
#[derive(Serialize)]
pub(crate) struct Diagnosis {
    pub(crate) file: String,
    pub(crate) target: GoalName,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// Rows that trials were made with.
    pub(crate) sample_rows: u64,
    /// Bytes of the file if it is written as the recipe says, by the trial.
    pub(crate) predicted_bytes: Option<u64>,
    pub(crate) findings: Vec<Advice>,
    #[serde(skip)]
    pub(crate) recipe: Recipe,
}

/// Examines a file.
pub(crate) fn diagnose(
    file: &str,
    reader: &Reader,
    flags: &GoalFlags,
    global: &Global,
) -> Result<Diagnosis> {
    let goal = Goal::new(flags.target);
    let plan = SamplePlan::new(reader, flags.sample, &Projection::All, global)?;
    let mut recipe = Recipe { profile: Some(goal.profile.to_owned()), ..Recipe::default() };
    let int96 = global.int96;
    let mut exam = Exam { file, reader, goal: &goal, plan: &plan, int96, findings: Vec::new() };
    exam.structure(flags.sample, &mut recipe)?;
    let mut predicted_bytes = None;
    if plan.rows > 0 {
        exam.columns(&mut recipe)?;
        let bytes = exam.whole(&recipe)?;
        predicted_bytes = Some(bytes);
        let has_grown = bytes > reader.file_len().saturating_add(MAX_OVERHEAD);
        if has_grown && advice::change(reader.file_len(), bytes) > goal.max_growth {
            exam.keep(bytes);
            recipe = Recipe { keep: true, ..Recipe::default() };
            predicted_bytes = Some(reader.file_len());
        }
    }
    let mut findings = exam.findings;
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.bytes));
    Ok(Diagnosis {
        file: file.to_owned(),
        target: goal.name,
        bytes: reader.file_len(),
        rows: plan.all_rows,
        sample_rows: plan.rows,
        predicted_bytes,
        findings,
        recipe,
    })
}

impl Exam<'_> {
    /// Writes the sample as the recipe says; returns the bytes of the file that it stands for.
    fn whole(&mut self, recipe: &Recipe) -> Result<u64> {
        let reader = self.plan.reader(self.reader, &Projection::All)?;
        let rows = SampleRows::read(&reader)?;
        let keeps_schema = Recipe::keeps_schema(self.reader)? && !is_encrypted(self.reader);
        let recipe = recipe.for_file(self.reader, keeps_schema)?;
        let bytes = match keeps_schema {
            true => {
                let rewrite = Rewrite::new([reader]).options(recipe.options()?).regroup(true);
                rewrite.run(WriteSink(std::io::sink()))?.bytes
            }
            false => TrialFile::write(&rows, &recipe.options()?, 1)?.bytes.len() as u64,
        };
        self.orders(&rows)?;
        self.lookups(&rows)?;
        Ok(self.plan.extrapolated(bytes))
    }

    /// Says that the file stays as it is, because it would grow by more than the target allows.
    fn keep(&mut self, bytes: u64) {
        let optimize = self.optimize();
        self.findings.retain(|finding| finding.command != optimize);
        let text = format!(
            "written anew for the target {}, the file would be larger by {:.0} %, by the trial; at \
             most {:.0} % are allowed",
            self.goal.text(),
            advice::change(self.reader.file_len(), bytes) * 100.0,
            self.goal.max_growth * 100.0
        );
        let int96 = self.int96_flag();
        let command = format!("marq doctor {} --target size{int96}", quoted(self.file));
        let advice = Advice::new(advice::Weight::Note, "stays-as-it-is", text, command);
        self.findings.push(advice);
    }
}

/// Shows what could be better.
pub(crate) fn run(command: &Doctor, global: &Global) -> Result<()> {
    let reader = input::open(&command.source.file, global)?;
    let diagnosis = diagnose(&command.source.file, &reader, &command.goal, global)?;
    if let Some(path) = &command.recipe {
        write_recipe(&diagnosis, path)?;
    }
    let printed = match global.format {
        Some(Format::Sarif) => print_sarif(&diagnosis, global),
        _ => report::print(&diagnosis, global),
    };
    let least = match command.fail_on {
        None => return printed,
        Some(FailOn::Warn) => advice::Weight::Warning,
        Some(FailOn::Error) => advice::Weight::Error,
    };
    let n = diagnosis.findings.iter().filter(|finding| finding.severity >= least).count();
    let verdict = match n {
        0 => Ok(()),
        _ => Err(Failure::Found(vec![format!("{}: {n} findings", command.source.file)])),
    };
    after_printing(printed, verdict)
}

fn write_recipe(diagnosis: &Diagnosis, path: &Path) -> Result<()> {
    let mut comments =
        vec![format!("For marq optimize {} --recipe FILE -o NEW.parquet", quoted(&diagnosis.file))];
    let sorts = diagnosis.findings.iter().filter(|finding| finding.code == "rows-clusterable");
    if let Some(column) = sorts.filter_map(|finding| finding.column.as_ref()).next() {
        // It changes the order of the rows, which only the user may.
        comments.push(format!("sort = [{}]", recipe::quoted(column)));
    }
    let text = diagnosis.recipe.to_toml(&comments);
    let name = path.display().to_string();
    std::fs::write(path, text)
        .map_err(|e| marquetry::Error::io("the recipe cannot be written", e).at_file(name))?;
    Ok(())
}

fn print_sarif(diagnosis: &Diagnosis, global: &Global) -> Result<()> {
    let mut codes: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules = codes.into_iter().map(|code| json!({ "id": code })).collect();
    let result = |finding: &Advice| {
        let mut location = json!({ "physicalLocation": {
            "artifactLocation": { "uri": sarif::uri(&diagnosis.file) }
        } });
        if let (Some(column), Some(location)) = (&finding.column, location.as_object_mut()) {
            let name = json!([{ "fullyQualifiedName": format!("column {column}") }]);
            location.insert("logicalLocations".to_owned(), name);
        }
        json!({
            "ruleId": finding.code, "level": finding.severity.name(),
            "message": { "text": finding.message }, "locations": [location],
            "properties": {
                "bytes": finding.bytes, "write_time": finding.write_time,
                "read_time": finding.read_time, "command": finding.command,
            },
        })
    };
    sarif::print_log(rules, diagnosis.findings.iter().map(result).collect(), global)
}

impl Diagnosis {
    /// The commands that do what the findings say, each once.
    pub(crate) fn commands(&self) -> Vec<&str> {
        let mut commands: Vec<&str> = Vec::new();
        for finding in &self.findings {
            if !commands.contains(&finding.command.as_str()) {
                commands.push(&finding.command);
            }
        }
        commands
    }
}

impl Report for Diagnosis {
    const COMMAND: &'static str = "doctor";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.findings.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let columns = [
            Column::text("severity", |of: &Advice| of.severity.name().to_owned()),
            Column::text("finding", |of| of.code.to_owned()),
            Column::text("column", |of| of.column.clone().unwrap_or_default()),
            Column::number("bytes", |of| of.bytes_changed()),
            Column::number("write time", |of| percent(of.write_time)),
            Column::number("read time", |of| percent(of.read_time)),
            Column::prose("message", |of| of.message.clone()),
        ];
        let title = format!(
            "{}: target {}, {} of {} rows tried",
            self.file,
            Goal::new(self.target).text(),
            output::count(self.sample_rows, global),
            output::count(self.rows, global)
        );
        match self.findings.is_empty() {
            true => out.line(&format!("{title}: nothing to do"))?,
            false => out.show(
                &title,
                &columns,
                &self.findings,
                &["severity", "read time", "write time"],
            )?,
        }
        let mut lines = vec![("size", output::bytes(self.bytes, global))];
        if let Some(bytes) = self.predicted_bytes {
            lines.push(("written anew, by the trial", output::bytes(bytes, global)));
        }
        out.about(&self.file, &lines)?;
        // Whole, so that they can be copied.
        let (sink, _) = out.raw();
        for command in self.commands() {
            writeln!(sink, "do: {}", escape(command))?;
        }
        Ok(())
    }
}
