import type { Answered, Me, Method, Sent, User } from "./api.js";
import type { AuthState, Options, SignedOutReason, Vestibule } from "./client.js";
import { VestibuleError } from "./error.js";
import { json, parse, problem, within } from "./http.js";
import type { paths } from "./schema.js";

/** A session as it is stored. `id` tells it from any other on this storage, whatever its token is by now. */
interface Kept {
  id: string;
  refresh_token: string;
  user: User;
}

/** The stored text: a session, or why there is none and whose the last one was. */
interface Stored {
  session?: Kept;
  reason?: SignedOutReason;
  user_id?: string;
}

/** A time by this device's clock, and seconds from then on. */
interface Period {
  since: number;
  seconds: number;
}

/** Seconds before its end from which an access token is used no more. */
const MARGIN = 30;
/** The reasons that the service gives. */
const ENDS: readonly SignedOutReason[] = [
  "session_expired",
  "session_ended",
  "user_disabled",
  "user_deleted",
  "user_merged",
  "refresh_token_reused",
];

/** A URL with a scheme and a host. */
const ABSOLUTE = /^https?:\/\/[^/]/i;

const superseded = () => new VestibuleError("superseded");

/** Creates a client. An app has one for each storage, for as long as it runs. */
export function createVestibule(options: Options): Vestibule {
  const { storage, clock = Date.now, timeout = 10_000 } = options;
  const base = options.baseUrl.replace(/\/+$/, "");
  // `fetch` would fail with it as without a network.
  if (!ABSOLUTE.test(base)) throw new TypeError(`baseUrl must begin with https:// or http://: ${base}`);
  const listeners = new Set<(state: AuthState) => void>();

  let state: AuthState = { status: "restoring" };
  let session: Kept | undefined;
  let access: (Period & { token: string }) | undefined;
  /** The last user on this storage. */
  let lastUser: string | undefined;
  /** Counts the sessions: whatever began under another number is thrown away. */
  let generation = 0;
  /** Counts the attempts to sign in, of which only the last one may succeed. */
  let attempts = 0;
  let restoring: Promise<void> | undefined;
  let refreshing: Promise<string> | undefined;
  /** The time for which the service wants no refresh, and how it said so. */
  let pause: (Period & { error: VestibuleError }) | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  /** Returns true while a period lasts. The clock may have been set back since it began, which ends it. */
  const lasts = ({ since, seconds }: Period) => {
    const passed = clock() - since;
    return passed >= 0 && passed < seconds * 1000;
  };

  /** Calls a listener soon, unless there is another state by then. What it throws is the app's, and breaks nothing here. */
  const inform = (listener: (state: AuthState) => void, next: AuthState, current = () => true) => {
    const call = () => listeners.has(listener) && current() && listener(next);
    void Promise.resolve().then(call).catch(console.error);
  };

  const publish = (next: AuthState) => {
    state = next;
    for (const listener of listeners) inform(listener, next);
  };

  /** Returns true if the storage has told nothing so far. */
  const unread = () =>
    state.status === "restoring" || (state.status === "signed_out" && state.reason === "storage_failed");

  /** Publishes how the session goes on, if that is news. */
  const goesOn = (user: User, offline: boolean) => {
    if (state.status !== "signed_in") return;
    const same = state.offline === offline && JSON.stringify(state.user) === JSON.stringify(user);
    if (!same) publish({ ...state, user, offline });
  };

  const signedOut = () =>
    new VestibuleError("signed_out", state.status === "signed_out" ? { reason: state.reason } : {});

  /** Fails if a sign-out or another sign-in has come in between. */
  const still = (mine: number) => {
    if (mine !== generation) throw superseded();
  };

  // The storage. Its uses follow each other in the order in which they were begun.

  const queued = <T>(work: () => Promise<T>): Promise<T> => {
    const done = queue.then(work).catch((cause: unknown) => {
      throw new VestibuleError("storage", { cause });
    });
    queue = done.catch(() => {});
    return done;
  };

  const load = async (): Promise<Stored> => parse(await storage.get()) ?? {};

  const save = (next: Stored): Promise<void> =>
    next.reason === "user_deleted" ? storage.remove() : storage.set(JSON.stringify(next));

  const none = (reason: SignedOutReason): Stored => ({ reason, ...(lastUser ? { user_id: lastUser } : {}) });

  /** Stores what `change` makes of a session. What another instance has stored instead stays, and is returned. */
  const replace = (id: string, change: (kept: Kept) => Stored): Promise<Stored | undefined> =>
    queued(async () => {
      const stored = await load();
      if (stored.session?.id !== id) return stored;
      await save(change(stored.session));
      return undefined;
    });

  /** Runs work under the lock. A lock that cannot be had in time is done without: its holder may be a frozen tab. */
  const locked = async <T>(work: () => Promise<T>): Promise<T> => {
    let begun: Promise<T> | undefined;
    const begin = () => (begun ??= work());
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, timeout)));
    try {
      return await (storage.lock ? Promise.race([storage.lock(begin), late.then(begin)]) : work());
    } finally {
      clearTimeout(timer);
    }
  };

  // The beginning and the end of a session.

  /** Makes a session the current one. What is under way belongs to another one from here on. */
  const become = (next: Kept | undefined) => {
    generation++;
    lastUser = next?.user.id ?? lastUser;
    session = next;
    access = refreshing = pause = undefined;
  };

  const enter = (next: Kept) => {
    const from = lastUser;
    become(next);
    const { user } = next;
    const changed = from !== undefined && from !== user.id;
    publish({ status: "signed_in", user, offline: false, ...(changed ? { userChanged: { from } } : {}) });
  };

  /** Takes over what an earlier process or another instance has stored. */
  const follow = ({ session: kept, reason, user_id }: Stored) => {
    if (kept) return enter(kept);
    lastUser ??= user_id;
    become(undefined);
    publish({ status: "signed_out", reason: reason ?? (lastUser ? "signed_out" : "never") });
  };

  const restore = (): Promise<void> => {
    const take = (stored: Stored) => {
      if (unread()) follow(stored);
    };
    const again = (error: unknown) => {
      restoring = undefined;
      if (state.status === "restoring") publish({ status: "signed_out", reason: "storage_failed" });
      throw error;
    };
    return (restoring ??= queued(load).then(take, again));
  };

  /** Forgets the session: at once here, and then in the storage. Returns it. */
  const forget = (reason: SignedOutReason): Promise<Kept | undefined> => {
    const left = session;
    const blind = unread();
    become(undefined);
    publish({ status: "signed_out", reason });
    return queued(async () => {
      const stored = await (blind ? load().catch(() => none(reason)) : load());
      if (!blind && stored.session?.id !== left?.id) return left;
      lastUser ??= stored.session?.user.id ?? stored.user_id;
      await save(none(reason));
      return left ?? stored.session;
    });
  };

  /** Forgets a session that the service has ended, and returns the error for whoever asked. */
  const ended = async (reason: string | undefined): Promise<VestibuleError> => {
    await forget(ENDS.find((known) => known === reason) ?? "session_unknown");
    return signedOut();
  };

  // Requests.

  const send = (input: Parameters<typeof fetch>[0], init: RequestInit, wait = timeout): Promise<Response> =>
    within(wait, init.signal, (signal) => (options.fetch ?? fetch)(input, { ...init, signal }));

  /** Sends JSON as anybody. */
  const post = (path: string, body: object): Promise<Response> =>
    send(base + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

  /** Ends a session at the service, if it can be reached. */
  const tell = async ({ refresh_token }: Kept, scope: string): Promise<void> => {
    await post(`/api/v1/auth/logout?scope=${scope}`, { refresh_token }).catch(() => {});
  };

  const exchange = async (
    refresh_token: string,
    mine: number,
    last = false,
  ): Promise<Answered<"/api/v1/auth/refresh", "post">> => {
    try {
      return await json(await post("/api/v1/auth/refresh", { refresh_token }), timeout);
    } catch (error) {
      still(mine);
      const { status = 500, retryAfter } = error as VestibuleError;
      if (last || status < 500 || retryAfter !== undefined) throw error;
      // The answer to the same token is the same, or as good.
      return exchange(refresh_token, mine, true);
    }
  };

  const refresh = (): Promise<string> => {
    const mine = generation;
    const elsewhere = (stored: Stored) => {
      follow(stored);
      return session ? superseded() : signedOut();
    };
    return locked(async () => {
      still(mine);
      const stored = await queued(load);
      still(mine);
      const kept = stored.session;
      if (!kept || kept.id !== session?.id) throw elsewhere(stored);
      const since = clock();
      const answer = await exchange(kept.refresh_token, mine).catch(async (error: VestibuleError) => {
        still(mine);
        if (error.error === "invalid_refresh_token" || error.error === "user_disabled") {
          throw await ended(error.reason ?? error.error);
        }
        if (error.retryAfter) pause = { since: clock(), seconds: error.retryAfter, error };
        // A refusal is an answer.
        if ((error.status ?? 500) >= 500) goesOn(kept.user, true);
        throw error;
      });
      still(mine);
      const { access_token: token, refresh_token, expires_in } = answer;
      // Before anything else: a token that was lost could not be told from a stolen one.
      const instead = await replace(kept.id, (latest) => ({ session: { ...latest, refresh_token } }));
      still(mine);
      if (instead) throw elsewhere(instead);
      session = { ...kept, refresh_token };
      access = { token, since, seconds: expires_in - MARGIN };
      goesOn(kept.user, false);
      return token;
    });
  };

  /** Returns a token that is good for a while, and is not the one that was rejected. */
  const accessToken = async (rejected?: string): Promise<string> => {
    await restore();
    if (!session) throw signedOut();
    if (access && access.token !== rejected && lasts(access)) return access.token;
    if (pause && lasts(pause)) {
      const retryAfter = Math.ceil(pause.seconds - (clock() - pause.since) / 1000);
      throw new VestibuleError(pause.error.error, { ...pause.error, retryAfter });
    }
    if (!refreshing) {
      const begun = refresh().finally(() => {
        if (refreshing === begun) refreshing = undefined;
      });
      refreshing = begun;
    }
    return refreshing;
  };

  const authorized: Vestibule["fetch"] = async (input, init = {}) => {
    const { timeout: wait, ...rest } = init;
    const request = typeof input === "object" && "clone" in input ? input : undefined;
    const url = request?.url ?? (String(input).startsWith("/") ? base + String(input) : String(input));
    if (!ABSOLUTE.test(url)) throw new TypeError(`the path must begin with /, or the URL with https://: ${url}`);
    await restore();
    const mine = generation;
    const attempt = async (token: string) => {
      still(mine);
      const headers = new Headers(init.headers ?? request?.headers);
      headers.set("Authorization", `Bearer ${token}`);
      const signal = init.signal ?? request?.signal ?? null;
      const response = await send(request?.clone() ?? url, { ...rest, headers, signal }, wait);
      still(mine);
      return response;
    };
    const token = await accessToken();
    const response = await attempt(token);
    if (response.status !== 401) return response;
    const streamed = init.body && typeof init.body === "object" && "getReader" in init.body;
    if (url.startsWith(`${base}/`)) {
      const { reason } = await problem(streamed ? response.clone() : response, timeout);
      still(mine);
      // The token is genuine and its session is over: a refresh would only be told less.
      if (reason) throw await ended(reason);
    }
    return streamed ? response : attempt(await accessToken(token));
  };

  /** Sends a request of the API as the user, with `id` in its path. */
  const call = async <Path extends keyof paths, M extends Method>(
    method: M,
    path: Path,
    id = "",
    body?: Sent<Path, M>,
  ): Promise<Answered<Path, M>> => {
    await restore();
    const mine = generation;
    const response = await authorized(path.replace(/{\w+}/, encodeURIComponent(id)), {
      method: method.toUpperCase(),
      ...(body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {}),
    });
    const answer = await json<Answered<Path, M>>(response, timeout);
    still(mine);
    return answer;
  };

  /** Takes over what the service says of the user. */
  const learn = async (user: User): Promise<void> => {
    if (session && JSON.stringify(user) !== JSON.stringify(session.user)) {
      const { id } = (session = { ...session, user });
      goesOn(user, state.status === "signed_in" && state.offline);
      await locked(() => replace(id, (kept) => ({ session: { ...kept, user } })));
    }
  };

  const learned = async (me: Me): Promise<Me> => {
    const { identities: _, ...user } = me;
    await learn(user);
    return me;
  };

  void restore().catch(() => {});

  return {
    get state() {
      return state;
    },

    onAuthStateChange(listener) {
      listeners.add(listener);
      const first = state;
      inform(listener, first, () => first === state);
      return () => void listeners.delete(listener);
    },

    async signIn(provider, idToken, more) {
      const mine = ++attempts;
      // It replaces what cannot be read.
      await restore().catch(() => {});
      const since = clock();
      const response = await post(`/api/v1/auth/oauth/${encodeURIComponent(provider)}`, { ...more, id_token: idToken });
      const answer = await json<Answered<"/api/v1/auth/oauth/{provider}", "post">>(response, timeout);
      const { access_token: token, refresh_token, expires_in, outcome, user, identity } = answer;
      const next: Kept = { id: `${since} ${Math.random()}`, refresh_token, user };
      const last = () => {
        if (mine !== attempts) throw superseded();
      };
      try {
        await locked(async () => {
          last();
          await queued(() => save({ session: next }));
        });
        last();
      } catch (error) {
        void tell(next, "local");
        // It may be stored already.
        await replace(next.id, () => (session ? { session } : none("signed_out"))).catch(() => {});
        throw error;
      }
      const left = session;
      enter(next);
      access = { token, since, seconds: expires_in - MARGIN };
      if (left) void tell(left, "local");
      return { outcome, user, identity };
    },

    async signOut({ scope = "local" } = {}) {
      if (scope === "others") {
        await json(await authorized("/api/v1/auth/logout?scope=others", { method: "POST" }), timeout);
        return;
      }
      attempts++;
      const known = session;
      const forgotten = forget("signed_out");
      const finish = async (left = known) => {
        if (!left) return;
        // Another process may have stored the answer to a refresh meanwhile.
        const again = locked(() => replace(left.id, () => none("signed_out")));
        await Promise.all([again, tell(left, scope)]);
      };
      await (known ? Promise.all([forgotten, finish()]) : forgotten.then(finish));
    },

    fetch: authorized,
    async accessToken({ refresh = false } = {}) {
      await restore();
      return accessToken(refresh ? access?.token : undefined);
    },

    me: async () => learned(await call("get", "/api/v1/me")),
    setName: async (name) => learned(await call("patch", "/api/v1/me", "", { name })),
    identities: async () => (await call("get", "/api/v1/me/identities")).identities,
    link: (provider, idToken, more) =>
      call("post", "/api/v1/me/identities/{identity}", provider, { ...more, id_token: idToken }),
    unlink: (identity, proof) => call("delete", "/api/v1/me/identities/{identity}", identity, proof),

    async merge(provider, idToken, more) {
      const merge = await call("post", "/api/v1/me/merge", "", { ...more, provider, id_token: idToken });
      if (merge.applied) await learn(merge.user);
      return merge;
    },

    sessions: async () => (await call("get", "/api/v1/me/sessions")).sessions,
    endSession: (id) => call("delete", "/api/v1/me/sessions/{id}", id),

    async deleteAccount(proof) {
      await call("delete", "/api/v1/me", "", proof).catch((error: VestibuleError) => {
        // It was done before, and the answer was lost.
        if (error.reason !== "user_deleted") throw error;
      });
      if (session) await forget("user_deleted");
    },

    async providers() {
      const response = await send(`${base}/api/v1/auth/providers`, {});
      return (await json<Answered<"/api/v1/auth/providers", "get">>(response, timeout)).providers;
    },
  };
}
