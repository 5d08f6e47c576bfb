//! Whether a CEL rule of a definition compiles: its grammar, the names that it uses, and the fields that it asks for, in
//! the words of the server's compiler. Types are followed as far as a field's schema says them; what is not known is not
//! held against a rule.

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr};
use kube_cel::cel::parser::Parser;
use serde_json::Value;

/// What a rule has to come to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Holds or not.
    Truth,
    /// A message.
    Text,
}

/// Names of types, and of libraries whose functions are called by a dot.
const NAMES: [&str; 27] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
    "dyn",
    "google",
    "optional",
    "ip",
    "cidr",
    "net",
    "sets",
    "math",
    "strings",
    "format",
    "base64",
    "cel",
    "lists",
    "regex",
    "kubernetes",
    "semver",
];

/// The functions of the language and of Kubernetes.
const FUNCTIONS: &str = "all exists exists_one existsOne map filter has size contains endsWith startsWith matches string \
    bytes double int uint bool duration timestamp dyn type getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear \
    getHours getMilliseconds getMinutes getMonth getSeconds charAt indexOf lastIndexOf lowerAscii upperAscii replace split \
    join substring trim quote strings.quote reverse format isSorted sum min max find findAll isURL url getScheme getHost \
    getHostname getPort getEscapedPath getQuery isQuantity quantity sign isInteger asInteger asApproximateFloat \
    isGreaterThan isLessThan compareTo add sub isIP ip family isUnspecified isLoopback isLinkLocalMulticast \
    isLinkLocalUnicast isGlobalUnicast isCanonical isCIDR cidr containsIP containsCIDR masked prefixLength named validate \
    of none ofNonZeroValue hasValue value or orValue optMap optFlatMap equivalent intersects isSemver semver major minor \
    patch bind transformList transformMap transformMapEntry encode decode first last slice flatten distinct range sort \
    sortBy greatest least ceil floor round trunc abs isNaN isInf isFinite bitOr bitAnd bitXor bitNot bitShiftLeft \
    bitShiftRight unwrapOpt unwrap optional.of optional.none";

/// Macros whose names of their own the parser at hand does not know.
const MACROS: [&str; 12] = [
    "bind",
    "optMap",
    "optFlatMap",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "sortBy",
    "all",
    "exists",
    "existsOne",
    "exists_one",
    "map",
];

/// What is known of a value: its schema, and whether it is a whole object of an API.
#[derive(Clone, Copy)]
struct Shape<'a> {
    schema: &'a Value,
    whole: bool,
}

/// One rule under check.
struct Check<'a> {
    source: &'a str,
    scope: Vec<(String, Option<Shape<'a>>)>,
    faults: Vec<String>,
}

/// Why this rule does not compile where `schema` describes what it calls `self`; nothing where it does.
pub(super) fn fault(source: &str, schema: &Value, root: bool, old_is_optional: bool, wanted: Wanted) -> Option<String> {
    let prefix =
        if wanted == Wanted::Truth { "compilation failed: " } else { "messageExpression compilation failed: " };
    let parsed = Parser::new().enable_optional_syntax(true).parse(source);
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(errors) => return Some(format!("{prefix}{}", errors.to_string().replace("\n| ", "\n | "))),
    };
    let whole = root || is_set(schema, "x-kubernetes-embedded-resource");
    let own = Some(Shape { schema, whole });
    let old = own.filter(|_| !old_is_optional);
    let scope = vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)];
    let mut check = Check { source, scope, faults: Vec::new() };
    let kind = check.visit(&parsed);
    if !check.faults.is_empty() {
        return Some(format!("{prefix}{}", check.faults.join("\n ")));
    }
    let comes_to = kind.and_then(Kind::name).or_else(|| literal(&parsed.expr))?;
    match wanted {
        Wanted::Truth if comes_to != "bool" => Some("cel expression must evaluate to a bool".to_owned()),
        Wanted::Text if comes_to != "string" => Some("messageExpression must evaluate to a string".to_owned()),
        Wanted::Truth | Wanted::Text => None,
    }
}

fn is_set(schema: &Value, flag: &str) -> bool {
    schema.get(flag).and_then(Value::as_bool) == Some(true)
}

/// What an expression comes to, where that is known.
#[derive(Clone, Copy)]
enum Kind<'a> {
    Of(Shape<'a>),
    Named(&'static str),
}

impl Kind<'_> {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Of(shape) => name_of(shape.schema),
        }
    }
}

/// The type of what has this schema, as the compiler names it.
fn name_of(schema: &Value) -> Option<&'static str> {
    if is_set(schema, "x-kubernetes-int-or-string") || is_set(schema, "nullable") {
        return None;
    }
    let format = schema.get("format").and_then(Value::as_str);
    match (schema.get("type").and_then(Value::as_str)?, format) {
        ("string", Some("date-time" | "date")) => Some("google.protobuf.Timestamp"),
        ("string", Some("duration")) => Some("google.protobuf.Duration"),
        ("string", Some("byte")) => Some("bytes"),
        ("string", _) => Some("string"),
        ("integer", _) => Some("int"),
        ("number", _) => Some("double"),
        ("boolean", _) => Some("bool"),
        ("array", _) => Some("list"),
        ("object", _) => Some("object"),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Literal(LiteralValue::Boolean(_)) => Some("bool"),
        Expr::Literal(LiteralValue::String(_)) => Some("string"),
        Expr::Literal(LiteralValue::Int(_)) => Some("int"),
        Expr::Literal(LiteralValue::Double(_)) => Some("double"),
        Expr::List(_) => Some("list"),
        Expr::Map(_) => Some("map"),
        _ => None,
    }
}

impl<'a> Check<'a> {
    fn visit(&mut self, expr: &IdedExpr) -> Option<Kind<'a>> {
        match &expr.expr {
            Expr::Ident(name) => self.ident(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(over) => self.comprehension(over),
            Expr::List(list) => {
                for element in &list.elements {
                    self.visit(element);
                }
                None
            }
            Expr::Map(map) => {
                map.entries.iter().for_each(|entry| self.entry(&entry.expr));
                None
            }
            Expr::Struct(made) => {
                made.entries.iter().for_each(|entry| self.entry(&entry.expr));
                None
            }
            Expr::Literal(_) | Expr::Unspecified => None,
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => {
                self.visit(&field.value);
            }
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key);
                self.visit(&entry.value);
            }
        }
    }

    fn ident(&mut self, name: &str) -> Option<Kind<'a>> {
        if let Some((_, shape)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return shape.map(Kind::Of);
        }
        if !NAMES.contains(&name) && !name.starts_with(['@', '.']) {
            self.say(name, &format!("undeclared reference to '{name}' (in container '')"));
        }
        None
    }

    fn select(&mut self, select: &SelectExpr) -> Option<Kind<'a>> {
        let operand = self.visit(&select.operand);
        let found = match operand {
            Some(Kind::Of(shape)) => match field(shape, &select.field) {
                Ok(found) => found.map(Kind::Of),
                Err(fault) => {
                    let words = format!(".{}", select.field);
                    // Whether there is one is a question of its own, which stands where its bracket opens.
                    let asked = |at: usize| self.source.get(..at).and_then(|before| before.rfind("has("));
                    let asked = self.find(&words).and_then(asked).filter(|_| select.test);
                    match asked {
                        Some(at) => self.told(at + "has".len(), &fault),
                        None => self.say(&words, &fault),
                    }
                    None
                }
            },
            Some(Kind::Named(_)) | None => None,
        };
        if select.test { Some(Kind::Named("bool")) } else { found }
    }

    fn call(&mut self, call: &CallExpr) -> Option<Kind<'a>> {
        let target = call.target.as_deref().and_then(|target| self.visit(target));
        let name = call.func_name.as_str();
        let is_operator = name.starts_with(['_', '!', '-', '@', '.']);
        if !is_operator && !FUNCTIONS.split_whitespace().any(|known| known == name) {
            self.say_at(name, name.len(), &format!("undeclared reference to '{name}' (in container '')"));
        }
        // Names of their own would be taken for names that nobody knows.
        let args: Vec<Option<Kind<'a>>> =
            if MACROS.contains(&name) { Vec::new() } else { call.args.iter().map(|arg| self.visit(arg)).collect() };
        let side = |at: usize| {
            let known = args.get(at).copied().flatten().and_then(Kind::name);
            known.or_else(|| call.args.get(at).and_then(|arg| literal(&arg.expr)))
        };
        if args.len() == 2 && is_operator && !matches!(name, "_&&_" | "_||_" | "_[_]" | "@in") {
            self.sides(name, side(0), side(1));
        }
        match name {
            "_[_]" => element(args.first().copied().flatten().or(target)),
            "_&&_" | "_||_" | "!_" | "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in" => {
                Some(Kind::Named("bool"))
            }
            "contains" | "startsWith" | "endsWith" | "matches" | "isSorted" | "bool" => Some(Kind::Named("bool")),
            "size" | "int" | "indexOf" | "lastIndexOf" => Some(Kind::Named("int")),
            "string" | "lowerAscii" | "upperAscii" | "join" | "trim" | "substring" => Some(Kind::Named("string")),
            // Both sides are of one type.
            "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => side(0).or_else(|| side(1)).map(Kind::Named),
            _ => None,
        }
    }

    fn comprehension(&mut self, over: &ComprehensionExpr) -> Option<Kind<'a>> {
        let range = self.visit(&over.iter_range);
        self.visit(&over.accu_init);
        let depth = self.scope.len();
        let entry = element(range).and_then(|kind| match kind {
            Kind::Of(shape) => Some(shape),
            Kind::Named(_) => None,
        });
        let is_list = range.and_then(Kind::name) == Some("list");
        self.scope.push((over.accu_var.clone(), None));
        self.scope.push((over.iter_var.clone(), entry.filter(|_| is_list && over.iter_var2.is_none())));
        if let Some(second) = &over.iter_var2 {
            self.scope.push((second.clone(), entry));
        }
        self.visit(&over.loop_cond);
        self.visit(&over.loop_step);
        self.visit(&over.result);
        self.scope.truncate(depth);
        None
    }

    /// Where these words stand in the rule, as words of their own.
    fn find(&self, words: &str) -> Option<usize> {
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let edge = |c: Option<char>| !is_part(c);
        let named = words.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let whole = |(at, found): &(usize, &str)| {
            let before = self.source.get(..*at).and_then(|text| text.chars().next_back());
            let after = self.source.get(at + found.len()..).and_then(|text| text.chars().next());
            !named || ((found.starts_with('.') || edge(before)) && edge(after))
        };
        self.source.match_indices(words).find(whole).map(|(at, _)| at)
    }

    /// A fault of these words.
    fn say(&mut self, words: &str, fault: &str) {
        self.say_at(words, 0, fault);
    }

    fn say_at(&mut self, words: &str, behind: usize, fault: &str) {
        let at = self.find(words).map_or(0, |at| at + behind);
        self.told(at, fault);
    }

    /// A fault, with its place first.
    fn told(&mut self, at: usize, fault: &str) {
        let before = self.source.get(..at).unwrap_or_default();
        let number = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let line = self.source.lines().nth(number).unwrap_or_default();
        let dots = ".".repeat(column);
        let told = format!("ERROR: <input>:{}:{}: {fault}\n | {line}\n | {dots}^", number + 1, column + 1);
        if !self.faults.contains(&told) {
            self.faults.push(told);
        }
    }

    /// Two sides that are of no one type.
    fn sides(&mut self, name: &str, left: Option<&'static str>, right: Option<&'static str>) {
        const PLAIN: [&str; 4] = ["bool", "int", "double", "string"];
        let (Some(left), Some(right)) = (left, right) else { return };
        let orders = matches!(name, "_<_" | "_<=_" | "_>_" | "_>=_") && left != "string" && right != "string";
        let numbers = orders && left != "bool" && right != "bool";
        if left != right && !numbers && PLAIN.contains(&left) && PLAIN.contains(&right) {
            let sign = name.trim_matches('_').to_owned();
            self.say(&sign, &format!("found no matching overload for '{name}' applied to '({left}, {right})'"));
        }
    }
}

/// The schema of a field; nothing where it is not known, or the compiler's words where there is none.
fn field<'a>(shape: Shape<'a>, name: &str) -> Result<Option<Shape<'a>>, String> {
    let schema = shape.schema;
    let open = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    if open.iter().any(|flag| is_set(schema, flag)) {
        return Ok(None);
    }
    let unknown = || format!("undefined field '{name}'");
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            match schema.get("additionalProperties") {
                Some(values) if values.is_object() => return Ok(Some(Shape { schema: values, whole: false })),
                Some(values) if values.as_bool() != Some(false) => return Ok(None),
                Some(_) | None => {}
            }
            let known = schema.get("properties").and_then(|properties| properties.get(name));
            match known {
                Some(_) if shape.whole && name == "metadata" => Ok(None),
                // What may be anything has no type, and so is no field to the compiler.
                Some(known) if known.get("type").is_none() && !is_set(known, "x-kubernetes-int-or-string") => {
                    Err(unknown())
                }
                Some(known) => {
                    let whole = is_set(known, "x-kubernetes-embedded-resource");
                    Ok(Some(Shape { schema: known, whole }))
                }
                None if shape.whole && matches!(name, "apiVersion" | "kind" | "metadata") => Ok(None),
                // A name that had to be escaped.
                None if name.contains("__") => Ok(None),
                None => Err(unknown()),
            }
        }
        Some("string" | "integer" | "number" | "boolean") => match name_of(schema) {
            Some(kind) => Err(format!("type '{kind}' does not support field selection")),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// What a list or a map holds.
fn element(kind: Option<Kind<'_>>) -> Option<Kind<'_>> {
    let Some(Kind::Of(shape)) = kind else { return None };
    let held = shape.schema.get("items").or_else(|| shape.schema.get("additionalProperties"));
    let held = held.filter(|held| held.is_object())?;
    Some(Kind::Of(Shape { schema: held, whole: is_set(held, "x-kubernetes-embedded-resource") }))
}
