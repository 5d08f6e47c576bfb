//! Quantities are exact, compared as numbers and written in canonical form (contract 2.4).

use cocoon_operator::core::api::cocoonset::SetSpec;
use cocoon_operator::core::api::quantity::Quantity;
use cocoon_operator::core::oddity::Oddity;
use rstest::rstest;
use serde_json::json;

fn reasons(oddities: &[Oddity]) -> Vec<&str> {
    oddities.iter().map(|oddity| oddity.reason).collect()
}

#[rstest]
#[case("1024Mi", "1Gi")]
#[case("1.5Gi", "1536Mi")]
#[case("1000", "1k")]
#[case("1.5", "1500m")]
#[case("100G", "100G")]
#[case("0.5Gi", "512Mi")]
#[case("1e3", "1e3")]
#[case("1E3", "1e3")]
#[case("12e2", "1200")]
#[case("1E", "1E")]
#[case("512", "512")]
#[case("1023.0", "1023")]
#[case("0", "0")]
#[case("0Gi", "0")]
#[case("-1.5", "-1500m")]
#[case("+2", "2")]
#[case(".5", "500m")]
#[case("5.", "5")]
#[case("0.1Ki", "102400m")]
#[case("0.5Ki", "512")]
#[case("100Gi", "100Gi")]
#[case("1536Ki", "1536Ki")]
#[case("0.0000000001", "1n")]
#[case("1e-3", "1e-3")]
#[case("16Ei", "16Ei")]
#[case("0.9765625Ki", "1k")]
#[case("1.00001Ki", "1024010240u")]
#[case("1000E", "1000E")]
#[case("100e24", "100e24")]
fn canonical_text(#[case] given: &str, #[case] canonical: &str) {
    let quantity = Quantity::of(given);
    assert!(quantity.is_valid());
    assert_eq!(quantity.as_str(), canonical);
    assert_eq!(Quantity::of(canonical).as_str(), canonical, "canonical text is stable");
    assert_eq!(Quantity::of(canonical), quantity);
}

#[rstest]
#[case("1Gi", "1073741824", true)]
#[case("1", "1000m", true)]
#[case("1e3", "1k", true)]
#[case("1G", "1Gi", false)]
#[case("0.1", "100m", true)]
#[case("1Gi", "1.0Gi", true)]
#[case("1n", "2n", false)]
#[case("x", "x", true)]
#[case("x", "0", false)]
fn compared_as_numbers(#[case] one: &str, #[case] other: &str, #[case] equal: bool) {
    assert_eq!(Quantity::of(one) == Quantity::of(other), equal);
}

#[rstest]
#[case("")]
#[case("Gi")]
#[case("1.2.3")]
#[case("1KiB")]
#[case("1e")]
#[case("1e1.5")]
#[case("--1")]
#[case("+-1")]
#[case("1e+-1")]
#[case(".")]
#[case("1e99999999999")]
#[case("1e40")]
#[case("99999999999999999999999999999999999999999999")]
#[case("1 Gi")]
#[case("é")]
fn what_is_none_stays_text(#[case] given: &str) {
    let quantity = Quantity::of(given);
    assert!(!quantity.is_valid());
    assert_eq!(quantity.as_str(), given);
}

#[test]
fn integers_are_quantities_too() {
    assert_eq!(Quantity::read(&json!(2)), Some(Quantity::of("2")));
    assert_eq!(Quantity::read(&json!(true)), None);
    let (spec, oddities) =
        SetSpec::read(&json!({ "agent": { "image": "i", "storage": 5, "resources": { "limits": { "cpu": 2 } } } }));
    assert_eq!(spec.agent.vm.storage.unwrap().as_str(), "5");
    assert_eq!(spec.agent.vm.resources.limits["cpu"], Quantity::of("2000m"));
    assert_eq!(oddities, []);
}

#[test]
fn no_storage_is_no_oddity() {
    for none in [json!(""), json!(null)] {
        let (spec, oddities) = SetSpec::read(&json!({ "agent": { "image": "i", "storage": none } }));
        assert_eq!((spec.agent.vm.storage, oddities), (None, vec![]));
    }
}

#[test]
fn bad_quantities_are_odd() {
    let (spec, oddities) = SetSpec::read(&json!({ "agent": { "image": "i", "storage": "lots",
        "resources": { "limits": { "cpu": "x", "memory": "1Gi" }, "requests": { "cpu": [] } } } }));
    assert_eq!(reasons(&oddities), ["InvalidSpec"; 3]);
    assert_eq!(spec.agent.vm.resources.limits["memory"], Quantity::of("1024Mi"));
}
