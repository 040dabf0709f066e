import { read, refused } from "./jwt.js";
import { Keys } from "./keys.js";
import { verifyProof } from "./proof.js";
import { header, type Incoming } from "./request.js";

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
  /** The thumbprint of the key that the session is bound to, if it is: the request has proven it. */
  readonly cnf?: { readonly jkt: string };
  readonly [claim: string]: unknown;
}

export interface TokenOptions {
  /** The service's public URL, such as `https://id.example.com`. Never take it from a token. */
  issuer: string;
  /**
   * The URL by which clients know this backend, such as `https://api.example.com`: what a request's path is added to. Set it behind
   * a proxy, and wherever the request has only a path, as in Node. Never take it from the request.
   */
  publicUrl?: string;
  /** The seconds by which the clocks of the two machines may differ, 30 by default. */
  leeway?: number;
  /** Returns the time in milliseconds; by default `Date.now`. */
  clock?: () => number;
}

/** A request with an access token: a `Request`, that of Node or Express, or an object with the same members. */
export interface Bearing extends Incoming {
  readonly method?: string | undefined;
  /** The URL, or only its path. */
  readonly url?: string | undefined;
  /** The path before Express has mounted anything. */
  readonly originalUrl?: string | undefined;
}

/**
 * Verifies the access token in a request's `Authorization`, and returns its claims. Of a session that is bound to a key of its
 * device (DPoP, RFC 9449), the token is accepted only with the proof of that key for this request.
 *
 * It fails with `invalid_access_token` (answer 401), or, where the service's keys were never fetched and cannot be,
 * with `network`, `timeout` or `service_unavailable` (answer 503). The keys are fetched once in five minutes, and for an
 * unknown one at most once in ten seconds.
 */
export async function verifyAccessToken(request: Request | Bearing, options: TokenOptions): Promise<AccessToken> {
  const { leeway = 30, clock = Date.now } = options;
  const issuer = options.issuer.replace(/\/+$/, "");
  const [, scheme = "", token = ""] = /^(bearer|dpop) (.*)$/i.exec(header(request, "authorization") ?? "") ?? [];
  if (!scheme) throw refused("there is no access token");
  const jwt = read(token);
  if (!jwt) throw refused("it is not a JWT");
  const { header: head, claims } = jwt;
  if (head.alg !== "ES256") throw refused("`alg` is not ES256");
  if (head.typ !== "at+jwt") throw refused("`typ` is not at+jwt");
  if (head.crit !== undefined) throw refused("`crit` is not supported");
  if (typeof head.kid !== "string") throw refused("`kid` is missing");
  const key = await Keys.of(issuer).find(head.kid, clock());
  if (!key) throw refused("`kid` is not one of the service's keys");
  const sound = await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, jwt.signature, jwt.signed);
  if (!sound) throw refused("the signature is wrong");
  const now = clock() / 1000;
  if (claims.iss !== issuer) throw refused("`iss` is not the service");
  if (claims.aud !== issuer) throw refused("`aud` is not the service");
  if (typeof claims.sub !== "string" || !claims.sub) throw refused("`sub` is missing");
  if (typeof claims.exp !== "number") throw refused("`exp` is missing");
  if (now >= claims.exp + leeway) throw refused("it has expired");
  if (claims.nbf !== undefined && !(Number(claims.nbf) <= now + leeway)) throw refused("it is not valid yet");
  const bound = claims.cnf !== undefined;
  if (bound !== (scheme.toLowerCase() === "dpop")) {
    throw refused(bound ? "it is bound to a key, and needs the scheme DPoP with a proof" : "it is not bound to a key: its scheme is Bearer");
  }
  if (bound) {
    const shown = { method: request.method ?? "", url: urlOf(request, options.publicUrl), token };
    const thumbprint = await verifyProof(header(request, "dpop"), shown, now, leeway);
    if ((claims.cnf as { jkt?: unknown }).jkt !== thumbprint) throw refused("the proof is by another key");
  }
  return claims as unknown as AccessToken;
}

/** Returns the URL that the client of a request uses. */
function urlOf({ url = "", originalUrl = url }: Bearing, publicUrl: string | undefined): string {
  const path = originalUrl.replace(/^\w+:\/\/[^/?#]*/, "");
  if (publicUrl) return publicUrl.replace(/\/+$/, "") + path;
  if (path === originalUrl) throw new TypeError("a request with only a path needs `publicUrl`");
  return originalUrl;
}
