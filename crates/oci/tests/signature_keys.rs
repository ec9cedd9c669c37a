//! Signatures by keys of every algorithm that cosign accepts. They were made with OpenSSL, over [`MESSAGE`].

use base64::Engine as _;
use transom_oci::signature::{HashAlgorithm, PublicKey};

const MESSAGE: &[u8] = b"a payload";

/// A key in PEM without its frame, and signatures by it: the hash and the signature.
type Signed = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SIGNED: &[Signed] = &[
    (
        "p256",
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEytva2eYL8vfT1Dxd1v7Bmt98Ud4567XCJfAwVdmj6RwgM6bWCZNQyTsQewb8s35Tgmr2ESjVGZBuv1/x8O6G4g==",
        &[
            (
                "sha224",
                "MEUCIEOUgY5NahsCk9CmN3h6ssMNW8aNUbJlvf8TznfybcfgAiEAnPogJNnaJLhnq8zFGZ4+7etE+X5DdsMqWbM66f3Imyg=",
            ),
            (
                "sha256",
                "MEUCIFANPUMyammTp3YmCTyq+7vlmZ0C5G96p2eL/8i7LDeQAiEA2o3Vi2NuLYuYQZ9LnRxFt6S3+Qudqoj0Nj4+50q53N0=",
            ),
            (
                "sha384",
                "MEUCIEq7vjLes/dl/LE6lpuwnNsGAYTtdzYB7+EmFWlQ3mdQAiEAx8JNXM8JW8g9BEMmUOVnwm78xT5wYTEsYi/4eatYvtU=",
            ),
            (
                "sha512",
                "MEUCIQCq1OXhDhjE/63LekeHhrwHEZ3oXfiTtiSQIQ4lvuGH3AIgOCDSJZpjcOTiS7qN36NKmPooZeYaDamQA+y7pn6e8GY=",
            ),
        ],
    ),
    (
        "p384",
        "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEnsHDW00O8zy2L1wqQYNCppA1JARSZkUZsvnVw/sYIiVyQW2xOLghDeEnowb3buncwxBrpQtuJlKz4ue6rzxVxGK5hwthqahjSGZ9AJxD5SXoFyq2jQZG6HAasRrq1+lb",
        &[
            (
                "sha224",
                "MGUCMEC2Fwk+B06Pbf134AtHGAFzTZ2+6wW7celDndkz82PkhgAhn4BCmpj1j087FyN8hQIxAKdeLWwSxViap15tEo0C75Wg+zFN5zA13xCCQ21ldxFojpFeynW5DhVu4ztgoP21Cg==",
            ),
            (
                "sha256",
                "MGUCMFKrj8pjVcFy5YN6ro7KRC6YmJJYjSyvTbB3UJautO4E7UcPQ9N51dLJ1lrLGl1BpQIxAIF521pfXVEQFilj7vpnoFCbhYBphLIeUi/DBiF1xwSm3fEXOrflyVf6zXbIeLkT3Q==",
            ),
            (
                "sha384",
                "MGYCMQC+bQhVK/WRpLoFMQZhUwrD+ThuWhCdoO6vxxaevsoarNR7qO3kLfabIgZE7FL7NxACMQCO42+nabQNIMX/ibEZ9MulL6yfWpL0jb9yg3cbuNpNDH6nfdM0OTNNs9VpLeN7Hl8=",
            ),
            (
                "sha512",
                "MGQCMHZ0R7c8tvGRp61K1fxGnHJb5Eu7bOOdIwYIZjc5cSRqkYvnEOkpO0TYMjsvu+N3/QIwQd9I7jVN5AvfglTnRA+xhYLW9njv2MqZGdr3fxOBRoRjYeZ1FffPJRtrHo1zHhx9",
            ),
        ],
    ),
    (
        "p521",
        "MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQAg9+aYo7NfnhfzA1frIupcPj3oJo6FFgLQiaum7Bf4qmkOyMCglRVGp7lvtZ/cI1PeKxaNE9Jf1EAaOqN/gyiFVIA7zH/F5xm5dta12FlVvpJAtYQX84aASTm1reQbkkmOdEdIMHLQrsSPdc3/AG5rSPuLDsF1/el0yVgFI2Q1W4JyI8=",
        &[
            (
                "sha256",
                "MIGIAkIAvDN1BKU7A5vy3Fw/AvInWrE2JAgMNaFMHYEHYCcl03sQa/GpewFKNjUTOl2g+2U4M8VEuCwvfiieXhOeBBeQ/sICQgF2b0FNyMRD6ooPAizxzirEYd8ABlDUkoexqwa+9tAks8Pi/Jc2qctccHX4OEQUL0lmg+3YGbFLZF/xETd1/e0VyQ==",
            ),
            (
                "sha384",
                "MIGIAkIBRCicfxO9vIIgq2J1GpJVp9ZGlUoQFxkJzaPXcNZ6nSlaRgDVS5yAKJ/m9MOQ4UPf1GWMHhWaG84SHyjt02oKq84CQgCyyRs+VWExq995S/R5PHu4qwR264HveGLiWCdnvTk0HBMetXUPJ9miwEdBw42/SQnyd9ZK9ALzbNSY3tbMWValZQ==",
            ),
            (
                "sha512",
                "MIGIAkIBLngn3r/Tti9j4sPfr9f3z+4KiAIkxr0fRawz32bmoAibvteaIOEL1XKd7p3txNBQDxs5yg34GELjtTpHA2Hl8QgCQgGxorbeA7tW0jzcprDX3oc3j8HB/+7H319o/M3BZBXDxiUo8lNP+qTG2uVlq4t3IZkarqQc61RuhESSHezF5BfveA==",
            ),
        ],
    ),
    (
        "rsa",
        "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA1CGai+0apoF0NnbS0TAARhr/Uo2gMyaAbFOYGOw3grdtbQtKmcLX6xim6j63QHYpDXpCDyhqx296Ex0ZzDu+LdjrdjrA0PSt3ATKTutsmopctu2R+1UEXZxqdmLXYb+NK4VkeGet6Dabfwl6LlyMO0ysGx2T7e7pkcdSNUhxtZqBw/54RKbYNM6q1glzNkDYEO9nFn/PP4sTL8TUu1RNTVVcTm0UoqWv2Ln3M+J8JgmbP6XK1DvfqyCBeGOjgCaSLw6wCP0KqXiKl+tMW+MaVPv30wbCD1WmcAtDFYHnkGPGaMGGjSrBMPQfZobccqej8QhZ4fQyBoRJrrmgp753qwIDAQAB",
        &[
            (
                "sha256",
                "JqhNG8GsjEscZhwmY/x8HRP9qvf58Uol9EWEa50seB1zrsJAjY9RdMOGdi9GpUpLoBeXNpCiU+ke7roLDLZdijJ9bbFBwy4209sBW1AbVw+s9Cw+Czd6WBMN8+69iIkfyFpJ4WDIglh8Vxf+MbDT3izuvr/plv3qBSMXEDepc6Oim4AYa2kls7Jvcyi6YX2/q8DBcpZkZLq9ciLadqfCEU/Iq9PbJqHk/xoXapRIeiMcGidzG5F4QJxGk71l9JLC6YKJ51yfc80HO2/Wa6IQ72ue9Sm5amlXh43iODga6CutLFtrSspt/1LU/6Cc1UV+2Jin/ueICiy8BJ0ZLtnRIw==",
            ),
            (
                "sha384",
                "WQj0P994IEUxdgBUTYpLY2AhDnJzfDxyAWeiKy5FiYeChrCzADGCr6eygJI/WUvwpYbjFPwgwyeOdwN+gq/AJpuNFHSJI1dQiDbH2rqNuSvy6Y31Zoq+ZIhJw7Dyz4gRDy4tkajGKeemVvzt1QoHnJOVTr0Mf672MGTCBAqLfqw2Rz2N2NBNwdO/dJm7BS1cdIE9fVIi0naTDi6QXPhV8aKi4zA5yR/REku+Kfij9BmOlhsALqRceU4LyRqy7duDYQuoRJDql1vTLEATnB1zmhSsxVwpNFmiu8u12MR92ox8Xrh4zTkyeuJh3ZlyskFpYcJDwH2berHtvOXBVbRhIQ==",
            ),
            (
                "sha512",
                "GBiPAsELNM66Vb5Z1TS2WW44yyPypv6cHXd8XN4RNZ3T1PCelszECtPw8ZvdFqkAuxapCWjhFTKz4PqOj+zEd/x660Oue3ztJAzerEKXB4Kf6cCsqPd9+sBVlvxTfRQgDPRsSTLO5zq2bAyxcDIfD52cE0x7MUC8B6Up9xOP2QUjnVx+GushOuNZvxYu+1jMiIeQ4P08YIp6HkHQWimDd+7tQQgSKjI9l398VJDOMm5HsMSOTidi4ydHF2hrUWuK0LzkPq/m6SkG6POwt+EIRlEDbUQLwTjRkaulWaVjDp/pTZxtDdrQHQHUx990wR4ViNqR95omxlUFqSgU/NRI3g==",
            ),
            // With PSS.
            (
                "sha256",
                "bGKiaim6frnH+xLtKJBB2Fi00XDaKGizFTPn9N+c8u0El2a3Uiop/6yinX0LwDbBhN/TcJ9qX4wlX/f2/j1VvWQ8zwNyupr8ZibUAUDiMiB2NaDYpeK3OUqMUWYekAMFvpBwqegk+AH/TxEy63TOnXFx/iXJR+JgIZIVkI4ADdICRmnVfiPzJ94uqFzcowc42BD9ruPR4iGOl0/KlABBMzeeIBBHldb4spbY8QIEN20V9IIaJPwLf/PkuimHuDYrMzH6zFCjxsz+7HIaFOGff2qEtm5fc7aWc4IqOM9Zy+ydEWvyIA3kib1+vMgDUw1hqNtspUHll8NSG1zScTxL3w==",
            ),
        ],
    ),
];

fn key(pem: &str) -> PublicKey {
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{pem}\n-----END PUBLIC KEY-----\n");
    PublicKey::from_pem(pem.as_bytes()).unwrap()
}

#[test]
fn keys_verify_what_they_signed_with_that_hash_only() {
    for (name, pem, signatures) in SIGNED {
        let key = key(pem);
        for (hash, signature) in *signatures {
            let signature = base64::engine::general_purpose::STANDARD.decode(signature).unwrap();
            for other in ["sha224", "sha256", "sha384", "sha512"] {
                let algorithm = HashAlgorithm::named(other).unwrap();
                let verified = key.verifies(MESSAGE, &signature, algorithm);
                // What cannot be verified at all is an error; what is of another hash is just not verified.
                assert_eq!(verified.unwrap_or_default(), other == *hash, "{name} {hash} as {other}");
            }
            let algorithm = HashAlgorithm::named(hash).unwrap();
            assert_eq!(key.verifies(b"another payload", &signature, algorithm), Ok(false), "{name} {hash}");
            for damaged in [&signature[..signature.len() - 1], &[], &[0x30, 0]] {
                assert_eq!(key.verifies(MESSAGE, damaged, algorithm), Ok(false), "{name} {hash}");
            }
            let mut flipped = signature.clone();
            *flipped.last_mut().unwrap() ^= 1;
            assert_eq!(key.verifies(MESSAGE, &flipped, algorithm), Ok(false), "{name} {hash}");
        }
    }
    let rsa = key(SIGNED[3].1);
    let error = rsa.verifies(MESSAGE, b"", HashAlgorithm::Sha224).unwrap_err().to_string();
    assert!(error.contains("Rsa with Sha224 is not supported"), "{error}");
}

#[test]
fn hashes_are_named_as_in_an_image_config() {
    assert_eq!(HashAlgorithm::named(""), Some(HashAlgorithm::Sha256));
    assert_eq!(HashAlgorithm::named(" SHA512 "), Some(HashAlgorithm::Sha512));
    assert_eq!(HashAlgorithm::named("md5"), None);
}
