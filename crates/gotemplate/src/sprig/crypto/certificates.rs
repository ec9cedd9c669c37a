//! Certificates: `genCA`, `genSelfSignedCert`, `genSignedCert`, with and without a given key.

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, SanType, SerialNumber,
};

use super::keys::{self, PrivateKey, decode_pem, pem};
use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::sprig::args::{int, text};
use crate::value::{Form, Struct, Value};
use transom_go::encoding::base64_decode;

const SELF_SIGNED: &[Type] = &[Type::Str, Type::List, Type::List, Type::Int];
const SELF_SIGNED_KEY: &[Type] = &[Type::Str, Type::List, Type::List, Type::Int, Type::Str];
const SIGNED: &[Type] = &[Type::Str, Type::List, Type::List, Type::Int, Type::Certificate];
const SIGNED_KEY: &[Type] = &[Type::Str, Type::List, Type::List, Type::Int, Type::Certificate, Type::Str];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("genPrivateKey", &[Type::Str], |env, args| {
        let kind = text(args, 0)?.lossy().into_owned();
        let key = match kind.as_str() {
            "" | "rsa" => keys::generate_rsa(env, 4096)?.to_pem()?,
            "dsa" => keys::generate_dsa(env)?,
            "ecdsa" => keys::generate_ec(env)?.to_pem()?,
            "ed25519" => keys::generate_ed25519(env)?.to_pem()?,
            _ => format!("Unknown type {kind}"),
        };
        env.string(key)
    }),
    fixed("buildCustomCert", &[Type::Str, Type::Str], build_custom),
    fixed("genCA", &[Type::Str, Type::Int], |env, args| {
        let key = keys::generate_rsa(env, 2048)?;
        authority(env, args, &key)
    }),
    fixed("genCAWithKey", &[Type::Str, Type::Int, Type::Str], |env, args| {
        let key = given_key(args, 2)?;
        authority(env, args, &key)
    }),
    fixed("genSelfSignedCert", SELF_SIGNED, |env, args| {
        let key = keys::generate_rsa(env, 2048)?;
        self_signed(env, args, &key)
    }),
    fixed("genSelfSignedCertWithKey", SELF_SIGNED_KEY, |env, args| {
        let key = given_key(args, 4)?;
        self_signed(env, args, &key)
    }),
    fixed("genSignedCert", SIGNED, |env, args| {
        let key = keys::generate_rsa(env, 2048)?;
        signed(env, args, &key)
    }),
    fixed("genSignedCertWithKey", SIGNED_KEY, |env, args| {
        let key = given_key(args, 5)?;
        signed(env, args, &key)
    }),
];

fn given_key(args: &[Value], index: usize) -> Result<PrivateKey, CallError> {
    let key = PrivateKey::from_pem(&text(args, index)?.lossy());
    key.map_err(|problem| format!("parsing private key: {problem}").into())
}

fn certificate(cert: String, key: String) -> Value {
    let fields = vec![("Cert", Value::from(cert)), ("Key", Value::from(key))];
    Value::Struct(Rc::new(Struct {
        type_name: Cow::Borrowed("sprig.certificate"),
        fields,
        form: Form::Plain,
    }))
}

fn build_custom(_: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let cert = base64_decode(text(args, 0)?).map_err(|_| "unable to decode base64 certificate")?;
    let key = base64_decode(text(args, 1)?).map_err(|_| "unable to decode base64 private key")?;
    let (cert, key) =
        (String::from_utf8_lossy(&cert).into_owned(), String::from_utf8_lossy(&key).into_owned());
    let (_, der) = decode_pem(&cert).ok_or("unable to decode certificate")?;
    let any_key = rcgen::KeyPair::generate().map_err(|problem| problem.to_string())?;
    Issuer::from_ca_cert_der(&der.into(), any_key)
        .map_err(|problem| format!("error parsing certificate: decodedCert.Bytes: {problem}"))?;
    PrivateKey::from_pem(&key).map_err(|problem| format!("error parsing private key: {problem}"))?;
    Ok(certificate(cert, key))
}

fn strings(value: Option<&Value>, wrong: &str) -> Result<Vec<String>, CallError> {
    let Some(Value::List(list)) = value else { return Ok(Vec::new()) };
    let mut out = Vec::with_capacity(list.len());
    for item in list.items().iter() {
        match item.as_str() {
            Some(text) => out.push(text.lossy().into_owned()),
            None => {
                let shown = transom_go::fmt::sprint(std::slice::from_ref(item));
                return Err(format!("{wrong}: {} is not a string", String::from_utf8_lossy(&shown)).into());
            }
        }
    }
    Ok(out)
}

/// What every certificate has in common.
fn params(
    env: &mut Env<'_>,
    name: &str,
    days: i64,
    sans: Vec<SanType>,
) -> Result<CertificateParams, CallError> {
    let mut serial = [0; 16];
    env.random(&mut serial)?;
    // Serial numbers are positive.
    serial[0] &= 0x7F;
    let now = i64::try_from(env.context.now().div_euclid(1_000_000_000)).unwrap_or(0);
    let moment = |seconds: i64| {
        time::OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|problem| format!("error creating certificate: {problem}"))
    };
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    let mut params = CertificateParams::default();
    params.not_before = moment(now)?;
    params.not_after = moment(now.saturating_add(days.saturating_mul(86_400)))?;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.subject_alt_names = sans;
    params.distinguished_name = subject;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn params_with_names(env: &mut Env<'_>, args: &[Value]) -> Result<CertificateParams, CallError> {
    let mut sans = Vec::new();
    for name in strings(args.get(2), "error processing alternate dns name")? {
        let name = name.try_into().map_err(|_| "error creating certificate: x509: malformed DNS name")?;
        sans.push(SanType::DnsName(name));
    }
    for address in strings(args.get(1), "error parsing ip")? {
        let parsed: IpAddr = address.parse().map_err(|_| format!("error parsing ip: {address}"))?;
        sans.push(SanType::IpAddress(parsed));
    }
    params(env, &text(args, 0)?.lossy(), int(args, 3)?, sans)
}

fn failed(problem: &rcgen::Error) -> CallError {
    format!("error creating certificate: {problem}").into()
}

fn authority(env: &mut Env<'_>, args: &[Value], key: &PrivateKey) -> Result<Value, CallError> {
    let mut params = params(env, &text(args, 0)?.lossy(), int(args, 1)?, Vec::new())?;
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&key.signer()?).map_err(|problem| failed(&problem))?;
    Ok(certificate(pem("CERTIFICATE", cert.der()), key.to_pem()?))
}

fn self_signed(env: &mut Env<'_>, args: &[Value], key: &PrivateKey) -> Result<Value, CallError> {
    let params = params_with_names(env, args)?;
    let cert = params.self_signed(&key.signer()?).map_err(|problem| failed(&problem))?;
    Ok(certificate(pem("CERTIFICATE", cert.der()), key.to_pem()?))
}

fn signed(env: &mut Env<'_>, args: &[Value], key: &PrivateKey) -> Result<Value, CallError> {
    let Value::Struct(authority) = &args[4] else { return Err("unable to decode certificate".into()) };
    let part =
        |name: &str| authority.field(name).and_then(Value::as_str).map(|text| text.lossy().into_owned());
    let (cert, signer) = (part("Cert").unwrap_or_default(), part("Key").unwrap_or_default());
    let (_, der) = decode_pem(&cert).ok_or("unable to decode certificate")?;
    let signer =
        PrivateKey::from_pem(&signer).map_err(|problem| format!("error parsing private key: {problem}"))?;
    let issuer = Issuer::from_ca_cert_der(&der.into(), signer.signer()?)
        .map_err(|problem| format!("error parsing certificate: decodedSignerCert.Bytes: {problem}"))?;
    let mut params = params_with_names(env, args)?;
    params.use_authority_key_identifier_extension = true;
    let cert = params.signed_by(&key.signer()?, &issuer).map_err(|problem| failed(&problem))?;
    Ok(certificate(pem("CERTIFICATE", cert.der()), key.to_pem()?))
}
