//! Times queries with DataFusion's own source and with ours, in turns, in the same process.
//!
//! ```text
//! cargo run --release --bin bench -- [--tpch FOLDER] [--scale 1] [--hits FILE] [--rounds 15]
//!     [--partitions 1,2] [--only q1,h20] [--engine both|stock|ours]
//!     [--explain yes]
//! ```
//!
//! With `--explain yes`, the plans and what each node of them took, instead of the times.
//! With one engine alone, for a profiler, the rounds are its own, and the other is only asked for
//! the expected rows.
//!
//! Tables of TPC-H that are not in FOLDER are made. The rows of both are compared
//! before the first round. Prints medians in milliseconds.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use datafusion::prelude::{SessionConfig, SessionContext};
use engines::{TPCH_TABLES, hits_queries, ours, register, rows, stock, tpch_queries, write_tpch};

struct Args {
    tpch: Option<PathBuf>,
    scale: f64,
    hits: Option<PathBuf>,
    rounds: usize,
    partitions: Vec<usize>,
    only: Vec<String>,
    /// The places of the engines that run, in the pair of both.
    turns: Vec<usize>,
    explains: bool,
}

fn args() -> Args {
    let mut out = Args {
        tpch: None,
        scale: 1.0,
        hits: None,
        rounds: 15,
        partitions: vec![1, 2],
        only: Vec::new(),
        turns: vec![0, 1],
        explains: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().unwrap_or_else(|| panic!("{name} wants a value"));
        match name.as_str() {
            "--tpch" => out.tpch = Some(value.into()),
            "--scale" => out.scale = value.parse().expect("a number"),
            "--hits" => out.hits = Some(value.into()),
            "--rounds" => out.rounds = value.parse().expect("a number"),
            "--partitions" => {
                out.partitions = value.split(',').map(|n| n.parse().expect("a number")).collect();
            }
            "--explain" => out.explains = value == "yes",
            "--engine" => {
                out.turns = match &*value {
                    "both" => vec![0, 1],
                    "stock" => vec![0],
                    "ours" => vec![1],
                    _ => panic!("--engine wants both, stock or ours"),
                };
            }
            "--only" => out.only = value.split(',').map(str::to_owned).collect(),
            _ => panic!("there is no {name}"),
        }
    }
    out
}

#[tokio::main]
async fn main() {
    let args = args();
    if let Some(folder) = &args.tpch {
        write_tpch(folder, args.scale);
    }
    for &partitions in &args.partitions {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let pair = [stock(config.clone()), ours(config)];
        if let Some(folder) = &args.tpch {
            for table in TPCH_TABLES {
                tables(&pair, table, &folder.join(format!("{table}.parquet"))).await;
            }
            compare(
                &format!("TPC-H, scale {}", args.scale),
                partitions,
                &pair,
                tpch_queries(),
                &args,
            )
            .await;
        }
        if let Some(path) = &args.hits {
            tables(&pair, "hits", path).await;
            compare("hits", partitions, &pair, hits_queries(), &args).await;
        }
    }
}

async fn tables(pair: &[SessionContext; 2], name: &str, path: &Path) {
    for session in pair {
        register(session, name, path).await.expect("a table");
    }
}

async fn compare(
    title: &str,
    partitions: usize,
    pair: &[SessionContext; 2],
    queries: Vec<(String, String)>,
    args: &Args,
) {
    println!("\n### {title}, {partitions} partition(s), median of {} rounds\n", args.rounds);
    println!("| query | stock ms | marquetry ms | stock / marquetry | |");
    println!("|---|--:|--:|--:|---|");
    let mut total = [0.0; 2];
    for (name, sql) in queries {
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        if args.explains {
            for turn in &args.turns {
                println!("{name}, {}:", ["stock", "ours"][*turn]);
                let plan = run(&pair[*turn], &format!("explain analyze {sql}")).await.1;
                println!("{}", rows(&plan).join("\n"));
            }
            continue;
        }
        let expected = rows(&run(&pair[0], &sql).await.1);
        let same = rows(&run(&pair[1], &sql).await.1) == expected;
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..args.rounds {
            for turn in 0..args.turns.len() {
                let which = args.turns[(round + turn) % args.turns.len()];
                times[which].push(run(&pair[which], &sql).await.0);
            }
        }
        let [stock, ours] = times.map(|times| median(times).as_secs_f64() * 1e3);
        total[0] += stock;
        total[1] += ours;
        let note = match (same, stock / ours) {
            (false, _) => "OTHER ROWS",
            (_, ratio) if ratio < 1.0 / 1.03 => "slower",
            _ => "",
        };
        println!("| {name} | {stock:.1} | {ours:.1} | {:.2} | {note} |", stock / ours);
    }
    println!("| all | {:.1} | {:.1} | {:.2} | |", total[0], total[1], total[0] / total[1]);
}

async fn run(
    session: &SessionContext,
    sql: &str,
) -> (Duration, Vec<datafusion::arrow::array::RecordBatch>) {
    let start = Instant::now();
    let frame = session.sql(sql).await.expect("a query");
    let found = frame.collect().await.expect("an answer");
    (start.elapsed(), found)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
