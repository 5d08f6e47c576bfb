//! Request bodies in Kubernetes' protobuf encoding, which kubectl uses for the kinds that it knows by itself; answers are
//! JSON, which it takes as well. Only the messages that are sent to a server like this one can be read.

mod messages;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messages::{Field, Kind, fields, message_of};
use serde_json::{Map, Value, json};

/// The content type of such bodies.
pub(in crate::sim) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Messages within messages; no kind comes near it.
const DEPTH: usize = 16;

/// A field as it goes over the wire.
enum Raw<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The object in the body; none where it is none, or of a kind that is not known here.
pub(in crate::sim) fn object(body: &[u8]) -> Option<Value> {
    let envelope = split(body.strip_prefix(MAGIC)?)?;
    let bytes = |of: u64| envelope.iter().find(|(number, _)| *number == of).and_then(|(_, raw)| raw.bytes());
    let about = split(bytes(1)?)?;
    let text = |of: u64| {
        let found = about.iter().find(|(number, _)| *number == of).and_then(|(_, raw)| raw.bytes());
        std::str::from_utf8(found.unwrap_or_default()).unwrap_or_default().to_owned()
    };
    let (version, kind) = (text(1), text(2));
    let message = message_of(&version, &kind)?;
    let mut object = decode(bytes(2).unwrap_or_default(), message, DEPTH)?;
    object.insert("apiVersion".to_owned(), json!(version));
    object.insert("kind".to_owned(), json!(kind));
    Some(Value::Object(object))
}

impl<'a> Raw<'a> {
    fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bytes(_) => None,
        }
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(at * 7).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

/// The fields of a message, in their order.
fn split(mut bytes: &[u8]) -> Option<Vec<(u64, Raw<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (key, rest) = varint(bytes)?;
        let (raw, rest) = match key & 7 {
            0 => {
                let (number, rest) = varint(rest)?;
                (Raw::Number(number), rest)
            }
            1 => (Raw::Bytes(rest.get(..8)?), rest.get(8..)?),
            2 => {
                let (length, rest) = varint(rest)?;
                let length = usize::try_from(length).ok()?;
                (Raw::Bytes(rest.get(..length)?), rest.get(length..)?)
            }
            5 => (Raw::Bytes(rest.get(..4)?), rest.get(4..)?),
            _ => return None,
        };
        found.push((key >> 3, raw));
        bytes = rest;
    }
    Some(found)
}

fn decode(bytes: &[u8], message: &str, depth: usize) -> Option<Map<String, Value>> {
    let depth = depth.checked_sub(1)?;
    let known = fields(message);
    let mut object = Map::new();
    for (number, raw) in split(bytes)? {
        let Some(Field { name, kind, many, .. }) = known.iter().find(|field| field.number == number) else { continue };
        if let Kind::Map(values) = kind {
            let (key, value) = entry(raw.bytes()?, values, depth)?;
            let map = object.entry(*name).or_insert_with(|| json!({}));
            map[key] = value;
            continue;
        }
        // What is empty is as good as absent, but in lists.
        let Some(value) = value(&raw, kind, depth)?.filter(|value| *many || !is_empty(value, kind)) else { continue };
        if *many {
            let list = object.entry(*name).or_insert_with(|| json!([]));
            list.as_array_mut()?.push(value);
        } else {
            object.insert((*name).to_owned(), value);
        }
    }
    Some(object)
}

fn entry(bytes: &[u8], values: &Kind, depth: usize) -> Option<(String, Value)> {
    let (mut key, mut held) = (String::new(), json!(""));
    for (number, raw) in split(bytes)? {
        match number {
            1 => key = String::from_utf8(raw.bytes()?.to_vec()).ok()?,
            2 => held = value(&raw, values, depth)?.unwrap_or_default(),
            _ => {}
        }
    }
    Some((key, held))
}

/// The value of a field; the inner none stands for one that says nothing.
fn value(raw: &Raw<'_>, kind: &Kind, depth: usize) -> Option<Option<Value>> {
    Some(match kind {
        Kind::Text => Some(Value::from(std::str::from_utf8(raw.bytes()?).ok()?)),
        Kind::Bytes => Some(Value::from(STANDARD.encode(raw.bytes()?))),
        Kind::Number | Kind::Stated => Some(Value::from(raw.number()?.cast_signed())),
        Kind::Flag | Kind::StatedFlag => Some(Value::from(raw.number()? != 0)),
        Kind::Message(name) => Some(Value::Object(decode(raw.bytes()?, name, depth)?)),
        Kind::Time => {
            let seconds =
                split(raw.bytes()?)?.iter().find(|(number, _)| *number == 1).and_then(|(_, raw)| raw.number());
            let at = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds.cast_signed()).ok());
            at.map(crate::sim::store::objects::stamp)
        }
        Kind::Quantity => {
            let parts = split(raw.bytes()?)?;
            let text = parts.iter().find(|(number, _)| *number == 1).and_then(|(_, raw)| raw.bytes());
            Some(Value::from(std::str::from_utf8(text.unwrap_or_default()).ok()?))
        }
        Kind::NumberOrText => {
            let parts = split(raw.bytes()?)?;
            let part = |of: u64| parts.iter().find(|(number, _)| *number == of).map(|(_, raw)| raw);
            if part(1).and_then(Raw::number).unwrap_or(0) == 0 {
                Some(Value::from(part(2).and_then(Raw::number).unwrap_or(0).cast_signed()))
            } else {
                Some(Value::from(std::str::from_utf8(part(3).and_then(Raw::bytes).unwrap_or_default()).ok()?))
            }
        }
        Kind::Map(_) => None,
    })
}

fn is_empty(value: &Value, kind: &Kind) -> bool {
    match kind {
        Kind::Stated | Kind::StatedFlag | Kind::NumberOrText => false,
        _ => match value {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(text) => text.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Bool(true) => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::object;
    use serde_json::json;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn envelope(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let about = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &about), field(2, raw), field(3, b""), field(4, b"")].concat()
    }

    #[test]
    fn objects_are_read_and_empty_fields_left_out() {
        let metadata = [field(1, b"demo"), field(2, b""), vec![7 << 3, 0], field(8, b"")].concat();
        let entry = [field(1, b"key"), field(2, b"value")].concat();
        let raw = [field(1, &metadata), field(2, &entry)].concat();
        let want =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo"}, "data": {"key": "value"}});
        assert_eq!(object(&envelope("v1", "ConfigMap", &raw)), Some(want));
    }

    #[test]
    fn a_grace_of_nought_is_said() {
        let options = [1 << 3, 0];
        let want = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        assert_eq!(object(&envelope("v1", "DeleteOptions", &options)), Some(want));
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_none() {
        let whole = envelope("v1", "Namespace", &field(1, &field(1, b"demo")));
        assert!(object(&whole).is_some());
        for cut in 0..whole.len() - 4 {
            assert_eq!(object(&whole[..cut]).filter(|found| found["metadata"]["name"] == "demo"), None, "cut at {cut}");
        }
        assert_eq!(object(&envelope("v1", "Binary", b"")), None);
        assert_eq!(object(b"{}"), None);
    }
}
