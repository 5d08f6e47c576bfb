//! Quantities as quotas add them up: exact, in thousandths.

use serde_json::Value;

/// A quantity in thousandths; none if it is no quantity.
pub(super) fn parse(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => {
            number.as_i64().map(|whole| i128::from(whole) * 1000).or_else(|| parse_text(&number.to_string()))
        }
        Value::String(text) => parse_text(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn parse_text(text: &str) -> Option<i128> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, suffix) = (digits.get(..end)?, digits.get(end..)?);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let scale = i32::try_from(fraction.len()).ok()?;
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (factor, exponent) = factor(suffix)?;
    let value = mantissa.checked_mul(factor)?.checked_mul(1000)?;
    let shift = exponent.checked_sub(scale)?;
    let power = 10_i128.checked_pow(shift.unsigned_abs())?;
    // What is smaller than a thousandth counts as one, as the real parser rounds up.
    let scaled =
        if shift >= 0 { value.checked_mul(power)? } else { value.checked_add(power - 1)?.checked_div(power)? };
    Some(sign * scaled)
}

/// A suffix as a factor and a power of ten.
fn factor(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => (1, suffix.strip_prefix(['e', 'E'])?.parse().ok().filter(|power: &i32| power.abs() <= 24)?),
    })
}

/// The quantity as the server writes a sum: binary suffixes for memory and storage, decimal ones else.
pub(super) fn show(thousandths: i128, binary: bool) -> String {
    if thousandths % 1000 != 0 {
        return format!("{thousandths}m");
    }
    let whole = thousandths / 1000;
    let units: &[(&str, i128)] = if binary {
        &[("Ei", 1 << 60), ("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)]
    } else {
        &[
            ("E", 1_000_000_000_000_000_000),
            ("P", 1_000_000_000_000_000),
            ("T", 1_000_000_000_000),
            ("G", 1_000_000_000),
            ("M", 1_000_000),
            ("k", 1_000),
        ]
    };
    let fitting = units.iter().find(|(_, size)| whole != 0 && whole % size == 0);
    fitting.map_or_else(|| whole.to_string(), |(suffix, size)| format!("{}{suffix}", whole / size))
}

#[cfg(test)]
mod tests {
    use super::{parse, show};
    use serde_json::json;

    #[test]
    fn quantities_are_read_and_written_as_the_server_does() {
        for (text, thousandths) in
            [("100m", 100), ("2", 2000), ("1.5", 1500), ("1Ki", 1_024_000), ("1e3", 1_000_000), ("5n", 1)]
        {
            assert_eq!(parse(&json!(text)), Some(thousandths), "{text}");
        }
        assert_eq!(parse(&json!(3)), Some(3000));
        for text in ["", "Mi", "1.2.3", "1X", "abc"] {
            assert_eq!(parse(&json!(text)), None, "{text}");
        }
        assert_eq!(show(100, false), "100m");
        assert_eq!(show(2000, false), "2");
        assert_eq!(show(parse(&json!("1024Mi")).unwrap_or(0), true), "1Gi");
    }
}
