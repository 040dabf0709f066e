import type { VestibuleError } from "../error.js";
import { json, within } from "../http.js";

/** Keys are good for so long. The service publishes a key ten minutes before it signs with it. */
const FRESH = 5 * 60_000;
/** Keys are used for so long while they cannot be fetched again. */
const STALE = 60 * 60_000;
/** The least time between two requests, and the longest wait for an answer. */
const [PAUSE, PAUSE_WITHOUT_KEYS, TIMEOUT] = [10_000, 3_000, 3_000];

/** The public keys of one service. Times are in milliseconds, by the caller's clock, which may jump. */
export class Keys {
  static readonly #issuers = new Map<string, Keys>();

  readonly #url: string;
  #keys = new Map<string, CryptoKey>();
  #fetched = -Infinity;
  #asked = -Infinity;
  #failure: Promise<VestibuleError | undefined> = Promise.resolve(undefined);

  /** Returns the keys of a service, the same to all who ask. */
  static of(issuer: string): Keys {
    const keys = this.#issuers.get(issuer) ?? new Keys(issuer);
    this.#issuers.set(issuer, keys);
    return keys;
  }

  private constructor(issuer: string) {
    this.#url = `${issuer}/.well-known/jwks.json`;
  }

  /** Returns the key with this id, if there is one. It fails if there are no keys and they cannot be fetched. */
  async find(id: string, now: number): Promise<CryptoKey | undefined> {
    if (!lasts(this.#fetched, FRESH, now) || !this.#keys.has(id)) {
      const usable = lasts(this.#fetched, STALE, now);
      if (!lasts(this.#asked, usable ? PAUSE : PAUSE_WITHOUT_KEYS, now)) {
        this.#asked = now;
        this.#failure = this.#fetch(now);
      }
      // All wait for the same answer, each by a timer of their own: an edge runtime may stop the request of another.
      const failure = await within(TIMEOUT, undefined, () => this.#failure).catch((error: VestibuleError) => error);
      if (failure && !usable) throw failure;
    }
    return this.#keys.get(id);
  }

  async #fetch(now: number): Promise<VestibuleError | undefined> {
    try {
      const response = await within(TIMEOUT, undefined, (signal) => fetch(this.#url, { redirect: "manual", signal }));
      const { keys } = await json<{ keys: Jwk[] }>(response, TIMEOUT);
      this.#keys = new Map(await within(TIMEOUT, undefined, () => Promise.all(keys.filter(signs).map(imported))));
      this.#fetched = now;
      return undefined;
    } catch (error) {
      return error as VestibuleError;
    }
  }
}

type Jwk = JsonWebKey & { kid: string };

function signs({ kty, crv, use = "sig", alg = "ES256" }: Jwk): boolean {
  return kty === "EC" && crv === "P-256" && use === "sig" && alg === "ES256";
}

async function imported({ kid, kty, crv, x, y }: Jwk): Promise<[string, CryptoKey]> {
  const jwk = { kty, crv, x, y } as JsonWebKey;
  return [kid, await crypto.subtle.importKey("jwk", jwk, { name: "ECDSA", namedCurve: "P-256" }, false, ["verify"])];
}

function lasts(since: number, period: number, now: number): boolean {
  return since <= now && now - since < period;
}
