//! Our worker for a bench that lets Parquet readers and writers take turns: a JSON task a line in,
//! a JSON answer a line out.
//!
//! `marquetry-worker worker` takes tasks from standard input; `marquetry-worker one TASK` does one,
//! for a profiler. [`task`] is the protocol, [`work`] does a task with the public face of the
//! crate, [`measure`] holds the clock.

mod measure;
mod task;
mod work;

use std::error::Error;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use measure::measure;
use task::{Answer, Op, Task};
use work::Work;

/// Anything that goes wrong is a line of text in the answer.
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let mut work = Work::from_env()?;
    let mut out = std::io::stdout().lock();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["worker"] => {
            for line in std::io::stdin().lock().lines() {
                writeln!(out, "{}", answer(&mut work, &line?))?;
                out.flush()?;
            }
        }
        ["one", task] => writeln!(out, "{}", answer(&mut work, task))?,
        _ => return Err("usage: marquetry-worker worker | marquetry-worker one TASK".into()),
    }
    Ok(())
}

/// The answer to a line: a task that fails, even by a panic, leaves the worker ready for the next.
fn answer(work: &mut Work, line: &str) -> String {
    let done = catch_unwind(AssertUnwindSafe(|| run(work, line)));
    let answer = match done {
        Ok(Ok(answer)) => answer,
        Ok(Err(e)) => Answer::failed(e.to_string()),
        Err(_) => Answer::failed("panic".to_owned()),
    };
    serde_json::to_string(&answer).expect("numbers and text are JSON")
}

fn run(work: &mut Work, line: &str) -> Result<Answer> {
    let task: Task = serde_json::from_str(line)?;
    if task.op == Op::Clear {
        work.clear();
        return Ok(Answer::cleared());
    }
    work.prepare(&task)?;
    let (measured, done) = measure(task.iters, || work.run(&task))?;
    Ok(Answer::measured(measured, done))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/trips.parquet");

    /// The answer to a task on `trips.parquet`, with more fields given as JSON.
    fn ask(work: &mut Work, op: &str, more: &str) -> serde_json::Value {
        let line =
            format!(r#"{{"op": "{op}", "file": "{TRIPS}", "contender": "marquetry" {more}}}"#);
        serde_json::from_str(&answer(work, &line)).unwrap()
    }

    #[test]
    fn reads_of_every_kind_see_every_row() {
        let mut work = Work::default();
        for more in [
            "",
            r#", "mode": "collect""#,
            r#", "io": "mem", "iters": 3, "batch": 100"#,
            r#", "strings": "view""#,
            r#", "strings": "dict", "threads": 2"#,
            r#", "cols": ["fare", "id"]"#,
        ] {
            let answer = ask(&mut work, "read", more);
            assert_eq!(answer["ok"], true, "{more}: {answer}");
            assert_eq!(answer["rows"], 1_000, "{more}");
            let iterations = if more.contains("iters") { 3 } else { 1 };
            for key in ["wall", "cpu", "sys", "minflt"] {
                assert_eq!(answer[key].as_array().unwrap().len(), iterations, "{key} of {more}");
            }
        }
    }

    #[test]
    fn metadata_count_the_rows() {
        let mut work = Work::default();
        for more in ["", r#", "page_index": true"#, r#", "io": "mem", "page_index": true"#] {
            assert_eq!(ask(&mut work, "meta", more)["rows"], 1_000, "{more}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let folder = std::env::temp_dir().join(format!("marquetry-worker-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let out = folder.join("out.parquet");
        let mut work = Work::default();
        for more in ["", r#", "codec": "zstd1""#, r#", "codec": "default", "threads": 2"#] {
            let to = format!(r#"{more}, "rg_rows": 300, "out": "{}""#, out.display());
            let answer = ask(&mut work, "write", &to);
            assert_eq!(answer["rows"], 1_000, "{answer}");
            assert_eq!(answer["bytes"], std::fs::metadata(&out).unwrap().len());
            let reader = marquetry::Reader::open(&out).unwrap();
            assert_eq!(reader.rows().unwrap(), 1_000);
            assert_eq!(reader.metadata().row_groups(), 4);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_are_answers() {
        let mut work = Work::default();
        for (op, more) in
            [("dance", ""), ("read", r#", "cols": ["nothing"]"#), ("write", r#", "codec": "lzw""#)]
        {
            let answer = ask(&mut work, op, more);
            assert_eq!(answer["ok"], false, "{op}");
            assert!(answer["error"].is_string(), "{op}");
        }
        assert_eq!(answer(&mut work, r#"{"op": "clear"}"#), r#"{"ok":true}"#);
    }
}
