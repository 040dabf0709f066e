import {
  ACCESSIBLE,
  getGenericPassword,
  resetGenericPassword,
  setGenericPassword,
  type SetOptions,
} from "react-native-keychain";

import type { TokenStorage } from "./storage.js";

/**
 * Creates a storage in the keychain of iOS, or encrypted with the Keystore of Android, by `react-native-keychain`. No backup
 * has it, and a background task can read it. `options` are that package's.
 */
export function keychainStorage(options: SetOptions = {}): TokenStorage {
  const settings = { service: "vestibule", accessible: ACCESSIBLE.AFTER_FIRST_UNLOCK_THIS_DEVICE_ONLY, ...options };
  return {
    async get() {
      const found = await getGenericPassword(settings);
      return found ? found.password : null;
    },
    async set(text) {
      // It says `false` instead of failing.
      if (!(await setGenericPassword("vestibule", text, settings))) throw new Error("the keychain stored nothing");
    },
    async remove() {
      await resetGenericPassword(settings);
    },
  };
}
