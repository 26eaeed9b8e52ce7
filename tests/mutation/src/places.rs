//! The places of a source file that can be mutated, and what stands there instead.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::*;

/// Bytes of a source, and other expressions for them.
pub(crate) struct Place {
    /// Empty at the start of the body of a function, where statements are inserted.
    pub(crate) bytes: std::ops::Range<usize>,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) function: String,
    /// A description of each change, and its text.
    pub(crate) changes: Vec<(String, String)>,
}

/// The places of `source` in their order, without those in tests, constants, patterns, types and
/// arguments of macros, and without code that is compiled for some platforms alone. Names of
/// files of tests are pushed onto `test_modules`.
pub(crate) fn places(source: &str, test_modules: &mut Vec<String>) -> Vec<Place> {
    let file = parse_file(source).expect("the sources compile");
    let mut finder = Finder { source, function: String::new(), found: Vec::new(), test_modules };
    finder.visit_file(&file);
    finder.found
}

struct Finder<'a> {
    source: &'a str,
    function: String,
    found: Vec<Place>,
    test_modules: &'a mut Vec<String>,
}

impl Finder<'_> {
    fn text(&self, node: &impl Spanned) -> &str {
        &self.source[node.span().byte_range()]
    }

    fn add(&mut self, bytes: std::ops::Range<usize>, at: Span, changes: Vec<(String, String)>) {
        if changes.is_empty() {
            return;
        }
        let (line, column) = (at.start().line, at.start().column + 1);
        self.found.push(Place { bytes, line, column, function: self.function.clone(), changes });
    }

    /// Values in place of the body of a function, then the places of the body.
    fn body(&mut self, signature: &Signature, block: &Block) {
        if signature.constness.is_some() {
            return;
        }
        let outer = std::mem::replace(&mut self.function, signature.ident.to_string());
        let body: String = self.text(block).split_whitespace().collect();
        let values = match &signature.output {
            ReturnType::Default => vec!["()".to_owned()],
            ReturnType::Type(_, output) => values(output),
        };
        let changes = values
            .into_iter()
            .filter(|value| {
                body != "{}" && body != format!("{{{value}}}") && signature.unsafety.is_none()
            })
            .map(|value| (format!("body with {value}"), format!(" return {value};")))
            .collect();
        let start = block.brace_token.span.open().byte_range().end;
        self.add(start..start, signature.ident.span(), changes);
        visit::visit_block(self, block);
        self.function = outer;
    }

    fn operator(&mut self, node: &ExprBinary) {
        let (left, op, right) =
            (self.text(&node.left), self.text(&node.op), self.text(&node.right));
        let others: &[&str] = match op {
            "&&" if has_let(&node.left) || has_let(&node.right) => &[],
            "==" => &["!="],
            "!=" => &["=="],
            "<" => &["<=", ">", "=="],
            "<=" => &["<", ">"],
            ">" => &[">=", "<", "=="],
            ">=" => &[">", "<"],
            "&&" => &["||"],
            "||" => &["&&"],
            _ => match op.trim_end_matches('=') {
                "+" => &["-", "*"],
                "-" => &["+", "/"],
                "*" => &["+", "/"],
                "/" => &["%", "*"],
                "%" => &["/", "+"],
                "&" => &["|", "^"],
                "|" => &["&", "^"],
                "^" => &["|", "&"],
                "<<" => &[">>"],
                _ => &["<<"],
            },
        };
        let assigns = op.ends_with('=') && !["==", "!=", "<=", ">="].contains(&op);
        let equals = if assigns { "=" } else { "" };
        // The left side of an assignment is a place, which is not read.
        let left = if assigns { left.to_owned() } else { format!("({left})") };
        let changes = others
            .iter()
            .map(|other| {
                (format!("{op} with {other}{equals}"), format!("{left} {other}{equals} ({right})"))
            })
            .collect();
        self.add(node.span().byte_range(), node.op.span(), changes);
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item_fn(&mut self, node: &'a ItemFn) {
        if !is_left_out(&node.attrs) {
            self.body(&node.sig, &node.block);
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'a ImplItemFn) {
        if !is_left_out(&node.attrs) {
            self.body(&node.sig, &node.block);
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'a TraitItemFn) {
        if let (Some(block), false) = (&node.default, is_left_out(&node.attrs)) {
            self.body(&node.sig, block);
        }
    }

    fn visit_item_impl(&mut self, node: &'a ItemImpl) {
        let of = node.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let is_dull = of.is_some_and(|of| of.ident == "Debug" || of.ident == "Default");
        if !is_dull && !is_left_out(&node.attrs) {
            visit::visit_item_impl(self, node);
        }
    }

    fn visit_item_mod(&mut self, node: &'a ItemMod) {
        if !is_left_out(&node.attrs) {
            visit::visit_item_mod(self, node);
        } else if node.content.is_none() {
            self.test_modules.push(node.ident.to_string());
        }
    }

    fn visit_expr_binary(&mut self, node: &'a ExprBinary) {
        self.operator(node);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'a ExprUnary) {
        if let UnOp::Not(_) | UnOp::Neg(_) = node.op {
            let change = format!("{} with nothing", self.text(&node.op));
            let changes = vec![(change, self.text(&node.expr).to_owned())];
            self.add(node.span().byte_range(), node.op.span(), changes);
        }
        visit::visit_expr_unary(self, node);
    }

    fn visit_arm(&mut self, node: &'a Arm) {
        if is_left_out(&node.attrs) {
            return;
        }
        if let Some((_, guard)) = &node.guard
            && !has_let(guard)
        {
            let change = |value: &str| (format!("guard with {value}"), value.to_owned());
            let changes = vec![change("true"), change("false")];
            self.add(guard.span().byte_range(), guard.span(), changes);
        }
        visit::visit_arm(self, node);
    }

    fn visit_expr_call(&mut self, node: &'a ExprCall) {
        if !is_left_out(&node.attrs) {
            visit::visit_expr_call(self, node);
        }
    }

    fn visit_expr_block(&mut self, node: &'a ExprBlock) {
        if !is_left_out(&node.attrs) {
            visit::visit_expr_block(self, node);
        }
    }

    fn visit_local(&mut self, node: &'a Local) {
        if !is_left_out(&node.attrs) {
            visit::visit_local(self, node);
        }
    }

    fn visit_expr_repeat(&mut self, node: &'a ExprRepeat) {
        self.visit_expr(&node.expr);
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}
    fn visit_item_const(&mut self, _: &'a ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'a ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'a TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'a ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'a ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'a ExprConst) {}
    fn visit_generic_argument(&mut self, _: &'a GenericArgument) {}
    fn visit_generics(&mut self, _: &'a Generics) {}
    fn visit_pat(&mut self, _: &'a Pat) {}
    fn visit_path(&mut self, _: &'a Path) {}
    fn visit_type(&mut self, _: &'a Type) {}
}

/// True of tests, and of code of some platforms.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = match &attribute.meta {
            Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string(),
            _ => String::new(),
        };
        condition.contains("test") || condition.contains("target_")
    })
}

fn has_let(node: &Expr) -> bool {
    match node {
        Expr::Let(_) => true,
        Expr::Binary(node) => has_let(&node.left) || has_let(&node.right),
        _ => false,
    }
}

/// Values that a function of this type could return.
fn values(output: &Type) -> Vec<String> {
    let text = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let last = match output {
        Type::Tuple(tuple) => {
            let firsts = tuple.elems.iter().map(|one| values(one).into_iter().next());
            let firsts: Option<Vec<String>> = firsts.collect();
            return firsts.map(|firsts| format!("({})", firsts.join(", "))).into_iter().collect();
        }
        Type::Reference(to) => match &*to.elem {
            Type::Path(path) if path.path.is_ident("str") => return text(&["\"\""]),
            Type::Slice(_) if to.mutability.is_none() => return text(&["&[]"]),
            _ => return Vec::new(),
        },
        Type::Path(path) => path.path.segments.last().expect("a path has a segment"),
        _ => return Vec::new(),
    };
    let first_argument = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.first(),
        _ => None,
    };
    let inner = match first_argument {
        Some(GenericArgument::Type(inner)) => values(inner),
        _ => Vec::new(),
    };
    match last.ident.to_string().as_str() {
        "bool" => text(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => text(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => text(&["0", "1", "-1"]),
        "f32" | "f64" => text(&["0.0", "1.0"]),
        "String" => text(&["String::new()"]),
        "Vec" => text(&["Vec::new()"]),
        "Result" => inner.iter().map(|value| format!("Ok({value})")).collect(),
        "Option" => {
            let is_default = |value: &&String| value.contains("default()");
            let some = inner.iter().filter(|value| !is_default(value));
            std::iter::once("None".to_owned()).chain(some.map(|it| format!("Some({it})"))).collect()
        }
        _ => text(&["Default::default()"]),
    }
}
