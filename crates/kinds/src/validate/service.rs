//! Validates Services and their status as kube-apiserver does, on create and on update.

use super::At;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_object::field::Error;
use transom_object::{labels, names};

pub(super) fn service(object: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let spec = object.get("spec");
    if let Some(old) = old {
        cluster_ip_change(&spec, &At::root(old).get("spec"), errors);
    }
    let kind = spec.text("type");
    let ports = spec.get("ports");
    if ports.items().len() == 0 && !headless(&spec) && kind != "ExternalName" {
        errors.push(Error::required(&ports.path, ""));
    }
    by_type(&spec, errors);
    all_ports(&ports, kind, errors);
    for (key, value) in spec.get("selector").entries() {
        errors.extend(labels::validate_label(
            key,
            value.as_str().unwrap_or_default(),
            &spec.path.child("selector"),
        ));
    }
    affinity(&spec, errors);
    addresses(&spec, old, errors);
    let supported = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    match kind {
        "" => errors.push(Error::required(&spec.path.child("type"), "")),
        _ => spec.get("type").one_of(&supported, errors),
    }
    source_ranges(&spec, errors);
    if !spec.get("allocateLoadBalancerNodePorts").is_null() && kind != "LoadBalancer" {
        let why = "may only be used when `type` is 'LoadBalancer'";
        errors.push(Error::forbidden(&spec.path.child("allocateLoadBalancerNodePorts"), why));
    }
    let class = spec.get("loadBalancerClass");
    if !class.is_null() && kind != "LoadBalancer" {
        errors.push(Error::forbidden(&class.path, "may only be used when `type` is 'LoadBalancer'"));
    } else if !class.is_null() {
        class.invalid(names::is_qualified_name(class.str()), errors);
    }
    traffic(&spec, errors);
}

/// What a load balancer reports makes sense for services that have one.
pub(super) fn status(object: &At<'_>, errors: &mut Vec<Error>) {
    let ingress = object.get("status").get("loadBalancer").get("ingress");
    if object.get("spec").text("type") != "LoadBalancer" {
        if ingress.items().len() > 0 {
            let why = "may only be used when `spec.type` is 'LoadBalancer'";
            errors.push(Error::forbidden(&ingress.path, why));
        }
        return;
    }
    for entry in ingress.items() {
        let (ip, mode) = (entry.get("ip"), entry.get("ipMode"));
        if !ip.str().is_empty() && ip.str().parse::<std::net::IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(Error::invalid(&ip.path, ip.str(), why));
        }
        if mode.is_null() {
            if !ip.str().is_empty() {
                errors.push(Error::required(&mode.path, "must be specified when `ip` is set"));
            }
        } else if ip.str().is_empty() {
            errors.push(Error::forbidden(&mode.path, "may not be specified when `ip` is not set"));
        } else {
            mode.one_of(&["Proxy", "VIP"], errors);
        }
        let host = entry.get("hostname");
        if !host.str().is_empty() {
            host.invalid(names::is_dns1123_subdomain(host.str()), errors);
            if host.str().parse::<std::net::IpAddr>().is_ok() {
                errors.push(Error::invalid(&host.path, host.str(), "must be a DNS name, not an IP address"));
            }
        }
    }
}

/// The addresses; one given alone counts as the first.
fn cluster_ips<'a>(spec: &At<'a>) -> Vec<&'a str> {
    let list: Vec<&str> = spec.get("clusterIPs").items().map(|ip| ip.str()).collect();
    match spec.text("clusterIP") {
        "" => list,
        single if list.is_empty() => vec![single],
        _ => list,
    }
}

fn headless(spec: &At<'_>) -> bool {
    cluster_ips(spec) == ["None"]
}

/// Addresses may be added or given up, but the first stays, unless the service is or was an external name.
fn cluster_ip_change(spec: &At<'_>, old: &At<'_>, errors: &mut Vec<Error>) {
    if spec.text("type") == "ExternalName" || old.text("type") == "ExternalName" {
        return;
    }
    let (new_ips, old_ips) = (cluster_ips(spec), cluster_ips(old));
    let path = spec.path.child("clusterIPs");
    if new_ips.is_empty() && !old_ips.is_empty() {
        errors.push(Error::invalid(&path.index(0), json!([]), "primary clusterIP can not be unset"));
        return;
    }
    let compared = if new_ips.len() == old_ips.len() { new_ips.len() } else { 1 };
    for (i, (new, old)) in new_ips.iter().zip(&old_ips).take(compared).enumerate() {
        if new != old {
            errors.push(Error::invalid(&path.index(i), json!(new_ips), "may not change once set"));
        }
    }
}

fn by_type(spec: &At<'_>, errors: &mut Vec<Error>) {
    let kind = spec.text("type");
    if matches!(kind, "LoadBalancer" | "NodePort") && headless(spec) {
        let why = format!("may not be set to 'None' for {kind} services");
        errors.push(Error::invalid(&spec.path.child("clusterIPs").index(0), "None", why));
    }
    if kind != "ExternalName" {
        return;
    }
    if !cluster_ips(spec).is_empty() {
        errors.push(Error::forbidden(
            &spec.path.child("clusterIPs"),
            "may not be set for ExternalName services",
        ));
    }
    for field in ["ipFamilies", "ipFamilyPolicy"] {
        if !spec.get(field).is_null() {
            errors
                .push(Error::forbidden(&spec.path.child(field), "may not be set for ExternalName services"));
        }
    }
    let path = spec.path.child("externalName");
    match spec.text("externalName").trim_end_matches('.') {
        "" => errors.push(Error::required(&path, "")),
        name => {
            let messages = names::is_dns1123_subdomain(name);
            errors.extend(messages.into_iter().map(|m| Error::invalid(&path, name, m)));
        }
    }
}

fn all_ports(ports: &At<'_>, kind: &str, errors: &mut Vec<Error>) {
    let named = ports.items().len() > 1;
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        one_port(&port, named, &mut seen, errors);
    }
    let (mut node_ports, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in ports.items() {
        let node = port.int("nodePort").unwrap_or_default();
        if node != 0 && kind == "ClusterIP" {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(Error::forbidden(&port.path.child("nodePort"), why));
        }
        if node != 0 && !node_ports.insert((port.text("protocol"), node)) {
            errors.push(Error::duplicate(&port.path.child("nodePort"), node));
        }
        if !numbers.insert((port.text("protocol"), port.int("port"))) {
            // Upstream prints its key, a port with nothing else in it.
            let key = json!({"Name": "", "Protocol": port.text("protocol"), "AppProtocol": null,
                "Port": port.int("port"), "TargetPort": 0, "NodePort": 0});
            errors.push(Error::duplicate(&port.path, key));
        }
    }
}

fn one_port<'a>(port: &At<'a>, named: bool, seen: &mut BTreeSet<&'a str>, errors: &mut Vec<Error>) {
    let name = port.get("name");
    if name.str().is_empty() {
        if named {
            errors.push(Error::required(&name.path, ""));
        }
    } else {
        name.invalid(names::is_dns1123_label(name.str()), errors);
        if !seen.insert(name.str()) {
            errors.push(Error::duplicate(&name.path, name.str()));
        }
    }
    let number = port.get("port");
    number.invalid(names::is_port_num(number.value.as_i64().unwrap_or_default()), errors);
    let protocol = port.get("protocol");
    match protocol.str() {
        "" => errors.push(Error::required(&protocol.path, "")),
        _ => protocol.one_of(&["SCTP", "TCP", "UDP"], errors),
    }
    port_or_name(&port.get("targetPort"), errors);
    let app = port.get("appProtocol");
    if !app.is_null() {
        app.invalid(names::is_qualified_name(app.str()), errors);
    }
}

/// A port by number or by name.
pub(super) fn port_or_name(port: &At<'_>, errors: &mut Vec<Error>) {
    match port.value {
        Value::String(name) => port.invalid(names::is_port_name(name), errors),
        number => port.invalid(names::is_port_num(number.as_i64().unwrap_or_default()), errors),
    }
}

fn affinity(spec: &At<'_>, errors: &mut Vec<Error>) {
    const MAX_SECONDS: i64 = 86_400;
    let (affinity, config) = (spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"));
    match affinity.str() {
        "" => errors.push(Error::required(&affinity.path, "")),
        _ => affinity.one_of(&["ClientIP", "None"], errors),
    }
    if affinity.str() == "None" && !config.is_null() {
        errors.push(Error::forbidden(&config.path, "must not be set when session affinity is None"));
    }
    if affinity.str() != "ClientIP" {
        return;
    }
    let timeout = config.get("clientIP").get("timeoutSeconds");
    match timeout.value.as_i64() {
        None => errors.push(Error::required(&timeout.path, "when session affinity type is ClientIP")),
        Some(seconds) if seconds <= 0 || seconds > MAX_SECONDS => {
            timeout.invalid(vec![format!("must be greater than 0 and less than {MAX_SECONDS}")], errors);
        }
        Some(_) => {}
    }
}

fn addresses(spec: &At<'_>, old: Option<&Value>, errors: &mut Vec<Error>) {
    let path = spec.path.child("clusterIPs");
    let ips = cluster_ips(spec);
    if spec.text("type") != "ExternalName" {
        if ips.first().is_some_and(|first| *first != spec.text("clusterIP")) {
            errors.push(Error::invalid(&path, json!(ips), "first value must match `clusterIP`"));
        }
        for (i, ip) in ips.iter().enumerate().filter(|(_, ip)| !matches!(**ip, "None" | "")) {
            errors.extend(names::ip::is_ip_for_legacy_field(&path.index(i), ip, false, &[]));
        }
    }
    let known = old.map(|old| At::root(old).get("spec").get("externalIPs"));
    let known: Vec<&str> = known.iter().flat_map(At::items).map(|ip| ip.str()).collect();
    for ip in spec.get("externalIPs").items() {
        errors.extend(names::ip::is_ip_for_legacy_field(&ip.path, ip.str(), false, &known));
    }
}

fn source_ranges(spec: &At<'_>, errors: &mut Vec<Error>) {
    let ranges = spec.get("loadBalancerSourceRanges");
    if ranges.items().len() == 0 {
        return;
    }
    // Upstream writes the field with a capital letter.
    let path = spec.path.child("LoadBalancerSourceRanges");
    if spec.text("type") != "LoadBalancer" {
        errors.push(Error::forbidden(&path, "may only be used when `type` is 'LoadBalancer'"));
    }
    for (i, range) in ranges.items().enumerate() {
        errors.extend(names::ip::is_cidr_for_legacy_field(&path.index(i), range.str().trim(), false, &[]));
    }
}

fn traffic(spec: &At<'_>, errors: &mut Vec<Error>) {
    let kind = spec.text("type");
    let external_ips = spec.get("externalIPs").items().len() > 0;
    let external = matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && external_ips);
    let policy = spec.get("externalTrafficPolicy");
    match policy.str() {
        "" if external => errors.push(Error::required(&policy.path, "")),
        "" => {}
        _ if external => policy.one_of(&["Cluster", "Local"], errors),
        _ => policy.invalid(vec!["may only be set for externally-accessible services".into()], errors),
    }
    let check = spec.get("healthCheckNodePort");
    let port = check.value.as_i64().unwrap_or_default();
    if !(kind == "LoadBalancer" && policy.str() == "Local") && port != 0 {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        check.invalid(vec![why.into()], errors);
    }
    let internal = spec.get("internalTrafficPolicy");
    if !internal.is_null() {
        internal.one_of(&["Cluster", "Local"], errors);
    } else if matches!(kind, "ClusterIP" | "LoadBalancer" | "NodePort") {
        errors.push(Error::required(&internal.path, ""));
    }
}
