//! Content negotiation: the media types of request and response.

use http::{HeaderMap, header};
use transom_object::Status;
use transom_object::status::Details;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

/// The representation of objects in the response. `version` is that of `meta.k8s.io`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    Object,
    Table { version: String },
    PartialMetadata { version: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub format: Format,
    pub representation: Representation,
    pub pretty: bool,
}

/// The encodings of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyType {
    Json,
    Yaml,
    Protobuf,
}

/// The media types of responses. Protobuf is read, and never written.
pub(crate) const OFFERED: &str = "application/json, application/yaml";
/// The media types of requests, for kinds that have a protobuf form.
const READ: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

struct MediaType<'a> {
    name: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> MediaType<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let params = parts
            .filter_map(|p| p.split_once('='))
            .map(|(k, v)| (k.trim(), v.trim().trim_matches('"')))
            .collect();
        Self { name, params }
    }

    fn param(&self, key: &str) -> &'a str {
        self.params.iter().find(|(k, _)| *k == key).map_or("", |(_, v)| v)
    }

    fn format(&self) -> Option<Format> {
        match self.name {
            "" | "*/*" | "application/*" | "application/json" => Some(Format::Json),
            "application/yaml" => Some(Format::Yaml),
            _ => None,
        }
    }

    fn representation(&self) -> Option<Representation> {
        let version = self.param("v");
        match self.param("as") {
            "" => Some(Representation::Object),
            _ if self.param("g") != "meta.k8s.io" || !matches!(version, "v1" | "v1beta1") => None,
            "Table" => Some(Representation::Table { version: version.to_owned() }),
            "PartialObjectMetadata" | "PartialObjectMetadataList" => {
                Some(Representation::PartialMetadata { version: version.to_owned() })
            }
            _ => None,
        }
    }
}

impl Accept {
    /// The first acceptable of the media types the client lists, in its order.
    pub(crate) fn parse(headers: &HeaderMap, pretty: Option<bool>) -> Result<Self, Unacceptable> {
        let listed = header_text(headers, header::ACCEPT.as_str());
        let pretty = pretty.unwrap_or_else(|| is_for_eyes(header_text(headers, header::USER_AGENT.as_str())));
        let mut known_type = false;
        for media in listed.split(',').map(|m| MediaType::parse(m.trim())) {
            let Some(format) = media.format() else { continue };
            known_type = true;
            if let Some(representation) = media.representation() {
                return Ok(Self { format, representation, pretty });
            }
        }
        Err(Unacceptable { known_type })
    }

    /// For errors, which get a response even when the Accept header is unusable.
    pub(crate) fn fallback() -> Self {
        Self { format: Format::Json, representation: Representation::Object, pretty: false }
    }
}

/// The client accepts nothing that the server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unacceptable {
    /// It lists a media type that is offered, but not in the representation that it requests.
    known_type: bool,
}

impl Unacceptable {
    /// Media types of built-in kinds are sorted out by their routes already, those of custom kinds by their
    /// handler, and the two word it differently.
    pub(crate) fn status(self, custom: bool) -> Status {
        if custom || self.known_type {
            return Status::not_acceptable(format!("only the following media types are accepted: {OFFERED}"));
        }
        Status::not_acceptable(format!("406: Not Acceptable\n\nAvailable representations: {OFFERED}"))
            .with_details(Details::default())
    }
}

/// Browsers and command-line fetchers get indented JSON.
fn is_for_eyes(user_agent: &str) -> bool {
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|p| user_agent.starts_with(p))
}

pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// The encoding of a request body; none given means JSON.
pub(crate) fn body_type(headers: &HeaderMap, protobuf: bool) -> Result<BodyType, Status> {
    let media = MediaType::parse(header_text(headers, header::CONTENT_TYPE.as_str()));
    match media.name {
        "" | "application/json" => Ok(BodyType::Json),
        "application/yaml" => Ok(BodyType::Yaml),
        "application/vnd.kubernetes.protobuf" if protobuf => Ok(BodyType::Protobuf),
        _ => Err(Status::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            if protobuf { READ } else { OFFERED }
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn accept(value: &str) -> Result<Accept, Unacceptable> {
        let mut h = HeaderMap::new();
        h.insert("accept", HeaderValue::from_str(value).unwrap());
        Accept::parse(&h, None)
    }

    #[test]
    fn first_acceptable_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(table).unwrap().representation, Representation::Table { version: "v1".into() });
        let proto = accept("application/vnd.kubernetes.protobuf,application/json").unwrap();
        assert_eq!((proto.format, proto.representation), (Format::Json, Representation::Object));
        assert_eq!(accept("application/yaml").unwrap().format, Format::Yaml);
        assert_eq!(accept("text/html"), Err(Unacceptable { known_type: false }));
        let nonsense = accept("application/json;as=Nonsense;v=v1;g=meta.k8s.io").unwrap_err();
        assert!(nonsense.known_type && nonsense.status(false).message.starts_with("only the following"));
    }

    #[test]
    fn a_refusal_lists_what_would_have_been_accepted() {
        for (listed, custom) in [
            ("application/vnd.kubernetes.protobuf", false),
            ("application/vnd.kubernetes.protobuf", true),
            ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", false),
        ] {
            let message = accept(listed).unwrap_err().status(custom).message;
            let (_, offered) = message.rsplit_once(": ").unwrap();
            for offered in offered.split(", ") {
                assert!(accept(offered).is_ok(), "{listed}: {message}");
            }
        }
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/plain"));
        for protobuf in [true, false] {
            let message = body_type(&headers, protobuf).unwrap_err().message;
            let (_, read) = message.rsplit_once(": ").unwrap();
            for read in read.split(", ") {
                headers.insert("content-type", HeaderValue::from_str(read).unwrap());
                assert!(body_type(&headers, protobuf).is_ok(), "{message}");
            }
            headers.insert("content-type", HeaderValue::from_static("text/plain"));
        }
    }
}
