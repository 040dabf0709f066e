import * as SecureStore from "expo-secure-store";

import type { TokenStorage } from "./storage.js";

/** The longest part of a text. Releases of iOS refused values of 2 kB; a character takes four bytes at most. */
const PART = /[^]{1,500}/gu;

/**
 * Creates a storage in the keychain of iOS, or encrypted with the Keystore of Android, by `expo-secure-store`. No backup has
 * it, and a background task can read it. `options` are that package's; `key` may have letters, digits, `.`, `-` and `_`.
 */
export function expoStorage(options: SecureStore.SecureStoreOptions & { key?: string } = {}): TokenStorage {
  const { key = "vestibule", ...others } = options;
  const settings = { keychainAccessible: SecureStore.AFTER_FIRST_UNLOCK_THIS_DEVICE_ONLY, ...others };

  /** The keys of the parts. The entry at `key` has a set's number, 0 or 1, and its count of parts. */
  const parts = (set: number, count: number) => Array.from({ length: count }, (_, at) => `${key}.${set}.${at}`);
  const head = async () => {
    const [set = 1, count = 0] = ((await SecureStore.getItemAsync(key, settings)) ?? "1.0").split(".").map(Number);
    return { set, count };
  };
  const clear = async (names: string[]) => {
    for (const name of names) await SecureStore.deleteItemAsync(name, settings);
  };

  return {
    async get() {
      const { set, count } = await head();
      const texts = await Promise.all(parts(set, count).map((name) => SecureStore.getItemAsync(name, settings)));
      return count === 0 || texts.includes(null) ? null : texts.join("");
    },
    async set(text) {
      const before = await head();
      const next = 1 - before.set;
      const texts = text.match(PART) ?? [];
      const names = parts(next, texts.length);
      for (const [at, name] of names.entries()) await SecureStore.setItemAsync(name, texts[at] ?? "", settings);
      // The other set is whole before it counts, whenever the app is killed.
      await SecureStore.setItemAsync(key, `${next}.${texts.length}`, settings);
      await clear(parts(before.set, before.count));
    },
    async remove() {
      const { set, count } = await head();
      await clear([key, ...parts(set, count)]);
    },
  };
}
