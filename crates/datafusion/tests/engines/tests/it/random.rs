//! Tests random queries over random tables, with both sources and over the same rows in memory.
//!
//! `MARQUETRY_CASES` is the number of queries, `MARQUETRY_SEED` the seed of the random numbers. A
//! query fails the test if ours returns other rows than those in memory do, or fails where one of
//! the others succeeds. Differences of DataFusion's own source are listed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::Result;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use fastrand::Rng;
use marquetry_datafusion::{MarquetryFormat, MarquetryTable};

/// Queries of one table.
const QUERIES: usize = 20;

/// A column of a table: its name and type, and the types that it has in files.
struct Kind {
    name: &'static str,
    data_type: DataType,
    in_files: Vec<DataType>,
}

fn kinds() -> Vec<Kind> {
    use DataType as D;
    let kind = |name, data_type: D, others: &[D]| {
        let in_files = [std::slice::from_ref(&data_type), others].concat();
        Kind { name, data_type, in_files }
    };
    let of_words = D::Dictionary(Box::new(D::Int32), Box::new(D::Utf8));
    let micros = D::Timestamp(TimeUnit::Microsecond, None);
    vec![
        kind("k", D::Int64, &[D::Int32]),
        kind("i", D::Int32, &[D::Int16, D::Int8]),
        kind("z", D::Int64, &[D::Int32]),
        kind("n", D::Int64, &[]),
        kind("f", D::Float64, &[D::Float32]),
        kind("g", D::Float32, &[]),
        kind("s", D::Utf8View, &[D::Utf8, of_words.clone()]),
        kind("d", of_words, &[D::Utf8]),
        kind("t", micros, &[D::Timestamp(TimeUnit::Millisecond, None)]),
        kind("day", D::Date32, &[]),
        kind("b", D::Boolean, &[]),
        kind("p", D::Decimal128(12, 2), &[D::Decimal128(7, 2)]),
    ]
}

/// Values of a column; its floats have this zero and not the other, because DataFusion sorts by
/// their signs and merges as if they were one.
fn values(rng: &mut Rng, name: &str, first: i64, rows: usize, zero: f64) -> ArrayRef {
    let nulls = [0.0, 0.0, 0.1, 0.9][rng.usize(0..4)];
    let range = [3, 20, 100, 3000][rng.usize(0..4)];
    let is_sorted = rng.u8(0..3) == 0;
    let mut numbers: Vec<i64> = (0..rows).map(|_| rng.i64(-range / 3..range)).collect();
    if is_sorted {
        numbers.sort_unstable();
    }
    let has_odd = rng.bool();
    let late = rng.u8(0..4) == 0;
    let mut at = 0;
    let mut is_null = |rng: &mut Rng| {
        at += 1;
        rng.f64() < nulls || late && at * 3 < rows * 2
    };
    match name {
        "k" => Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|i| first + i))),
        "i" | "z" => Arc::new(Int64Array::from_iter(
            numbers.into_iter().map(|n| (!is_null(rng)).then_some(n.clamp(-127, 127))),
        )),
        "n" => {
            let end = rows / 5;
            let rows = numbers.into_iter().enumerate();
            Arc::new(Int64Array::from_iter(rows.map(|(i, n)| (i < end).then_some(n))))
        }
        "f" | "g" => {
            let odd = [f64::NAN, -f64::NAN, zero, f64::INFINITY, f64::NEG_INFINITY];
            let float = |n: i64| if n == 0 { zero } else { n as f64 / 4.0 };
            let value = numbers.into_iter().map(|n| {
                let value = match has_odd && rng.u8(0..20) == 0 {
                    true => odd[rng.usize(0..odd.len())],
                    false => float(n),
                };
                (!is_null(rng)).then_some(value)
            });
            Arc::new(Float64Array::from_iter(value))
        }
        "s" | "d" => {
            let is_number = rng.bool();
            let text = |n: i64| match is_number {
                true => n.to_string(),
                false => format!("w{:04}", n.rem_euclid(50)),
            };
            let value = numbers.into_iter().map(|n| (!is_null(rng)).then_some(text(n)));
            Arc::new(StringArray::from_iter(value))
        }
        "b" => Arc::new(BooleanArray::from_iter(
            numbers.into_iter().map(|n| (!is_null(rng)).then_some(n % 2 == 0)),
        )),
        "t" => Arc::new(TimestampMillisecondArray::from_iter(
            numbers.into_iter().map(|n| (!is_null(rng)).then_some(n * 3_600_000)),
        )),
        "day" => Arc::new(Date32Array::from_iter(
            numbers.into_iter().map(|n| (!is_null(rng)).then_some(n as i32)),
        )),
        _ => Arc::new(
            Decimal128Array::from_iter(
                numbers.into_iter().map(|n| (!is_null(rng)).then_some(i128::from(n) * 25)),
            )
            .with_precision_and_scale(7, 2)
            .expect("small numbers"),
        ),
    }
}

fn write(rng: &mut Rng, path: &Path, batch: RecordBatch) {
    let page = rng.usize(10..200);
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rng.usize(20..800)))
        .set_data_page_row_count_limit(page)
        .set_write_batch_size(page)
        .set_bloom_filter_enabled(rng.bool());
    if rng.bool() {
        properties = properties.set_dictionary_enabled(false);
    }
    let batches = [Ok::<_, std::convert::Infallible>(batch)].into_iter();
    engines::write_with(path, batches, properties.build());
}

/// The same table in three sessions.
struct Tables {
    memory: SessionContext,
    /// The same, in batches of one row: whether an expression fails depends on the row alone.
    by_row: SessionContext,
    stock: SessionContext,
    ours: SessionContext,
    /// Names of the columns.
    columns: Vec<&'static str>,
    rows: i64,
}

impl Tables {
    async fn new(rng: &mut Rng, folder: &Path) -> Self {
        let mut kinds = kinds();
        rng.shuffle(&mut kinds[1..]);
        kinds.truncate(rng.usize(4..=12));
        let fields: Vec<_> =
            kinds.iter().map(|kind| Field::new(kind.name, kind.data_type.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let config = config(rng);
        let zero = [0.0, -0.0][rng.usize(0..2)];
        let mut found = Vec::new();
        let mut rows = 0;
        for file in 0..rng.usize(1..=3) {
            let (columns, n) = columns(rng, &kinds, rows, zero);
            rows += n as i64;
            let in_file = RecordBatch::try_from_iter(columns).expect("columns of one length");
            found.push(in_memory(&in_file, &schema));
            write(rng, &folder.join(format!("{file}.parquet")), in_file);
        }
        let in_parts = |step| {
            let session = engines::stock(SessionConfig::new().with_batch_size(step));
            let table = MemTable::try_new(schema.clone(), parts(&schema, &found, step));
            session.register_table("t", Arc::new(table.expect("a table"))).expect("a new name");
            session
        };
        let (memory, by_row) = (in_parts(1000), in_parts(1));
        let stock = engines::stock(config.clone());
        let table = listed(&schema, folder, Arc::new(ParquetFormat::default()));
        stock.register_table("t", table).expect("a new name");
        let is_installed = rng.bool();
        let ours = if is_installed { engines::ours(config) } else { engines::stock(config) };
        let table: Arc<dyn TableProvider> = match is_installed {
            true => listed(&schema, folder, Arc::new(MarquetryFormat::new())),
            false => {
                let paths = [format!("{}/", folder.display())];
                let table = MarquetryTable::with_schema(schema, paths, [], MarquetryFormat::new());
                Arc::new(table.expect("a table"))
            }
        };
        ours.register_table("t", table).expect("a new name");
        Self {
            memory,
            by_row,
            stock,
            ours,
            columns: kinds.iter().map(|kind| kind.name).collect(),
            rows,
        }
    }
}

fn config(rng: &mut Rng) -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(rng.usize(1..=4))
        .with_repartition_file_min_size([1, 1 << 30][rng.usize(0..2)])
        .with_batch_size([32, 100, 100, 1000, 8192][rng.usize(0..5)])
        .with_collect_statistics(rng.bool())
}

/// The columns of a file: some are missing, some are narrower than in the table.
fn columns(
    rng: &mut Rng,
    kinds: &[Kind],
    first: i64,
    zero: f64,
) -> (Vec<(&'static str, ArrayRef)>, usize) {
    let rows = [1, 300, 2500, 5000][rng.usize(0..4)];
    let mut columns = Vec::new();
    for kind in kinds {
        let values = values(rng, kind.name, first, rows, zero);
        if kind.name == "k" || rng.u8(0..8) > 0 {
            let in_file = &kind.in_files[rng.usize(0..kind.in_files.len())];
            columns.push((kind.name, cast(&values, in_file).expect("values of the type")));
        }
    }
    rng.shuffle(&mut columns[1..]);
    (columns, rows)
}

/// The columns of a file in a table.
fn in_memory(of_file: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let column = |field: &Arc<Field>| match of_file.column_by_name(field.name()) {
        Some(column) => cast(column, field.data_type()).expect("a wider type"),
        None => new_null_array(field.data_type(), of_file.num_rows()),
    };
    let columns = schema.fields().iter().map(column).collect();
    RecordBatch::try_new(schema.clone(), columns).expect("the columns of the table")
}

/// All rows, in batches of `step` rows.
fn parts(schema: &SchemaRef, found: &[RecordBatch], step: usize) -> Vec<Vec<RecordBatch>> {
    let all = concat_batches(schema, found).expect("batches of one schema");
    let at = (0..all.num_rows()).step_by(step);
    vec![at.map(|at| all.slice(at, step.min(all.num_rows() - at))).collect()]
}

fn listed(
    schema: &SchemaRef,
    folder: &Path,
    format: Arc<dyn FileFormat>,
) -> Arc<dyn TableProvider> {
    let url = ListingTableUrl::parse(format!("{}/", folder.display())).expect("a folder");
    let options = ListingOptions::new(format).with_file_extension(".parquet");
    let config = ListingTableConfig::new(url);
    let config = config.with_listing_options(options).with_schema(schema.clone());
    Arc::new(ListingTable::try_new(config).expect("a table"))
}

/// Makes queries of a table.
struct Queries<'a> {
    rng: &'a mut Rng,
    tables: &'a Tables,
}

impl Queries<'_> {
    fn one_of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.rng.usize(0..all.len())]
    }

    /// One of these columns that the table has, or else its first.
    fn column(&mut self, of: &[&str]) -> &'static str {
        let found = self.tables.columns.iter().filter(|name| of.contains(name));
        let found: Vec<&'static str> = found.copied().collect();
        if found.is_empty() { "k" } else { found[self.rng.usize(0..found.len())] }
    }

    fn any_column(&mut self) -> &'static str {
        self.tables.columns[self.rng.usize(0..self.tables.columns.len())]
    }

    fn integer(&mut self) -> &'static str {
        self.column(&["k", "i", "z", "n"])
    }

    fn literal(&mut self, column: &str) -> String {
        let n = self.rng.i64(-30..130);
        match column {
            "k" => self.rng.i64(-5..self.tables.rows + 5).to_string(),
            "f" | "g" => {
                let odd = ["'NaN'", "'-NaN'", "'inf'", "'-inf'"];
                match self.rng.u8(0..6) {
                    0 => format!("cast({} as double)", self.one_of(&odd)),
                    1 => self.one_of(&["0.0", "-0.0"]).to_owned(),
                    _ => format!("{}", n as f64 / 4.0),
                }
            }
            "s" | "d" => match self.rng.bool() {
                true => format!("'{n}'"),
                false => format!("'w{:04}'", n.rem_euclid(50)),
            },
            "b" => self.one_of(&["true", "false"]).to_owned(),
            "t" => format!("timestamp '1970-01-{:02} 03:00:00'", n.rem_euclid(28) + 1),
            "day" => format!("date '1970-03-{:02}'", n.rem_euclid(28) + 1),
            "p" => format!("{}", n as f64 / 4.0),
            _ => n.to_string(),
        }
    }

    fn comparison(&mut self, column: &str) -> String {
        let op = self.one_of(&["=", "<>", "<", "<=", ">", ">="]);
        let literal = self.literal(column);
        format!("{column} {op} {literal}")
    }

    /// A condition that fails for some rows.
    fn failing(&mut self) -> String {
        let (a, b) = (self.integer(), self.integer());
        let n = self.rng.i64(-3..30);
        let text = self.column(&["s", "d"]);
        match self.rng.u8(0..7) {
            0 => format!("100 / {a} > {n}"),
            1 => format!("{a} % {b} = {}", n / 8),
            2 if text != "k" => format!("cast({text} as int) < {n}"),
            3 => format!("cast({a} * 100 as smallint) > {n}"),
            4 => format!("({a} = 0 or 100 / {a} > {n})"),
            5 => format!("cast({a} as tinyint) % {b} <> 1"),
            _ => format!("case when {a} <> 0 then {b} / {a} else 1 end < {n}"),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth > 0 && self.rng.u8(0..3) > 0 {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.rng.u8(0..6) {
                0..=2 => format!("({a} and {b})"),
                3 | 4 => format!("({a} or {b})"),
                _ => format!("not ({a})"),
            };
        }
        let column = self.any_column();
        match self.rng.u8(0..16) {
            0 => format!("{column} is null"),
            1 => format!("{column} is not null"),
            2 => format!("{column} in ({}, {})", self.literal(column), self.literal(column)),
            3 => format!("{column} not in ({}, {})", self.literal(column), self.literal(column)),
            4 => format!("{column} between {} and {}", self.literal(column), self.literal(column)),
            5 => {
                let (a, b) = (self.integer(), self.integer());
                format!("{a} + {b} > {}", self.rng.i64(-10..100))
            }
            6 => {
                let (text, n) = (self.column(&["s", "d"]), self.rng.u8(0..10));
                if text == "k" { "k > 3".to_owned() } else { format!("{text} like 'w%{n}'") }
            }
            7 => {
                let (a, b) = (self.integer(), self.integer());
                format!("{a} < {b}")
            }
            _ => self.comparison(column),
        }
    }

    /// A WHERE clause, or none.
    fn filter(&mut self) -> String {
        match self.rng.u8(0..8) {
            0 => String::new(),
            1 | 2 => {
                let mut parts = vec![self.condition(1), self.failing()];
                let column = self.integer();
                parts.push(format!("{column} <> 0"));
                if self.rng.bool() {
                    parts.push(self.failing());
                }
                self.rng.shuffle(&mut parts);
                format!(" where {}", parts.join(" and "))
            }
            _ => format!(" where {}", self.condition(2)),
        }
    }

    fn aggregate(&mut self) -> String {
        let column = self.any_column();
        let (a, b) = (self.integer(), self.integer());
        let f = self.one_of(&["min", "max"]);
        match self.rng.u8(0..12) {
            0..=3 if column != "b" => format!("{f}({column})"),
            4 => format!("{f}({a})"),
            5 => format!("{f}({a} + {b})"),
            6 => format!("{f}(cast({a} as double))"),
            7 => format!("{f}({a}) filter (where {})", self.condition(0)),
            8 if self.rng.bool() => "count(*)".to_owned(),
            9 if self.rng.bool() => format!("count({column})"),
            10 if self.rng.bool() => format!("sum({a})"),
            _ => format!("{f}(-{a})"),
        }
    }

    /// Aggregates; those of groups are not of floats: where a NaN is among them, DataFusion's least
    /// and greatest of a group depend on the order of the rows.
    fn aggregates(&mut self, are_of_groups: bool) -> String {
        let mut one = || loop {
            let found = self.aggregate();
            if !are_of_groups || !["f)", "g)"].iter().any(|end| found.ends_with(end)) {
                return found;
            }
        };
        let all: Vec<String> = (0..4).map(|_| one()).collect();
        let all = &all[..self.rng.usize(1..=4)];
        all.iter().enumerate().map(|(i, of)| format!("{of} as a{i}")).collect::<Vec<_>>().join(", ")
    }

    fn query(&mut self) -> String {
        let filter = self.filter();
        match self.rng.u8(0..10) {
            0..=2 => format!("select * from t{filter}"),
            3..=5 => format!("select {} from t{filter}", self.aggregates(false)),
            6 => {
                let key = self.column(&["i", "s", "d", "b", "day", "z"]);
                format!("select {key}, {} from t{filter} group by {key}", self.aggregates(true))
            }
            7 | 8 => {
                let (column, other) = (self.any_column(), self.any_column());
                let order = self.one_of(&["", " desc", " nulls first", " desc nulls last"]);
                let limit = self.rng.usize(1..20);
                format!(
                    "select {column} as c1, {other} as c2, k from t{filter} order by {column}{order}, k \
                     limit {limit}"
                )
            }
            _ => {
                let key = self.column(&["k", "i", "z", "s", "d", "p", "day"]);
                let (condition, column) = (self.comparison("k"), self.any_column());
                format!(
                    "select t.k, t.{column} as c1 from t join (select k as k2, {key} as key from t \
                     where {condition} order by k limit 40) u on t.{key} = u.key and u.k2 <> t.k"
                )
            }
        }
    }
}

/// The rows of an answer, in no order.
async fn answer(session: &SessionContext, sql: &str) -> Answer {
    let frame = session.sql(sql).await.map_err(|e| format!("planning: {e}"))?;
    let found = frame.collect().await.map_err(|e| e.to_string())?;
    let mut rows = engines::rows(&found);
    rows.sort();
    Ok(rows)
}

async fn plan_of(session: &SessionContext, sql: &str) -> Result<Arc<dyn ExecutionPlan>> {
    session.sql(sql).await?.create_physical_plan().await
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// How the answers of a query go together.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Outcome {
    /// All three answer, or all fail.
    Same,
    /// The others fail, ours answers.
    OursAnswers,
    /// DataFusion's own source differs from memory, and ours does not.
    StockDiffers,
    /// Ours differs.
    Differs,
}

type Answer = std::result::Result<Vec<String>, String>;

fn outcome(memory: &Answer, stock: &Answer, ours: &Answer) -> Outcome {
    match (memory, stock, ours) {
        (Ok(memory), stock, Ok(ours)) if memory == ours => match stock {
            Ok(stock) if stock == memory => Outcome::Same,
            _ => Outcome::StockDiffers,
        },
        (Err(_), Err(_), Err(_)) => Outcome::Same,
        (Err(_), Err(_), Ok(_)) => Outcome::OursAnswers,
        (Err(_), Ok(stock), Ok(ours)) if stock == ours => Outcome::Same,
        _ => Outcome::Differs,
    }
}

/// The part of a result that fits in a line: how many rows, and those that the rows in memory do
/// not have.
fn shown(answer: &Answer, memory: &Answer) -> String {
    match answer {
        Ok(rows) => {
            let expected = memory.as_deref().unwrap_or_default();
            let other = rows.iter().filter(|row| expected.binary_search(row).is_err());
            let other: Vec<&str> = other.take(4).map(String::as_str).collect();
            format!("{} rows, others: {}", rows.len(), other.join("; "))
        }
        Err(error) => format!("error: {}", error.lines().next().unwrap_or_default()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_give_the_rows_that_they_give_in_memory() {
    let (cases, seed) = (number("MARQUETRY_CASES", 300), number("MARQUETRY_SEED", 30));
    println!("{cases} queries from seed {seed}");
    let mut counts = BTreeMap::new();
    let mut differing = Vec::new();
    for table in 0..cases.div_ceil(QUERIES as u64) {
        let mut rng = Rng::with_seed(seed.wrapping_add(table));
        let folder = tempfile::tempdir().expect("a folder");
        let tables = Tables::new(&mut rng, folder.path()).await;
        for i in 0..QUERIES {
            let sql = Queries { rng: &mut rng, tables: &tables }.query();
            let mut memory = answer(&tables.memory, &sql).await;
            if memory.is_err() {
                memory = answer(&tables.by_row, &sql).await;
            }
            let stock = answer(&tables.stock, &sql).await;
            let ours = answer(&tables.ours, &sql).await;
            let outcome = outcome(&memory, &stock, &ours);
            *counts.entry(outcome).or_insert(0) += 1;
            if outcome >= Outcome::StockDiffers {
                let seed = seed.wrapping_add(table);
                println!("{outcome:?} seed {seed}, query {i}: {sql}");
                for (name, answer) in [("memory", &memory), ("stock", &stock), ("ours", &ours)] {
                    println!("  {name:6} {}", shown(answer, &memory));
                }
            }
            if outcome == Outcome::Differs {
                for session in [&tables.stock, &tables.ours] {
                    if let Ok(plan) = plan_of(session, &sql).await {
                        println!("{}", crate::text(&plan));
                    }
                }
                differing.push(sql);
            }
        }
    }
    println!("{counts:?}");
    let answered = counts.get(&Outcome::Same).copied().unwrap_or(0);
    assert!(differing.is_empty(), "{} of {cases} differ: {differing:#?}", differing.len());
    assert!(answered * 2 > cases, "few queries tell anything: {counts:?}");
}
