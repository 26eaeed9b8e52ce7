//! Strips a source file of comments and tests; each line keeps its number.

/// `code` without the items that tests alone have, wherever they stand; lines keep their numbers.
pub(crate) fn without_tests(code: &str) -> String {
    let mut code = code.to_owned();
    let mut from = 0;
    while let Some(at) = code[from..].find("#[cfg(").map(|at| from + at) {
        let end = matching(&code, at + 1);
        from = end;
        let condition: String = code[at..end].split_whitespace().collect();
        if condition == "#[cfg(test)]" || condition.starts_with("#[cfg(all(test,") {
            from = end_of_item(&code, end);
            let blank = code[at..from].chars().map(|c| if c == '\n' { '\n' } else { ' ' });
            code = [&code[..at], &blank.collect::<String>(), &code[from..]].concat();
            from = at;
        }
    }
    code
}

/// The lines of `code` with their numbers.
pub(crate) fn lines(code: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(code.lines())
}

/// `text` without comments, and of its literals only letters, digits, `_` and `.`, which names of
/// files have: neither braces nor paths in them count.
pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").expect("an end of the comment") + 2
        } else if let Some(len) = text_len(rest) {
            len
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let is_comment = first == '/';
        out.extend(rest[..len].chars().map(|c| match c {
            '\n' => c,
            _ if is_comment => ' ',
            '"' | '_' | '.' => c,
            _ if c.is_ascii_alphanumeric() => c,
            _ => ' ',
        }));
        rest = &rest[len..];
    }
    // A line has no blanks of its own at its end.
    out.lines().map(|line| [line.trim_end(), "\n"].concat()).collect()
}

/// How long the literal of a text or of a character is that `rest` begins with, if it does.
fn text_len(rest: &str) -> Option<usize> {
    let ends_at = |quote: char, from: usize| {
        let mut is_escaped = false;
        let end = rest[from..].find(|c| {
            let is_end = c == quote && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        from + end.expect("an end of the text") + 1
    };
    if rest.starts_with('"') {
        return Some(ends_at('"', 1));
    }
    if let Some(raw) = rest.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(2 + hashes + body.find(&end).expect("an end of the text") + end.len());
    }
    // A quote begins a character, or the name of a lifetime.
    let mut inner = rest.strip_prefix('\'')?.chars();
    let is_char = inner.next() == Some('\\') || inner.next() == Some('\'');
    is_char.then(|| ends_at('\'', 1))
}

/// Where the bracket at `at` is closed again.
pub(crate) fn matching(code: &str, at: usize) -> usize {
    let mut depth = 0;
    for (i, c) in code[at..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + i + 1;
        }
    }
    panic!("a bracket is not closed: {}", &code[at..]);
}

/// Where the item ends that begins after `from`: with its braces, or with a semicolon.
fn end_of_item(code: &str, from: usize) -> usize {
    let mut at = from;
    // The braces of a `use` do not end it.
    let is_use = code[from..]
        .split(['{', ';'])
        .next()
        .is_some_and(|head| head.split_whitespace().any(|word| word == "use"));
    loop {
        let c = code[at..].chars().next().expect("an end of the item");
        match c {
            ';' => return at + 1,
            '{' if !is_use => return matching(code, at),
            '(' | '[' | '{' => at = matching(code, at),
            ')' | ']' | '}' => panic!("an attribute of tests before no item: {}", &code[from..at]),
            _ => at += c.len_utf8(),
        }
    }
}

#[test]
fn code_goes_on_after_what_tests_alone_have() {
    let text = r##"
mod runs; // as `crate::comment::x` says
#[cfg(test)]
mod tests;
use crate::after_a_line::X;
/* crate::comment::y */
#[cfg(test)]
#[derive(Debug)]
mod inside {
    use crate::in_braces::X;
    const TEXT: &str = "}"; const C: char = '}'; const RAW: &str = r#" " } "#;
    fn f<'a>(x: &'a str) { if true { crate::in_braces::f(x) } }
}
use crate::after_braces::X;
#[cfg(all(
    test,
    feature = "snappy"
))]
use crate::in_use::{a::b, c};
impl X {
    #[cfg(test)]
    pub(crate) fn f(x: [u8; 4], y: &str) -> X {
        crate::in_method::f(x, "{", '\'')
    }
    fn g() { crate::after_method::f("crate::text::f \" {") }
}
#[cfg(not(test))]
use crate::without_tests::X;
"##;
    let code = without_tests(&without_comments(text));
    let used: Vec<&str> = code
        .split("crate::")
        .skip(1)
        .map(|rest| rest.split("::").next().unwrap_or_default())
        .collect();
    assert_eq!(used, ["after_a_line", "after_braces", "after_method", "without_tests"], "{code}");
    assert_eq!(code.lines().count(), text.lines().count(), "lines keep their numbers");
    let line = lines(&code).find(|(_, line)| line.contains("after_method"));
    assert_eq!(line.map(|(i, _)| i), Some(25));
}
