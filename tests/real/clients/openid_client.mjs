import assert from "node:assert/strict";
import { None, allowInsecureRequests, discovery, refreshTokenGrant, tokenRevocation } from "openid-client";

const [address, clientId, refreshToken] = process.argv.slice(2);
const service = await discovery(new URL(address), clientId, undefined, None(), {
  algorithm: "oauth2",
  execute: [allowInsecureRequests],
});
assert.equal(service.serverMetadata().issuer, address);
const tokens = await refreshTokenGrant(service, refreshToken);
assert.ok(tokens.access_token && tokens.expires_in > 0);
assert.notEqual(tokens.refresh_token, refreshToken);
const refused = (token) =>
  assert.rejects(refreshTokenGrant(service, token), (error) => error.error === "invalid_grant" && error.status === 400);
await refused("made-up");
await tokenRevocation(service, tokens.refresh_token, { token_type_hint: "refresh_token" });
await refused(tokens.refresh_token);
// RFC 7009, section 2.2: what is no token is answered in the same way.
await tokenRevocation(service, "made-up");
