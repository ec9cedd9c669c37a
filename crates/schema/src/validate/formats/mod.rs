//! The string formats values are checked against. Names are compared without dashes, so `date-time` and
//! `datetime` are one format; formats not listed here only document.

mod codes;
mod names;
mod net;
mod time;

use transom_go::url::{HostColons, Url};
use transom_object::formats;

/// A format that restricts strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the formats")]
pub enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

/// Every format with its name and the minor version of Kubernetes 1 that introduced it.
const FORMATS: [(&str, Format, u32); 26] = [
    ("bsonobjectid", Format::BsonObjectId, 0),
    ("uri", Format::Uri, 0),
    ("email", Format::Email, 0),
    ("hostname", Format::Hostname, 0),
    ("ipv4", Format::Ipv4, 0),
    ("ipv6", Format::Ipv6, 0),
    ("cidr", Format::Cidr, 0),
    ("mac", Format::Mac, 0),
    ("uuid", Format::Uuid, 0),
    ("uuid3", Format::Uuid3, 0),
    ("uuid4", Format::Uuid4, 0),
    ("uuid5", Format::Uuid5, 0),
    ("isbn", Format::Isbn, 0),
    ("isbn10", Format::Isbn10, 0),
    ("isbn13", Format::Isbn13, 0),
    ("creditcard", Format::CreditCard, 0),
    ("ssn", Format::Ssn, 0),
    ("hexcolor", Format::HexColor, 0),
    ("rgbcolor", Format::RgbColor, 0),
    ("byte", Format::Byte, 0),
    ("password", Format::Password, 0),
    ("date", Format::Date, 0),
    ("duration", Format::Duration, 0),
    ("datetime", Format::DateTime, 0),
    ("k8sshortname", Format::ShortName, 34),
    ("k8slongname", Format::LongName, 34),
];

impl Format {
    /// The format of that name, written with or without dashes.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::lookup(name).map(|(_, format, _)| *format)
    }

    /// The minor version of Kubernetes 1 from which on servers check this format.
    pub fn introduced(name: &str) -> Option<u32> {
        Self::lookup(name).map(|(_, _, minor)| *minor)
    }

    fn lookup(name: &str) -> Option<&'static (&'static str, Format, u32)> {
        let same = |known: &str| name.bytes().filter(|b| *b != b'-').eq(known.bytes());
        FORMATS.iter().find(|(known, _, _)| same(known))
    }

    /// Whether the text is of this format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Uri => Url::parse_request(text.as_bytes(), HostColons::Allowed).is_ok(),
            Self::Email => names::is_email(text),
            Self::Hostname => names::is_hostname(text),
            Self::Ipv4 => text.contains('.') && net::parse_ip(text, net::LeadingZeros::Allowed).is_some(),
            Self::Ipv6 => text.contains(':') && net::parse_ip(text, net::LeadingZeros::Refused).is_some(),
            Self::Cidr => net::is_cidr(text),
            Self::Mac => net::is_mac(text),
            Self::Uuid => codes::is_uuid(text, None, false),
            Self::Uuid3 => codes::is_uuid(text, Some(b'3'), false),
            Self::Uuid4 => codes::is_uuid(text, Some(b'4'), true),
            Self::Uuid5 => codes::is_uuid(text, Some(b'5'), true),
            Self::Isbn => codes::is_isbn10(text) || codes::is_isbn13(text),
            Self::Isbn10 => codes::is_isbn10(text),
            Self::Isbn13 => codes::is_isbn13(text),
            Self::CreditCard => codes::is_credit_card(text),
            Self::Ssn => codes::is_ssn(text),
            Self::HexColor => codes::is_hex_color(text),
            Self::RgbColor => codes::is_rgb_color(text),
            Self::Byte => formats::is_base64(text),
            Self::Password => true,
            Self::Date => formats::is_date(text),
            Self::Duration => time::is_duration(text),
            Self::DateTime => formats::is_date_time(text),
            Self::ShortName => names::is_short_name(text),
            Self::LongName => names::is_long_name(text),
        }
    }
}
