//! What stands between a request and the store: refusals by rule, namespaces, service accounts, priorities, quota.

mod cel;
mod mutate;
mod names;
pub(super) mod quota;
pub mod rules;

pub(super) use cel::rules_broken;
pub(super) use mutate::admit_create;
pub(super) use names::{
    early_label_details, finalizer_warnings, key_details, label_errors, metadata_errors, subdomain_errors,
    value_details,
};
