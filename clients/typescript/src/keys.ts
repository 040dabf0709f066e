/**
 * Where this device keeps key pairs that nobody can copy (ES256: ECDSA on P-256 with SHA-256), each under a name. The client
 * makes one for each session, with cookies one for all. What they sign is ASCII. A failure of any method is an error
 * `storage` of the client's.
 */
export interface KeyStore {
  /** Makes a pair, unless there is one of that name. Returns false if this device cannot: the session is not bound. */
  create(name: string): Promise<boolean>;
  /** Returns the public key, or nothing if there is no such pair. */
  find(name: string): Promise<JsonWebKey | undefined>;
  /** Returns the signature: `r` and `s` in 64 bytes, as JWS has them, and not as DER. */
  sign(name: string, text: string): Promise<Uint8Array>;
  /** Returns the SHA-256 of a text. React Native has no function for it. */
  sha256(text: string): Promise<Uint8Array>;
  /** Removes the pair, if there is one. */
  remove(name: string): Promise<void>;
}

const ES256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

const bytes = (text: string) => new TextEncoder().encode(text);

/** Returns the key store of a browser: WebCrypto with IndexedDB, which pages have where their origin is secure. */
export function browserKeys(place: IDBFactory | undefined = globalThis.indexedDB): KeyStore | undefined {
  const subtle = globalThis.crypto?.subtle;
  if (!place || !subtle) return undefined;

  /** Does one thing in a connection of its own: some browsers end one that is kept. */
  const run = async <T>(mode: IDBTransactionMode, work: (pairs: IDBObjectStore) => IDBRequest<T>): Promise<T> => {
    const opening = place.open("vestibule");
    opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
    const database = await new Promise<IDBDatabase>((resolve, reject) => {
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(opening.error);
    });
    try {
      const transaction = database.transaction("keys", mode);
      const asked = work(transaction.objectStore("keys"));
      await new Promise<unknown>((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      return asked.result;
    } finally {
      database.close();
    }
  };
  const read = (name: string) => run<CryptoKeyPair | undefined>("readonly", (pairs) => pairs.get(name));

  return {
    async create(name) {
      try {
        if (await read(name)) return true;
        const pair = await subtle.generateKey(ES256, false, ["sign", "verify"]);
        // Another tab's may have come first, and stays.
        await run("readwrite", (pairs) => pairs.add(pair, name)).catch(() => {});
        return Boolean(await read(name));
      } catch {
        return false;
      }
    },
    async find(name) {
      const pair = await read(name);
      return pair && subtle.exportKey("jwk", pair.publicKey);
    },
    async sign(name, text) {
      const pair = await read(name);
      if (!pair) throw new Error("the key is gone");
      return new Uint8Array(await subtle.sign(ES256, pair.privateKey, bytes(text)));
    },
    sha256: async (text) => new Uint8Array(await subtle.digest("SHA-256", bytes(text))),
    remove: (name) => run("readwrite", (pairs) => pairs.delete(name)),
  };
}
