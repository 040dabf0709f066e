import type { Answered, Me, Method, Sent, User } from "./api.js";
import type { AuthState, Options, SignedOutReason, Vestibule } from "./client.js";
import { VestibuleError } from "./error.js";
import { Http, isStream, json, problem, shown } from "./http.js";
import { browserKeys } from "./keys.js";
import { Proofs } from "./proofs.js";
import type { paths } from "./schema.js";
import { endOf, reasonOf, sessionOf } from "./session.js";
import { memoryStorage } from "./storage.js";
import { channel, type Kept, Store, type Stored } from "./store.js";

/** A time by this device's clock, and seconds from then on. */
interface Period {
  since: number;
  seconds: number;
}

/** What an instance tells the others: which session is over, and, unless they read it themselves, what follows it. */
interface News {
  over?: string;
  stored?: Stored;
}

type Credential = Pick<
  Answered<"/api/v1/auth/refresh", "post">,
  "access_token" | "refresh_token" | "token_type" | "expires_at" | "expires_in"
>;

/** Seconds before its end from which an access token is used no more. */
const MARGIN = 30;
/** A URL with a scheme and a host. */
const ABSOLUTE = /^https?:\/\/[^/]/i;

const superseded = () => new VestibuleError("superseded");

/** Creates a client. An app has one for each storage, for as long as it runs. */
export function createVestibule(options: Options): Vestibule {
  const { clock = Date.now, timeout = 10_000, deviceKey } = options;
  const cookie = options.session === "cookie";
  if (cookie === Boolean(options.storage)) throw new TypeError('either a `storage` or `session: "cookie"` is needed');
  /** With a cookie, it has what the page knows of the session. */
  const storage = options.storage ?? memoryStorage();
  const store = new Store(storage, timeout);
  const base = options.baseUrl.replace(/\/+$/, "");
  // `fetch` would fail with it as without a network.
  if (!ABSOLUTE.test(base)) throw new TypeError(`baseUrl must begin with https:// or http://: ${base}`);
  // A session that is bound already stays so.
  const keys = typeof deviceKey === "object" ? deviceKey : browserKeys();
  const proofs = new Proofs(keys, clock);
  const http = new Http(base, timeout, options.fetch, cookie, proofs);
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
  /** Ends a sign-in whose answer would replace the cookie of a later one. */
  let entering: AbortController | undefined;

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

  /** Returns true if it is not known so far whether there is a session. */
  const unread = () =>
    state.status === "restoring" ||
    (state.status === "signed_out" && (state.reason === "storage_failed" || state.reason === "unreachable"));

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

  const none = (reason: SignedOutReason): Stored => ({ reason, ...(lastUser ? { user_id: lastUser } : {}) });

  /** Returns the name of the key of a session without an access token. Nothing tells a page which key the cookie needs. */
  const keyOf = (kept?: Kept) => (cookie ? base : kept?.key);

  /** Holds an access token, which tells the service's time as well. */
  const hold = ({ access_token: token, expires_in, expires_at }: Credential, since: number) => {
    access = { token, since, seconds: expires_in - MARGIN };
    proofs.ahead = clock() + expires_in * 1000 - Date.parse(expires_at);
  };

  /** Makes the key for a session, if it is to be bound and this device can. */
  const create = async (name: string): Promise<string | undefined> => {
    if (!keys || deviceKey === "none") return undefined;
    const created = await keys.create(name).catch((cause: unknown) => {
      throw new VestibuleError("storage", { cause });
    });
    return created ? name : undefined;
  };

  /** Removes the key of a session that is over. That of a cookie may be the next one's. */
  const discard = async (key: string | undefined) => {
    if (key && !cookie) await keys?.remove(key).catch(() => {});
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

  /** Takes over the session that the cookie of the browser has, unless more is known by now. */
  const adopt = async (answer: Credential, since: number, current: () => boolean) => {
    const { access_token: token, token_type } = answer;
    const bound = token_type === "DPoP" ? { key: base } : {};
    const { identities: _, ...user } = await json<Me>(await http.sendAs(token, bound.key, `${base}/api/v1/me`), timeout);
    const stored = { session: { id: sessionOf(token), user, ...bound } };
    if (current()) await store.queued(() => store.save(stored));
    if (!current()) return;
    follow(stored);
    hold(answer, since);
  };

  /** Asks the service which session the cookie has. */
  const recall = async (): Promise<void> => {
    rested();
    const since = clock();
    try {
      await adopt(await exchange(undefined, generation), since, unread);
    } catch (error) {
      const reason = endOf(error as VestibuleError);
      if (!reason) throw error;
      // Without a cookie, there is no session that could have an unknown end.
      if (unread()) follow(reason === "session_unknown" ? {} : { reason });
    }
  };

  const restore = async (): Promise<void> => {
    if (!unread()) return;
    const begin = async () => {
      if (cookie) return recall();
      const stored = await store.read();
      if (unread()) follow(stored);
    };
    restoring ??= begin().finally(() => (restoring = undefined));
    await restoring.catch((error: unknown) => {
      const reason = cookie ? "unreachable" : "storage_failed";
      if (state.status === "restoring") publish({ status: "signed_out", reason });
      throw error;
    });
  };

  /** Takes over what another instance has stored, or says. */
  const hear = async ({ over, stored }: News): Promise<void> => {
    const mine = generation;
    const next = await store.queued(async () => {
      const kept = await store.load();
      if (!stored) return kept;
      // The end of another session than the current one changes nothing.
      if (!stored.session && kept.session?.id !== over) return undefined;
      await store.save(stored);
      return stored;
    });
    if (next && mine === generation && (unread() || next.session?.id !== session?.id)) follow(next);
  };

  const others = channel<News>(cookie ? `vestibule ${base}` : storage.channel, (news) => {
    void hear(news).catch(console.error);
  });
  const announce = (news: News) => others(cookie ? news : {});

  /** Forgets the session: at once here, and then in the storage. Returns it. */
  const forget = (reason: SignedOutReason): Promise<Kept | undefined> => {
    const left = session;
    const blind = unread();
    become(undefined);
    publish({ status: "signed_out", reason });
    return store.queued(async () => {
      const stored = await (blind ? store.load().catch(() => none(reason)) : store.load());
      if (!blind && stored.session?.id !== left?.id) return left;
      lastUser ??= stored.session?.user.id ?? stored.user_id;
      await store.save(none(reason));
      announce({ ...(left ? { over: left.id } : {}), stored: none(reason) });
      return left ?? stored.session;
    });
  };

  /** Forgets a session that the service has ended, and returns the error for whoever asked. */
  const ended = async (reason: SignedOutReason): Promise<VestibuleError> => {
    await discard((await forget(reason))?.key);
    return signedOut();
  };

  // Requests.

  /** Ends a session at the service, if it can be reached. */
  const tell = async ({ refresh_token, key }: Kept, scope: string): Promise<void> => {
    await http.post(`/api/v1/auth/logout?scope=${scope}`, { refresh_token }, key).catch(() => {});
    await discard(key);
  };

  /** Ends a session in whose place another one is. Its cookie is gone, so that only its access token can name it. */
  const leave = async (left: Kept, token: string | undefined): Promise<void> => {
    if (!cookie) return tell(left, "local");
    const alone: RequestInit = { method: "POST", credentials: "omit" };
    if (token) await http.sendAs(token, left.key, `${base}/api/v1/auth/logout`, alone).catch(() => {});
  };

  const exchange = async (kept: Kept | undefined, mine: number, last = false): Promise<Credential> => {
    const { refresh_token } = kept ?? {};
    const body = refresh_token ? { refresh_token } : undefined;
    try {
      return await json(await http.post("/api/v1/auth/refresh", body, keyOf(kept)), timeout);
    } catch (error) {
      still(mine);
      const { status = 500, retryAfter } = error as VestibuleError;
      // The answer to the same token is the same, or as good.
      if (!last && status >= 500 && retryAfter === undefined) return exchange(kept, mine, true);
      if (retryAfter) pause = { since: clock(), seconds: retryAfter, error: error as VestibuleError };
      throw error;
    }
  };

  /** Fails while the service wants no refresh. */
  const rested = () => {
    if (!pause || !lasts(pause)) return;
    const retryAfter = Math.ceil(pause.seconds - (clock() - pause.since) / 1000);
    throw new VestibuleError(pause.error.error, { ...pause.error, retryAfter });
  };

  const refresh = (): Promise<string> => {
    const mine = generation;
    const elsewhere = (stored: Stored) => {
      follow(stored);
      return session ? superseded() : signedOut();
    };
    return store.locked(async () => {
      still(mine);
      const stored = await store.read();
      still(mine);
      const kept = stored.session;
      if (!kept || kept.id !== session?.id) throw elsewhere(stored);
      const since = clock();
      const answer = await exchange(kept, mine).catch(async (error: VestibuleError) => {
        still(mine);
        const reason = endOf(error);
        if (reason) throw await ended(reason);
        // A refusal is an answer.
        if ((error.status ?? 500) >= 500) goesOn(kept.user, true);
        throw error;
      });
      still(mine);
      const { access_token: token, refresh_token } = answer;
      const next = refresh_token ? { refresh_token } : {};
      if (cookie && sessionOf(token) !== kept.id) {
        // Another tab has signed in, and could not say so.
        await adopt(answer, since, () => mine === generation);
        throw superseded();
      }
      // Before anything else: a token that was lost could not be told from a stolen one.
      const instead = await store.replace(kept.id, (latest) => ({ session: { ...latest, ...next } }));
      still(mine);
      if (instead) throw elsewhere(instead);
      session = { ...kept, ...next };
      hold(answer, since);
      goesOn(kept.user, false);
      return token;
    });
  };

  /** Returns a token that is good for a while, and is not the one that was rejected. */
  const accessToken = async (rejected?: string): Promise<string> => {
    await restore();
    // Another process may have changed it.
    if (storage.lock) await hear({}).catch(() => {});
    if (!session) throw signedOut();
    if (access && access.token !== rejected && lasts(access)) return access.token;
    rested();
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
    const ours = url.startsWith(`${base}/`);
    await restore();
    const mine = generation;
    const attempt = async (token: string) => {
      still(mine);
      const headers = init.headers ?? request?.headers ?? {};
      const signal = init.signal ?? request?.signal ?? null;
      const credentials: RequestInit = cookie && ours ? { credentials: "include" } : {};
      const sent = { ...credentials, ...rest, headers, signal };
      const response = await http.sendAs(token, session?.key, request ?? url, sent, wait);
      still(mine);
      return response;
    };
    const token = await accessToken();
    const response = await attempt(token);
    if (cookie && ours && response.status === 403) {
      // The cookie is of another session by now, which a refresh takes over.
      const { error } = await problem(response.clone(), timeout);
      if (error === "cookie_refused") await accessToken(token);
      still(mine);
    }
    if (response.status !== 401) return response;
    const streamed = isStream(init.body);
    if (ours) {
      const { reason } = await problem(streamed ? response.clone() : response, timeout);
      still(mine);
      // The token is genuine and its session is over: a refresh would only be told less.
      if (reason) throw await ended(reasonOf(reason) ?? "session_unknown");
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
      await store.locked(() => store.replace(id, (kept) => ({ session: { ...kept, user } })));
    }
  };

  const learned = async (me: Me): Promise<Me> => {
    const { identities: _, ...user } = me;
    await learn(user);
    return me;
  };

  return {
    get state() {
      return state;
    },

    onAuthStateChange(listener) {
      listeners.add(listener);
      void restore().catch(() => {});
      const first = state;
      inform(listener, first, () => first === state);
      return () => void listeners.delete(listener);
    },

    async signIn(provider, idToken, more) {
      const mine = ++attempts;
      const last = () => {
        if (mine !== attempts) throw superseded();
      };
      // It replaces what cannot be read.
      await restore().catch(() => {});
      last();
      const since = clock();
      entering?.abort(superseded());
      entering = cookie ? new AbortController() : undefined;
      const id = `vestibule.${since}.${Math.random()}`;
      const name = cookie ? base : id;
      const post = async (): Promise<Answered<"/api/v1/auth/oauth/{provider}", "post">> => {
        const key = await create(name);
        last();
        const body = { ...more, id_token: idToken, ...(cookie ? { session: "cookie" } : {}) };
        const path = `/api/v1/auth/oauth/${encodeURIComponent(provider)}`;
        return json(await http.post(path, body, key, entering?.signal), timeout);
      };
      const answer = await post().catch(async (error: unknown) => {
        await discard(name);
        throw error;
      });
      const { access_token: token, refresh_token, token_type, outcome, user, identity } = answer;
      const bound = token_type === "DPoP" ? { key: name } : {};
      if (!bound.key) void discard(name);
      const next: Kept = refresh_token
        ? { id, refresh_token, user, ...bound }
        : { id: sessionOf(token), user, ...bound };
      try {
        await store.locked(async () => {
          last();
          await store.queued(() => store.save({ session: next }));
        });
        last();
      } catch (error) {
        void leave(next, token);
        // It may be stored already.
        await store.replace(next.id, () => (session ? { session } : none("signed_out"))).catch(() => {});
        throw error;
      }
      // A call that has read the storage meanwhile has entered it already.
      if (session?.id !== next.id) {
        if (session) void leave(session, access?.token);
        enter(next);
      }
      hold(answer, since);
      announce({ stored: { session: next } });
      return { outcome, user, identity };
    },

    async signOut({ scope = "local" } = {}) {
      if (scope === "others") {
        // The cookie counts beside JSON alone.
        const headers = { "Content-Type": "application/json" };
        await json(await authorized("/api/v1/auth/logout?scope=others", { method: "POST", headers }), timeout);
        return;
      }
      const mine = ++attempts;
      entering?.abort(superseded());
      if (cookie) {
        // A page that leaves once it is signed out would end the request before the cookie is removed.
        const told = http.post(`/api/v1/auth/logout?scope=${scope}`, undefined, base).then((response) => json(response, timeout));
        await told.catch((error: VestibuleError) => {
          // A cookie that is refused is none.
          if (error.status !== 401) throw error;
        });
        if (mine !== attempts) return;
        await forget("signed_out");
        if (mine === attempts && !session) await keys?.remove(base).catch(() => {});
        return;
      }
      const known = session;
      const forgotten = forget("signed_out");
      const finish = async (left = known) => {
        if (!left) return;
        // Another process may have stored the answer to a refresh meanwhile.
        const again = store.locked(() => store.replace(left.id, () => none("signed_out")));
        await Promise.all([again, tell(left, scope)]);
      };
      await (known ? Promise.all([forgotten, finish()]) : forgotten.then(finish));
    },

    fetch: authorized,
    async accessToken({ refresh = false } = {}) {
      await restore();
      return accessToken(refresh ? access?.token : undefined);
    },

    async headers(url, method = "GET") {
      const token = await accessToken();
      const key = session?.key;
      const proof = key && (await proofs.make({ ...shown(url, method), key, token }));
      return { Authorization: `${key ? "DPoP" : "Bearer"} ${token}`, ...(proof && { DPoP: proof }) };
    },

    me: async () => learned(await call("get", "/api/v1/me")),
    setName: async (name) => learned(await call("patch", "/api/v1/me", "", { name })),
    identities: async () => (await call("get", "/api/v1/me/identities")).identities,
    link: (provider, idToken, more) =>
      call("post", "/api/v1/me/identities/{identity}", provider, { ...more, id_token: idToken }),
    unlink: (identity, proof) => call("delete", "/api/v1/me/identities/{identity}", identity, proof),

    async merge(provider, idToken, more) {
      const merge = await call("post", "/api/v1/me/merge", "", { ...more, provider, id_token: idToken });
      if (merge.applied) await learn({ ...merge.user, claims: merge.claims });
      return merge;
    },

    sessions: async () => (await call("get", "/api/v1/me/sessions")).sessions,
    endSession: (id) => call("delete", "/api/v1/me/sessions/{id}", id),

    async deleteAccount(proof) {
      await call("delete", "/api/v1/me", "", proof).catch((error: VestibuleError) => {
        // It was done before, and the answer was lost.
        if (error.reason !== "user_deleted") throw error;
      });
      if (session) await discard((await forget("user_deleted"))?.key);
    },

    async providers() {
      const response = await http.send(`${base}/api/v1/auth/providers`);
      return (await json<Answered<"/api/v1/auth/providers", "get">>(response, timeout)).providers;
    },
  };
}
