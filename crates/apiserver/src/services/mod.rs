//! Assigns cluster addresses and node ports to Services. Nothing routes to them here; clients and charts expect them.
//!
//! Two Services never get the same address or port, even if they are created at the same time: what is assigned is reserved until
//! it is written. A write costs what changed since the one before, not a look at all Services.

mod claims;

pub(crate) use claims::{Claims, Reservation};

use crate::server::Inner;
use claims::{Claim, Index, claims_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_object::GroupVersionKind;

/// 10.96.0.0/16, without the address of the API server itself.
const NETWORK: [u8; 2] = [10, 96];
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Assigns what the type of a service requires and the service does not have: a cluster IP, node ports. They are
/// reserved until the service is written.
pub(crate) fn allocate(server: &Inner, new: &mut Value, old: Option<&Value>) -> Reservation {
    let ty = new["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    drop_foreign(new, old, &ty);
    if ty == "ExternalName" {
        return Reservation::default();
    }
    let mut index = server.service_claims.current(&server.store);
    if let Some(old) = old {
        pair_addresses(&mut new["spec"], &old["spec"]);
    }
    let kept =
        old.map(|o| o["spec"]["clusterIP"].clone()).filter(|ip| ip.as_str().is_some_and(|s| !s.is_empty()));
    let given = new["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    if given.is_empty() {
        new["spec"]["clusterIP"] = kept.unwrap_or_else(|| free_address(server, &index).into());
    }
    if new["spec"]["clusterIPs"].as_array().is_none_or(Vec::is_empty) {
        new["spec"]["clusterIPs"] = json!([new["spec"]["clusterIP"]]);
    }
    transom_kinds::default(new, &GroupVersionKind::new("", "v1", "Service"));
    if matches!(ty.as_str(), "NodePort" | "LoadBalancer") {
        allocate_node_ports(&index, new, old);
    }
    let before = old.map_or_else(Vec::new, |old| claims_of(&old["spec"]));
    let added = claims_of(&new["spec"]).into_iter().filter(|claim| !before.contains(claim)).collect();
    server.service_claims.reserve(&mut index, added)
}

/// `clusterIP` is the first of `clusterIPs`: a client that sets only one of the two changes both.
fn pair_addresses(new: &mut Value, old: &Value) {
    let Some(spec) = new.as_object_mut() else { return };
    let one = |spec: Option<&Value>| spec.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (was, is) = (one(old.get("clusterIP")), one(spec.get("clusterIP")));
    let same = spec.get("clusterIPs") == old.get("clusterIPs");
    if was != is && same {
        spec.remove("clusterIPs");
        if !is.is_empty() {
            spec.insert("clusterIPs".into(), json!([is]));
        }
    }
}

/// Removes what only the old type needed, unless the client set it again.
fn drop_foreign(new: &mut Value, old: Option<&Value>, ty: &str) {
    let Some(old) = old.filter(|o| o["spec"]["type"] != *ty) else { return };
    if let Some(spec) = new["spec"].as_object_mut().filter(|_| ty == "ExternalName") {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if spec.get(key) == old["spec"].get(key) {
                spec.remove(key);
            }
        }
    }
    if matches!(ty, "ClusterIP" | "ExternalName") {
        let policy = "externalTrafficPolicy";
        let reachable = new["spec"]["externalIPs"].as_array().is_some_and(|ips| !ips.is_empty());
        if let Some(spec) = new["spec"].as_object_mut()
            && !reachable
            && spec.get(policy) == old["spec"].get(policy)
        {
            spec.remove(policy);
        }
        let before: Vec<Value> = old["spec"]["ports"].as_array().cloned().unwrap_or_default();
        for port in ports_mut(new) {
            let same = before.iter().any(|p| p["nodePort"] == port["nodePort"]);
            if same && let Some(port) = port.as_object_mut() {
                port.remove("nodePort");
            }
        }
    }
}

fn ports_mut(service: &mut Value) -> impl Iterator<Item = &mut Value> {
    service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Fields of a service that are ignored or deprecated.
pub(crate) fn warnings(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let text = |key: &str| spec[key].as_str().unwrap_or_default();
    let external = text("type") == "ExternalName";
    let headless = !external && text("clusterIP") == "None";
    let addressed = spec["externalIPs"].as_array().is_some_and(|ips| !ips.is_empty());
    let hints = "service.kubernetes.io/topology-aware-hints";
    let advice = [
        (
            service["metadata"]["annotations"].get(hints).is_some(),
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead",
        ),
        (
            headless && !text("loadBalancerIP").is_empty(),
            "spec.loadBalancerIP is ignored for headless services",
        ),
        (headless && addressed, "spec.externalIPs is ignored for headless services"),
        (
            headless && text("sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        (
            addressed && !headless && !external,
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        (external && addressed, "spec.externalIPs is ignored when spec.type is \"ExternalName\""),
        (
            !external && !text("externalName").is_empty(),
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ),
        (
            text("trafficDistribution") == "PreferClose",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ),
    ];
    advice.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned()).collect()
}

fn allocate_node_ports(index: &Index, new: &mut Value, old: Option<&Value>) {
    let before: Vec<Value> = old.and_then(|o| o["spec"]["ports"].as_array().cloned()).unwrap_or_default();
    let mut own: BTreeSet<i64> = ports_mut(new).filter_map(|port| port["nodePort"].as_i64()).collect();
    let is_free =
        |own: &BTreeSet<i64>, port: i64| !own.contains(&port) && index.is_free(&Claim::NodePort(port));
    for port in ports_mut(new) {
        if port["nodePort"].as_i64().is_some_and(|n| n != 0) {
            continue;
        }
        let same = before.iter().find(|p| p["port"] == port["port"] && p["protocol"] == port["protocol"]);
        let kept = same.and_then(|p| p["nodePort"].as_i64());
        let Some(chosen) = kept.or_else(|| NODE_PORTS.clone().find(|port| is_free(&own, *port))) else {
            return;
        };
        own.insert(chosen);
        port["nodePort"] = chosen.into();
    }
}

fn free_address(server: &Inner, index: &Index) -> String {
    let [a, b] = NETWORK;
    // From a random start, so that a deleted service's address is not the next one's.
    let start = u16::try_from(server.draw() >> 16).unwrap_or_default();
    (0..u16::MAX)
        .map(|i| start.wrapping_add(i).to_be_bytes())
        .filter(|[c, d]| (*c, *d) > (0, 1) && (*c, *d) != (255, 255))
        .map(|[c, d]| format!("{a}.{b}.{c}.{d}"))
        .find(|ip| index.is_free(&Claim::Address(ip.clone())))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_changes_with_the_other() {
        let old = json!({"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]});
        for (given, want) in [
            (json!({"clusterIP": "None", "clusterIPs": ["10.96.0.9"]}), json!(["None"])),
            (json!({"clusterIP": "", "clusterIPs": ["10.96.0.9"]}), Value::Null),
            (json!({"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}), json!(["10.96.0.9"])),
            (json!({"clusterIP": "None", "clusterIPs": ["10.96.0.7"]}), json!(["10.96.0.7"])),
        ] {
            let mut new = given.clone();
            pair_addresses(&mut new, &old);
            assert_eq!(new["clusterIPs"], want, "{given}");
        }
    }

    #[test]
    fn what_a_service_cannot_have_is_reported() {
        let headless =
            json!({"spec": {"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP"}});
        assert_eq!(warnings(&headless), ["spec.SessionAffinity is ignored for headless services"]);
        let named =
            json!({"spec": {"type": "ExternalName", "externalName": "x", "externalIPs": ["1.2.3.4"]}});
        assert_eq!(warnings(&named), ["spec.externalIPs is ignored when spec.type is \"ExternalName\""]);
        let plain =
            json!({"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.9", "sessionAffinity": "None"}});
        assert!(warnings(&plain).is_empty());
    }
}
