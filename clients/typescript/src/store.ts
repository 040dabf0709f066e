import type { User } from "./api.js";
import type { SignedOutReason } from "./client.js";
import { VestibuleError } from "./error.js";
import { parse } from "./http.js";
import type { TokenStorage } from "./storage.js";

/** A session as it is stored. `id` tells it from any other on this storage, whatever its token is by now. */
export interface Kept {
  id: string;
  /** Absent where the browser's cookie has it. */
  refresh_token?: string;
  /** The name of the key that the session is bound to. */
  key?: string;
  user: User;
}

/** The stored text: a session, or why there is none and whose the last one was. */
export interface Stored {
  session?: Kept;
  reason?: SignedOutReason;
  user_id?: string;
}

/** A storage as the client uses it. Its uses follow each other in the order in which they were begun. */
export class Store {
  private queue: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly storage: TokenStorage,
    private readonly timeout: number,
  ) {}

  /** Does work that loads or saves. */
  queued<T>(work: () => Promise<T>): Promise<T> {
    const done = this.queue.then(work).catch((cause: unknown) => {
      throw new VestibuleError("storage", { cause });
    });
    this.queue = done.catch(() => {});
    return done;
  }

  read(): Promise<Stored> {
    return this.queued(() => this.load());
  }

  async load(): Promise<Stored> {
    return parse(await this.storage.get()) ?? {};
  }

  save(next: Stored): Promise<void> {
    return next.reason === "user_deleted" ? this.storage.remove() : this.storage.set(JSON.stringify(next));
  }

  /** Stores what `change` makes of a session. What another instance has stored instead stays, and is returned. */
  replace(id: string, change: (kept: Kept) => Stored): Promise<Stored | undefined> {
    return this.queued(async () => {
      const stored = await this.load();
      if (stored.session?.id !== id) return stored;
      await this.save(change(stored.session));
      return undefined;
    });
  }

  /** Runs work under the lock. A lock that cannot be had in time is done without: its holder may be a frozen tab. */
  async locked<T>(work: () => Promise<T>): Promise<T> {
    let begun: Promise<T> | undefined;
    const begin = () => (begun ??= work());
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, this.timeout)));
    try {
      return await (this.storage.lock ? Promise.race([this.storage.lock(begin), late.then(begin)]) : work());
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Connects the instances of one name, if there is one and the platform has a `BroadcastChannel`. `listener` gets what the
 * others send by the returned function.
 */
export function channel<T>(name: string | undefined, listener: (message: T) => void): (message: T) => void {
  if (name === undefined || typeof BroadcastChannel === "undefined") return () => {};
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }) => listener(data as T);
  // Node's process would not end otherwise.
  (channel as { unref?(): void }).unref?.();
  return (message) => channel.postMessage(message);
}
