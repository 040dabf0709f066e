import type { Answered, Sent } from "../api.js";
import { VestibuleError } from "../error.js";
import { json, within } from "../http.js";
import type { components, operations, paths } from "../schema.js";

type Schemas = components["schemas"];

/** A user as a backend sees them. */
export type UserRecord = Schemas["UserRecord"];
/** A page of users. */
export type UserRecords = Schemas["UserRecords"];
/** The users to find, and their order. */
export type UserSearch = NonNullable<operations["findUsers"]["parameters"]["query"]>;
/** A user to create beforehand. */
export type NewUser = Schemas["NewUserRequest"];
/** A session of a user. */
export type SessionRecord = Schemas["SessionRecord"];
/** An event: what happened to a user, or what staff or a backend did. */
export type EventRecord = Schemas["EventRecord"];
/** A part of the feed of events, with the place of the next one. */
export type EventFeed = Schemas["EventFeed"];

const USER = "/api/v1/admin/users/{id}";
type Part<Name extends string> = `${typeof USER}/${Name}`;

/** The names of the changes to a user: `disable`, `merge` and so on. */
export type Change = {
  [P in keyof paths]: P extends Part<infer Name> ? (paths[P] extends { post: object } ? Name : never) : never;
}[keyof paths];
/** The reason for a change, what it is made to, and whether it is only tried. */
export type ChangeRequest<C extends Change> = Sent<Part<C>, "post">;
/** The change that was made, or, of a dry run, would be. */
export type ChangeResult<C extends Change = Change> = Answered<Part<C>, "post">;
/** The claims of a user, and the reason for them. */
export type ClaimsRequest = Sent<Part<"claims">, "put">;

/** The settings of a client for the admin API. */
export interface AdminOptions {
  /** The service's URL, public or internal, such as `https://id.example.com`. */
  url: string;
  /** The API key of `vestibule api-key add`. */
  key: string;
  /** The longest wait for an answer in milliseconds, 10 seconds by default. */
  timeout?: number;
}

/**
 * The admin API, for the product's backend. Every method fails with a `VestibuleError`. It never repeats a request by
 * itself: after `rate_limited` and `service_unavailable`, wait for `retryAfter` seconds.
 */
export interface AdminClient {
  /** Returns all users who match, page by page. `limit` is the size of a page. */
  users(search?: UserSearch): AsyncGenerator<UserRecord, void>;
  /** Returns one page of them. Its `next` is the `cursor` of the next one. */
  usersPage(search?: UserSearch): Promise<UserRecords>;
  /** Returns a user. If they were merged into another one, `user_not_found` has that one's id as `mergedInto`. */
  user(id: string): Promise<UserRecord>;
  /** Returns the user with that e-mail address or identity, if there is one. */
  userBy(by: { email: string } | { provider: string; subject: string }): Promise<UserRecord | undefined>;
  /** Creates a user beforehand. */
  createUser(user: NewUser): Promise<UserRecord>;
  /** Returns where a user is signed in, the last used first. */
  sessions(user: string): Promise<SessionRecord[]>;
  /** Returns what happened to a user, the newest first. */
  eventsOf(user: string): AsyncGenerator<EventRecord, void>;
  /**
   * Returns all events, the oldest first, until there are none for now: the feed for those who would rather poll than
   * receive webhooks. Keep the `next` of each part with what you did about it, and begin the next time `after` that.
   */
  events(from?: { after: string } | { since: string }): AsyncGenerator<EventFeed, void>;
  /** Makes a change to a user, or only tries it: see `dry_run` and `seen`. */
  change<C extends Change>(user: string, change: C, request: ChangeRequest<C>): Promise<ChangeResult<C>>;
  /** Replaces the claims in a user's access tokens, from the next refresh on. */
  setClaims(user: string, request: ClaimsRequest): Promise<void>;
}

type Query = Readonly<Record<string, string | number | undefined>>;

/** Creates a client for the admin API. */
export function adminClient({ url, key, timeout = 10_000 }: AdminOptions): AdminClient {
  if (!key) throw new TypeError("there is no API key");
  const base = url.replace(/\/+$/, "");

  async function request<T>(method: string, path: string, query: Query = {}, body?: object): Promise<T> {
    const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, `${value}`]]));
    const search = given.length ? `?${new URLSearchParams(given)}` : "";
    const headers = { Authorization: `Bearer ${key}`, ...(body && { "Content-Type": "application/json" }) };
    const init: RequestInit = { method, headers, redirect: "manual", ...(body && { body: JSON.stringify(body) }) };
    const answer = await within(timeout, undefined, (signal) => fetch(base + path + search, { ...init, signal }));
    return json<T>(answer, timeout);
  }

  async function* pages<P extends { next: string | null }>(path: string, query: Query): AsyncGenerator<P, void> {
    for (let cursor = query.cursor; ;) {
      const page = await request<P>("GET", path, { ...query, cursor });
      yield page;
      if (page.next === null) return;
      cursor = page.next;
    }
  }

  const usersPage = (search: UserSearch = {}) => request<UserRecords>("GET", "/api/v1/admin/users", search);
  return {
    usersPage,
    async *users(search = {}) {
      for await (const page of pages<UserRecords>("/api/v1/admin/users", search)) yield* page.users;
    },
    user: async (id) => request("GET", of(id)),
    userBy: async (by) => (await usersPage(by)).users[0],
    createUser: (user) => request("POST", "/api/v1/admin/users", {}, user),
    sessions: async (user) => (await request<Schemas["SessionRecords"]>("GET", of(user, "sessions"))).sessions,
    async *eventsOf(user) {
      for await (const page of pages<Schemas["UserEvents"]>(of(user, "events"), {})) yield* page.events;
    },
    async *events(from) {
      for (let place: Query = { ...from }; ;) {
        const feed = await request<EventFeed>("GET", "/api/v1/admin/events", place);
        if (!feed.events.length) return;
        yield feed;
        place = { after: feed.next };
      }
    },
    change: async (user, change, body) => request("POST", of(user, change), {}, body),
    setClaims: async (user, body) => void (await request("PUT", of(user, "claims"), {}, body)),
  };
}

/** Returns the path of a user, or of what belongs to one. An id from elsewhere must not lead to another path. */
function of(user: string, part?: string): string {
  if (!/^[\w-]+$/.test(user) || !/^[a-z-]*$/.test(part ?? "")) throw new VestibuleError("user_not_found", { status: 404, detail: "it is no id" });
  return USER.replace("{id}", user) + (part ? `/${part}` : "");
}
