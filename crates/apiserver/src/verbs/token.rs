//! `serviceaccounts/x/token`: a token for a service account.

use super::not_supported;
use crate::admission::{Operation, Options, Request};
use crate::call::Call;
use crate::request::{Verb, WriteOptions};
use crate::respond::Answer;
use crate::subresource::Subresource;
use crate::tokens::{BINDABLE, Bound};
use crate::{decode, negotiate, ownership, tokens};
use http::StatusCode;
use serde_json::{Value, json};
use transom_object::json::strings;
use transom_object::{GroupKind, GroupResource, GroupVersion, Status, field};
use transom_schema::own;
use transom_store::Key;

const TYPE: &str = "io.k8s.api.authentication.v1.TokenRequest";
const API_VERSION: &str = "authentication.k8s.io/v1";
const MIN_LIFETIME_SECONDS: i64 = 600;
const DEFAULT_LIFETIME_SECONDS: i64 = 3600;
const MAX_LIFETIME_SECONDS: i64 = 1 << 32;

pub(super) async fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    if call.verb != Verb::Create {
        return Err(not_supported(call));
    }
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    let account = call
        .server
        .store
        .get(&key)
        .ok_or_else(|| Status::not_found(&call.resource.group_resource(), &call.target.name))?;
    let options = WriteOptions::parse(&call.query, "CreateOptions", call.user_agent(), false)?;
    let mut request = decode::value(body, negotiate::body_type(&call.headers, true)?, "TokenRequest")?.value;
    let unknown = transom_kinds::normalize(&mut request, TYPE).map_err(|e| {
        Status::bad_request(format!(
            "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: {e}"
        ))
    })?;
    decode::judge(&call.resource, &[], &unknown, options.field_validation)?;
    let lifetime = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_LIFETIME_SECONDS);
    request["spec"]["expirationSeconds"] = lifetime.into();
    fill(call, &mut request, &call.resource.decode(&account)?["metadata"], &options.field_manager);
    let lifetime = admit(call, &mut request, &options).await?;
    let mut audiences = strings(&request["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences.push(tokens::ISSUER.to_owned());
    }
    let now = jiff::Timestamp::now();
    let expires = now.as_second() + lifetime;
    let bound = bound(call, &request["spec"]["boundObjectRef"])?;
    let subject = (call.target.namespace.as_str(), call.target.name.as_str(), &*account.header.uid);
    let claims = tokens::claims(subject, bound.as_ref(), &audiences, now.as_second(), expires);
    let token = call.server.signer.sign(&claims).map_err(Status::internal)?;
    let expiry = jiff::Timestamp::from_second(expires).map_err(|e| Status::internal(e.to_string()))?;
    request["spec"]["audiences"] = json!(audiences);
    request["status"] =
        json!({"token": token, "expirationTimestamp": expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
    Ok(Answer::value(request).with_code(StatusCode::CREATED))
}

/// Admission around validation, as for any other create. Returns the lifetime in seconds.
async fn admit(call: &Call, request: &mut Value, options: &WriteOptions) -> Result<i64, Status> {
    let review = Request {
        operation: Operation::Create,
        resource: &call.resource,
        subresource: Subresource::Token,
        namespace: &call.target.namespace,
        name: &call.target.name,
        options: Options::Write(options),
        by: call.requester(),
    };
    call.server.admit_mutating(&review, request, None).await?;
    let lifetime = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_LIFETIME_SECONDS);
    check_lifetime(lifetime)?;
    call.server.admit_validating(&review, Some(request), None).await?;
    Ok(lifetime)
}

/// The object whose deletion ends the token.
fn bound(call: &Call, reference: &Value) -> Result<Option<Bound>, Status> {
    if !reference.is_object() {
        return Ok(None);
    }
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let gvk = GroupVersion::parse(text("apiVersion")).unwrap_or_default().with_kind(text("kind"));
    let known = BINDABLE.into_iter().find(|(claim, _)| {
        gvk.group.is_empty()
            && gvk.kind.eq_ignore_ascii_case(claim)
            && gvk.kind.starts_with(char::is_uppercase)
    });
    let Some((claim, store_key)) = known else {
        return Err(Status::bad_request(format!(
            "cannot bind token to object of type {}/{}, Kind={}",
            gvk.group, gvk.version, gvk.kind
        )));
    };
    let key = Key::new(store_key, &call.target.namespace, text("name"));
    let object = call
        .server
        .store
        .get(&key)
        .ok_or_else(|| Status::not_found(&GroupResource::new("", store_key), text("name")))?;
    let uid = object.header.uid.to_string();
    if !text("uid").is_empty() && text("uid") != uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        return Err(Status::conflict(&GroupResource::new(&*gvk.group, &*gvk.kind), text("name"), why));
    }
    Ok(Some(Bound { claim, name: text("name").to_owned(), uid }))
}

/// Metadata of the service account, with the client's manager as the owner of the fields in its request.
fn fill(call: &Call, request: &mut Value, account: &Value, manager: &str) {
    let now = call.server.timestamp();
    let mut blank = json!({"apiVersion": API_VERSION, "kind": "TokenRequest", "metadata": {}});
    // An object without fields of its own is of the right type.
    let _ = transom_kinds::normalize(&mut blank, TYPE);
    request["apiVersion"] = API_VERSION.into();
    request["kind"] = "TokenRequest".into();
    request["metadata"] = json!({
        "name": call.target.name,
        "namespace": call.target.namespace,
        "uid": account["uid"],
        "creationTimestamp": account["creationTimestamp"],
    });
    ownership::of_type(TYPE, API_VERSION, "token", &now, |ctx| {
        own::update(ctx, Some(&blank), request, manager);
    });
}

fn check_lifetime(seconds: i64) -> Result<(), Status> {
    let path = field::Path::new("spec").child("expirationSeconds");
    let why = if seconds < MIN_LIFETIME_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MAX_LIFETIME_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = field::Error::invalid(&path, seconds, why);
    Err(Status::invalid(&GroupKind::new("authentication.k8s.io", "TokenRequest"), "", &[error]))
}
