// Sessions that are bound to a key of the device (DPoP, RFC 9449): what else can happen to them than to others.

import assert from "node:assert/strict";
import { createHash, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";

import { generateKeyPair, generateProof, type KeyPair } from "dpop";
import { build, type Plugin } from "esbuild";
import { IDBFactory } from "fake-indexeddb";
import * as oauth from "oauth4webapi";

import { type KeyStore, memoryStorage } from "../src/index.js";
import { browserKeys } from "../src/keys.js";
import { verifyAccessToken } from "../src/server.js";
import { claimsOf } from "./keys.js";
import { CLIENT } from "./service.js";
import { keys, network, phone, quarterOfAnHour, refused, service, signIn, somebody, state, stored, whoAmI } from "./world.js";

const ME = "/api/v1/me";
const REFRESH = "/api/v1/auth/refresh";
const SIGN_IN = "/api/v1/auth/oauth/idp";

/** A phone whose sessions are bound. */
const boundPhone = (options: Parameters<typeof phone>[0] = {}) => phone({ deviceKey: keys, ...options });

/** The claims of a proof. */
const proven = (dpop: unknown) => claimsOf(String(dpop)) as unknown as { iat: number; nonce?: string; ath?: string; htu: string };

/** A service of the product, at an address. */
async function start(context: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a bound session's stored text says so, its token has the key, and nothing is left of it after a sign-out", async () => {
  const mine = boundPhone();
  const before = await keys.names();
  await signIn(mine);
  const { session } = JSON.parse((await mine.storage.get()) ?? "") as { session: { key: string } };
  assert.deepEqual(await keys.names(), [...before, session.key].sort());
  assert(claimsOf(await mine.client.accessToken()).cnf?.jkt);
  // Another sign-in has a key of its own, and one that fails leaves none.
  await signIn(mine);
  await refused(mine.client.signIn("idp", "none"), "invalid_request");
  const next = ((await stored(mine)) as unknown as { key: string }).key;
  assert.notEqual(next, session.key);
  await mine.client.signOut();
  assert((await keys.names()).every((name) => name !== next));
});

test("a session whose key is lost is a sign-in, and the state says why", async () => {
  const mine = boundPhone();
  const email = somebody();
  const user = await signIn(mine, email);
  const { key } = (await stored(mine)) as unknown as { key: string };
  await keys.remove(key);
  assert.equal((await refused(mine.client.me(), "signed_out")).reason, "device_key_lost");
  assert.deepEqual(state(mine), { status: "signed_out", reason: "device_key_lost" });
  const next = boundPhone({ storage: mine.storage });
  await refused(next.client.accessToken(), "signed_out");
  assert.deepEqual(state(next), { status: "signed_out", reason: "device_key_lost" }, "also after the next start");
  assert.equal(await signIn(next, email), user);
  assert.equal(await whoAmI(next), user);
});

test("without a network, nobody is told that a key is lost, and with one it is", async () => {
  const before = boundPhone();
  await signIn(before);
  network.down = true;
  const mine = phone({ storage: before.storage, deviceKey: "none" });
  await refused(mine.client.fetch(ME), "network");
  assert.equal(state(mine).status, "signed_in");
  network.down = false;
  assert.equal((await refused(mine.client.fetch(ME), "signed_out")).reason, "device_key_lost");
});

test("a key store that fails for a while fails the requests, and ends no session", async () => {
  let broken = false;
  const find: KeyStore["find"] = async (name) => (broken ? Promise.reject(new Error("the phone is locked")) : keys.find(name));
  const mine = boundPhone({ deviceKey: { ...keys, find } });
  const user = await signIn(mine);
  broken = true;
  assert.equal((await refused(mine.client.me(), "storage")).message, "storage: the phone is locked");
  quarterOfAnHour(mine);
  await refused(mine.client.me(), "storage");
  assert.equal(state(mine).status, "signed_in");
  broken = false;
  assert.equal(await whoAmI(mine), user);
  const failing = { ...keys, create: () => Promise.reject(new Error("no space left")) };
  await refused(signIn(boundPhone({ deviceKey: failing })), "storage");
});

test("a device that can keep no key, and an app that wants none, have sessions that are not bound", async () => {
  for (const deviceKey of [{ ...keys, create: async () => false }, "none"] as const) {
    const mine = boundPhone({ deviceKey });
    const before = network.passed.length;
    const user = await signIn(mine);
    assert.equal(claimsOf(await mine.client.accessToken()).cnf, undefined);
    // It goes on as it is where keys are kept by now.
    const next = boundPhone({ storage: mine.storage });
    assert.equal(await whoAmI(next), user);
    assert.equal((await next.client.me()).id, user);
    assert(network.passed.slice(before).every(({ dpop }) => dpop === undefined));
    assert.equal(((await stored(next)) as { key?: string }).key, undefined);
    await next.client.signOut();
  }
});

test("a nonce that has expired costs one request more, and a server that always wants another gets no third", async (context) => {
  let stale = false;
  let sent: Headers[] = [];
  const send: typeof fetch = async (input, init) => {
    sent.push(new Headers(init?.headers));
    const answer = await fetch(input, init);
    if (!stale) return answer;
    stale = false;
    const headers = new Headers(answer.headers);
    headers.set("DPoP-Nonce", "AAAAAAAAAAAAAAAAAAAAAA");
    return new Response(await answer.text(), { status: answer.status, headers });
  };
  const mine = boundPhone({ fetch: send });
  const user = await signIn(mine);
  stale = true;
  await whoAmI(mine);
  sent = [];
  assert.equal(await whoAmI(mine), user);
  const nonces = sent.map((headers) => proven(headers.get("DPoP")).nonce);
  assert.equal(nonces.length, 2);
  assert.equal(nonces[0], "AAAAAAAAAAAAAAAAAAAAAA");
  sent = [];
  assert.equal(await whoAmI(mine), user);
  assert.deepEqual(sent.map((headers) => proven(headers.get("DPoP")).nonce), [nonces[1]], "the latest is remembered");

  let count = 0;
  const url = await start(context, (_, response) => response.writeHead(401, { "DPoP-Nonce": `${++count}` }).end());
  sent = [];
  assert.equal((await mine.client.fetch(url)).status, 401);
  // Two with the first token, and two with the one of the refresh.
  assert.equal(count, 4);
});

test("another service gives nonces of its own, which are for its origin alone", async (context) => {
  const seen: (string | undefined)[] = [];
  const url = await start(context, (request, response) => {
    const { nonce } = proven(request.headers.dpop);
    seen.push(nonce);
    response.writeHead(nonce === "theirs" ? 200 : 401, { "DPoP-Nonce": "theirs" }).end();
  });
  const mine = boundPhone();
  const user = await signIn(mine);
  const before = network.count(REFRESH);
  assert.equal((await mine.client.fetch(`${url}/orders?page=2`, { method: "POST", body: "{}" })).status, 200);
  assert.equal((await mine.client.fetch(new Request(`${url}/orders`, { method: "PUT", body: "{}" }))).status, 200);
  assert.deepEqual(seen, [undefined, "theirs", "theirs"]);
  assert.equal(await whoAmI(mine), user);
  assert.equal(network.count(REFRESH), before);
  assert(network.passed.every(({ dpop }) => dpop === undefined || proven(dpop).nonce !== "theirs"));
});

test("a clock that is a day off makes proofs of the right time, and costs nothing", async (context) => {
  const url = await start(context, (request, response) => {
    const off = Math.abs(proven(request.headers.dpop).iat - Date.now() / 1000);
    response.writeHead(off < 30 ? 200 : 401).end();
  });
  for (const days of [-1, 1]) {
    const mine = boundPhone();
    mine.clock.ahead = days * 86_400_000;
    const user = await signIn(mine);
    const before = network.count(REFRESH);
    assert.equal(await whoAmI(mine), user);
    assert.equal((await mine.client.fetch(url)).status, 200);
    assert.equal(network.count(REFRESH), before);
    mine.clock.ahead = 0;
    assert.equal(await whoAmI(mine), user);
    assert.equal((await mine.client.fetch(url)).status, 200);
  }
});

test("a browser's key cannot be copied, two tabs make one, and where there is no database there is none", async () => {
  const databases = new IDBFactory();
  const store = browserKeys(databases) ?? assert.fail();
  assert.equal(await store.find("mine"), undefined);
  const made = await Promise.all([store.create("mine"), browserKeys(databases)?.create("mine")]);
  assert.deepEqual(made, [true, true]);
  const { x } = (await store.find("mine")) ?? assert.fail();
  const opening = databases.open("vestibule");
  await new Promise((opened) => (opening.onsuccess = opened));
  const pairs = opening.result.transaction("keys").objectStore("keys");
  const asked = pairs.getAll();
  await new Promise((read) => (asked.onsuccess = read));
  const [pair, ...others] = asked.result as CryptoKeyPair[];
  assert(pair && !others.length);
  assert.equal((await crypto.subtle.exportKey("jwk", pair.publicKey)).x, x);
  await assert.rejects(crypto.subtle.exportKey("jwk", pair.privateKey), { name: /^InvalidAccess/ });
  await store.remove("mine");
  assert.equal(await store.find("mine"), undefined);

  assert.equal(browserKeys(), undefined, "Node has none");
  const closed = { open: () => assert.fail("a private window") } as unknown as IDBFactory;
  const user = await signIn(boundPhone({ deviceKey: browserKeys(closed) ?? assert.fail() }));
  assert(user, "and the session is not bound");
});

test("the headers of a request that something else sends are good for that one", async () => {
  const mine = boundPhone();
  const user = await signIn(mine);
  const url = `${network.url}${ME}?fresh=1`;
  const headers = await mine.client.headers(url);
  assert.deepEqual(Object.keys(headers), ["Authorization", "DPoP"]);
  const answer = await fetch(url, { headers });
  assert.equal(((await answer.json()) as { id: string }).id, user);
  assert.equal((await fetch(`${network.url}${ME}/sessions`, { headers })).status, 401);
  const plain = phone();
  await signIn(plain);
  assert.deepEqual(await plain.client.headers(url), { Authorization: `Bearer ${await plain.client.accessToken()}` });
});

test("a backend accepts what the client sends, and no token without its key", async (context) => {
  let url = "";
  const users: string[] = [];
  url = await start(context, (request, response) => {
    verifyAccessToken(request, { issuer: network.url, publicUrl: `${url}/` }).then(
      ({ sub }) => {
        users.push(sub);
        response.writeHead(200).end();
      },
      (error: Error) => response.writeHead(401).end(error.message),
    );
  });
  const mine = boundPhone();
  const user = await signIn(mine);
  for (const [path, init] of [
    ["", {}],
    ["/orders?page=2#top", {}],
    ["/größe/%C3%9F", { method: "POST", body: "{}" }],
    ["/x", { method: "put" }],
  ] as const) {
    const answer = await mine.client.fetch(url + path, init);
    assert.equal(answer.status, 200, `${path} ${await answer.text()}`);
  }
  assert.deepEqual(new Set(users), new Set([user]));
  const Authorization = `Bearer ${await mine.client.accessToken()}`;
  const stolen = await fetch(url, { headers: { Authorization } });
  assert.equal(await stolen.text(), "invalid_access_token: it is bound to a key, and needs the scheme DPoP with a proof");
});

/** What `@pagopa/io-react-native-crypto` and `expo-crypto` do on a phone. */
function phoneCrypto() {
  const pairs = new Map<string, KeyObject>();
  const pair = (tag: string) => pairs.get(tag) ?? Promise.reject(new Error("PUBLIC_KEY_NOT_FOUND"));
  const jwk = (key: KeyObject) => {
    const { kty, crv, x, y } = key.export({ format: "jwk" });
    return { kty, crv, x, y };
  };
  return {
    pairs,
    CryptoDigestAlgorithm: { SHA256: "SHA-256" },
    CryptoEncoding: { BASE64: "base64" },
    digestStringAsync: async (_: string, text: string) => createHash("sha256").update(text).digest("base64"),
    generate: async (tag: string) => {
      if (pairs.has(tag)) throw new Error("KEY_ALREADY_EXISTS");
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      pairs.set(tag, privateKey);
      return jwk(privateKey);
    },
    getPublicKeyFixed: async (tag: string) => jwk(await pair(tag)),
    sign: async (text: string, tag: string) => createSign("SHA256").update(text).sign(await pair(tag), "base64"),
    deleteKey: async (tag: string) => void pairs.delete(tag),
  };
}

test("the key store of the guide for React Native signs as the service reads it, also numbers that are short", async () => {
  const native = phoneCrypto();
  Object.assign(globalThis, { phoneCrypto: native });
  const names = Object.keys(native).join(", ");
  const device: Plugin = {
    name: "device",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^(@pagopa|expo-crypto)/ }, ({ path }) => ({ path, namespace: "device" }));
      onLoad({ filter: /./, namespace: "device" }, () => ({ contents: `export const { ${names} } = phoneCrypto;` }));
    },
  };
  const outfile = join(CLIENT, "target/phoneKeys.mjs");
  await build({ entryPoints: [join(CLIENT, "examples/phoneKeys.ts")], outfile, bundle: true, format: "esm", plugins: [device] });
  const { phoneKeys } = (await import(pathToFileURL(outfile).href)) as { phoneKeys: KeyStore };

  const mine = boundPhone({ deviceKey: phoneKeys });
  const user = await signIn(mine);
  quarterOfAnHour(mine);
  assert.equal(await whoAmI(mine), user);
  assert(claimsOf(await mine.client.accessToken()).cnf);
  const [name = ""] = native.pairs.keys();
  const es256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("jwk", (await phoneKeys.find(name)) ?? {}, es256, false, ["verify"]);
  for (let round = 0; round < 1000; round++) {
    const signature = Buffer.from(await phoneKeys.sign(name, `${round}`));
    assert(await crypto.subtle.verify(es256, key, signature, Buffer.from(`${round}`)), signature.toString("hex"));
  }
  await mine.client.signOut();
  assert.equal(native.pairs.size, 0);
  assert.equal(await phoneKeys.find(name), undefined);
});

/** Sends a request with a proof that another library makes, after one for the nonce. */
async function sendWith(pair: KeyPair, method: string, path: string, headers: Record<string, string>, body?: object, token?: string) {
  const attempt = async (nonce?: string) => {
    const DPoP = await generateProof(pair, network.url + path, method, nonce, token);
    return fetch(network.url + path, { method, headers: { ...headers, DPoP }, ...(body && { body: JSON.stringify(body) }) });
  };
  const challenge = await attempt();
  assert.equal(challenge.status, 401);
  const answer = await attempt(challenge.headers.get("DPoP-Nonce") ?? assert.fail());
  assert(answer.ok, await answer.clone().text());
  return answer;
}

for (const alg of ["ES256", "Ed25519"] as const) {
  test(`proofs of an unrelated library with ${alg} are accepted at a sign-in, at /me, and by a backend of ours`, async () => {
    const pair = await generateKeyPair(alg);
    const json = { "Content-Type": "application/json" };
    const body = { id_token: await service.idToken({ email: somebody() }) };
    const signedIn = (await (await sendWith(pair, "POST", SIGN_IN, json, body)).json()) as Record<string, unknown>;
    assert.equal(signedIn.token_type, "DPoP");
    const token = String(signedIn.access_token);
    const headers = { Authorization: `DPoP ${token}` };
    await sendWith(pair, "GET", ME, headers, undefined, token);
    await sendWith(pair, "POST", REFRESH, json, { refresh_token: signedIn.refresh_token });
    const url = "https://api.example.com/orders";
    const DPoP = await generateProof(pair, url, "GET", undefined, token);
    const request = new Request(`${url}?page=2`, { headers: { ...headers, DPoP } });
    assert.equal((await verifyAccessToken(request, { issuer: network.url })).sub, (signedIn.user as { id: string }).id);
  });
}

test("an unrelated library accepts the client's access token with its proof, and not without", async () => {
  const mine = boundPhone({ storage: memoryStorage() });
  const user = await signIn(mine);
  const url = "https://api.example.com/orders?page=2";
  const server: oauth.AuthorizationServer = { issuer: network.url, jwks_uri: `${network.url}/.well-known/jwks.json` };
  const verify = (headers: Record<string, string>, method = "POST") => {
    const request = new Request(url, { method, headers });
    return oauth.validateJwtAccessToken(server, request, network.url, { requireDPoP: true, [oauth.allowInsecureRequests]: true });
  };
  const headers = await mine.client.headers(url, "POST");
  const claims = await verify(headers);
  assert.equal(claims.sub, user);
  await assert.rejects(verify(headers, "PUT"), /DPoP Proof htm mismatch/);
  await assert.rejects(verify({ Authorization: headers.Authorization ?? "" }), /DPoP/);
});
