//! The fence itself is tried: every known way around it is reported, and honest code is not.

use super::scan::faults;
use std::path::Path;

/// Code that must be reported, and what the report must name.
const GUILTY: &[(&str, &str)] = &[
    ("use std::fs;", "std::fs"),
    ("use std::{fmt, fs::File};", "std::fs::File"),
    ("use std::collections::{BTreeMap, HashMap};", "HashMap"),
    ("use std::collections::*;", "std::collections::*"),
    ("use std::*;", "std::*"),
    ("use std::time::*;", "std::time::*"),
    ("use std::{time::*};", "std::time::*"),
    ("use std::{*};", "std::*"),
    ("use std as harmless;", "another name"),
    ("use std::{self as harmless};", "std::self"),
    ("use crate as harmless;", "another name"),
    ("use std::time::{Duration, Instant};", "Instant"),
    ("use std::sync::{Arc, mpsc};", "std::sync::mpsc"),
    ("use std::net::TcpStream;", "std::net::TcpStream"),
    ("use tokio::time;", "tokio::time"),
    ("use kube::Client;", "kube::Client"),
    ("use crate::shell::clock;", "crate::shell::clock"),
    ("use crate::*;", "crate::*"),
    ("use crate::{core::wire, sim};", "crate::sim"),
    ("use super::super::shell::clock;", "super::super::shell::clock"),
    ("use super::super::*;", "super::super::*"),
    ("fn f() { let _ = std::env::var(\"HOME\"); }", "std::env::var"),
    ("fn f() { let _ = ::std::process::id(); }", "std::process::id"),
    ("fn f() { rand::random::<u8>(); }", "rand::random"),
    ("fn f() { jiff::Timestamp::now(); }", "jiff::Timestamp::now"),
    ("use jiff::Timestamp as T; fn f() { T::now(); }", "T::now"),
    ("fn f() { jiff::tz::TimeZone::system(); }", "TimeZone::system"),
    ("fn f() { let _ = format!(\"{}\", std::fs::exists(\"x\")); }", "std::fs::exists"),
    ("macro_rules! m { () => { ::std::thread::yield_now() }; }", "std::thread::yield_now"),
    ("macro_rules! m { () => { $crate::shell::go() }; }", "crate::shell::go"),
    ("fn f() { vec![println!(\"x\")]; }", "println!"),
    ("fn f() { std::dbg!(1); }", "dbg!"),
    ("fn f() { let _ = option_env!(\"X\"); }", "option_env!"),
    ("async fn f() {}", "async"),
    ("fn f() { let _ = async { 1 }; }", "async"),
    ("static COUNT: u8 = 1;", "static"),
    ("macro_rules! m { () => { static COUNT: u8 = 1; }; }", "static"),
    ("thread_local! { pub(crate) const X: u8 = 1; }", "thread_local!"),
    ("struct S { n: AtomicU64 }", "AtomicU64"),
    ("fn f(x: &Wrapper<RefCell<u8>>) {}", "RefCell"),
    ("extern crate tokio;", "extern"),
    ("fn f() { unsafe { g() } }", "unsafe"),
    ("#[path = \"../shell/clock.rs\"] mod clock;", "elsewhere"),
    ("#[allow(clippy::disallowed_methods)] fn f() {}", "lifts a fence"),
    ("#![expect(clippy::wildcard_enum_match_arm)]", "lifts a fence"),
    ("fn f() { todo!() }", "todo!"),
    ("fn f( {", "does not parse"),
];

/// Code that must pass, each with something that looks like a fault.
const INNOCENT: &[&str] = &[
    "use std::{borrow::Cow, collections::{BTreeMap, BTreeSet}, fmt::{self, Display}, time::Duration};",
    "use std::sync::Arc; use std::hash::Hash; use std::net::IpAddr;",
    "use std::fmt; impl fmt::Display for X { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(\"\") } }",
    "use crate::core::{outcome::Class, wire}; fn f() { wire::retry_after(\"\"); }",
    "use super::status::Status; use super::*;",
    "use super::super::core::wire::Verb;",
    "mod inner; use inner::*; fn f() { inner::go(); }",
    "fn f(x: &'static str) -> u16 { u16::try_from(1u32).unwrap_or(u16::MAX) }",
    "struct S { env: Vec<String>, print: bool } fn f(s: &S) -> bool { s.print && s.env.is_empty() }",
    "/// println! and std::fs are only mentioned here, as is a static.\nfn f() { let _ = \"std::env::var async HashMap\"; }",
    "fn f(seen: &Observed) -> Timestamp { seen.now }",
    "macro_rules! m { ($t:ident, $($x:path),*) => { $t::new($($x),*) }; }",
    "fn f(v: &serde_json::Value) -> bool { v.get(\"a\").is_some_and(serde_json::Value::is_object) }",
    "enum Step { A } use Step::*; fn f() { let _ = Step::A; let _ = <u8 as Default>::default(); }",
    "pub(crate) fn f() {} pub(in crate::core) fn g() { \"1\".parse::<u8>().is_ok(); }",
    "#[allow(missing_docs)] enum E { A }",
];

fn report(code: &str) -> Vec<String> {
    faults(Path::new("core/example.rs"), code)
}

#[test]
fn every_known_way_out_is_reported() {
    for (code, named) in GUILTY {
        let report = report(code);
        assert!(report.iter().any(|fault| fault.contains(named)), "{code}\n  should name {named}, says {report:?}");
    }
}

#[test]
fn honest_code_is_left_alone() {
    for code in INNOCENT {
        assert_eq!(report(code), Vec::<String>::new(), "{code}");
    }
}

#[test]
fn a_fault_is_reported_with_its_line() {
    assert_eq!(report("fn a() {}\n\nfn b() {\n    std::fs::read(\"x\");\n}\n"), ["4  std::fs::read"]);
}

/// How far `super` reaches depends on how deep the file lies.
#[test]
fn a_deeper_file_may_climb_further() {
    let code = "use super::super::wire::Verb;";
    assert_eq!(faults(Path::new("core/classify/refusal.rs"), code), Vec::<String>::new());
    assert_eq!(faults(Path::new("core/classify/mod.rs"), "use super::super::sim::World;").len(), 1);
    assert_eq!(faults(Path::new("core/mod.rs"), "use super::sim::World;").len(), 1);
}
