// A phone's hard life: every way in which requests, processes and people get in each other's way.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { inspect, promisify } from "node:util";

import { type AuthState, createVestibule, memoryStorage, type TokenStorage } from "../src/index.js";
import { fileStorage } from "./file.js";
import { claimsOf, keyOf, proofsWith } from "./keys.js";
import { CLIENT, eventually, Service } from "./service.js";
import {
  bound,
  folder,
  keys,
  network,
  pass,
  type Phone,
  phone,
  provider,
  quarterOfAnHour,
  refused,
  service,
  signIn,
  somebody,
  staff,
  state,
  stored,
  test,
  whoAmI,
} from "./world.js";

const REFRESH = "/api/v1/auth/refresh";
const ME = "/api/v1/me";
const APP = join(CLIENT, "target/tests/process.js");

interface Told {
  token: string;
  state: AuthState;
}

/** Starts an app's process, and returns what it prints. */
async function start(...args: string[]): Promise<Told> {
  return startWith(keysOf(), ...args);
}

/** The folder of this phone's key store. */
const keysOf = () => (bound ? join(folder, "keys") : "");

async function startWith(keys: string, ...args: string[]): Promise<Told> {
  const { stdout } = await promisify(execFile)(process.execPath, [APP, network.url, keys, ...args]);
  return JSON.parse(stdout) as Told;
}

function offline(phone: Phone): boolean {
  const now = state(phone);
  return now.status === "signed_in" && now.offline;
}

function changed(phone: Phone): { from: string } | undefined {
  const now = state(phone);
  assert.equal(now.status, "signed_in");
  return now.status === "signed_in" ? now.userChanged : undefined;
}

async function works(token: string): Promise<boolean> {
  const read = (headers: HeadersInit) => fetch(service.url + ME, { headers });
  if (!bound) return (await read({ Authorization: `Bearer ${token}` })).ok;
  const key = await keyOf(token, keys);
  // Without the key it can only be asked whether the service still has the session.
  if (!key) return (await service.sql(`SELECT 1 FROM sessions WHERE id = '${claimsOf(token).sid}' AND ended_at IS NULL`)) !== "";
  const shown = { method: "GET", url: network.url + ME, key, token };
  return (await proofsWith(keys).send(shown, (DPoP = "") => read({ Authorization: `DPoP ${token}`, DPoP }))).ok;
}

/** A phone whose storage is a file, and which was signed in and then ended. */
async function ended(name: string): Promise<{ file: string; user: string }> {
  const file = join(folder, name);
  const user = await signIn(phone({ storage: fileStorage(file) }));
  return { file, user };
}

for (const later of ["at once", "an hour later"]) {
  test(`an app that is killed between a refresh and storing its answer is signed in when it starts ${later}`, async () => {
    const { file, user } = await ended(`killed ${later}, ${bound}`);
    const before = await fileStorage(file).get();
    const held = network.hold(REFRESH);
    const app = spawn(process.execPath, [APP, network.url, keysOf(), file], { stdio: "ignore" });
    await held.answered;
    app.kill("SIGKILL");
    await once(app, "exit");
    held.release();
    assert.equal(await fileStorage(file).get(), before, "nothing was stored");
    if (later !== "at once") await pass(user, "1 hour");
    const told = await start(file);
    assert(await works(told.token));
    assert.equal(told.state.status, "signed_in");
    // And it goes on.
    assert(await works((await start(file)).token));
  });
}

test("requests that find the access token expired at resume share one refresh", async () => {
  const mine = phone();
  const user = await signIn(mine);
  quarterOfAnHour(mine);
  const before = network.count(REFRESH);
  const ids = await Promise.all(Array.from({ length: 10 }, () => whoAmI(mine)));
  assert.deepEqual(new Set(ids), new Set([user]));
  assert.equal(network.count(REFRESH), before + 1);
});

for (const lock of [true, false]) {
  test(`two processes that resume on one storage ${lock ? "refresh one after the other" : "without a lock both stay signed in"}`, async () => {
    const { file } = await ended(`two, lock ${lock}, ${bound}`);
    const before = network.passed.length;
    const args = lock ? [file, `${file}.lock`] : [file];
    const told = await Promise.all([start(...args), start(...args)]);
    for (const { token } of told) assert(await works(token));
    const shown = network.passed.slice(before).map(({ body }) => body);
    if (lock) assert.equal(new Set(shown).size, 2, "the second one shows what the first one stored");
    assert(await works((await start(...args)).token), "what is stored at last is the successor");
  });
}

test("an answer that is swallowed is asked for again at once, with the same token", async () => {
  const mine = phone();
  const user = await signIn(mine);
  quarterOfAnHour(mine);
  mine.states.length = 0;
  const before = network.passed.length;
  network.next(REFRESH, "lose");
  assert.equal(await whoAmI(mine), user);
  const [first, second] = network.passed.slice(before);
  assert.equal(first?.path, REFRESH);
  assert.equal(first.body, second?.body);
  assert.deepEqual(mine.states, [], "the person notices nothing");
});

test("answers that never come keep the session, and an hour later it goes on", async () => {
  const before = phone();
  const user = await signIn(before);
  const mine = phone({ storage: before.storage, timeout: 300 });
  quarterOfAnHour(mine);
  network.next(REFRESH, "hang");
  network.next(REFRESH, "hang");
  await refused(mine.client.fetch(ME), "timeout");
  assert(offline(mine));
  await pass(user, "1 hour");
  const again = phone({ storage: mine.storage });
  assert.equal(await whoAmI(again), user);
});

test("an app that starts without a network knows who is signed in, and goes on when there is one", async () => {
  const before = phone();
  const user = await signIn(before);
  network.down = true;
  const mine = phone({ storage: before.storage });
  await refused(mine.client.fetch(ME), "network");
  const now = state(mine);
  assert(now.status === "signed_in" && now.offline && now.user.id === user);
  network.down = false;
  assert.equal(await whoAmI(mine), user);
  assert.deepEqual(
    mine.states.map((told) => (told.status === "signed_in" ? told.offline : told.status)),
    ["restoring", false, true, false],
  );
});

test("after thirty days offline the person is told that the session has expired, and the phone says whose it was", async () => {
  const before = phone();
  const email = somebody();
  const user = await signIn(before, email);
  await pass(user, "29 days");
  const inTime = phone({ storage: before.storage });
  assert.equal(await whoAmI(inTime), user, "a day earlier it is good, and good for thirty more");
  await pass(user, "31 days");
  const mine = phone({ storage: before.storage });
  mine.clock.ahead = 31 * 86_400_000;
  const error = await refused(mine.client.fetch(ME), "signed_out");
  assert.equal(error.reason, "session_expired");
  assert.deepEqual(state(mine), { status: "signed_out", reason: "session_expired" });
  const next = phone({ storage: mine.storage });
  await refused(next.client.accessToken(), "signed_out");
  assert.deepEqual(state(next), { status: "signed_out", reason: "session_expired" }, "also after the next start");
  assert.equal(await signIn(next, email), user);
  assert.equal(changed(next), undefined);
});

test("a clock that is hours off, or jumps, costs a refresh and no more", async () => {
  for (const hours of [-5, 5]) {
    const mine = phone();
    mine.clock.ahead = hours * 3_600_000;
    const user = await signIn(mine);
    const before = network.count(REFRESH);
    assert.equal(await whoAmI(mine), user);
    assert.equal(network.count(REFRESH), before, "a clock that is off makes no difference");
    mine.clock.ahead = 0;
    assert.equal(await whoAmI(mine), user);
    assert.equal(await whoAmI(mine), user);
    assert.equal(network.count(REFRESH), before + 1, "a clock that is set makes one");
  }
});

test("a user whom staff disable is told so, at the next request and at a sign-in", async () => {
  const mine = phone();
  const email = somebody();
  const user = await signIn(mine, email);
  await staff.disable(user);
  const error = await refused(mine.client.me(), "signed_out");
  assert.equal(error.reason, "user_disabled");
  const denied = await refused(signIn(mine, email), "user_disabled");
  assert.equal(denied.status, 403);
  assert.deepEqual(state(mine), { status: "signed_out", reason: "user_disabled" });
  await staff.enable(user);
  assert.equal(await signIn(mine, email), user);
});

test("a user who is disabled while the app is closed is told so by the refresh", async () => {
  const before = phone();
  const user = await signIn(before);
  await staff.disable(user);
  const mine = phone({ storage: before.storage });
  assert.equal((await refused(mine.client.accessToken(), "signed_out")).reason, "user_disabled");
  assert.deepEqual(state(mine), { status: "signed_out", reason: "user_disabled" });
});

test("a user who is merged signs in again as the other one, and the state says that the user has changed", async () => {
  const mine = phone();
  const email = somebody();
  const from = await signIn(mine, email);
  const into = await signIn(phone());
  await staff.merge(from, into);
  assert.equal((await refused(mine.client.me(), "signed_out")).reason, "user_merged");
  const next = phone({ storage: mine.storage });
  assert.equal(await signIn(next, email), into);
  assert.deepEqual(changed(next), { from });
});

test("a user who is merged while the app is closed signs in again, and the state says that the user has changed", async () => {
  const before = phone();
  const email = somebody();
  const from = await signIn(before, email);
  const into = await signIn(phone());
  await staff.merge(from, into);
  const mine = phone({ storage: before.storage });
  await refused(mine.client.accessToken(), "signed_out");
  assert.deepEqual(state(mine), { status: "signed_out", reason: "session_unknown" });
  assert.equal(await signIn(mine, email), into);
  assert.deepEqual(changed(mine), { from });
});

test("a user whom staff delete is told so, and nothing of theirs is left on the phone", async () => {
  const mine = phone();
  await staff.delete(await signIn(mine));
  assert.equal((await refused(mine.client.me(), "signed_out")).reason, "user_deleted");
  assert.deepEqual(state(mine), { status: "signed_out", reason: "user_deleted" });
  assert.equal(await mine.storage.get(), null);
});

test("a user whom staff sign out is told so, at the next request and at a refresh", async () => {
  const [mine, other] = [phone(), phone()];
  const email = somebody();
  const user = await signIn(mine, email);
  await signIn(other, email);
  await staff.endSessions(user);
  assert.equal((await refused(mine.client.me(), "signed_out")).reason, "session_ended");
  quarterOfAnHour(other);
  assert.equal((await refused(other.client.accessToken(), "signed_out")).reason, "session_ended");
  assert.deepEqual(state(other), { status: "signed_out", reason: "session_ended" });
});

test("a stolen copy of the storage is found out, and both are told, or it is worth nothing", async () => {
  const { file } = await ended(`stolen, ${bound}`);
  await copyFile(file, `${file} copy`);
  await start(file);
  await start(file);
  const thief = await startWith(bound ? join(folder, "keys of the thief") : "", `${file} copy`);
  const reason = bound ? "device_key_lost" : "refresh_token_reused";
  assert.deepEqual(thief, { token: "signed_out", state: { status: "signed_out", reason } });
  const owner = await start(file);
  if (bound) return assert.equal(owner.state.status, "signed_in");
  assert.deepEqual(owner.state, { status: "signed_out", reason: "session_ended" });
});

test("a provider that is down, or wants to be left alone, fails the sign-in and nothing else", async () => {
  const [mine, other] = [phone(), phone()];
  const user = await signIn(other);
  const email = somebody();
  const attempt = async () => mine.client.signIn("second", await service.idToken({ email }));
  for (const down of [true, false]) {
    provider.down = down;
    if (!down) provider.next("/", { status: 429, headers: { "Retry-After": "7" } });
    const error = await refused(attempt(), "provider_unavailable");
    assert.equal(error.status, 503);
    assert(error.retryAfter && error.requestId, JSON.stringify(error));
  }
  quarterOfAnHour(other);
  assert.equal(await whoAmI(other), user, "whoever is signed in needs no provider");
  const signedIn = await eventually("the provider is asked again", attempt);
  assert.equal(signedIn.user.email, email);
});

test("a provider that is slow runs into the app's own timeout, and the late answer signs nobody in", async () => {
  const mine = phone({ timeout: 300 });
  const held = provider.hold("/");
  const idToken = await service.idToken({ email: somebody() });
  await refused(mine.client.signIn("second", idToken), "timeout");
  held.release();
  assert.deepEqual(state(mine), { status: "signed_out", reason: "never" });
  const patient = phone({ storage: mine.storage });
  await patient.client.signIn("idp", idToken);
  assert.equal(state(patient).status, "signed_in");
});

test("a service that wants no refresh for a while gets none, and the session stays", async () => {
  // The first proof after a start has no nonce, and is an attempt of its own.
  const strict = await Service.start({ ROCKET_RATE_LIMIT: `{refresh_per_minute=${bound ? 2 : 1}}` }, service);
  try {
    const requests: string[] = [];
    const counted: typeof fetch = (input, init) => {
      requests.push(String(input));
      return fetch(input, init);
    };
    const before = phone();
    const user = await signIn(before);
    const mine = phone({ storage: before.storage, baseUrl: strict.url, fetch: counted });
    await mine.client.accessToken();
    quarterOfAnHour(mine);
    const error = await refused(mine.client.accessToken(), "rate_limited");
    assert(error.status === 429 && error.retryAfter, JSON.stringify(error));
    const sent = requests.length;
    mine.clock.ahead += 1000;
    const later = await refused(mine.client.accessToken(), "rate_limited");
    assert(later.status === 429 && later.retryAfter && later.retryAfter < error.retryAfter, "it counts down");
    assert(!offline(mine), "the service has answered");
    assert.equal(requests.length, sent, "it does not ask");
    assert.equal((await stored(mine))?.user.id, user);
    mine.clock.ahead += error.retryAfter * 1000;
    await mine.client.accessToken().catch(() => {});
    assert(requests.length > sent, "then it asks again");
  } finally {
    await strict.stop();
  }
});

test("what a sign-out leaves under way is thrown away: a refresh, a response, a sign-in", async () => {
  const mine = phone();
  await signIn(mine);
  // A response.
  const response = network.hold(ME);
  const late = refused(mine.client.me(), "superseded");
  await response.answered;
  // A refresh.
  quarterOfAnHour(mine);
  const answer = network.hold(REFRESH);
  const token = refused(mine.client.accessToken(), "superseded");
  await answer.answered;
  // A sign-in.
  const signedIn = network.hold("/api/v1/auth/oauth/");
  const attempt = refused(signIn(mine), "superseded");
  await signedIn.answered;
  const left = network.count("/api/v1/auth/logout");
  const out = mine.client.signOut();
  assert.deepEqual(state(mine), { status: "signed_out", reason: "signed_out" }, "at once");
  for (const held of [response, answer, signedIn]) held.release();
  await Promise.all([late, token, attempt, out]);
  assert.equal(await stored(mine), undefined);
  assert.deepEqual(state(mine), { status: "signed_out", reason: "signed_out" });
  await eventually("both sessions are ended at the service", async () =>
    network.count("/api/v1/auth/logout") >= left + 2 ? true : undefined,
  );
});

test("another user who signs in on the same phone never meets a token or a response of the one before", async () => {
  const mine = phone();
  const ada = await signIn(mine);
  const hers = await mine.client.accessToken();
  quarterOfAnHour(mine);
  const answer = network.hold(REFRESH);
  const late = refused(mine.client.fetch(ME), "superseded");
  await answer.answered;
  await mine.client.signOut();
  const grace = await signIn(mine);
  const before = network.passed.length;
  answer.release();
  await late;
  assert.equal((await stored(mine))?.user.id, grace);
  assert.equal(await whoAmI(mine), grace);
  const shown = network.passed.slice(before).map(({ authorization }) => authorization);
  assert(!shown.some((authorization) => authorization?.includes(hers)));
  assert.deepEqual(changed(mine), { from: ada });
  const next = phone({ storage: mine.storage });
  assert.equal(await whoAmI(next), grace);
});

test("another user who signs in while the one before still is, takes over, and the session before is ended", async () => {
  const mine = phone();
  await signIn(mine);
  const hers = await mine.client.accessToken();
  const response = network.hold(ME);
  const read = refused(mine.client.me(), "superseded");
  await response.answered;
  quarterOfAnHour(mine);
  const answer = network.hold(REFRESH);
  const late = refused(mine.client.fetch(ME), "superseded");
  await answer.answered;
  const grace = await signIn(mine);
  response.release();
  answer.release();
  await Promise.all([read, late]);
  assert.equal((await stored(mine))?.user.id, grace);
  assert.equal(await whoAmI(mine), grace);
  await eventually("her session is over", async () => ((await works(hers)) ? undefined : true));
});

test("an instance on one storage follows another that signs out, and one that signs somebody else in", async () => {
  const storage = memoryStorage();
  const one = phone({ storage });
  const ada = await signIn(one);
  const other = phone({ storage });
  assert.equal(await whoAmI(other), ada);
  await one.client.signOut();
  quarterOfAnHour(other);
  await refused(other.client.accessToken(), "signed_out");
  assert.deepEqual(state(other), { status: "signed_out", reason: "signed_out" });

  const third = phone({ storage });
  await signIn(third);
  const fourth = phone({ storage });
  await whoAmI(fourth);
  const grace = await signIn(third);
  quarterOfAnHour(fourth);
  await refused(fourth.client.accessToken(), "superseded");
  assert.equal(await whoAmI(fourth), grace);
});

for (const shared of ["a lock", "a channel"]) {
  test(`an instance on a storage with ${shared} follows another, ${shared === "a lock" ? "at its next call" : "at once"}`, async () => {
    const lock = <T>(work: () => Promise<T>) => work();
    const storage = { ...memoryStorage(), ...(shared === "a lock" ? { lock } : { channel: somebody() }) };
    const [one, other] = [phone({ storage }), phone({ storage })];
    await signIn(one);
    const ada = await eventually("it has heard", () => whoAmI(other));
    const sent = network.count(REFRESH);
    const grace = await signIn(one);
    if (shared === "a lock") await refused(other.client.fetch(ME), "superseded");
    await eventually("it has heard", async () => changed(other));
    assert.deepEqual(changed(other), { from: ada });
    assert.equal(await whoAmI(other), grace);
    await one.client.signOut();
    if (shared === "a lock") await refused(other.client.fetch(ME), "signed_out");
    await eventually("it has heard", async () => state(other).status === "signed_out" || undefined);
    assert.deepEqual(state(other), { status: "signed_out", reason: "signed_out" });
    assert.equal(network.count(REFRESH), sent + 1);
  });
}

test("a refresh that ends after another instance has signed out is thrown away", async () => {
  const storage = memoryStorage();
  const one = phone({ storage });
  await signIn(one);
  const other = phone({ storage });
  await whoAmI(other);
  quarterOfAnHour(one);
  const answer = network.hold(REFRESH);
  const late = refused(one.client.accessToken(), "signed_out");
  await answer.answered;
  await other.client.signOut();
  answer.release();
  await late;
  assert.deepEqual(state(one), { status: "signed_out", reason: "signed_out" });
  assert.equal(await stored(one), undefined);
});

/** A storage whose next write waits at a gate, once it is closed. */
function gated(storage: TokenStorage): { storage: TokenStorage; close(): void; arrived: Promise<void>; open(): void } {
  let [closed, arrive, open] = [false, () => {}, () => {}];
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  const set = async (text: string) => {
    if (closed) {
      closed = false;
      arrive();
      await opened;
    }
    await storage.set(text);
  };
  return { storage: { ...storage, set }, close: () => void (closed = true), arrived, open };
}

for (const wins of ["a sign-out", "another user's sign-in"]) {
  test(`${wins} wins over the answer to a refresh that another process is storing at that moment`, async () => {
    const storage = memoryStorage();
    let turn: Promise<unknown> = Promise.resolve();
    const lock = <T>(work: () => Promise<T>) => {
      const done = turn.then(work);
      turn = done.catch(() => {});
      return done;
    };
    let begun = () => {};
    const set = (text: string) => storage.set(text).then(() => begun());
    const asking = <T>(work: () => Promise<T>) => {
      begun();
      return lock(work);
    };
    const mine = phone({ storage: { ...storage, set, lock: asking } });
    await signIn(mine);
    const gate = gated(storage);
    gate.close();
    const other = phone({ storage: { ...gate.storage, lock } });
    const refreshed = other.client.accessToken();
    await gate.arrived;
    // It asks for the lock, or has written already.
    const going = new Promise<void>((resolve) => (begun = resolve));
    const done = wins === "a sign-out" ? mine.client.signOut() : signIn(mine);
    await going;
    gate.open();
    await refreshed;
    const grace = await done;
    assert.equal((await stored(mine))?.user.id, grace ?? undefined);
    assert.equal(state(mine).status, grace ? "signed_in" : "signed_out");
  });
}

test("a sign-out wins over the answer to a refresh that is being stored at that moment", async () => {
  const gate = gated(memoryStorage());
  const mine = phone({ storage: gate.storage });
  await signIn(mine);
  quarterOfAnHour(mine);
  gate.close();
  const token = refused(mine.client.accessToken(), "superseded");
  await gate.arrived;
  const before = network.count("/api/v1/auth/logout");
  const out = mine.client.signOut();
  assert.equal(state(mine).status, "signed_out");
  await eventually("the service is told", async () =>
    network.count("/api/v1/auth/logout") > before ? true : undefined,
  );
  gate.open();
  await Promise.all([token, out]);
  assert.equal(await stored(mine), undefined);
});

for (const before of ["nobody", "somebody"]) {
  test(`a sign-in that fails while it is being stored leaves ${before} signed in, as before`, async () => {
    const gate = gated(memoryStorage());
    const mine = phone({ storage: gate.storage });
    const user = before === "somebody" ? await signIn(mine) : undefined;
    gate.close();
    const signingIn = refused(signIn(mine), "superseded");
    await gate.arrived;
    // Another attempt, which is refused, or a sign-out.
    const next = user ? refused(mine.client.signIn("idp", "none"), "invalid_request") : mine.client.signOut();
    gate.open();
    await Promise.all([signingIn, next]);
    assert.equal((await stored(mine))?.user.id, user);
    assert.equal(state(mine).status, user ? "signed_in" : "signed_out");
    if (user) assert.equal(await whoAmI(mine), user);
  });
}

test("the end of the session before does not disturb a sign-in that is under way", async () => {
  const mine = phone();
  const email = somebody();
  await staff.endSessions(await signIn(mine, email));
  const held = network.hold("/api/v1/auth/oauth/");
  const signingIn = signIn(mine, email);
  await held.answered;
  await refused(mine.client.me(), "signed_out");
  held.release();
  const user = await signingIn;
  assert.equal((await stored(mine))?.user.id, user);
  assert.equal(await whoAmI(mine), user);
});

test("a sign-out that cannot be stored is told to the service all the same", async () => {
  const memory = memoryStorage();
  let full = false;
  const set = (text: string) => (full ? Promise.reject(new Error("no space left")) : memory.set(text));
  const mine = phone({ storage: { ...memory, set } });
  await signIn(mine);
  const token = await mine.client.accessToken();
  full = true;
  await refused(mine.client.signOut(), "storage");
  assert.equal(state(mine).status, "signed_out");
  await eventually("the session is over", async () => ((await works(token)) ? undefined : true));
});

test("a sign-out without a network is one, also after the next start", async () => {
  const mine = phone();
  await signIn(mine);
  network.down = true;
  await mine.client.signOut();
  network.down = false;
  const next = phone({ storage: mine.storage });
  await refused(next.client.fetch(ME), "signed_out");
  assert.deepEqual(state(next), { status: "signed_out", reason: "signed_out" });
});

test("a sign-out right after the start, before the storage was read, is one", async () => {
  const before = phone();
  await signIn(before);
  const token = await before.client.accessToken();
  const mine = phone({ storage: before.storage });
  assert.equal(state(mine).status, "restoring");
  await mine.client.signOut();
  assert.equal(await stored(mine), undefined);
  assert(!(await works(token)), "the service was told");
});

test("a deletion whose answer is lost is done when it is repeated", async () => {
  const mine = phone();
  const email = somebody();
  const user = await signIn(mine, email);
  network.next(ME, "lose");
  await refused(mine.client.deleteAccount(), "network");
  assert.equal(state(mine).status, "signed_in");
  await mine.client.deleteAccount();
  assert.deepEqual(state(mine), { status: "signed_out", reason: "user_deleted" });
  assert.equal(await mine.storage.get(), null);
  await mine.client.deleteAccount();
  assert.notEqual(await signIn(mine, email), user, "only a sign-in makes a new account");
});

test("a token that cannot be stored is not used, and the session goes on when it can", async () => {
  const memory = memoryStorage();
  let full = false;
  const set = (text: string) => (full ? Promise.reject(new Error("no space left")) : memory.set(text));
  const mine = phone({ storage: { ...memory, set } });
  const user = await signIn(mine);
  quarterOfAnHour(mine);
  full = true;
  const before = network.count(ME);
  const error = await refused(mine.client.fetch(ME), "storage");
  assert.equal((error.cause as Error).message, "no space left");
  assert.equal(network.count(ME), before);
  full = false;
  assert.equal(await whoAmI(mine), user);
});

test("a lock that a frozen tab holds stops nobody for longer than a timeout", async () => {
  const mine = phone({ storage: { ...memoryStorage(), lock: () => new Promise(() => {}) }, timeout: 2000 });
  const user = await signIn(mine);
  quarterOfAnHour(mine);
  assert.equal(await whoAmI(mine), user);
});

test("users of one backend do not wait for each other's refresh, also where the platform has locks", async (context) => {
  // As of version 24, Node has them.
  let turn: Promise<unknown> = Promise.resolve();
  const request = (_: string, work: () => Promise<unknown>) => (turn = turn.then(work, work));
  const navigator = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { locks: { request } }, configurable: true });
  context.after(() => navigator && Object.defineProperty(globalThis, "navigator", navigator));
  const [one, other] = [phone(), phone()];
  await Promise.all([signIn(one), signIn(other)]);
  const held = network.hold(REFRESH);
  const slow = one.client.accessToken({ refresh: true });
  await held.answered;
  const quick = other.client.accessToken({ refresh: true });
  assert.equal(await Promise.race([slow, quick]), await quick);
  held.release();
  await slow;
});

test("a new access token has the claims that the backend has set meanwhile", async () => {
  const mine = phone();
  const user = await signIn(mine);
  const before = await mine.client.accessToken();
  await service.sql(`UPDATE users SET claims = '{"roles": ["editor"]}' WHERE id = '${user}'`);
  assert.equal(await mine.client.accessToken(), before);
  const sent = network.count(REFRESH);
  const both = [mine.client.accessToken({ refresh: true }), mine.client.accessToken({ refresh: true })];
  const [token = "", same] = await Promise.all(both);
  assert.equal(token, same);
  assert.equal(network.count(REFRESH), sent + 1);
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { roles?: unknown };
  assert.deepEqual(claims.roles, ["editor"]);
  const shown = () => {
    const now = state(mine);
    return now.status === "signed_in" ? now.user.claims : undefined;
  };
  assert.deepEqual(shown(), {});
  assert.deepEqual((await mine.client.me()).claims, { roles: ["editor"] });
  assert.deepEqual(shown(), { roles: ["editor"] });
});

test("a storage that cannot be read is told, and a sign-in or a sign-out replaces what is there", async () => {
  const memory = memoryStorage();
  await memory.set("what the last app of this phone left");
  let broken = true;
  const get = () => (broken ? Promise.reject(new Error("the keychain is locked")) : memory.get());
  const mine = phone({ storage: { ...memory, get } });
  const told = await eventually("it is told", async () => mine.states.at(-1));
  assert.deepEqual(told, { status: "signed_out", reason: "storage_failed" });
  assert.equal((await refused(mine.client.me(), "storage")).message, "storage: the keychain is locked");
  const user = await signIn(mine);
  assert.equal(state(mine).status, "signed_in");
  broken = false;
  assert.equal((await stored(mine))?.user.id, user);
  assert.equal(await whoAmI(mine), user);

  broken = true;
  const next = phone({ storage: { ...memory, get } });
  await refused(next.client.accessToken(), "storage");
  await next.client.signOut();
  assert.deepEqual(state(next), { status: "signed_out", reason: "signed_out" });
  broken = false;
  assert.equal(await stored(next), undefined);

  const unreadable = memoryStorage();
  await unreadable.set("{");
  await refused(phone({ storage: unreadable }).client.accessToken(), "signed_out");
});

test("a URL that is none is a mistake and no lost network, of which the message says what it was", async () => {
  const storage = memoryStorage();
  for (const baseUrl of ["127.0.0.1:8000", "/api", "id.example.com", "https://", ""]) {
    assert.throws(() => createVestibule({ baseUrl, storage }), { name: "TypeError", message: /must begin with https/ });
  }
  const mine = phone();
  await signIn(mine);
  for (const url of ["api/v1/me", "127.0.0.1:8000/me", ""]) {
    await assert.rejects(mine.client.fetch(url), { name: "TypeError", message: /must begin with/ });
  }
  const nowhere = phone({ baseUrl: "http://127.0.0.1:1" });
  const error = await refused(nowhere.client.providers(), "network");
  assert.match(error.message, /^network: .*(ECONNREFUSED|bad port)/);
});

test("the error of an answer that is cut off repeats nothing of it", async () => {
  const cut = async () => new Response('{"access_token":"eyJ');
  const error = await refused(phone({ fetch: cut }).client.signIn("idp", "token"), "network");
  assert.equal(error.message, "network: the answer is not whole");
  assert(!inspect(error).includes("eyJ"), inspect(error));
});

test("a listener that throws is reported, and the others are called", async (context) => {
  const reported = context.mock.method(console, "error", () => {});
  const mine = phone();
  mine.client.onAuthStateChange(() => {
    throw new Error("a mistake of the app");
  });
  await signIn(mine);
  await eventually("it is reported", async () => reported.mock.callCount() || undefined);
  assert.equal((reported.mock.calls[0]?.arguments[0] as unknown as Error).message, "a mistake of the app");
  assert.equal(mine.states.at(-1)?.status, "signed_in");
});

test("another service's 401 refreshes once and repeats once, for all requests that were under way", async () => {
  const mine = phone();
  await signIn(mine);
  const rejected = new Set([await mine.client.accessToken()]);
  let everything = false;
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const [, token = ""] = request.headers.authorization?.split(" ") ?? [];
    requests.push(token);
    response.writeHead(everything || rejected.has(token) ? 401 : 200).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
  const before = network.count(REFRESH);
  const answers = await Promise.all([1, 2, 3].map(() => mine.client.fetch(url, { method: "POST", body: "{}" })));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.equal(network.count(REFRESH), before + 1);
  everything = true;
  requests.length = 0;
  const refusal = await mine.client.fetch(new Request(url, { method: "PUT", body: "{}" }));
  assert.equal(refusal.status, 401, "the second one is the caller's to read");
  assert.equal(requests.length, 2);
  const body = new Blob(["{}"]).stream();
  requests.length = 0;
  assert.equal((await mine.client.fetch(url, { method: "POST", body, duplex: "half" } as RequestInit)).status, 401);
  assert.equal(requests.length, 1, "a stream cannot be sent twice");
  assert.equal(state(mine).status, "signed_in");
  server.close();
  server.closeAllConnections();
});

test("a key that leaks and is rotated at once costs every phone one refresh", async () => {
  const mine = phone();
  const user = await signIn(mine);
  const token = await mine.client.accessToken();
  await service.command("keys", "rotate", "--now");
  await eventually("the service has the new key", async () => ((await works(token)) ? undefined : true));
  const before = network.count(REFRESH);
  const ids = await Promise.all([whoAmI(mine), whoAmI(mine), mine.client.me().then(({ id }) => id)]);
  assert.deepEqual(new Set(ids), new Set([user]));
  assert.equal(network.count(REFRESH), before + 1);
});
