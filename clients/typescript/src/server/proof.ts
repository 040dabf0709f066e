import { read, refused } from "./jwt.js";

/** The seconds that a proof may be old. */
const AGE = 60;

/** The members of private and symmetric keys (RFC 7518 §6, RFC 8037 §2). */
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

const ES256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const ED25519 = { name: "Ed25519" };
/** By `alg`, of which Ed25519 has two (RFC 8037, RFC 9864). */
const ALGORITHMS = new Map<unknown, typeof ES256 | typeof ED25519>([["ES256", ES256], ["EdDSA", ED25519], ["Ed25519", ED25519]]);

/** The request for which a proof is shown. */
export interface Shown {
  readonly method: string;
  /** The URL that the client uses. */
  readonly url: string;
  /** The access token. */
  readonly token: string;
}

/** Verifies the proof of a request (RFC 9449 §4.3), and returns the thumbprint of its key. `now` and `leeway` are in seconds. */
export async function verifyProof(proof: string | undefined, shown: Shown, now: number, leeway: number): Promise<string> {
  if (!proof) throw refused("the header `DPoP` is missing");
  const jwt = read(proof);
  if (!jwt) throw refused("`DPoP` is not one JWT");
  const { header, claims } = jwt;
  const jwk = header.jwk as Record<string, string> | undefined;
  const algorithm = ALGORITHMS.get(header.alg);
  if (header.typ !== "dpop+jwt") throw refused("the proof's `typ` is not dpop+jwt");
  if (!algorithm) throw refused("the proof's `alg` is not ES256 or EdDSA");
  if (header.crit !== undefined) throw refused("the proof's `crit` is not supported");
  if (!jwk || typeof jwk !== "object" || PRIVATE.some((member) => member in jwk)) throw refused("the proof's `jwk` is no public key");
  const { kty, crv, x, y } = jwk;
  const named = algorithm === ES256 ? { crv, kty, x, y } : { crv, kty, x };
  const key = await crypto.subtle.importKey("jwk", named as JsonWebKey, algorithm, false, ["verify"]).catch(() => {
    throw refused("the proof's `jwk` is no public key");
  });
  const sound = await crypto.subtle.verify(algorithm, key, jwt.signature, jwt.signed);
  if (!sound) throw refused("the proof's signature is wrong");
  if (typeof claims.jti !== "string" || !claims.jti) throw refused("the proof's `jti` is missing");
  if (claims.htm !== shown.method) throw refused("the proof's `htm` is not the method");
  if (normal(claims.htu) !== normal(shown.url)) throw refused("the proof's `htu` is not the URL");
  const { iat } = claims;
  if (typeof iat !== "number" || iat > now + leeway) throw refused("the proof's `iat` is not now");
  if (iat < now - AGE - leeway) throw refused("the proof is too old");
  if (claims.ath !== (await sha256(shown.token))) throw refused("the proof's `ath` is not of the token");
  // In the order of RFC 7638.
  return sha256(JSON.stringify(named));
}

/** Returns a URL without query and fragment, in its normal form. */
function normal(url: unknown): string | undefined {
  try {
    const { origin, pathname } = new URL(String(url));
    return origin + pathname;
  } catch {
    return undefined;
  }
}

async function sha256(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return btoa(String.fromCharCode(...digest)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
