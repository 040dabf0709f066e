// Pages whose session is in a cookie: reloads, tabs, and a phone's failures.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";

import { IDBFactory } from "fake-indexeddb";

import { type AuthState, createVestibule, memoryStorage, type Options, type Vestibule } from "../src/index.js";
import { browserKeys } from "../src/keys.js";
import { claimsOf } from "./keys.js";
import { eventually } from "./service.js";
import { bound, network, ORIGIN, pass, refused, service, somebody, staff, test } from "./world.js";

const REFRESH = "/api/v1/auth/refresh";
const ME = "/api/v1/me";
const SIGN_IN = "/api/v1/auth/oauth/";

/** A browser's cookies, of which only `fetch` knows, as a browser sends and keeps them, and its databases. */
class Browser {
  databases = new IDBFactory();
  cookies = new Map<string, string>();

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("Origin", ORIGIN);
    const included = init.credentials === "include";
    const cookies = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    if (included && cookies) headers.set("Cookie", cookies);
    const answer = await fetch(input, { ...init, headers });
    for (const cookie of included ? answer.headers.getSetCookie() : []) {
      const [, name = "", value = ""] = /^([^=]*)=([^;]*)/.exec(cookie) ?? [];
      if (/; max-age=0\b/i.test(cookie)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  };
}

interface Tab {
  readonly client: Vestibule;
  readonly states: AuthState[];
  /** How far its clock is ahead, in milliseconds. */
  clock: { ahead: number };
}

/** A tab, or the same one after a reload. */
function tab({ fetch, databases }: Browser, baseUrl = network.url, options: Partial<Omit<Options, "storage">> = {}): Tab {
  const clock = { ahead: 0 };
  const now = () => Date.now() + clock.ahead;
  const deviceKey = bound ? (browserKeys(databases) ?? assert.fail()) : "none";
  const client = createVestibule({ baseUrl, clock: now, fetch, deviceKey, ...options, session: "cookie" });
  const states: AuthState[] = [];
  client.onAuthStateChange((state) => states.push(state));
  return { client, states, clock };
}

/** Runs a test where no tab hears of another. */
function apart(context: TestContext): void {
  const { BroadcastChannel } = globalThis;
  Object.assign(globalThis, { BroadcastChannel: undefined });
  context.after(() => Object.assign(globalThis, { BroadcastChannel }));
}

async function signIn({ client }: Tab, email = somebody()): Promise<string> {
  return (await client.signIn("idp", await service.idToken({ email }))).user.id;
}

/** Waits until a tab's state is one of these, and returns it. */
async function becomes({ client }: Tab, status: AuthState["status"]): Promise<AuthState> {
  return eventually(`it is ${status}`, async () => (client.state.status === status ? client.state : undefined));
}

test("a page that is reloaded is signed in as before, and has no refresh token", async () => {
  const browser = new Browser();
  const before = tab(browser);
  const email = somebody();
  const answer: string[] = [];
  const reading: typeof fetch = async (input, init) => {
    const response = await browser.fetch(input, init);
    answer.push(await response.clone().text());
    return response;
  };
  const user = await signIn(tab(browser, network.url, { fetch: reading }), email);
  assert(!answer.join().includes('"refresh_token":'), answer.join());
  assert.equal((await becomes(before, "signed_in")).status, "signed_in");

  const after = tab(browser);
  const sent = network.count(REFRESH);
  const now = await becomes(after, "signed_in");
  assert(now.status === "signed_in" && now.user.id === user && now.user.email === email);
  assert.deepEqual(after.states.map(({ status }) => status), ["restoring", "signed_in"]);
  assert.equal((await after.client.me()).id, user);
  assert.equal(network.count(REFRESH), sent + 1);
  after.clock.ahead = 15 * 60_000;
  assert.equal((await after.client.me()).id, user);
  assert.equal(network.count(REFRESH), sent + 2);
});

test("a page without a cookie is signed out, and one whose session has ended says why", async () => {
  const browser = new Browser();
  const fresh = tab(browser);
  assert.deepEqual(await becomes(fresh, "signed_out"), { status: "signed_out", reason: "never" });
  const user = await signIn(fresh);
  await staff.endSessions(user);
  const next = tab(browser);
  assert.deepEqual(await becomes(next, "signed_out"), { status: "signed_out", reason: "session_ended" });
  const again = await signIn(next);
  await pass(again, "31 days");
  const late = tab(browser);
  assert.deepEqual(await becomes(late, "signed_out"), { status: "signed_out", reason: "session_expired" });
});

test("all tabs hear of a sign-in, of another user's, and of a sign-out at once", async () => {
  const browser = new Browser();
  const [one, other] = [tab(browser), tab(browser)];
  await Promise.all([becomes(one, "signed_out"), becomes(other, "signed_out")]);
  const ada = await signIn(one);
  await becomes(other, "signed_in");
  assert.equal((await other.client.me()).id, ada);

  const held = network.hold(ME);
  const late = refused(one.client.me(), "superseded");
  await held.answered;
  const grace = await signIn(other);
  const now = await eventually("it has heard of it", async () => {
    const { state } = one.client;
    return state.status === "signed_in" && state.user.id === grace ? state : undefined;
  });
  assert.deepEqual(now.userChanged, { from: ada });
  held.release();
  await late;
  assert.equal((await one.client.me()).id, grace);

  network.down = true;
  await refused(one.client.signOut(), "network");
  network.down = false;
  assert.equal((await one.client.me()).id, grace);
  await one.client.signOut();
  assert.deepEqual(await becomes(other, "signed_out"), { status: "signed_out", reason: "signed_out" });
  assert.deepEqual(await becomes(tab(browser), "signed_out"), { status: "signed_out", reason: "never" });
});

test("a page that is left as soon as it is signed out, which ends its requests, does not come back signed in", async () => {
  const browser = new Browser();
  const left = new AbortController();
  const fetch: typeof globalThis.fetch = (input, { signal, ...init } = {}) =>
    browser.fetch(input, { ...init, signal: AbortSignal.any([left.signal, ...(signal ? [signal] : [])]) });
  const page = tab(browser, network.url, { fetch });
  await signIn(page);
  page.client.onAuthStateChange(({ status }) => status === "signed_out" && left.abort());
  await page.client.signOut().catch(() => {});
  assert(left.signal.aborted);
  assert.equal((await refused(tab(browser).client.accessToken(), "signed_out")).reason, "never");
});

test("tabs that cannot hear of each other find out at their next refresh", async (context) => {
  apart(context);
  const browser = new Browser();
  const [one, other] = [tab(browser), tab(browser)];
  const ada = await signIn(one);
  await other.client.signOut();
  assert.equal(one.client.state.status, "signed_in");
  await refused(one.client.accessToken({ refresh: true }), "signed_out");

  await signIn(one);
  const grace = await signIn(other);
  assert.notEqual(grace, ada);
  const before = network.passed.length;
  await refused(one.client.accessToken({ refresh: true }), "superseded");
  assert.equal((await one.client.me()).id, grace);
  assert.equal(network.passed.slice(before).filter(({ path }) => path === REFRESH).length, 1);
});

test("a tab whose cookie is of another user by now ends none of their sessions, and follows", async (context) => {
  apart(context);
  const browser = new Browser();
  const [one, other] = [tab(browser), tab(browser)];
  await signIn(one);
  const grace = await signIn(other);
  await refused(one.client.signOut({ scope: "others" }), "superseded");
  assert.equal((await one.client.me()).id, grace);
  await one.client.signOut({ scope: "others" });
  assert.equal((await one.client.me()).id, grace);
});

test("tabs that refresh at once agree", async () => {
  const browser = new Browser();
  const tabs = [tab(browser), tab(browser), tab(browser)];
  const user = await signIn(tabs[0] as Tab);
  await Promise.all(tabs.map((each) => becomes(each, "signed_in")));
  for (let round = 0; round < 5; round++) {
    await Promise.all(tabs.map(({ client }) => client.accessToken({ refresh: true })));
  }
  for (const { client } of tabs) assert.equal((await client.me()).id, user);
});

test("the network that fails at a reload is told, and no sign-out; the next call tries again", async () => {
  const browser = new Browser();
  const user = await signIn(tab(browser));
  network.down = true;
  const after = tab(browser);
  assert.deepEqual(await becomes(after, "signed_out"), { status: "signed_out", reason: "unreachable" });
  await refused(after.client.me(), "network");
  network.down = false;
  network.next(REFRESH, { status: 429, headers: { "Retry-After": "7" } });
  assert.equal((await refused(after.client.me(), "rate_limited")).retryAfter, 7);
  const sent = network.count(REFRESH);
  await refused(after.client.me(), "rate_limited");
  assert.equal(network.count(REFRESH), sent, "it does not ask");
  after.clock.ahead += 7000;
  assert.equal((await after.client.me()).id, user);
  assert.equal(after.client.state.status, "signed_in");
});

test("an answer that is lost, at a reload or later, is asked for again at once", async () => {
  const browser = new Browser();
  const user = await signIn(tab(browser));
  network.next(REFRESH, "lose");
  const after = tab(browser);
  await becomes(after, "signed_in");
  network.next(REFRESH, "lose");
  await after.client.accessToken({ refresh: true });
  network.next(REFRESH, { status: 503, headers: { "Retry-After": "1" } });
  await refused(after.client.accessToken({ refresh: true }), "service_unavailable");
  assert(after.client.state.status === "signed_in" && after.client.state.offline);
  after.clock.ahead += 1000;
  assert.equal((await after.client.me()).id, user);
});

test("a stolen cookie is found out, and the page is told, or it is worth nothing", async () => {
  const browser = new Browser();
  await signIn(tab(browser));
  const thief = new Browser();
  thief.cookies = new Map(browser.cookies);
  for (let reloads = 0; reloads < 2; reloads++) await becomes(tab(browser), "signed_in");
  const caught = await becomes(tab(thief), "signed_out");
  if (bound) {
    assert.deepEqual(caught, { status: "signed_out", reason: "device_key_lost" });
    return void (await becomes(tab(browser), "signed_in"));
  }
  assert.deepEqual(caught, { status: "signed_out", reason: "refresh_token_reused" });
  assert.deepEqual(await becomes(tab(browser), "signed_out"), { status: "signed_out", reason: "session_ended" });
});

test("a refusal that arrives after a sign-in in another tab leaves the cookie of that sign-in", async (context) => {
  apart(context);
  const browser = new Browser();
  await staff.endSessions(await signIn(tab(browser)));
  const held = network.hold(REFRESH);
  const late = tab(browser);
  await held.answered;
  const user = await signIn(tab(browser));
  held.release();
  await becomes(late, "signed_out");
  assert.equal((await tab(browser).client.me()).id, user);
});

test("of two sign-ins at once the last one has the cookie, and one that a sign-out overtakes has none", async () => {
  const browser = new Browser();
  const mine = tab(browser);
  const held = network.hold(SIGN_IN);
  const first = refused(signIn(mine), "superseded");
  await held.answered;
  const user = await signIn(mine);
  held.release();
  await first;
  const after = tab(browser);
  await becomes(after, "signed_in");
  assert.equal((await after.client.me()).id, user);

  const overtaken = network.hold(SIGN_IN);
  const second = refused(signIn(mine), "superseded");
  await overtaken.answered;
  await mine.client.signOut();
  overtaken.release();
  await second;
  assert.equal((await becomes(tab(browser), "signed_out")).status, "signed_out");
});

test("another user who signs in takes over, and the session before is ended", async () => {
  const browser = new Browser();
  const mine = tab(browser);
  await signIn(mine);
  const hers = await mine.client.accessToken();
  const grace = await signIn(mine);
  await eventually("her session is over", async () => {
    const live = await service.sql(`SELECT 1 FROM sessions WHERE id = '${claimsOf(hers).sid}' AND ended_at IS NULL`);
    return live ? undefined : true;
  });
  assert.equal((await mine.client.me()).id, grace);
});

test("a deleted account is forgotten by all tabs", async () => {
  const browser = new Browser();
  const [one, other] = [tab(browser), tab(browser)];
  await signIn(one);
  await becomes(other, "signed_in");
  await one.client.deleteAccount();
  for (const each of [one, other]) {
    assert.deepEqual(await becomes(each, "signed_out"), { status: "signed_out", reason: "user_deleted" });
  }
  assert.equal((await becomes(tab(browser), "signed_out")).status, "signed_out");
});

test("a page whose key is lost is signed out and says why, and a page from before keys goes on without", async () => {
  const browser = new Browser();
  const email = somebody();
  const user = await signIn(tab(browser), email);
  // A browser whose databases are cleared, or one that has had none so far.
  browser.databases = new IDBFactory();
  const next = tab(browser);
  const now = await becomes(next, bound ? "signed_out" : "signed_in");
  if (bound) assert.deepEqual(now, { status: "signed_out", reason: "device_key_lost" });
  if (bound) assert.equal(await signIn(next, email), user);
  const { client } = tab(browser, network.url, { deviceKey: browserKeys(browser.databases) ?? assert.fail() });
  assert.equal((await client.me()).id, user);
  assert.equal(Boolean(claimsOf(await client.accessToken()).cnf), bound);
});

test("tabs that sign in at once share the key, and a sign-out removes it", async () => {
  const browser = new Browser();
  const tabs = [tab(browser), tab(browser), tab(browser)] as const;
  const signedIn = await Promise.allSettled(tabs.map((each) => signIn(each)));
  assert(signedIn.every(({ status }) => status === "fulfilled"));
  const after = tab(browser);
  await becomes(after, "signed_in");
  const keys = browserKeys(browser.databases) ?? assert.fail();
  assert.equal(Boolean(await keys.find(network.url)), bound);
  const { sid } = claimsOf(await after.client.accessToken());
  await after.client.signOut();
  assert.notEqual(await service.sql(`SELECT ended_at FROM sessions WHERE id = '${sid}'`), "", "the service was told");
  assert.equal(await keys.find(network.url), undefined);
  await signIn(after);
  await becomes(tab(browser), "signed_in");
});

test("a client has either a storage or a cookie", async () => {
  const [baseUrl, storage, session] = [network.url, memoryStorage(), "cookie"];
  for (const both of [{ baseUrl }, { baseUrl, storage, session }]) {
    assert.throws(() => createVestibule(both as unknown as Options), { name: "TypeError", message: /either a `storage`/ });
  }
});
