/**
 * The place of one secret text on this device, out of reach of other apps and of backups: the keychain, or a file that
 * only its owner can read.
 */
export interface TokenStorage {
  /** Returns the text, or `null` if there is none. */
  get(): Promise<string | null>;
  /** Replaces the text. It resolves when the text will survive the end of the process. */
  set(text: string): Promise<void>;
  /** Removes the text. */
  remove(): Promise<void>;
}

/** Creates a storage that ends with the process: for browsers, servers and tests. */
export function memoryStorage(): TokenStorage {
  let text: string | null = null;
  return {
    get: async () => text,
    set: async (next) => void (text = next),
    remove: async () => void (text = null),
  };
}

/**
 * Runs `work` while no other instance on the same storage runs work under the same name. Apps with one process need
 * none. In browsers, the default is `navigator.locks`.
 */
export type Lock = <T>(name: string, work: () => Promise<T>) => Promise<T>;

/** Returns the lock between the tabs of a browser, or none where there is nothing like it. */
export function defaultLock(): Lock {
  const { locks } = (globalThis.navigator ?? {}) as { locks?: LockManager };
  return locks ? async (name, work) => await locks.request(name, work) : (_, work) => work();
}
