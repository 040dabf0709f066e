import { VestibuleError } from "./error.js";
import type { KeyStore } from "./keys.js";

/** The request for which a proof is made. */
export interface Shown {
  method: string;
  url: string;
  /** The name of the key. */
  key: string;
  /** The access token that the request shows. */
  token?: string;
}

const base64url = (text: string) => btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const ofBytes = (bytes: Uint8Array) => base64url(String.fromCharCode(...bytes));
const ofJson = (value: object) => base64url(JSON.stringify(value));

/** Some platforms have no whole `URL`. */
const originOf = (url: string) => /^\w+:\/\/[^/?#]*/.exec(url)?.[0] ?? "";

/** Makes proofs that a request comes from this device (DPoP, RFC 9449). */
export class Proofs {
  /** How far this device's clock is ahead of the service's, in milliseconds, as of the last token. */
  ahead = 0;
  /** The latest nonces, by origin. */
  private readonly nonces = new Map<string, string>();

  constructor(
    private readonly keys: KeyStore | undefined,
    private readonly clock: () => number,
  ) {}

  /**
   * Sends a request with a proof, and once more where the server has another nonce for it. Without the key there is no
   * proof, and it is the server that refuses.
   */
  async send(shown: Shown, send: (proof?: string) => Promise<Response>, repeats = true): Promise<Response> {
    const nonce = this.nonces.get(originOf(shown.url));
    const proof = await this.make(shown, nonce);
    const response = await send(proof);
    const next = response.headers.get("DPoP-Nonce");
    if (next) this.nonces.set(originOf(shown.url), next);
    // A 401 of another cause than the nonce is the same again.
    const again = proof && repeats && response.status === 401 && next && next !== nonce;
    return again ? this.send(shown, send, false) : response;
  }

  /** Returns a proof for one request, unless the key is gone. */
  async make(shown: Shown, nonce = this.nonces.get(originOf(shown.url))): Promise<string | undefined> {
    try {
      return this.keys && (await this.sign(this.keys, shown, nonce));
    } catch (cause) {
      throw new VestibuleError("storage", { cause });
    }
  }

  private async sign(keys: KeyStore, { method, url, key, token }: Shown, nonce?: string): Promise<string | undefined> {
    const jwk = await keys.find(key);
    if (!jwk) return undefined;
    const { kty, crv, x, y } = jwk;
    const claims = {
      jti: `${Math.random()}${Math.random()}`,
      htm: method,
      // Where the platform leaves letters of other alphabets as they are, its network does not.
      htu: url.replace(/[?#].*/, "").replace(/[^!-~]+/g, encodeURIComponent),
      iat: Math.floor((this.clock() - this.ahead) / 1000),
      nonce,
      ath: token && ofBytes(await keys.sha256(token)),
    };
    const text = `${ofJson({ typ: "dpop+jwt", alg: "ES256", jwk: { kty, crv, x, y } })}.${ofJson(claims)}`;
    return `${text}.${ofBytes(await keys.sign(key, text))}`;
  }
}
