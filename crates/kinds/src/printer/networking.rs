//! Columns and cells of ingresses, endpoint slices, policies and addresses.

use super::cells::label_selector;
use super::{AGE, Column, NAME, Printed, column};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MAX_PRINTED: usize = 3;

/// The columns of a kind, if it is one of these.
pub(super) fn columns(kind: &str) -> Option<&'static [Column]> {
    Some(match kind {
        "Ingress" => INGRESS_COLUMNS,
        "IngressClass" => INGRESS_CLASS_COLUMNS,
        "NetworkPolicy" => NETWORK_POLICY_COLUMNS,
        "EndpointSlice" => ENDPOINT_SLICE_COLUMNS,
        "ServiceCIDR" => SERVICE_CIDR_COLUMNS,
        "IPAddress" => IP_ADDRESS_COLUMNS,
        _ => return None,
    })
}

const INGRESS_COLUMNS: &[Column] = &[
    NAME,
    column("Class", "The IngressClass that serves it."),
    column("Hosts", "The hosts that its rules are for."),
    column("Address", "The addresses of the load balancer."),
    column("Ports", "The ports that are open."),
    AGE,
];

const INGRESS_CLASS_COLUMNS: &[Column] = &[
    NAME,
    column("Controller", "The controller that serves the class."),
    column("Parameters", "An object with parameters of the controller."),
    AGE,
];

const NETWORK_POLICY_COLUMNS: &[Column] = &[NAME, column("Pod-Selector", "The pods that it is for."), AGE];

const ENDPOINT_SLICE_COLUMNS: &[Column] = &[
    NAME,
    column("AddressType", "The type of the addresses."),
    column("Ports", "The ports."),
    column("Endpoints", "The addresses."),
    AGE,
];

const SERVICE_CIDR_COLUMNS: &[Column] = &[NAME, column("CIDRs", "The ranges of addresses."), AGE];

const IP_ADDRESS_COLUMNS: &[Column] = &[NAME, column("ParentRef", "The object that has the address.")];

/// The cells of an object of one of these kinds.
pub(super) fn cells(kind: &str, o: &Printed<'_>, name: Value, age: Value) -> Option<Vec<Value>> {
    Some(match kind {
        "Ingress" => {
            let class =
                o.object.pointer("/spec/ingressClassName").and_then(Value::as_str).unwrap_or("<none>");
            let ports = if o.list("/spec/tls").is_empty() { "80" } else { "80, 443" };
            vec![name, json!(class), json!(hosts(o)), json!(addresses(o)), json!(ports), age]
        }
        "IngressClass" => ingress_class(o, age),
        "NetworkPolicy" => {
            let selector = match label_selector(o.object.pointer("/spec/podSelector")) {
                s if s.is_empty() => "<none>".to_owned(),
                s => s,
            };
            vec![name, json!(selector), age]
        }
        "EndpointSlice" => {
            let ports = o.list("/ports").iter().map(|p| match (p["port"].as_i64(), p["name"].as_str()) {
                (Some(number), _) => number.to_string(),
                (None, Some(name)) => name.to_owned(),
                (None, None) => "*".to_owned(),
            });
            let addresses =
                o.list("/endpoints").iter().flat_map(|e| e["addresses"].as_array().into_iter().flatten());
            let addresses = addresses.map(|a| a.as_str().unwrap_or_default().to_owned());
            let (ports, addresses) =
                (some_of(&ports.collect::<Vec<_>>()), some_of(&addresses.collect::<Vec<_>>()));
            vec![name, json!(o.text("/addressType")), json!(ports), json!(addresses), age]
        }
        "ServiceCIDR" => {
            let ranges: Vec<&str> = o.list("/spec/cidrs").iter().filter_map(Value::as_str).collect();
            vec![name, json!(ranges.join(",")), age]
        }
        "IPAddress" => vec![name, json!(parent(o)), age],
        _ => return None,
    })
}

fn some_of(all: &[String]) -> String {
    match all.len() {
        0 => "<unset>".to_owned(),
        n if n > MAX_PRINTED => format!("{} + {} more...", all[..MAX_PRINTED].join(","), n - MAX_PRINTED),
        _ => match all.join(",") {
            s if s.is_empty() => "<unset>".to_owned(),
            s => s,
        },
    }
}

fn hosts(o: &Printed<'_>) -> String {
    let rules = o.list("/spec/rules");
    let (mut shown, mut more) = (Vec::new(), false);
    for rule in rules {
        more |= shown.len() == MAX_PRINTED;
        match rule["host"].as_str() {
            Some(host) if !more && !host.is_empty() => shown.push(host),
            _ => {}
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - MAX_PRINTED),
        (false, false) => shown.join(","),
    }
}

fn addresses(o: &Printed<'_>) -> String {
    let points = o.list("/status/loadBalancer/ingress");
    let of = |point: &'_ Value| {
        let text = |key: &str| point[key].as_str().filter(|s| !s.is_empty()).map(str::to_owned);
        text("ip").or_else(|| text("hostname"))
    };
    points.iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(",")
}

fn ingress_class(o: &Printed<'_>, age: Value) -> Vec<Value> {
    let default = "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class";
    let mark = if o.text(default) == "true" { " (default)" } else { "" };
    let parameters = match o.object.pointer("/spec/parameters") {
        None => "<none>".to_owned(),
        Some(p) => {
            let text = |key: &str| p[key].as_str().unwrap_or_default();
            let group = p["apiGroup"].as_str().map(|g| format!(".{g}")).unwrap_or_default();
            format!("{}{group}/{}", text("kind"), text("name"))
        }
    };
    vec![
        json!(format!("{}{mark}", o.text("/metadata/name"))),
        json!(o.text("/spec/controller")),
        json!(parameters),
        age,
    ]
}

fn parent(o: &Printed<'_>) -> String {
    let Some(parent) = o.object.pointer("/spec/parentRef") else { return "<none>".to_owned() };
    let text = |key: &str| parent[key].as_str().unwrap_or_default();
    let mut shown = text("resource").to_lowercase();
    if !text("group").is_empty() {
        shown = format!("{shown}.{}", text("group").to_lowercase());
    }
    for step in [text("namespace"), text("name")].into_iter().filter(|s| !s.is_empty()) {
        shown.push('/');
        shown.push_str(step);
    }
    shown
}
