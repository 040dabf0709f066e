import assert from "node:assert/strict";
import * as oauth from "oauth4webapi";

const [address, client_id, refreshToken] = process.argv.slice(2);
const [client, nobody, insecure] = [{ client_id }, oauth.None(), { [oauth.allowInsecureRequests]: true }];
const issuer = new URL(address);
const document = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
const service = await oauth.processDiscoveryResponse(issuer, document);
const refresh = async (token) => {
  const answer = await oauth.refreshTokenGrantRequest(service, client, nobody, token, insecure);
  return oauth.processRefreshTokenResponse(service, client, answer);
};
const revoke = async (token) =>
  oauth.processRevocationResponse(await oauth.revocationRequest(service, client, nobody, token, insecure));
const refused = (token) =>
  assert.rejects(refresh(token), (error) => error instanceof oauth.ResponseBodyError && error.error === "invalid_grant");

const tokens = await refresh(refreshToken);
assert.notEqual(tokens.refresh_token, refreshToken);
const request = new Request(address, { headers: { Authorization: `Bearer ${tokens.access_token}` } });
const claims = await oauth.validateJwtAccessToken(service, request, address, insecure);
assert.equal(claims.client_id, client_id);
await revoke(tokens.refresh_token);
await refused(tokens.refresh_token);
await revoke("made-up");
