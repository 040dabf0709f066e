// Verifies access tokens with jsonwebtoken 9 and jwks-rsa 4: docs/verify.md. Replace the issuer by your `public_url`.
import jwt from "jsonwebtoken";
import jwksClient from "jwks-rsa";
const issuer = "https://id.example.com";
const keys = jwksClient({ jwksUri: issuer + "/.well-known/jwks.json", cacheMaxAge: 300_000, rateLimit: true });
export async function verify(token) {
  const header = jwt.decode(token, { complete: true })?.header;
  if (header?.typ !== "at+jwt") throw new Error("not an access token");
  const key = (await keys.getSigningKey(header.kid)).getPublicKey();
  const claims = jwt.verify(token, key, { algorithms: ["ES256"], issuer, audience: issuer });
  if (!claims.exp) throw new Error("it would never expire");
  return claims;
}
