//! `serviceaccounts/x/token`: a token for a service account.

use super::not_supported;
use crate::call::Call;
use crate::request::{FieldValidation, Verb};
use crate::respond::Answer;
use crate::{decode, kinds, negotiate, tokens};
use http::StatusCode;
use serde_json::json;
use transom_object::json::strings;
use transom_object::{GroupKind, Status, field};

const SHORTEST: i64 = 600;
const DEFAULT: i64 = 3600;
const LONGEST: i64 = 1 << 32;

pub(super) fn create(call: &Call, body: &[u8]) -> Result<Answer, Status> {
    if call.verb != Verb::Create {
        return Err(not_supported(call));
    }
    let key = call.resource.key(&call.target.namespace, &call.target.name);
    let account = call
        .server
        .store
        .get(&key)
        .ok_or_else(|| Status::not_found(&call.resource.group_resource(), &call.target.name))?;
    let mut request = decode::value(body, negotiate::body_type(&call.headers, true)?, "TokenRequest")?.value;
    let unknown =
        kinds::normalize(&mut request, "io.k8s.api.authentication.v1.TokenRequest").map_err(|e| {
            Status::bad_request(format!(
                "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: {e}"
            ))
        })?;
    decode::judge(&call.resource, &[], &unknown, FieldValidation::Warn)?;
    let lifetime = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT);
    check_lifetime(lifetime)?;
    let mut audiences = strings(&request["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences.push(tokens::ISSUER.to_owned());
    }
    let now = jiff::Timestamp::now();
    let expires = now.as_second() + lifetime;
    let claims = tokens::claims(
        &call.target.namespace,
        &call.target.name,
        &account.header.uid,
        &audiences,
        now.as_second(),
        expires,
    );
    let token = call.server.signer.sign(&claims).map_err(Status::internal)?;
    let expiry = jiff::Timestamp::from_second(expires).map_err(|e| Status::internal(e.to_string()))?;
    request["metadata"] = json!({
        "name": call.target.name,
        "namespace": call.target.namespace,
        "creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = lifetime.into();
    request["status"] =
        json!({"token": token, "expirationTimestamp": expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
    Ok(Answer::value(request).with_code(StatusCode::CREATED))
}

fn check_lifetime(seconds: i64) -> Result<(), Status> {
    let path = field::Path::new("spec").child("expirationSeconds");
    let why = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = field::Error::invalid(&path, seconds, why);
    Err(Status::invalid(&GroupKind::new("authentication.k8s.io", "TokenRequest"), "", &[error]))
}
