//! The JSON schema of scenario files, made from the types that read them.

use super::script::Script;
use serde_json::Value;

/// The schema, for editors and for `replay --schema`.
pub fn schema() -> Value {
    schemars::schema_for!(Script).to_value()
}

/// The schema as its file stands in the repository.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}
