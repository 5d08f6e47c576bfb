//! What differs from run to run, taken out of an output: ages, times, uids, versions, names drawn by chance.

use regex::Regex;
use std::sync::LazyLock;

static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let masks = [
        // kubectl's own log: how the watch of a wait ended that was given up.
        (r"(?m)^[IWE]\d{4} .*reflector.*\n", ""),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
        (r#"(resourceVersion"?: |Resource Version: +)"?\d+"?"#, "${1}VERSION"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000)", "TIME"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
        (r"\bv\d+\.\d+\.\d+\b", "VERSION"),
        // Which VM gets which is a matter of time.
        (r"\b[0-9a-f]{12}\b", "ID"),
        (r"\b10\.\d+\.\d+\.\d+\b", "IP"),
        (r"127\.0\.0\.1:\d{4,5}\b", "ADDRESS"),
        // Ages, and how often in which time.
        (r"(<invalid>|\b\d+(s|m|h|d)(\d+(s|m|h))?\b)( ago)?", "AGE"),
        (r"AGE \(x\d+ over AGE\)", "AGE"),
        // Where `kubectl diff` puts what it compares.
        (r"(\S*/)?(LIVE|MERGED)(-\d+)?/", "${2}/"),
        // How this kubectl was built.
        (r#"in scheme "\S+""#, "in scheme"),
        (r"\.[0-9a-f]{16}\b", ".STAMP"),
        // Widths of columns follow from the above.
        (r"(\S)\t+", "${1} "),
        (r"(\S) {2,}", "${1} "),
        (r"(?m) +$", ""),
    ];
    masks.into_iter().map(|(of, to)| (Regex::new(of).expect("a pattern"), to)).collect()
});

/// The output without what differs from run to run. Rows that are equal then are one: how often an event was told by
/// then is a matter of time. Errors of a 422 stand in no order.
pub fn masked(text: &str) -> String {
    let mut text = text.to_owned();
    for (of, to) in MASKS.iter() {
        text = of.replace_all(&text, *to).into_owned();
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup();
    for group in lines.chunk_by_mut(|one, other| one.starts_with("* ") && other.starts_with("* ")) {
        group.sort_unstable();
    }
    lines.join("\n")
}

/// An explanation without what is described: every definition has words of its own, the same fields nevertheless.
pub fn undescribed(text: &str) -> String {
    let kept = text.lines().filter(|line| !line.starts_with("    ") && !line.trim().is_empty());
    kept.collect::<Vec<_>>().join("\n")
}
