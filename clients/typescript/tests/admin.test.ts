// What a backend asks of the admin API, at the running service.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type AdminClient, adminClient, verifyAccessToken } from "../src/server.js";
import { network, phone, refused, service, somebody } from "./world.js";

const USERS = "/api/v1/admin/users";
const NOBODY = "11111111-2222-4333-8444-555555555555";
const reason = "a test of the client";

/** A client with a key of that role. */
async function withKey(name: string, role: string): Promise<AdminClient> {
  return adminClient({ url: network.url, key: await service.command("api-key", "add", name, "--role", role) });
}

const [admin, reader] = [await withKey("client-admin", "admin"), await withKey("client-reader", "reader")];

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test("a user is created beforehand, found in every way, and signs in", async () => {
  const email = somebody();
  const identities = [{ provider: "second", subject: `subject of ${email}`.replaceAll(" ", "-") }] as const;
  const [{ subject }] = identities;
  const created = await admin.createUser({ email, email_verified: true, name: "Ada", identities: [...identities] });
  const provider = "second";
  for (const found of [
    await reader.user(created.id),
    await reader.userBy({ email: email.toUpperCase() }),
    await reader.userBy({ provider, subject }),
    (await reader.usersPage({ q: email })).users[0],
    ...(await collected(reader.users({ q: email }))),
  ]) {
    assert.deepEqual(found, created);
  }
  assert.equal(await reader.userBy({ email: somebody() }), undefined);
  assert.equal((await refused(admin.createUser({ email }), "email_taken")).status, 409);

  const mine = phone();
  const device = { name: "Ada's phone" };
  const { user } = await mine.client.signIn("second", await service.idToken({ email, sub: subject }), { device });
  assert.equal(user.id, created.id);
  const [session] = await reader.sessions(user.id);
  assert.equal(session?.device_name, "Ada's phone");
  const kinds = (await collected(reader.eventsOf(user.id))).map(({ kind }) => kind);
  assert(kinds.includes("signed_in"), kinds.join());
  assert.equal(kinds.at(-1), "user_created");
});

test("users are listed page by page, and no page is asked for that nobody wants", async () => {
  const name = `Paged ${Date.now()}`;
  const made = new Set<string>();
  while (made.size < 5) made.add((await admin.createUser({ name, email: somebody() })).id);
  network.passed = [];
  const listed = await collected(reader.users({ q: name, limit: 2 }));
  assert.equal(listed.length, 5);
  assert.deepEqual(new Set(listed.map(({ id }) => id)), made);
  const asked = network.passed.map(({ path }) => new URLSearchParams(path.split("?")[1]));
  assert.deepEqual(
    asked.map((query) => [query.get("q"), query.get("limit"), query.has("cursor")]),
    [
      [name, "2", false],
      [name, "2", true],
      [name, "2", true],
    ],
  );
  network.passed = [];
  for await (const { name: first } of reader.users({ q: name, limit: 2 })) {
    assert.equal(first, name);
    break;
  }
  assert.equal(network.passed.length, 1);
});

test("a change is tried, made, and refused if the user has changed since", async () => {
  const email = somebody();
  const [mine, other] = [phone(), phone()];
  const { user } = await mine.client.signIn("idp", await service.idToken({ email }));
  const { user: rest } = await other.client.signIn("idp", await service.idToken({ email: somebody() }));
  const tried = await admin.change(user.id, "disable", { reason, dry_run: true });
  assert.deepEqual([tried.applied, tried.ended_sessions, tried.user.email], [false, 1, email]);
  assert.equal((await admin.user(user.id)).disabled_at, null);
  const { fingerprint: seen } = tried;
  assert((await admin.change(user.id, "disable", { reason, seen })).applied);
  const problem = await refused(mine.client.signIn("idp", await service.idToken({ email })), "user_disabled");
  assert.equal(problem.status, 403);
  assert.equal((await refused(admin.change(user.id, "delete", { reason, seen }), "user_changed")).status, 409);
  await admin.change(user.id, "enable", { reason });
  const { merged } = await admin.change(user.id, "merge", { reason, into: rest.id });
  assert.equal(merged?.id, rest.id);
  const gone = await refused(admin.user(user.id), "user_not_found");
  assert.deepEqual([gone.status, gone.mergedInto], [404, rest.id]);
  assert.equal((await refused(admin.user(NOBODY), "user_not_found")).mergedInto, undefined);
  const actors = (await collected(admin.eventsOf(rest.id))).map(({ actor }) => actor);
  assert(actors.includes("key:client-admin"), actors.join());
});

test("claims that a backend sets are in the tokens that it verifies", async () => {
  const mine = phone();
  const { user } = await mine.client.signIn("idp", await service.idToken({ email: somebody() }));
  const before = await mine.client.accessToken();
  const claims = { roles: ["editor"], plan: { name: "großes", seats: 5 } };
  await admin.setClaims(user.id, { reason, claims });
  assert.deepEqual((await admin.user(user.id)).claims, claims);
  const token = await phone({ storage: mine.storage }).client.accessToken();
  const verified = await verifyAccessToken({ headers: { authorization: `Bearer ${token}` } }, { issuer: network.url });
  assert.deepEqual([verified.sub, verified.roles, verified.plan], [user.id, claims.roles, claims.plan]);
  assert.equal((await verifyAccessToken({ headers: { authorization: `Bearer ${before}` } }, { issuer: network.url })).roles, undefined);
  await refused(admin.setClaims(user.id, { reason, claims: { sub: NOBODY } }), "invalid_request");
});

test("the feed of events has each of them once, and goes on where it was left", async () => {
  const from = new Date(Date.now() - 30 * 60_000);
  // A UUID of version 7 begins with the milliseconds.
  const ids = Array.from({ length: 250 }, (_, at) => {
    const time = (from.getTime() + at).toString(16).padStart(12, "0");
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${at.toString(16).padStart(12, "0")}`;
  });
  const rows = ids.map((id) => `('${id}', 'sessions_ended', '${NOBODY}', now())`).join();
  await service.sql(`INSERT INTO events (id, kind, user_id, created_at) VALUES ${rows}`);
  const parts = await collected(reader.events({ since: from.toISOString() }));
  const mine = ({ user_id }: { user_id: string | null }) => user_id === NOBODY;
  // Events of other tests become a minute old meanwhile.
  const idsOf = (read: typeof parts) => read.flatMap(({ events }) => events.filter(mine).map(({ id }) => id));
  assert.deepEqual(idsOf(parts), ids);
  assert(parts.length >= 3);
  const [first] = parts;
  assert(first);
  const rest = await collected(reader.events({ after: first.next }));
  assert.deepEqual(idsOf(rest), idsOf(parts.slice(1)));
  const last = parts.at(-1);
  assert(last);
  assert.deepEqual(idsOf(await collected(reader.events({ after: last.next }))), []);
});

test("a key that may not, is none, or is not there", async () => {
  const error = await refused(reader.createUser({ email: somebody() }), "insufficient_role");
  assert.deepEqual([error.status, Boolean(error.requestId && error.detail)], [403, true]);
  const forged = adminClient({ url: `${network.url}/`, key: `vst_${"A".repeat(43)}` });
  assert.equal((await refused(forged.user(NOBODY), "invalid_api_key")).status, 401);
  await service.command("api-key", "add", "client-revoked", "--role", "reader").then(async (key) => {
    const revoked = adminClient({ url: network.url, key });
    await revoked.usersPage({ limit: 1 });
    await service.command("api-key", "revoke", "client-revoked");
    await refused(revoked.usersPage({ limit: 1 }), "invalid_api_key");
  });
  assert.throws(() => adminClient({ url: network.url, key: process.env.NO_SUCH_KEY as string }), TypeError);
});

test("an id from elsewhere leads to no other path", async () => {
  network.passed = [];
  for (const id of ["", ".", "..", "../events", `${NOBODY}/sessions`, `${NOBODY}?`, "%2e%2e", "a b"]) {
    await refused(admin.user(id), "user_not_found");
    await refused(admin.change(id, "delete", { reason }), "user_not_found");
  }
  assert.deepEqual(network.passed, []);
});

test("what goes wrong on the way is told, and nothing is sent twice", async () => {
  network.passed = [];
  network.next(USERS, { status: 429, headers: { "Retry-After": "7" } });
  assert.equal((await refused(reader.usersPage(), "rate_limited")).retryAfter, 7);
  network.next(USERS, { status: 503, headers: { "Retry-After": "2" } });
  assert.equal((await refused(collected(reader.users()), "service_unavailable")).retryAfter, 2);
  network.next(USERS, { status: 307, headers: { Location: `${service.url}${USERS}` } });
  assert.equal((await refused(reader.usersPage(), "invalid_request")).status, 307);
  network.next(USERS, "lose");
  await refused(admin.createUser({ email: somebody() }), "network");
  network.next(USERS, "hang");
  const key = await service.command("api-key", "add", "client-hasty", "--role", "reader");
  await refused(adminClient({ url: network.url, key, timeout: 300 }).usersPage(), "timeout");
  assert.equal(network.count(USERS), 5);
});
