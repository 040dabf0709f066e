// panva's oidc-provider, which is certified by the OpenID Foundation, with a new key at each start. Its one
// argument is JSON: the port, where staff come back to, how the confidential client has to authenticate,
// and what its access tokens, which are JWTs for the client itself, tell of their kind.
import { Provider } from "oidc-provider";
import { exportJWK, generateKeyPair } from "jose";

const { port, back, authentication, secret, access } = JSON.parse(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const { privateKey } = await generateKeyPair("RS256", { extractable: true });
const key = { ...(await exportJWK(privateKey)), kid: `since-${Date.now()}`, alg: "RS256", use: "sig" };

const kinds = {
  // RFC 9068, as it comes.
  "at+jwt": () => {},
  // As Spring Authorization Server's.
  scope: (token) => { token.header = { typ: undefined }; },
  // As Keycloak's.
  Bearer: (token) => { token.header = { typ: "JWT" }; token.payload = { ...token.payload, typ: "Bearer", scope: undefined }; },
  // As Dex's: nothing tells.
  nothing: (token) => { token.header = { typ: undefined }; delete token.payload.scope; delete token.payload.client_id; },
};
const grant_types = ["authorization_code", "refresh_token"];
const provider = new Provider(issuer, {
  clients: [
    { client_id: "staff", client_secret: secret, token_endpoint_auth_method: authentication, redirect_uris: [back], grant_types },
    { client_id: "phone", token_endpoint_auth_method: "none", application_type: "native", redirect_uris: ["http://127.0.0.1/back"], grant_types },
  ],
  clientAuthMethods: [authentication, "none"],
  jwks: { keys: [key] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  // Otherwise they are at the userinfo endpoint only.
  conformIdTokenClaims: false,
  features: {
    devInteractions: { enabled: true },
    introspection: { enabled: true },
    userinfo: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "https://api.example",
      getResourceServerInfo: (_, __, client) => ({
        scope: "openid email profile", audience: client.clientId, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  formats: { customizers: { jwt: (_, __, token) => kinds[access](token) } },
  cookies: { keys: ["of the tests"] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: id }),
  }),
  pkce: { required: () => true },
});
provider.on("server_error", (_, error) => console.error(error));
provider.on("grant.error", (_, error) => console.error(error.message, error.error_description, error.error_detail));
provider.listen(port, "127.0.0.1");
