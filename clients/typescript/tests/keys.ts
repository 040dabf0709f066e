// The key store of a phone, in files: whoever copies only its storage has none of them.

import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { KeyStore } from "../src/index.js";
import { Proofs } from "../src/proofs.js";

const ES256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

export function fileKeys(folder: string): KeyStore & { names(): Promise<string[]> } {
  mkdirSync(folder, { recursive: true });
  const file = (name: string) => join(folder, encodeURIComponent(name));
  const read = async (name: string): Promise<JsonWebKey | undefined> => {
    const text = await readFile(file(name), "utf8").catch(() => undefined);
    return text === undefined ? undefined : (JSON.parse(text) as JsonWebKey);
  };
  return {
    async create(name) {
      const { privateKey } = await crypto.subtle.generateKey(ES256, true, ["sign", "verify"]);
      const text = JSON.stringify(await crypto.subtle.exportKey("jwk", privateKey));
      await writeFile(file(name), text, { flag: "wx" });
      return true;
    },
    find: read,
    async sign(name, text) {
      const key = await crypto.subtle.importKey("jwk", (await read(name)) ?? {}, ES256, false, ["sign"]);
      return new Uint8Array(await crypto.subtle.sign(ES256, key, Buffer.from(text)));
    },
    sha256: async (text) => createHash("sha256").update(text).digest(),
    remove: (name) => rm(file(name), { force: true }),
    names: async () => (await readdir(folder)).map(decodeURIComponent),
  };
}

/** Returns the claims of an access token. */
export function claimsOf(token: string): { sid: string; cnf?: { jkt: string } } & Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as ReturnType<typeof claimsOf>;
}

/** Returns the name of the key that an access token is bound to, if it is there. */
export async function keyOf(token: string, keys: ReturnType<typeof fileKeys>): Promise<string | undefined> {
  for (const name of await keys.names()) {
    const { crv, kty, x, y } = (await keys.find(name)) ?? {};
    const thumbprint = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
    if (thumbprint === claimsOf(token).cnf?.jkt) return name;
  }
  return undefined;
}

/** Makes proofs with the keys of a store, by the right time. */
export const proofsWith = (keys: KeyStore) => new Proofs(keys, Date.now);
