//! Completes the help: each command has examples, and only the flags that it heeds.

use clap::Command;

/// A flag of all commands that has an effect only in some.
pub(crate) struct Limited {
    /// The name of its field.
    pub(crate) id: &'static str,
    pub(crate) flag: &'static str,
    /// The commands in which it has an effect.
    pub(crate) commands: &'static [&'static str],
    /// Their common purpose, in words.
    pub(crate) purpose: &'static str,
}

/// The commands that show something, in a form that can be chosen.
const SHOWING: &[&str] = &[
    "info",
    "schema",
    "head",
    "tail",
    "cat",
    "sample",
    "count",
    "explain",
    "pages",
    "dict",
    "bloom",
    "readers",
    "stats",
    "size",
    "map",
    "report",
    "hexdump",
    "concat",
    "append",
    "rewrite",
    "split",
    "compact",
    "fill",
    "doctor",
    "optimize",
    "bench",
    "check",
    "diff",
    "salvage",
    "crypt audit",
];

/// The commands that read rows, and `explain`, which shows how they would.
const READING: &[&str] = &["head", "tail", "cat", "sample", "count", "explain", "convert", "stats"];
/// The same with `schema`, where columns of folders and of INT96 have types.
const TYPING: &[&str] =
    &["schema", "head", "tail", "cat", "sample", "count", "explain", "convert", "stats"];
/// The same with commands that know no columns of folders.
const WITH_INT96: &[&str] = &[
    "schema", "head", "tail", "cat", "sample", "count", "explain", "dict", "convert", "stats",
    "doctor", "optimize", "bench",
];

const FOR_ROWS: &str = "commands that read rows (stats with --values), and explain";
const FOR_INT96: &str = "schema, dict, explain, doctor, optimize, bench, and commands that read rows \
                         (stats with --values)";
const FOR_TYPES: &str = "schema, explain and commands that read rows (stats with --values)";

/// The flags that not all commands use, those of the output first, as in the help.
#[rustfmt::skip]
pub(crate) const LIMITED: &[Limited] = &[
    limited("format", "--format", SHOWING,
        "what is shown, and the errors of convert (json); --to says the form of a file"),
    limited("raw", "--raw",
        &["info", "count", "explain", "pages", "bloom", "stats", "size", "map", "report", "convert",
            "concat", "append", "rewrite", "split", "compact", "fill", "doctor", "optimize", "bench",
            "diff", "salvage", "crypt audit"],
        "commands that print sizes and counts"),
    limited("progress", "--progress", &["head", "tail", "cat", "sample", "convert", "stats"],
        "convert, head, tail, cat, sample and stats --values"),
    limited("verbose", "--verbose",
        &["head", "tail", "cat", "sample", "readers", "convert", "concat", "append", "rewrite", "split",
            "compact", "crypt encrypt", "crypt decrypt", "crypt rekey", "crypt rewrap"],
        "convert, concat, append, rewrite, split, compact, crypt, head, tail, cat, sample and readers"),
    limited("wide", "--wide", SHOWING, "tables"),
    limited("vertical", "--vertical", SHOWING, "tables"),
    limited("filter", "--where",
        &["head", "tail", "cat", "sample", "count", "explain", "convert", "stats", "fill"],
        "commands that read rows (stats with --values), explain and fill"),
    limited("no_hive", "--no-hive", READING, FOR_ROWS),
    limited("hive_types", "--hive-types", TYPING, FOR_TYPES),
    limited("int96", "--int96", WITH_INT96, FOR_INT96),
    limited("threads", "--threads",
        &["head", "tail", "cat", "sample", "count", "check", "diff", "convert", "stats", "fill",
            "optimize", "bench"],
        "check, diff, fill, optimize, bench, and commands that read rows (stats with --values)"),
    limited("verify_statistics", "--verify-statistics", READING, FOR_ROWS),
    limited("on_damage", "--on-damage", &["head", "cat", "count", "convert"],
        "head, cat, convert, and count with --where"),
    limited("shared_bytes", "--shared-bytes",
        &["convert", "concat", "append", "rewrite", "split", "compact", "fill", "optimize",
            "crypt encrypt", "crypt decrypt", "crypt rekey"],
        "convert, concat, append, rewrite, split, compact, fill, optimize, and crypt encrypt, decrypt \
         and rekey"),
];

const fn limited(
    id: &'static str,
    flag: &'static str,
    commands: &'static [&'static str],
    purpose: &'static str,
) -> Limited {
    Limited { id, flag, commands, purpose }
}

/// The flags that `stats` uses only with `--values`.
pub(crate) const OF_VALUES: &[&str] =
    &["filter", "no_hive", "hive_types", "int96", "threads", "progress", "verify_statistics"];

/// Examples of each command; FILE stands for any file.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "info",
        &[
            "marq trips.parquet",
            "marq info trips.parquet -f json",
            "marq info trips.parquet --kv ARROW:schema",
        ],
    ),
    (
        "schema",
        &[
            "marq schema trips.parquet",
            "marq schema trips.parquet --as arrow",
            "marq schema trips.parquet --as sql:duckdb",
        ],
    ),
    (
        "head",
        &[
            "marq head trips.parquet",
            "marq head -3 trips.parquet -c id,fare,stops.list.element.name",
            "marq head trips.parquet --skip 100 --limit 5 --vertical",
            "marq head trips.parquet --where \"fare > 20 and payment = 'card'\"",
        ],
    ),
    (
        "concat",
        &[
            "marq concat 2026-*.parquet -o 2026.parquet",
            "marq concat day1.parquet day2.parquet -o days.parquet --by-name --dry-run",
            "marq concat trips.parquet -c id,fare -o fares.parquet --set-kv owner=me",
        ],
    ),
    ("append", &["marq append trips.parquet today.parquet", "marq append all.parquet new/ -v"]),
    (
        "rewrite",
        &[
            "marq rewrite trips.parquet -o small.parquet --codec zstd:9",
            "marq rewrite trips.parquet --in-place --bloom id --drop-kv ARROW:schema",
            "marq rewrite trips.parquet -o sorted.parquet --sort fare:desc,id",
            "marq rewrite trips.parquet --dry-run -c '!stops' --encoding id=DELTA_BINARY_PACKED",
        ],
    ),
    (
        "split",
        &[
            "marq split trips.parquet -o parts --rows 250",
            "marq split trips.parquet -o 'part-{}.parquet' --bytes 20KiB --dry-run",
            "marq split trips.parquet -o by-payment --by payment",
        ],
    ),
    ("compact", &["marq compact data --dry-run", "marq compact data --file-size 512MiB"]),
    (
        "fill",
        &[
            "marq fill foreign.parquet --dry-run --where 'fare > 20'",
            "marq fill foreign.parquet -o filled.parquet --bloom vendor:0.01",
            "marq fill foreign.parquet --in-place --sorted id --what all",
        ],
    ),
    (
        "doctor",
        &[
            "marq doctor trips.parquet --target scan",
            "marq doctor trips.parquet --recipe trips.toml --fail-on warn",
            "marq doctor trips.parquet -f sarif -o trips.sarif",
        ],
    ),
    (
        "optimize",
        &[
            "marq optimize trips.parquet -o small.parquet --target size",
            "marq optimize trips.parquet -o new.parquet --recipe trips.toml",
            "marq optimize trips.parquet --dry-run",
        ],
    ),
    (
        "bench",
        &["marq bench trips.parquet", "marq bench trips.parquet -c fare --seconds 5 -f json"],
    ),
    ("tail", &["marq tail trips.parquet", "marq tail -n 3 trips.parquet -c '!stops'"]),
    (
        "cat",
        &[
            "marq cat trips.parquet -f csv",
            "marq cat trips.parquet -c id,vendor -o vendors.jsonl",
            "marq cat trips.parquet --rows 100:200",
            "marq cat trips.parquet --on-damage null-pages -o rest.csv",
        ],
    ),
    ("sample", &["marq sample trips.parquet -n 5", "marq sample trips.parquet --seed 7"]),
    ("count", &["marq count trips.parquet", "marq count trips.parquet --where 'passengers > 2'"]),
    (
        "explain",
        &["marq explain trips.parquet --where 'id < 100'", "marq explain trips.parquet -c fare"],
    ),
    ("pages", &["marq pages trips.parquet -c fare", "marq pages trips.parquet --row-group 0"]),
    (
        "dict",
        &["marq dict trips.parquet payment", "marq dict trips.parquet vendor --row-group 0 -n 5"],
    ),
    ("bloom", &["marq bloom trips.parquet id 42 4711", "marq bloom trips.parquet vendor -f json"]),
    (
        "readers",
        &[
            "marq readers trips.parquet",
            "marq readers trips.parquet -v",
            "marq readers trips.parquet --for duckdb,polars",
        ],
    ),
    (
        "stats",
        &[
            "marq stats trips.parquet",
            "marq stats trips.parquet -c fare --by rowgroup",
            "marq stats trips.parquet --values",
        ],
    ),
    (
        "size",
        &[
            "marq size trips.parquet",
            "marq size trips.parquet --by structure",
            "marq size trips.parquet --top 10 -f csv",
        ],
    ),
    (
        "map",
        &[
            "marq map trips.parquet",
            "marq map trips.parquet -o trips.svg --color-by encoding",
            "marq map trips.parquet --to html -o trips.html --overlay 'where=fare > 20'",
        ],
    ),
    (
        "report",
        &[
            "marq report trips.parquet -o trips.html",
            "marq report trips.parquet -o pages.html --sections pages --overlay 'where=id < 100'",
        ],
    ),
    (
        "hexdump",
        &[
            "marq hexdump trips.parquet",
            "marq hexdump trips.parquet --page 0/fare/0",
            "marq hexdump trips.parquet --at 0x400:64",
            "marq hexdump trips.parquet --footer -f json",
        ],
    ),
    (
        "check",
        &[
            "marq check trips.parquet",
            "marq check trips.parquet --level truth",
            "marq check trips.parquet --level footer --severity note",
            "marq check new.parquet --contract trips.toml",
            "marq check trips.parquet --level truth -f sarif -o trips.sarif",
        ],
    ),
    (
        "salvage",
        &[
            "marq salvage broken.parquet",
            "marq salvage broken.parquet -o whole.parquet --schema-from trips.parquet",
            "marq salvage .all.parquet.4711-0.tmp -o all.parquet --report",
        ],
    ),
    (
        "diff",
        &[
            "marq diff trips.parquet smaller.parquet",
            "marq diff monday.parquet tuesday.parquet --key id --max 5",
            "marq diff trips.parquet smaller.parquet --what layout,stats -f json",
        ],
    ),
    (
        "convert",
        &[
            "marq convert trips.parquet -o trips.csv",
            "marq convert trips.csv -o fresh.parquet --compression zstd:9",
            "marq convert trips.parquet -o small.parquet --where 'fare > 20'",
            "marq convert trips.parquet -o by-vendor --partition-by vendor --sort id",
        ],
    ),
    ("crypt audit", &["marq crypt audit trips.parquet"]),
    (
        "crypt encrypt",
        &["marq crypt encrypt trips.parquet -o e.parquet --encrypt-footer-key @key.hex"],
    ),
    ("crypt decrypt", &["marq crypt decrypt e.parquet -o plain.parquet --footer-key @key.hex"]),
    (
        "crypt rekey",
        &["marq crypt rekey e.parquet -o fresh.parquet --footer-key @key.hex \\\n        \
             --encrypt-footer-key @new.hex"],
    ),
    ("completions", &["marq completions bash > /usr/share/bash-completion/completions/marq"]),
    ("man", &["marq man | man -l -", "marq man -o /usr/share/man/man1"]),
];

/// Completes the command with examples, and hides flags that a command does not use.
pub(crate) fn complete(root: Command) -> Command {
    let limited: Vec<(&Limited, clap::Arg)> = LIMITED
        .iter()
        .filter_map(|flag| {
            let found = root.get_arguments().find(|arg| arg.get_id() == flag.id)?;
            Some((flag, found.clone().hide(true)))
        })
        .collect();
    let names: Vec<String> = root.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(root, |root, name| {
        root.mut_subcommand(&name, |sub| {
            let inner: Vec<String> =
                sub.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
            let sub = inner.iter().fold(sub, |sub, of_crypt| {
                let path = format!("{name} {of_crypt}");
                sub.mut_subcommand(of_crypt, |sub| complete_one(sub, &path, &limited))
            });
            if inner.is_empty() { complete_one(sub, &name, &limited) } else { sub }
        })
    })
}

fn complete_one(command: Command, path: &str, limited: &[(&Limited, clap::Arg)]) -> Command {
    let hidden = limited.iter().filter(|(flag, _)| !flag.commands.contains(&path));
    // An argument of its own takes the place of the one that all commands have.
    let command = hidden.fold(command, |command, (_, arg)| command.arg(arg.clone()));
    match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, examples)) => {
            command.after_help(format!("Examples:\n  {}", examples.join("\n  ")))
        }
        None => command,
    }
}

/// Commands that the screen names in these lines only: all would not fit into 24 lines.
const NAMED_ONLY: [&str; 2] = [
    "tail, cat, sample, pages, dict, bloom, append, split, compact, fill,",
    "salvage, doctor, optimize, bench, diff, completions, man",
];

/// The screen that `marq` prints when it is called without arguments.
pub(crate) fn screen(root: Command) -> clap::builder::StyledStr {
    let names = NAMED_ONLY.iter().flat_map(|line| line.split([',', ' ']));
    let names = names.filter(|name| !name.is_empty());
    let root = names.fold(root, |root, name| root.mut_subcommand(name, |sub| sub.hide(true)));
    let [first, second] = NAMED_ONLY;
    root.disable_help_subcommand(true)
        .help_template(format!(
            "{{about}}\n{{usage-heading}} marq COMMAND FILE ...   or   marq FILE\n\
             Commands:\n{{subcommands}}\n\n\
             And: {first}\n     {second}.\n\
             `marq help COMMAND` lists flags and examples of a command, `marq --help` all.",
        ))
        .term_width(80)
        .render_help()
}
