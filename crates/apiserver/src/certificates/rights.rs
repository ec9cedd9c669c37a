//! Who may decide, sign and request: what the plugins CertificateApproval, CertificateSigning and
//! CertificateSubjectRestriction check in Kubernetes, at the beginning of the validating phase.

use super::{CLIENT_SIGNER, GROUP, SigningRequest, are};
use crate::admission::{Operation, Request};
use crate::auth::{Attributes, Decision};
use crate::server::Inner;
use crate::subresource::Subresource;
use serde_json::Value;
use transom_object::Status;
use transom_rbac::MASTERS;

/// Refuses the write of a request that its author may not make. Writes of other kinds pass.
pub(crate) async fn review(
    server: &Inner,
    request: &Request<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if !are(request.resource) {
        return Ok(());
    }
    match (request.operation, request.subresource, old) {
        (Operation::Create, ..) => restrict_subject(request, new),
        (Operation::Update, Subresource::Approval, Some(old)) => {
            authorize(server, request, old, "approve").await
        }
        (Operation::Update, Subresource::Status, Some(old)) => {
            let of = |object: &Value, field: &str| object["status"].get(field).cloned().unwrap_or_default();
            let differs = |field: &str| of(new, field) != of(old, field);
            if differs("certificate") || differs("conditions") {
                return authorize(server, request, old, "sign").await;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The right on the signer that the stored request names, or on all signers of its domain.
async fn authorize(server: &Inner, request: &Request<'_>, old: &Value, verb: &str) -> Result<(), Status> {
    if !request.by.is_client() {
        return Ok(());
    }
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        let attributes = Attributes {
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..Attributes::of(request.by.user, verb)
        };
        if server.authorizer.authorize(&attributes).await == Decision::Allowed {
            return Ok(());
        }
    }
    Err(refused(request, old, format!("user not permitted to {verb} requests with signerName {signer:?}")))
}

/// No certificate of [`CLIENT_SIGNER`] is for a member of the group that may do everything.
fn restrict_subject(request: &Request<'_>, new: &Value) -> Result<(), Status> {
    if new["spec"]["signerName"] != CLIENT_SIGNER {
        return Ok(());
    }
    let parsed = SigningRequest::parse_base64(new["spec"]["request"].as_str().unwrap_or_default());
    let parsed = parsed.map_err(|why| refused(request, new, format!("failed to parse CSR: {why}")))?;
    if parsed.organizations.iter().any(|group| group == MASTERS) {
        let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
        return Err(refused(request, new, why));
    }
    Ok(())
}

fn refused(request: &Request<'_>, object: &Value, why: String) -> Status {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Status::forbidden(&request.resource.group_resource(), name, why)
}
