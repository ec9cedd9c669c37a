//! The arithmetic of networks, and what the function answers.

use super::*;
use serde_json::json;
use transom_function::Resource;
use transom_function::testing::{RequestBuilder, run};

async fn call(input: Value) -> RunFunctionResponse {
    let xr = json!({"apiVersion": "example.org/v1", "kind": "XR", "spec": {
        "func": "cidrnetmask", "prefix": "10.0.0.0/16", "one": 1, "two": 2, "bits": [8, 4], "zones": ["a", "b"], "text": "x",
        "prefixes": [{"prefix": "10.1.0.0/16", "newBits": [8], "extra": true}]}});
    let mut request = RequestBuilder::new(xr)
        .desired("vpc", json!({"spec": {"cidr": "10.2.0.0/16"}}))
        .context("apiextensions.crossplane.io/environment", json!({"nets": ["10.3.0.0/16"]}))
        .input(input)
        .build();
    let mut composite = Resource::new(json!({"status": {"net": "10.4.0.0/16"}})).unwrap();
    composite.set_ready(Ready::True);
    composite.connection_details.insert("k".to_owned(), b"v".to_vec());
    request.desired.as_mut().unwrap().composite = Some(composite);
    run(&Cidr, request, &[]).await
}

async fn result(input: Value) -> Result<Value, String> {
    let response = call(input).await;
    if let Some(fatal) = response.results.first() {
        return Err(fatal.message.clone());
    }
    let composite = response.desired.unwrap().composite.unwrap();
    assert_eq!(composite.ready(), Ready::Unspecified);
    assert_eq!(composite.connection_details["k"], b"v");
    let object = composite.object();
    assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("example.org/v1"), &json!("XR")));
    Ok(object["status"]["atFunction"]["cidr"].clone())
}

#[tokio::test]
async fn networks_are_calculated() {
    let prefix = "10.0.0.0/16";
    for (input, expected) in [
        (json!({"cidrFunc": "cidrhost", "prefix": prefix, "hostNum": 5}), json!("10.0.0.5")),
        (json!({"cidrFunc": "cidrhost", "prefix": prefix, "hostNumField": "spec.two"}), json!("10.0.0.2")),
        (json!({"cidrFuncField": "spec.func", "prefixField": "spec.prefix"}), json!("255.255.0.0")),
        (
            json!({"cidrFunc": "cidrsubnet", "prefix": prefix, "newBits": [8], "netNum": 2}),
            json!("10.0.2.0/24"),
        ),
        (
            json!({"cidrFunc": "cidrsubnet", "prefix": prefix, "newBitsField": "spec.bits", "netNumField": "spec.one"}),
            json!("10.0.1.0/24"),
        ),
        (
            json!({"cidrFunc": "cidrsubnets", "prefix": prefix, "newBitsField": "spec.bits"}),
            json!(["10.0.0.0/24", "10.0.16.0/20"]),
        ),
        (json!({"cidrFunc": "cidrsubnets", "prefix": prefix}), json!(null)),
        (
            json!({"cidrFunc": "cidrsubnetloop", "prefix": prefix, "newBits": [8], "netNumItemsField": "spec.zones", "offset": 1}),
            json!(["10.0.1.0/24", "10.0.2.0/24"]),
        ),
        (
            json!({"cidrFunc": "cidrsubnetloop", "prefix": prefix, "newBits": [8], "netNumCountField": "spec.one"}),
            json!(["10.0.0.0/24"]),
        ),
        (json!({"cidrFunc": "cidrsubnetloop", "prefix": prefix, "newBits": [8]}), json!(null)),
        (
            json!({"cidrFunc": "multiprefixloop", "multiPrefixField": "spec.prefixes"}),
            json!({"10.1.0.0/16": ["10.1.0.0/24"]}),
        ),
        (
            json!({"cidrFunc": "multiprefixloop", "multiPrefix": [{"prefix": prefix, "newBits": [8, 8], "offset": 4}]}),
            json!({"10.0.0.0/16": ["10.0.16.0/24", "10.0.17.0/24"]}),
        ),
        (
            json!({"cidrFunc": "cidrhost", "hostNum": 1, "prefixField": "desired.composite.resource.status.net"}),
            json!("10.4.0.1"),
        ),
        (
            json!({"cidrFunc": "cidrhost", "hostNum": 1, "prefixField": "desired.resources.vpc.resource.spec.cidr"}),
            json!("10.2.0.1"),
        ),
        (
            json!({"cidrFunc": "cidrhost", "hostNum": 1, "prefixField": r"context.apiextensions\.crossplane\.io/environment.nets.0"}),
            json!("10.3.0.1"),
        ),
    ] {
        assert_eq!(result(input.clone()).await, Ok(expected), "{input}");
    }
}

#[tokio::test]
async fn the_output_goes_to_a_field() {
    let input = json!({"cidrFunc": "cidrnetmask", "prefix": "10.0.0.0/8", "outputField": "status.mask"});
    let composite = call(input).await.desired.unwrap().composite.unwrap();
    assert_eq!(composite.object()["status"], json!({"net": "10.4.0.0/16", "mask": "255.0.0.0"}));
}

#[tokio::test]
async fn problems_are_fatal() {
    let invalid = "invalid Function input: parameters: Required value: ";
    let prefix = "10.0.0.0/24";
    for (input, expected) in [
        (json!({}), format!("{invalid}either prefix or prefixField function input is required")),
        (json!({"prefix": prefix}), format!("{invalid}cidrFunc is required")),
        (json!({"prefix": prefix, "cidrFunc": "x"}), format!("{invalid}unexpected cidrFunc x")),
        (json!({"prefix": "10", "cidrFunc": "x"}), format!("{invalid}invalid CIDR prefix address 10")),
        (json!({"prefix": prefix, "prefixField": "a"}), format!("{invalid}specify only one of prefix or prefixField to avoid ambiguous function input")),
        (json!({"prefixField": "spec.no"}), format!("{invalid}cannot get prefix at prefixField spec.no: cannot get prefix from field spec.no for XR: spec.no: no such field")),
        (json!({"prefixField": "desired.resources.no.x"}), format!("{invalid}cannot get prefix at prefixField desired.resources.no.x: No composed resource with name no found for field desired.resources.no.x")),
        (json!({"cidrFuncField": "spec.two"}), format!("{invalid}cannot get cidrFunc at cidrFuncField spec.two")),
        (json!({"prefix": prefix, "cidrFunc": "cidrhost"}), format!("{invalid}either hostnum or hostnumfield function input is required")),
        (json!({"prefix": prefix, "cidrFunc": "cidrhost", "hostNumField": "spec.text"}), format!("{invalid}cannot get hostnum at hostnumfield spec.text")),
        (json!({"prefix": prefix, "cidrFunc": "cidrsubnet", "newBits": [1, 2]}), format!("{invalid}cidrFunc cidrsubnet requires exactly 1 parameter in the array")),
        (json!({"cidrFunc": "multiprefixloop", "multiPrefix": [{"prefix": prefix}]}), format!("{invalid}newBits is required for each prefix in multiPrefixField")),
        (json!({"prefix": prefix, "cidrFunc": "cidrhost", "hostNum": 256}), "cannot calculate CIDR host number for XR: prefix of 24 does not accommodate a host numbered 256".to_owned()),
        (json!({"prefix": prefix, "cidrFunc": "cidrsubnets", "newBits": [0]}), "cannot calculate Subnet CIDRs for XR: must extend prefix by at least one bit".to_owned()),
        (json!({"prefix": prefix, "cidrFunc": "cidrsubnet", "newBitsField": "spec.text"}), "cannot get newbits from field spec.text of XR: cannot unmarshal value from JSON: json: cannot unmarshal string into Go value of type []int".to_owned()),
        (json!({"prefix": prefix, "cidrFunc": "cidrsubnetloop", "netNumCount": 1}), "cannot calculate subnet CIDR for XR: newbits is empty".to_owned()),
        (json!({"prefix": "::/64", "cidrFunc": "cidrsubnetloop", "newBits": [40], "netNumCount": 1_000_000_000}), "cannot calculate subnet CIDR for XR: 1000000000 subnets are more than the 65536 that are allowed".to_owned()),
        (json!({"prefix": prefix, "cidrFunc": "cidrnetmask", "outputField": "kind.x"}), "cannot set field kind.x to 255.255.255.0 for XR: kind is not an object".to_owned()),
    ] {
        assert_eq!(result(input.clone()).await.unwrap_err(), expected, "{input}");
    }
}
