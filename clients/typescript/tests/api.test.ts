// What an app does beside signing in, each with one line of the client.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventually } from "./service.js";
import { network, pass, phone, refused, service, signIn, somebody, state, whoAmI } from "./world.js";

test("the providers that are switched on can be listed by anybody", async () => {
  const providers = await phone().client.providers();
  assert.deepEqual(
    providers.map(({ name }) => name),
    ["idp", "second"],
  );
});

test("an identity is linked, listed, used and unlinked", async () => {
  const mine = phone();
  const user = await signIn(mine);
  const other = { email: somebody(), sub: "another-account" };
  const linked = await mine.client.link("idp", await service.idToken(other));
  const identities = await mine.client.identities();
  assert.deepEqual(
    identities.map(({ id, current }) => [id === linked.id, current]),
    [
      [false, true],
      [true, false],
    ],
  );
  const { user: same, outcome } = await phone().client.signIn("idp", await service.idToken(other));
  assert.deepEqual([same.id, outcome], [user, "signed_in"]);
  await mine.client.unlink(linked.id);
  const [last] = await mine.client.identities();
  assert(last);
  assert.equal((await refused(mine.client.unlink(last.id), "last_identity")).status, 409);
});

test("unlinking the identity that the session was opened with signs out", async () => {
  const mine = phone();
  await signIn(mine);
  await mine.client.link("idp", await service.idToken({ email: somebody(), sub: "one-more-account" }));
  const current = (await mine.client.identities()).find((identity) => identity.current);
  assert(current);
  await mine.client.unlink(current.id);
  await refused(mine.client.me(), "signed_out");
  assert.deepEqual(state(mine), { status: "signed_out", reason: "session_ended" });
});

test("sessions are listed with their devices, and ended: one, the others, all", async () => {
  const email = somebody();
  const phones = [phone(), phone(), phone()] as const;
  for (const { client } of phones) {
    await client.signIn("idp", await service.idToken({ email }), { device: { name: "Ada's phone", platform: "ios" } });
  }
  const [mine, second, third] = phones;
  const sessions = await mine.client.sessions();
  assert.equal(sessions.length, 3);
  assert.deepEqual(sessions[0]?.device, { name: "Ada's phone", platform: "ios" });
  const another = (await second.client.sessions()).find(({ current }) => current);
  assert(another);
  await mine.client.endSession(another.id);
  await refused(second.client.me(), "signed_out");
  await mine.client.signOut({ scope: "others" });
  await refused(third.client.me(), "signed_out");
  await whoAmI(mine);
  await signIn(third, email);
  await mine.client.signOut({ scope: "global" });
  await refused(third.client.me(), "signed_out");
});

test("what needs a fresh sign-in says so, and takes one", async () => {
  const mine = phone();
  const email = somebody();
  const user = await signIn(mine, email);
  await pass(user, "11 minutes");
  const error = await refused(mine.client.deleteAccount(), "reauthentication_required");
  assert.equal(error.status, 403);
  assert.equal(state(mine).status, "signed_in");
  await mine.client.deleteAccount({
    reauthentication: { provider: "idp", id_token: await service.idToken({ email }) },
  });
  assert.deepEqual(state(mine), { status: "signed_out", reason: "user_deleted" });
});

test("an identity that nobody knows is not created where the app does not want it", async () => {
  const mine = phone();
  const idToken = await service.idToken({ email: somebody() });
  await refused(mine.client.signIn("idp", idToken, { create: false }), "user_not_found");
  assert.equal((await mine.client.signIn("idp", idToken)).outcome, "created");
});

test("a nonce is sent as it is, and another one is refused", async () => {
  const mine = phone();
  const idToken = await service.idToken({ email: somebody(), nonce: "n-0S6_WzA2Mj" });
  const error = await refused(mine.client.signIn("idp", idToken, { nonce: "another" }), "nonce_mismatch");
  assert(error.status === 401 && error.detail && error.requestId, JSON.stringify(error));
  await mine.client.signIn("idp", idToken, { nonce: "n-0S6_WzA2Mj" });
});

test("a name that changes at the provider is the state's once it was read", async () => {
  const [mine, other] = [phone(), phone()];
  const email = somebody();
  await signIn(mine, email);
  await other.client.signIn("idp", await service.idToken({ email, name: "Ada King" }));
  await mine.client.me();
  const now = state(mine);
  assert.equal(now.status === "signed_in" && now.user.name, "Ada King");
  const again = phone({ storage: mine.storage });
  await again.client.accessToken();
  const stored = state(again);
  assert.equal(stored.status === "signed_in" && stored.user.name, "Ada King");
});

test("two accounts are one after a merge, which a dry run shows, and the other's phone is told", async () => {
  const [mine, other] = [phone(), phone()];
  const nameless = { sub: "mine-without-a-name" };
  const { user } = await mine.client.signIn("idp", await service.idToken(nameless));
  const email = somebody();
  const gone = await signIn(other, email);
  const proof = () => service.idToken({ email });
  const shown = await mine.client.merge("idp", await proof(), { dry_run: true });
  assert.deepEqual([shown.applied, shown.merged.user_id, shown.ended_sessions], [false, gone, 1]);
  assert.equal((await mine.client.me()).email, null);
  const done = await mine.client.merge("idp", await proof());
  assert.deepEqual(done, { ...shown, applied: true });
  const now = state(mine);
  assert.deepEqual([now.status === "signed_in" && now.user, done.user.email], [{ ...done.user, claims: done.claims }, email]);
  assert.equal((await mine.client.identities()).length, 2);
  assert.equal((await refused(other.client.me(), "signed_out")).reason, "user_merged");
  assert.equal(await signIn(other, email), user.id);
  await refused(mine.client.merge("idp", await proof()), "identity_already_linked");
  await refused(mine.client.merge("idp", await service.idToken({ email: somebody() })), "user_not_found");
});

test("a name that the user chose is the state's at once, and stays until it is taken back", async () => {
  const mine = phone();
  const nameless = { sub: "an-account-without-a-name" };
  const named = () => {
    const now = state(mine);
    return now.status === "signed_in" && now.user.name;
  };
  const { user } = await mine.client.signIn("idp", await service.idToken(nameless), { name: "Ada Lovelace" });
  assert.equal(user.name, "Ada Lovelace", "as only the app was told");
  assert.equal((await mine.client.setName("Ada")).name, "Ada");
  assert.equal(named(), "Ada");
  await mine.client.signIn("idp", await service.idToken({ ...nameless, name: "Ada King" }));
  assert.equal(named(), "Ada");
  const me = await mine.client.setName(null);
  assert.deepEqual([me.name, named(), me.identities.length], ["Ada King", "Ada King", 1]);
});

test("answers that a proxy makes go by their status", async () => {
  for (const [status, error] of [
    [502, "service_unavailable"],
    [429, "rate_limited"],
    [418, "invalid_request"],
  ] as const) {
    network.next("/api/v1/auth/providers", { status, headers: { "Retry-After": "3" } });
    const told = await refused(phone().client.providers(), error);
    assert.deepEqual([told.status, told.retryAfter], [status, 3]);
  }
});

test("a request that the app itself gives up is the app's own error", async () => {
  const mine = phone();
  await signIn(mine);
  const reason = new Error("the screen was left");
  await assert.rejects(mine.client.fetch("/api/v1/me", { signal: AbortSignal.abort(reason) }), reason);
});

test("a request has the wait that the app gives it", async () => {
  const before = phone();
  const user = await signIn(before);
  const mine = phone({ storage: before.storage, timeout: 300 });
  // Its refresh has that wait, too.
  await eventually("it has a token", () => mine.client.accessToken());
  network.next("/api/v1/me", "hang");
  await refused(mine.client.fetch("/api/v1/me", { timeout: 100 }), "timeout");
  const held = network.hold("/api/v1/me");
  const patient = mine.client.fetch("/api/v1/me", { timeout: 0 });
  await held.answered;
  await new Promise((later) => setTimeout(later, 400));
  held.release();
  assert.equal((await patient).status, 200, "no wait is too long");
  assert.equal(await whoAmI(phone({ storage: before.storage })), user);
});

test("a listener is told the state, and what follows, until it is enough", async () => {
  const mine = phone();
  const told: string[] = [];
  await signIn(mine);
  const enough = mine.client.onAuthStateChange(({ status }) => told.push(status));
  await mine.client.me();
  await mine.client.signOut();
  enough();
  await signIn(mine);
  assert.deepEqual(told, ["signed_in", "signed_out"]);
});
