import { VestibuleError } from "../error.js";
import { parse } from "../http.js";
import { decode } from "./base64.js";
import { Keys } from "./keys.js";

/** The claims of an access token (RFC 9068), with those that the product's backend has set for the user. */
export interface AccessToken {
  /** The service's public URL, twice: the token is meant for whoever trusts it. */
  readonly iss: string;
  readonly aud: string;
  /** The user's id. */
  readonly sub: string;
  /** The session's id. */
  readonly sid: string;
  /** The app that opened the session. */
  readonly client_id: string;
  /** The token's own id. */
  readonly jti: string;
  /** Seconds since 1970. */
  readonly iat: number;
  readonly exp: number;
  readonly [claim: string]: unknown;
}

export interface TokenOptions {
  /** The service's public URL, such as `https://id.example.com`. Never take it from a token. */
  issuer: string;
  /** The seconds by which the clocks of the two machines may differ, 30 by default. */
  leeway?: number;
  /** Returns the time in milliseconds; by default `Date.now`. */
  clock?: () => number;
}

/**
 * Verifies an access token, and returns its claims.
 *
 * It fails with `invalid_access_token` (answer 401), or, where the service's keys were never fetched and cannot be,
 * with `network`, `timeout` or `service_unavailable` (answer 503). The keys are fetched once in five minutes, and for an
 * unknown one at most once in ten seconds.
 */
export async function verifyAccessToken(token: string, options: TokenOptions): Promise<AccessToken> {
  const { leeway = 30, clock = Date.now } = options;
  const issuer = options.issuer.replace(/\/+$/, "");
  const parts = token.split(".");
  const [head = "", body = "", signed = ""] = parts;
  const [header, claims, signature] = [object(head), object(body), decode(signed, "base64url")];
  if (parts.length !== 3 || !header || !claims || !signature) throw refused("it is not a JWT");
  if (header.alg !== "ES256") throw refused("`alg` is not ES256");
  if (header.typ !== "at+jwt") throw refused("`typ` is not at+jwt");
  if (header.crit !== undefined) throw refused("`crit` is not supported");
  if (typeof header.kid !== "string") throw refused("`kid` is missing");
  const key = await Keys.of(issuer).find(header.kid, clock());
  if (!key) throw refused("`kid` is not one of the service's keys");
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const sound = await crypto.subtle.verify(algorithm, key, signature, new TextEncoder().encode(`${head}.${body}`));
  if (!sound) throw refused("the signature is wrong");
  const now = clock() / 1000;
  if (claims.iss !== issuer) throw refused("`iss` is not the service");
  if (claims.aud !== issuer) throw refused("`aud` is not the service");
  if (typeof claims.sub !== "string" || !claims.sub) throw refused("`sub` is missing");
  if (typeof claims.exp !== "number") throw refused("`exp` is missing");
  if (now >= claims.exp + leeway) throw refused("it has expired");
  if (claims.nbf !== undefined && !(Number(claims.nbf) <= now + leeway)) throw refused("it is not valid yet");
  return claims as unknown as AccessToken;
}

function object(part: string): Record<string, unknown> | undefined {
  const bytes = decode(part, "base64url");
  return bytes && parse(new TextDecoder().decode(bytes));
}

function refused(detail: string): VestibuleError {
  return new VestibuleError("invalid_access_token", { detail });
}
