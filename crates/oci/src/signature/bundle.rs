//! Bundles of Sigstore: a signed statement together with what verifies it, in one file.

use super::log::{Entry, Proof};
use super::{Envelope, Material};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};

/// The most log entries or timestamps of a bundle.
const EVIDENCE_MAX: usize = 20;

/// The fields that are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bundle {
    pub(super) dsse_envelope: Envelope,
    #[serde(default)]
    verification_material: VerificationMaterial,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VerificationMaterial {
    certificate: Option<RawBytes>,
    x509_certificate_chain: Option<Chain>,
    tlog_entries: Vec<LogEntry>,
    timestamp_verification_data: Timestamps,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBytes {
    raw_bytes: Encoded,
}

#[derive(Deserialize)]
struct Chain {
    certificates: Vec<RawBytes>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Timestamps {
    rfc3161_timestamps: Vec<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timestamp {
    signed_timestamp: Encoded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry {
    #[serde(default)]
    log_index: Number,
    log_id: LogId,
    #[serde(default)]
    integrated_time: Number,
    #[serde(default)]
    inclusion_promise: Option<Promise>,
    #[serde(default)]
    inclusion_proof: Option<InclusionProof>,
    canonicalized_body: Encoded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogId {
    key_id: Encoded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Promise {
    signed_entry_timestamp: Encoded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InclusionProof {
    #[serde(default)]
    log_index: Number,
    root_hash: Encoded,
    tree_size: Number,
    #[serde(default)]
    hashes: Vec<Encoded>,
    checkpoint: Checkpoint,
}

#[derive(Deserialize)]
struct Checkpoint {
    envelope: String,
}

/// Bytes in base64.
struct Encoded(Vec<u8>);

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A number, which the JSON of protocol buffers writes as text.
#[derive(Clone, Copy, Default)]
struct Number(i64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(i64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Self(number)),
            Either::Text(text) => text.parse().map(Self).map_err(serde::de::Error::custom),
        }
    }
}

impl Bundle {
    /// What the signatures of the envelope are verified with, if they are by a certificate.
    pub(super) fn material(&mut self) -> Result<Material, String> {
        let material = std::mem::take(&mut self.verification_material);
        let timestamps = material.timestamp_verification_data.rfc3161_timestamps;
        if material.tlog_entries.len() > EVIDENCE_MAX || timestamps.len() > EVIDENCE_MAX {
            return Err(format!("the bundle has more than {EVIDENCE_MAX} log entries or timestamps"));
        }
        let chain = material.x509_certificate_chain.map(|chain| chain.certificates).unwrap_or_default();
        let mut certificates = material.certificate.into_iter().chain(chain).map(|entry| entry.raw_bytes.0);
        let entries: Result<Vec<Entry>, String> = material.tlog_entries.into_iter().map(entry).collect();
        Ok(Material {
            certificate: certificates.next(),
            chain: certificates.collect(),
            entries: entries?,
            timestamps: timestamps.into_iter().map(|timestamp| timestamp.signed_timestamp.0).collect(),
        })
    }
}

fn entry(entry: LogEntry) -> Result<Entry, String> {
    let unsigned = |number: Number| {
        u64::try_from(number.0).map_err(|_| "the entry of the transparency log is malformed".to_owned())
    };
    let proof = match entry.inclusion_proof {
        None => None,
        Some(proof) => Some(Proof {
            index: unsigned(proof.log_index)?,
            size: unsigned(proof.tree_size)?,
            root: proof.root_hash.0,
            hashes: proof.hashes.into_iter().map(|hash| hash.0).collect(),
            checkpoint: proof.checkpoint.envelope,
        }),
    };
    Ok(Entry {
        body: entry.canonicalized_body.0,
        integrated_time: entry.integrated_time.0,
        log_id: entry.log_id.key_id.0,
        log_index: entry.log_index.0,
        promise: entry.inclusion_promise.map(|promise| promise.signed_entry_timestamp.0),
        proof,
    })
}
