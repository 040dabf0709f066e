//! A caller's token: parsing, early checks and verification of the signature.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use vestibule_fuzz::domain::id_token::{Format, IdToken};
use vestibule_fuzz::domain::issuer::Issuers;
use vestibule_fuzz::domain::json::Object;
use vestibule_fuzz::domain::jwk::KeySet;
use vestibule_fuzz::domain::jws::Jws;
use vestibule_fuzz::domain::presets::Dialect;
use vestibule_fuzz::expected;

/// The public keys of RFC 7515 §A.2 and §A.3. The target has no private keys.
const KEYS: &str = r#"{"keys":[
{"kty":"RSA","kid":"rsa","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"},
{"kty":"EC","kid":"ec","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
]}"#;
/// The example of RFC 7515 §A.3 has no `kid`, and so is not verified with two keys to choose from.
static SET: LazyLock<KeySet> =
    LazyLock::new(|| KeySet::read(&Object::parse(KEYS.as_bytes()).expect("JSON")).expect("keys"));

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let issuers = Issuers::Listed(vec!["https://accounts.google.com".to_owned()]);
    let audiences = ["1234567890".to_owned()];
    let expected = expected(&issuers, &audiences, Dialect::STANDARD);
    let [jwt, any] = [Format::Jwt, Format::Any].map(|format| IdToken::parse(text, format).ok());
    assert!(jwt.is_none() || any.is_some(), "what is a JWT is a token");
    if let Some(token) = jwt {
        assert_eq!(token.expose(), text);
        let _ = token.refuse_early(Format::Jwt, &expected);
        if let Ok(jws) = Jws::read(&token) {
            assert!(
                jws.verify(&SET, &issuers).is_err(),
                "nobody can have signed this"
            );
        }
    }
});
