//! What we asked for in a pod, kept on it: the one witness that no admission changes (D-19, R20).
//!
//! Without it, a LimitRange that adds a memory limit and a user who takes one away look alike. The annotation states
//! fields by name; a field that it does not state is judged by what the pod carries.

use super::field::Field;
use super::template::PodTemplate;
use crate::core::contract::{Annotations, keys};
use crate::core::oddity::{Oddity, excerpt};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The annotation's value: these fields of the template.
pub fn write(template: &PodTemplate, fields: &BTreeSet<Field>) -> String {
    let stated = fields.iter().map(|field| (field.name().to_owned(), field.value(template)));
    Value::Object(stated.collect::<Map<_, _>>()).to_string()
}

/// Lays what was stated over what was read off the pod. What cannot be read states nothing.
pub fn read(annotations: &Annotations, to: &mut PodTemplate) -> Option<Oddity> {
    let text = annotations.get(keys::TEMPLATE)?;
    let Ok(Value::Object(stated)) = serde_json::from_str(text) else {
        let said = format!("{} states no template", excerpt(text, 60));
        return Some(Oddity::corrupt(keys::TEMPLATE, said));
    };
    let mut oddity = None;
    for field in Field::ALL {
        let Some(value) = stated.get(field.name()) else { continue };
        // A field that this kind of pod does not have states nothing.
        if !field.applies(to) {
            continue;
        }
        match field.take(to, value) {
            Some(()) => drop(to.stated.insert(field)),
            None => {
                let said = format!("{} is no value of {}", excerpt(&value.to_string(), 60), field.name());
                oddity = oddity.or(Some(Oddity::corrupt(keys::TEMPLATE, said)));
            }
        }
    }
    oddity
}
