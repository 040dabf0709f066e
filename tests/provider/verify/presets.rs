//! The presets with each of their ways to verify, and with responses exactly as their providers
//! document them.

use serde_json::{Value, json};

use super::under_test::{NOW, opaque};
use crate::support::signer::Signer;

/// Our client id at every provider. Its digits might be parsed as a number.
pub const CLIENT_ID: &str = "1234567890";

/// A way to verify a provider's tokens.
#[derive(Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    /// The operator's settings, without the URLs of the servers.
    pub settings: fn() -> Value,
    /// `true` if the service asks an endpoint about tokens.
    pub asks: bool,
    /// The key that signs its tokens, if the service verifies signatures.
    pub signer: Option<Signer>,
    /// `true` if the service discovers the endpoints.
    pub discovers: bool,
    /// The provider's claims about a user who signs in now.
    pub claims: fn() -> Value,
    /// The endpoint's response with these claims.
    pub answer: fn(&str) -> String,
}

impl Preset {
    pub const fn signs(&self) -> bool {
        self.signer.is_some()
    }

    /// Returns `true` if the endpoint implements RFC 7662.
    pub fn introspects(&self) -> bool {
        self.asks && (self.answer)("{}") != "{}"
    }

    /// Returns `true` if the service validates the token's own claims.
    pub fn judges_token(&self) -> bool {
        self.signs() || self.discovers
    }

    /// A token for which the provider states these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.token_of(&claims.to_string())
    }

    /// The same for a text that may be unusual JSON.
    pub fn token_of(&self, claims: &str) -> String {
        let signer = self.signer.unwrap_or(Signer::Rsa);
        match self.name {
            "rfc7662" => "mF_9.B5f-4.1JqM".to_owned(),
            _ if self.judges_token() => signer.token_of(&signer.header().to_string(), claims),
            _ => opaque(),
        }
    }

    pub fn is_of(&self, name: &str) -> bool {
        self.name.starts_with(name)
    }
}

const GOOGLE: Preset = Preset {
    name: "google",
    settings: || json!({ "preset": "google" }),
    asks: true,
    signer: None,
    discovers: false,
    claims: google_tokeninfo,
    answer: str::to_owned,
};
const LINE: Preset = Preset {
    name: "line",
    settings: || json!({ "preset": "line" }),
    claims: line,
    ..GOOGLE
};
const RFC7662: Preset = Preset {
    name: "rfc7662",
    settings: || json!({ "preset": "rfc7662", "client_secret": "hush", "issuers": "https://server.example.com/" }),
    claims: rfc7662,
    answer: active,
    ..GOOGLE
};
const KEYCLOAK: Preset = Preset {
    name: "keycloak",
    settings: || json!({ "preset": "keycloak" }),
    asks: false,
    signer: Some(Signer::Rsa),
    discovers: true,
    claims: keycloak,
    answer: active,
};

/// All presets, some in several ways.
pub const PRESETS: [Preset; 14] = [
    GOOGLE,
    Preset {
        name: "google by its keys",
        settings: || json!({ "preset": "google", "verify": "jwks" }),
        asks: false,
        signer: Some(Signer::Rsa),
        claims: google_token,
        ..GOOGLE
    },
    Preset {
        name: "google by both",
        settings: || json!({ "preset": "google", "verify": "both" }),
        signer: Some(Signer::Rsa),
        claims: google_token,
        ..GOOGLE
    },
    LINE,
    Preset {
        name: "line by its keys",
        settings: || json!({ "preset": "line", "verify": "jwks" }),
        asks: false,
        signer: Some(Signer::Ec),
        ..LINE
    },
    Preset {
        name: "apple",
        settings: || json!({ "preset": "apple" }),
        asks: false,
        signer: Some(Signer::Rsa),
        claims: apple,
        ..GOOGLE
    },
    Preset {
        name: "microsoft",
        settings: || json!({ "preset": "microsoft" }),
        asks: false,
        signer: Some(Signer::Rsa),
        claims: microsoft,
        ..GOOGLE
    },
    Preset {
        name: "facebook",
        settings: || json!({ "preset": "facebook" }),
        asks: false,
        signer: Some(Signer::Rsa),
        claims: facebook,
        ..GOOGLE
    },
    RFC7662,
    KEYCLOAK,
    Preset {
        name: "keycloak by introspection",
        settings: || json!({ "preset": "keycloak", "verify": "tokeninfo", "client_secret": "hush" }),
        asks: true,
        signer: None,
        ..KEYCLOAK
    },
    Preset {
        name: "keycloak by both",
        settings: || json!({ "preset": "keycloak", "verify": "both", "client_secret": "hush" }),
        asks: true,
        ..KEYCLOAK
    },
    Preset {
        name: "oidc",
        settings: || json!({ "preset": "oidc" }),
        claims: oidc,
        ..KEYCLOAK
    },
    Preset {
        name: "no preset",
        settings: || json!({ "issuers": "https://accounts.google.com", "token_format": "jwt" }),
        ..GOOGLE
    },
];

/// The preset of that name.
pub fn preset(name: &str) -> Preset {
    PRESETS
        .into_iter()
        .find(|preset| preset.name == name)
        .unwrap()
}

/// RFC 7662 §2.2: the claims with `active`.
fn active(claims: &str) -> String {
    claims.replacen(
        '{',
        if claims == "{}" {
            r#"{"active":true"#
        } else {
            r#"{"active":true,"#
        },
        1,
    )
}

/// "Authenticate with a backend server", the response of the tokeninfo endpoint: all values are
/// strings, and the header's `alg`, `kid` and `typ` are among the claims.
fn google_tokeninfo() -> Value {
    json!({
        "iss": "https://accounts.google.com", "sub": "110169484474386276334", "azp": CLIENT_ID,
        "aud": CLIENT_ID, "iat": NOW.to_string(), "exp": (NOW + 3600).to_string(),
        "email": "testuser@gmail.com", "email_verified": "true", "name": "Test User",
        "picture": "https://lh4.googleusercontent.com/-kYgzyAWpZzJ/ABCDEFGHI/AAAJKLMNOP/tIXL9Ir44LE/s99-c/photo.jpg",
        "given_name": "Test", "family_name": "User", "locale": "en", "alg": "RS256", "kid": "rsa-1", "typ": "JWT",
    })
}

/// "OpenID Connect", the payload of an ID token.
fn google_token() -> Value {
    json!({
        "iss": "https://accounts.google.com", "azp": CLIENT_ID, "aud": CLIENT_ID, "sub": "10769150350006150715113082367",
        "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q", "email": "jsmith@example.com", "email_verified": true,
        "iat": NOW, "exp": NOW + 3600,
    })
}

/// "LINE Login v2.1 API reference", the response of `POST /oauth2/v2.1/verify`.
fn line() -> Value {
    json!({
        "iss": "https://access.line.me", "sub": "U1234567890abcdef1234567890abcdef", "aud": CLIENT_ID,
        "exp": NOW + 3600, "iat": NOW, "amr": ["pwd"], "name": "Taro Line",
        "picture": "https://sample_line.me/aBcdefg123456", "email": "taro.line@example.com",
    })
}

/// "Authenticating users with Sign in with Apple", the claims of an identity token.
fn apple() -> Value {
    json!({
        "iss": "https://appleid.apple.com", "aud": CLIENT_ID, "exp": NOW + 86400, "iat": NOW,
        "sub": "001234.0123456789abcdef0123456789abcdef.1234", "c_hash": "HRkdAjvGTMWbTvV6MtaIEg",
        "email": "dpdcnf87nu@privaterelay.appleid.com", "email_verified": "true", "is_private_email": "true",
        "auth_time": NOW, "nonce_supported": true, "real_user_status": 2,
    })
}

/// "ID token claims reference", version 2.0, with the optional claims `email` and `xms_edov`.
fn microsoft() -> Value {
    json!({
        "ver": "2.0", "iss": "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
        "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "aud": CLIENT_ID, "exp": NOW + 3600, "iat": NOW,
        "nbf": NOW, "name": "Abe Lincoln", "preferred_username": "AbeLi@microsoft.com",
        "oid": "00000000-0000-0000-66f3-3332eca7ea81", "tid": "9188040d-6c67-4c5b-b112-36a304b66dad",
        "aio": "Df2UVXL1ix!lMCWMSOJBcFatzcGfvFGhjKv8q5g0x732dR5MB5BisvGQO7YWByjd8iQDLq!eGbIDakyp5mnOrcdqHeYSnltepQmRp6AIZ8jY",
        "email": "AbeLi@microsoft.com", "xms_edov": true,
    })
}

/// "OIDC Token for Limited Login". There is no `email_verified`; `email` is there when granted.
fn facebook() -> Value {
    json!({
        "iss": "https://www.facebook.com", "aud": CLIENT_ID, "sub": "10158953122339211", "iat": NOW, "exp": NOW + 3600,
        "jti": "Qxg1.9a1d8d2f9c8f3bf0c4d7b5d1e6b1e3d0", "at_hash": "-l0h5JY1VVgOSzLQnMBPcg",
        "given_name": "Ada", "family_name": "Lovelace", "name": "Ada Lovelace", "email": "ada@example.com",
        "picture": "https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=10158953122339211&height=100",
    })
}

/// RFC 7662 §2.2: its example with our audience.
fn rfc7662() -> Value {
    json!({
        "client_id": CLIENT_ID, "username": "jdoe", "scope": "read write dolphin", "sub": "Z5O3upPC88QrAjx00dis",
        "aud": CLIENT_ID, "iss": "https://server.example.com/", "exp": NOW + 3600, "iat": NOW,
        "extension_field": "twenty-seven",
    })
}

/// The claims of Keycloak's ID tokens.
fn keycloak() -> Value {
    json!({
        "exp": NOW + 300, "iat": NOW, "auth_time": NOW, "jti": "7e0a2c4b-9725-432b-a0fd-594f21686108", "iss": "",
        "aud": CLIENT_ID, "sub": "e89175d5-94fd-453a-8abb-9953d59d04cf", "typ": "ID", "azp": CLIENT_ID,
        "sid": "c05ea410-6f0a-458d-9b2c-debafba732b7", "at_hash": "Ivq4ixTD8i4n7qz8Jw3xVA", "acr": "1",
        "email_verified": true, "name": "Jason B", "preferred_username": "jason", "email": "jason@example.com",
    })
}

/// OpenID Connect Core §2: its example with our audience in a list.
fn oidc() -> Value {
    json!({
        "iss": "", "sub": "24400320", "aud": [CLIENT_ID], "exp": NOW + 3600, "iat": NOW, "auth_time": NOW,
        "acr": "urn:mace:incommon:iap:silver",
    })
}
