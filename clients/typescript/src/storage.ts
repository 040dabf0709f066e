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
  /**
   * Runs `work` while no other process runs work under the lock of this storage. Only a storage that several processes
   * share, such as an app and its extension, has one. With it, each call of the client reads the storage first, so that it
   * follows a sign-out or a sign-in of another process.
   */
  lock?<T>(work: () => Promise<T>): Promise<T>;
  /**
   * A name that only the instances on this storage have. Where a `BroadcastChannel` connects them (tabs, windows, workers),
   * they follow each other's sign-outs and sign-ins at once.
   */
  readonly channel?: string;
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
