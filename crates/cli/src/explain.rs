//! `explain`: what a read will do, before it is done.

use std::time::Duration;

use marquetry::read::Latency;
use serde_json::json;

use crate::args::{Explain, Global};
use crate::failure::Result;
use crate::input;
use crate::output::{bytes, count};
use crate::report::{Report, Section, with_keys};

/// Explains the read of each file.
pub(crate) fn run(command: &Explain, global: &Global) -> Result<()> {
    let latency = Latency::new(
        Duration::from_millis(command.latency.into()),
        u64::from(command.bandwidth) * 1_000_000,
    );
    let mut files = Vec::new();
    let mut records = Vec::new();
    let mut sections = Vec::new();
    for input in input::inputs(&command.rows.files, global)? {
        let path = &input.path;
        let plan = input::open_rows(&input, &command.rows, global)?.reader.explain()?;
        let rows = plan.row_groups.iter().map(|group| {
            vec![
                group.row_group.to_string(),
                group.outcome.to_string(),
                count(group.rows, global),
                count(group.rows_left, global),
                count(group.pages_pruned, global),
                bytes(group.fetch_bytes, global),
                count(group.requests, global),
            ]
        });
        let header = [
            ">row group",
            "outcome",
            ">rows",
            ">rows left",
            ">pages pruned",
            ">bytes",
            ">requests",
        ];
        let time = plan.time(latency);
        sections.push(
            Section::new(path.as_str(), &header).with(rows.collect()).with_expendable(&[
                "requests",
                "rows",
                "pages pruned",
            ]),
        );
        let all = vec![
            count(plan.rows_left(), global),
            bytes(plan.bytes(), global),
            count(plan.requests(), global),
            format!("{time:.2?}"),
        ];
        let header = [">rows left", ">bytes", ">requests", ">estimated time"];
        sections.push(Section::new("in all", &header).with(vec![all]));
        let groups: Vec<_> = plan
            .row_groups
            .iter()
            .map(|group| {
                json!({
                    "row_group": group.row_group,
                    "outcome": group.outcome.to_string(),
                    "rows": group.rows,
                    "rows_left": group.rows_left,
                    "pages": group.pages,
                    "pages_pruned": group.pages_pruned,
                    "chunk_bytes": group.chunk_bytes,
                    "fetch_bytes": group.fetch_bytes,
                    "index_bytes": group.index_bytes,
                    "requests": group.requests,
                    "ignored_indexes": group.ignored,
                })
            })
            .collect();
        let keys = |group| with_keys([("file", json!(path))], group);
        records.extend(groups.iter().map(keys));
        files.push(json!({
            "file": path,
            "filter": plan.filter,
            "leaves": plan.leaves,
            "rows_left": plan.rows_left(),
            "bytes": plan.bytes(),
            "requests": plan.requests(),
            "estimated_seconds": time.as_secs_f64(),
            "row_groups": groups,
        }));
    }
    Report { command: "explain", json: json!({ "files": files }), records, sections }.print(global)
}
