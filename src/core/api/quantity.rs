//! Kubernetes quantities, exactly: no floats, compared as numbers, written in canonical form (contract 2.4).

use serde_json::Value;
use std::fmt;

/// Quantities are kept in billionths, the finest step Kubernetes knows.
const NANO: i128 = 1_000_000_000;

/// The family of a suffix; canonical text stays within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// `Ki` to `Ei`.
    Binary,
    /// `n` to `E`, or none.
    Decimal,
    /// `e3`, `E-6`.
    Exponent,
}

/// An amount of something. What is no quantity, or is beyond 10^29, is kept as text and equals only the same text.
#[derive(Clone, Debug)]
pub struct Quantity {
    nanos: Option<i128>,
    text: String,
}

impl serde::Serialize for Quantity {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for Quantity {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <String as serde::Deserialize>::deserialize(from).map(|text| Self::of(&text))
    }
}

impl Quantity {
    /// Reads any text; see [`Quantity::is_valid`].
    pub fn of(text: &str) -> Self {
        match parse(text) {
            Some((nanos, family)) => Self { nanos: Some(nanos), text: canonical(nanos, family) },
            None => Self { nanos: None, text: text.to_owned() },
        }
    }
    /// Reads a JSON field, where integer and string mean the same.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::of(text)),
            Value::Number(number) => Some(Self::of(&number.to_string())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
    /// True where it is a number, false where it is mere text.
    pub fn is_valid(&self) -> bool {
        self.nanos.is_some()
    }
    /// True for nothing of it.
    pub fn is_zero(&self) -> bool {
        self.nanos == Some(0)
    }
    /// In billionths, where it is a number.
    pub fn nanos(&self) -> Option<i128> {
        self.nanos
    }
    /// Canonical text; of what is no quantity, the text as it came.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        match (self.nanos, other.nanos) {
            (Some(mine), Some(theirs)) => mine == theirs,
            (None, None) => self.text == other.text,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl Eq for Quantity {}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse(text: &str) -> Option<(i128, Family)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (digits, suffix) = rest.split_at_checked(end)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (factor, power, family) = suffix_of(suffix)?;
    let fraction = fraction.trim_end_matches('0');
    let mut mantissa: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit.checked_sub(b'0')?))?;
    }
    let power = power.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(9)?;
    let nanos = scaled(mantissa.checked_mul(factor)?, power)?;
    Some((if negative { nanos.checked_neg()? } else { nanos }, family))
}

/// `amount × 10^power`, rounded up to a whole number: asking for a little is never asking for nothing.
fn scaled(amount: i128, power: i32) -> Option<i128> {
    if amount == 0 {
        return Some(0);
    }
    if power >= 0 {
        return amount.checked_mul(10_i128.checked_pow(power.unsigned_abs())?);
    }
    let Some(divisor) = 10_i128.checked_pow(power.unsigned_abs()) else { return Some(1) };
    Some(amount / divisor + i128::from(amount % divisor != 0))
}

/// Factor, power of ten and family of a suffix.
fn suffix_of(suffix: &str) -> Option<(i128, i32, Family)> {
    let decimal = |power| Some((1, power, Family::Decimal));
    let binary = |bits: u32| Some((1_i128.checked_shl(bits)?, 0, Family::Binary));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            Some((1, digits.parse().ok()?, Family::Exponent))
        }
    }
}

fn canonical(nanos: i128, family: Family) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    match family {
        Family::Binary if nanos % NANO == 0 && (nanos / NANO).abs() >= 1024 => binary_text(nanos / NANO),
        Family::Binary | Family::Decimal => {
            let (mantissa, power) = thousands(nanos, 18);
            format!("{mantissa}{}", decimal_suffix(power))
        }
        Family::Exponent => match thousands(nanos, 27) {
            (mantissa, 0) => mantissa.to_string(),
            (mantissa, power) => format!("{mantissa}e{power}"),
        },
    }
}

/// The same amount with the largest power of a thousand that leaves the mantissa whole.
fn thousands(nanos: i128, highest: i32) -> (i128, i32) {
    let (mut mantissa, mut power) = (nanos, -9);
    while mantissa % 1000 == 0 && power < highest {
        mantissa /= 1000;
        power += 3;
    }
    (mantissa, power)
}

fn binary_text(units: i128) -> String {
    let (mut mantissa, mut suffix) = (units, "");
    for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if mantissa % 1024 != 0 {
            break;
        }
        mantissa /= 1024;
        suffix = next;
    }
    format!("{mantissa}{suffix}")
}

fn decimal_suffix(power: i32) -> &'static str {
    match power {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}
