// Keys of a phone for React Native, to copy into the app: docs/react-native.md.

import { deleteKey, generate, getPublicKeyFixed, sign } from "@pagopa/io-react-native-crypto";
import { CryptoDigestAlgorithm, CryptoEncoding, digestStringAsync } from "expo-crypto";
import type { KeyStore } from "vestibule-client";

const bytes = (base64: string) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

export const phoneKeys: KeyStore = {
  // An old Android makes an RSA key, or fails: the session is not bound then.
  create: (name) => generate(name).then(({ kty }) => kty === "EC", () => false),
  find: (name) =>
    getPublicKeyFixed(name).catch((error: Error) => {
      if (error.message !== "PUBLIC_KEY_NOT_FOUND") throw error;
      return undefined;
    }),
  async sign(name, text) {
    // DER: 48, length, 2, length of r, r, 2, length of s, s. Numbers have a zero before them, or none.
    const der = bytes(await sign(text, name));
    const end = 4 + (der[3] ?? 0);
    const [r, s] = [der.slice(4, end).slice(-32), der.slice(end + 2).slice(-32)];
    const signature = new Uint8Array(64);
    signature.set(r, 32 - r.length);
    signature.set(s, 64 - s.length);
    return signature;
  },
  sha256: async (text) =>
    bytes(await digestStringAsync(CryptoDigestAlgorithm.SHA256, text, { encoding: CryptoEncoding.BASE64 })),
  remove: deleteKey,
};
