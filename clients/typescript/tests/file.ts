// A storage and a lock that processes share, in files.

import { open, readFile, rename, rm, writeFile } from "node:fs/promises";

import type { TokenStorage } from "../src/index.js";

export function fileStorage(path: string): TokenStorage {
  return {
    get: () => readFile(path, "utf8").catch(() => null),
    set: async (text) => {
      const whole = `${path}.${process.pid}`;
      await writeFile(whole, text, { mode: 0o600 });
      await rename(whole, path);
    },
    remove: () => rm(path, { force: true }),
  };
}

export function fileLock(path: string): NonNullable<TokenStorage["lock"]> {
  const take = async (): Promise<void> => {
    try {
      await (await open(path, "wx")).close();
    } catch {
      await new Promise((later) => setTimeout(later, 5));
      await take();
    }
  };
  return async (work) => {
    await take();
    return work().finally(() => rm(path));
  };
}
