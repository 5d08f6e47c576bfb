//! What is wrong with a new pod, in the server's words and as far as pods of ours can get it wrong.

use super::admission::{label_errors, subdomain_errors, value_details};
use super::objects::text;
use super::reply::quoted;
use super::status_error::{FieldError, FieldErrorKind};
use serde_json::Value;

const RESTARTS: [&str; 3] = ["Always", "OnFailure", "Never"];
const RESOLVERS: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// What is wrong with a new pod.
pub(super) fn errors(pod: &Value) -> Vec<FieldError> {
    let Some(spec) = pod.get("spec") else { return vec![FieldError::required("spec.containers", "")] };
    let mut errors = container_errors(spec);
    errors.extend(one_of(spec, "spec", "restartPolicy", &RESTARTS));
    errors.extend(one_of(spec, "spec", "dnsPolicy", &RESOLVERS));
    for (_, value) in spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        let details = value_details(value.as_str().unwrap_or(""));
        errors.extend(details.iter().map(|why| FieldError::invalid("spec.nodeSelector", value, why)));
    }
    let node = text(spec, "/nodeName");
    if !node.is_empty() {
        errors.extend(subdomain_errors("spec.nodeName", node));
    }
    errors.extend(affinity_errors(spec));
    for (at, toleration) in list(spec, "tolerations").iter().enumerate() {
        errors.extend(toleration_errors(toleration, &format!("spec.tolerations[{at}]")));
    }
    errors
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn one_of(object: &Value, path: &str, field: &str, all: &[&str]) -> Option<FieldError> {
    let value = text(object, &format!("/{field}"));
    let supported: Vec<String> = all.iter().map(|one| quoted(one)).collect();
    (!value.is_empty() && !all.contains(&value)).then(|| {
        let message = format!("Unsupported value: {}: supported values: {}", quoted(value), supported.join(", "));
        FieldError::new(FieldErrorKind::NotSupported, format!("{path}.{field}"), message)
    })
}

fn container_errors(spec: &Value) -> Vec<FieldError> {
    let containers = list(spec, "containers");
    if containers.is_empty() {
        return vec![FieldError::required("spec.containers", "")];
    }
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (at, container) in containers.iter().enumerate() {
        let field = format!("spec.containers[{at}]");
        let name = text(container, "/name");
        if name.is_empty() {
            errors.push(FieldError::required(format!("{field}.name"), ""));
        } else if names.contains(&name) {
            let message = format!("Duplicate value: {}", quoted(name));
            errors.push(FieldError::new(FieldErrorKind::Duplicate, format!("{field}.name"), message));
        } else {
            errors.extend(label_errors(&format!("{field}.name"), name));
        }
        names.push(name);
        if text(container, "/image").is_empty() {
            errors.push(FieldError::required(format!("{field}.image"), ""));
        }
        errors.extend(resource_errors(container, &format!("{field}.resources")));
        for source in list(container, "envFrom") {
            errors.extend(env_from_errors(source, &format!("{field}.envFrom")));
        }
    }
    errors
}

fn resource_errors(container: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let of = |kind: &str| container.pointer(&format!("/resources/{kind}")).and_then(Value::as_object);
    let amount = |value: &Value| super::quantity::parse(value);
    for kind in ["limits", "requests"] {
        for (resource, value) in of(kind).into_iter().flatten() {
            let place = format!("{field}.{kind}[{resource}]");
            errors.extend(resource_name_errors(&place, resource));
            if amount(value).is_some_and(|amount| amount < 0) {
                errors.push(FieldError::invalid(place, value, "must be greater than or equal to 0"));
            }
            let limit = of("limits").and_then(|limits| limits.get(resource)).filter(|_| kind == "requests");
            if let (Some(limit), Some(asked), Some(most)) = (limit, amount(value), limit.and_then(amount))
                && asked > most
            {
                let shown = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
                let detail = format!("must be less than or equal to {resource} limit of {shown}");
                errors.push(FieldError::invalid(format!("{field}.requests"), value, &detail));
            }
        }
    }
    errors
}

fn resource_name_errors(place: &str, resource: &str) -> Vec<FieldError> {
    let standard = matches!(resource, "cpu" | "memory" | "ephemeral-storage") || resource.starts_with("hugepages-");
    if standard || resource.contains('/') {
        return Vec::new();
    }
    let shown = Value::from(resource);
    ["must be a standard resource type or fully qualified", "must be a standard resource for containers"]
        .map(|why| FieldError::invalid(place, &shown, why))
        .to_vec()
}

fn env_from_errors(source: &Value, field: &str) -> Option<FieldError> {
    let named = [("configMapRef", source.get("configMapRef")), ("secretRef", source.get("secretRef"))];
    let present: Vec<&str> = named.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect();
    match present.as_slice() {
        [] => {
            let message = "Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`";
            Some(FieldError::new(FieldErrorKind::Invalid, field, message))
        }
        [one] if text(source, &format!("/{one}/name")).is_empty() => {
            Some(FieldError::required(format!("{field}.{one}.name"), ""))
        }
        [_] => None,
        _ => {
            let message = "Invalid value: \"\": may not have more than one field specified at a time";
            Some(FieldError::new(FieldErrorKind::Invalid, field, message))
        }
    }
}

fn affinity_errors(spec: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let required = spec.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let Some(required) = required else { return Vec::new() };
    let terms = list(required, "nodeSelectorTerms");
    if terms.is_empty() {
        return vec![FieldError::required(PATH, "must have at least one node selector term")];
    }
    let mut errors = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
            let operator = text(expression, "/operator");
            let place = format!("{PATH}[{at}].matchExpressions[{index}]");
            let values = list(expression, "values");
            if !OPERATORS.contains(&operator) {
                let place = format!("{place}.operator");
                errors.push(FieldError::invalid(place, &Value::from(operator), "not a valid selector operator"));
            } else if matches!(operator, "In" | "NotIn") && values.is_empty() {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{place}.values"), why));
            } else if matches!(operator, "Exists" | "DoesNotExist") && !values.is_empty() {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(format!("{place}.values"), why));
            }
        }
    }
    errors
}

fn toleration_errors(toleration: &Value, place: &str) -> Vec<FieldError> {
    let of = |field: &str| text(toleration, &format!("/{field}"));
    let mut errors = Vec::new();
    if of("key").is_empty() && of("operator") != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(format!("{place}.operator"), &Value::from(of("operator")), why));
    }
    match of("operator") {
        "Exists" if !of("value").is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(format!("{place}.operator"), &Value::from(of("value")), why));
        }
        "" | "Equal" | "Exists" => {}
        _ => errors.extend(one_of(toleration, place, "operator", &["Equal", "Exists"])),
    }
    errors.extend(super::bounds::toleration_error(toleration, place));
    errors.extend(one_of(toleration, place, "effect", &EFFECTS));
    errors
}
