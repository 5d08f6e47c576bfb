//! One pod: what we want of it, what it carries, and which fields of the two differ (architecture 7).

pub mod drift;
pub mod facts;
pub mod field;
pub mod intent;
pub mod render;
pub mod template;

pub use drift::{FieldDrift, drift};
pub use facts::{OwnerRef, PodFacts, PodPhase};
pub use field::{Field, Remedy};
pub use render::render;
pub use template::{Boot, Identity, Placement, PodTemplate, wanted_main, wanted_sub_agent, wanted_toolbox};
