//! Entries of a transparency log (Rekor): that a log of the trust root has the entry, and that the entry is of this payload,
//! signature and certificate and no other.

use super::certificate::moment;
use super::trust_root::{Log, TrustRoot};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use transom_go::encoding::{hex, unhex};

/// The largest entry, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The most hashes in a proof of inclusion: a tree of that height has more entries than there can be.
const PROOF_HASHES_MAX: usize = 64;
/// The most signatures of a checkpoint that are tried.
const CHECKPOINT_SIGNATURES_MAX: usize = 20;

/// An entry as it comes with a signature. Nothing in it is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) body: Vec<u8>,
    pub(super) integrated_time: i64,
    pub(super) log_id: Vec<u8>,
    pub(super) log_index: i64,
    /// The log's promise to include the entry, which is a signature of it with its time.
    pub(super) promise: Option<Vec<u8>>,
    pub(super) proof: Option<Proof>,
}

/// That a tree contains an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) index: u64,
    pub(super) size: u64,
    pub(super) root: Vec<u8>,
    pub(super) hashes: Vec<Vec<u8>>,
    /// The root of the tree, signed by the log.
    pub(super) checkpoint: String,
}

/// What an entry must be of.
pub(super) struct Logged<'a> {
    /// What was signed, without its envelope.
    pub(super) payload: &'a [u8],
    /// The bytes that the signature is over.
    pub(super) message: &'a [u8],
    /// The envelope as it is stored, if there is one.
    pub(super) envelope: Option<&'a [u8]>,
    pub(super) signature: &'a [u8],
    /// The certificate in DER.
    pub(super) certificate: &'a [u8],
}

impl Entry {
    /// Reads the annotation of cosign.
    pub(super) fn from_annotation(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Annotation {
            signed_entry_timestamp: String,
            payload: Payload,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Payload {
            body: String,
            integrated_time: i64,
            log_index: i64,
            #[serde(rename = "logID")]
            log_id: String,
        }
        let malformed = || "the entry of the transparency log is malformed".to_owned();
        let Annotation { signed_entry_timestamp, payload } =
            serde_json::from_str(text).map_err(|_| malformed())?;
        Ok(Self {
            body: STANDARD.decode(payload.body).map_err(|_| malformed())?,
            integrated_time: payload.integrated_time,
            log_id: unhex(&payload.log_id).ok_or_else(malformed)?,
            log_index: payload.log_index,
            promise: Some(STANDARD.decode(signed_entry_timestamp).map_err(|_| malformed())?),
            proof: None,
        })
    }

    /// Whether a log of the trust root has this entry, and whether it is of what was signed. Returns when it was made, if
    /// the log signed that.
    pub(super) fn verify(&self, root: &TrustRoot, logged: &Logged<'_>) -> Result<Option<i64>, String> {
        if self.body.len() > BODY_BYTES_MAX {
            return Err(format!("the entry of the transparency log has more than {BODY_BYTES_MAX} bytes"));
        }
        let time = self.promise.is_some().then_some(self.integrated_time);
        let mut logs = root.logs(&self.log_id, time).peekable();
        if logs.peek().is_none() {
            let id = hex(&self.log_id);
            return Err(match time {
                Some(at) if root.logs(&self.log_id, None).next().is_some() => {
                    format!("the transparency log {id:.16}… was not trusted at {}", moment(at))
                }
                _ => format!("the trust root has no transparency log {id:.16}…"),
            });
        }
        if self.promise.is_none() && self.proof.is_none() {
            return Err("the entry of the transparency log has neither a promise nor a proof".to_owned());
        }
        let mut problem = String::new();
        let is_in = |log: &Log| self.is_in(log).map_err(|reason| problem = reason).is_ok();
        if !logs.any(is_in) {
            return Err(problem);
        }
        is_of(&self.body, logged)?;
        Ok(time)
    }

    /// The promise and the proof of the entry must be valid; it may have one of them or both.
    fn is_in(&self, log: &Log) -> Result<(), String> {
        if let Some(promise) = &self.promise
            && !log.key.verifies_by_default(self.promised().as_bytes(), promise)
        {
            return Err("the transparency log did not sign this entry (SET)".to_owned());
        }
        match &self.proof {
            Some(proof) => proof.verify(&self.body, log),
            None => Ok(()),
        }
    }

    /// What a promise signs: the entry in canonical JSON.
    fn promised(&self) -> String {
        let (body, id) = (STANDARD.encode(&self.body), hex(&self.log_id));
        let (time, index) = (self.integrated_time, self.log_index);
        format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":{index}}}"#)
    }
}

impl Proof {
    fn verify(&self, body: &[u8], log: &Log) -> Result<(), String> {
        let not_included = "the proof that the transparency log contains the entry is wrong".to_owned();
        let mut leaf = Sha256::new_with_prefix([0]);
        leaf.update(body);
        let root = self.root_of(leaf.finalize().to_vec()).ok_or_else(|| not_included.clone())?;
        if root != self.root {
            return Err(not_included);
        }
        let root = checkpoint(&self.checkpoint, log)
            .ok_or("the checkpoint of the transparency log is not signed by it")?;
        // The root says what is in the tree, so its size need not be compared: cosign does not either.
        if root != self.root {
            return Err("the checkpoint of the transparency log is of another tree".to_owned());
        }
        Ok(())
    }

    /// The root of the tree that the hashes lead to (RFC 9162, section 2.1.3.2).
    fn root_of(&self, leaf: Vec<u8>) -> Option<Vec<u8>> {
        if self.index >= self.size || self.hashes.len() > PROOF_HASHES_MAX {
            return None;
        }
        let (mut index, mut last, mut hash) = (self.index, self.size - 1, leaf);
        for beside in &self.hashes {
            if last == 0 {
                return None;
            }
            if index & 1 == 1 || index == last {
                hash = node(beside, &hash);
                while index & 1 == 0 && index != 0 {
                    index >>= 1;
                    last >>= 1;
                }
            } else {
                hash = node(&hash, beside);
            }
            index >>= 1;
            last >>= 1;
        }
        (last == 0).then_some(hash)
    }
}

fn node(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut hasher = Sha256::new_with_prefix([1]);
    hasher.update(left);
    hasher.update(right);
    hasher.finalize().to_vec()
}

/// The root of a tree, from a note that a log signed: the text, an empty line, and signatures after four bytes that
/// are a hint at their key.
fn checkpoint(note: &str, log: &Log) -> Option<Vec<u8>> {
    let (text, signatures) = note.split_once("\n\n")?;
    let message = format!("{text}\n");
    let is_by_log = |line: &str| {
        let encoded = line.strip_prefix("\u{2014} ").and_then(|line| line.rsplit_once(' '));
        let bytes = encoded.and_then(|(_, encoded)| STANDARD.decode(encoded).ok()).unwrap_or_default();
        bytes.get(4..).is_some_and(|signature| log.key.verifies_by_default(message.as_bytes(), signature))
    };
    if !signatures.lines().take(CHECKPOINT_SIGNATURES_MAX).any(is_by_log) {
        return None;
    }
    // Lines are the origin, the size of the tree, and its root.
    STANDARD.decode(text.lines().nth(2)?).ok()
}

/// Whether an entry is of what was signed: the same content, signature and certificate.
fn is_of(body: &[u8], logged: &Logged<'_>) -> Result<(), String> {
    let malformed = || "the entry of the transparency log is malformed".to_owned();
    let body: Value = serde_json::from_slice(body).map_err(|_| malformed())?;
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (content, signature, certificate) = match (text("/kind"), text("/apiVersion")) {
        ("hashedrekord", "0.0.1") => (
            has_hash(&body, "/spec/data/hash", logged.message),
            decoded(text("/spec/signature/content")) == logged.signature,
            pem_is(&decoded(text("/spec/signature/publicKey/content")), logged.certificate),
        ),
        ("hashedrekord", "0.0.2") => {
            let of = |field: &str| decoded(text(&format!("/spec/hashedRekordV002/{field}")));
            (
                text("/spec/hashedRekordV002/data/algorithm") == "SHA2_256"
                    && of("data/digest") == Sha256::digest(logged.message)[..],
                of("signature/content") == logged.signature,
                of("signature/verifier/x509Certificate/rawBytes") == logged.certificate,
            )
        }
        ("dsse", "0.0.1") => {
            let one = |entry: &Value| {
                decoded(entry["signature"].as_str().unwrap_or_default()) == logged.signature
                    && pem_is(&decoded(entry["verifier"].as_str().unwrap_or_default()), logged.certificate)
            };
            let signed = any(&body, "/spec/signatures", one);
            (has_hash(&body, "/spec/payloadHash", logged.payload), signed, signed)
        }
        ("intoto", "0.0.2") => {
            // Both are encoded once more than elsewhere.
            let one = |entry: &Value| {
                let inner = decoded(entry["sig"].as_str().unwrap_or_default());
                decoded(&String::from_utf8(inner).unwrap_or_default()) == logged.signature
                    && pem_is(&decoded(entry["publicKey"].as_str().unwrap_or_default()), logged.certificate)
            };
            let signed = any(&body, "/spec/content/envelope/signatures", one);
            (has_hash(&body, "/spec/content/payloadHash", logged.payload), signed, signed)
        }
        ("intoto", "0.0.1") => {
            // The hash of the whole envelope covers its signatures.
            let same =
                logged.envelope.is_some_and(|envelope| has_hash(&body, "/spec/content/hash", envelope));
            (same, same, pem_is(&decoded(text("/spec/publicKey")), logged.certificate))
        }
        (kind, version) => {
            return Err(format!("entries {kind:?} {version:?} of a transparency log are not supported"));
        }
    };
    let wrong = [(content, "payload"), (signature, "signature"), (certificate, "certificate")];
    match wrong.into_iter().find(|(right, _)| !right) {
        None => Ok(()),
        Some((_, what)) => Err(format!("the entry of the transparency log is of another {what}")),
    }
}

fn any(body: &Value, pointer: &str, is: impl Fn(&Value) -> bool) -> bool {
    let entries = body.pointer(pointer).and_then(Value::as_array);
    entries.into_iter().flatten().any(is)
}

fn has_hash(body: &Value, pointer: &str, of: &[u8]) -> bool {
    let hash = body.pointer(pointer).unwrap_or(&Value::Null);
    hash["algorithm"] == "sha256" && hash["value"] == hex(&Sha256::digest(of))
}

fn pem_is(pem: &[u8], certificate: &[u8]) -> bool {
    CertificateDer::from_pem_slice(pem).is_ok_and(|found| *found == *certificate)
}

/// The decoded bytes; empty if the text is not base64. Signed data is never empty, so a comparison with it then fails.
fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}
