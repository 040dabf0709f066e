// What a backend does with access tokens: those of the running service, and those that it would never sign.

import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test, type TestContext } from "node:test";

import { createVestibule, memoryStorage } from "../src/index.js";
import { type TokenOptions, verifyAccessToken } from "../src/server.js";
import { Issuer } from "./issuer.js";
import { Proxy } from "./proxy.js";
import { Service } from "./service.js";
import { refused, service, somebody } from "./world.js";

const JWKS = "/.well-known/jwks.json";
const [SECOND, MINUTE] = [1_000, 60_000];
/** The time at which the clocks of the tests stand, however long a test takes. */
const NOW = Date.now();

/** Verifies a token as a request shows it. */
const verify = (token: string, options: TokenOptions) =>
  verifyAccessToken({ headers: { authorization: `Bearer ${token}` } }, options);

/** Expects that a token is refused, and returns the check that it failed. */
async function detail(token: string, options: TokenOptions): Promise<string | undefined> {
  return (await refused(verify(token, options), "invalid_access_token")).detail;
}

/** Stops it when the test is over. */
function until<T extends { stop(): Promise<void> }>(context: TestContext, started: T): T {
  context.after(() => started.stop());
  return started;
}

/** Another instance of the service, whose public URL is that network's. */
async function startBehind(network: Proxy, context: TestContext): Promise<Service> {
  const instance = until(context, await Service.start({ ROCKET_PUBLIC_URL: network.url }, service));
  network.target = instance.url;
  return instance;
}

/** An access token of a new user, and the user. */
async function signIn(instance: Service): Promise<{ token: string; user: string }> {
  const client = createVestibule({ baseUrl: instance.url, storage: memoryStorage() });
  const { user } = await client.signIn("idp", await instance.idToken({ email: somebody() }));
  return { token: await client.accessToken(), user: user.id };
}

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

test("tokens of the service are accepted, with one request for its keys, and what is made of them is not", async (context) => {
  const network = until(context, await Proxy.start());
  const instance = await startBehind(network, context);
  const options = { issuer: `${network.url}/` };
  const { token, user } = await signIn(instance);
  const all = await Promise.all(Array.from({ length: 100 }, () => verify(token, options)));
  const [claims] = all;
  assert(claims);
  assert.deepEqual([claims.sub, claims.iss, claims.aud], [user, network.url, network.url]);
  assert(claims.exp - claims.iat === 900 && claims.sid && claims.jti && claims.client_id, JSON.stringify(claims));

  const [head = "", body = "", signature = ""] = token.split(".");
  const { kid } = JSON.parse(Buffer.from(head, "base64url").toString()) as { kid: string };
  const { keys } = (await (await fetch(instance.url + JWKS)).json()) as { keys: { kid: string }[] };
  const promoted = encoded({ ...claims, roles: ["admin"] });
  assert.equal(await detail(`${head}.${promoted}.${signature}`, options), "the signature is wrong");
  const altered = (signature.startsWith("A") ? "B" : "A") + signature.slice(1);
  assert.equal(await detail(`${head}.${body}.${altered}`, options), "the signature is wrong");
  assert.equal(await detail(`${head}.${body}.`, options), "the signature is wrong");
  for (const alg of ["none", "None", "HS256", "ES384", "RS256"]) {
    const other = encoded({ alg, typ: "at+jwt", kid });
    // The public key as a secret: what a verifier falls for that believes the header.
    const mac = createHmac("sha256", JSON.stringify(keys.find((key) => key.kid === kid)));
    for (const signed of ["", signature, mac.update(`${other}.${body}`).digest("base64url")]) {
      assert.equal(await detail(`${other}.${body}.${signed}`, options), "`alg` is not ES256");
    }
  }
  for (const garbage of ["", "a.b", "..", `${token}.`, `${token}=`, ` ${token}`, `${head}.${body}`, `null.${body}.`]) {
    assert.equal(await detail(garbage, options), "it is not a JWT", garbage);
  }
  assert.equal(network.count(JWKS), 1);
  assert.equal(await detail(token, { ...options, clock: () => (claims.exp + 30) * SECOND }), "it has expired");
});

test("after `keys rotate --now` the new key counts within seconds, and the old one for five minutes at most", async (context) => {
  const network = until(context, await Proxy.start());
  const first = await startBehind(network, context);
  let ahead = 0;
  const options = { issuer: network.url, clock: () => NOW + ahead };
  const [old, idle] = [await signIn(first), await signIn(first)];
  await verify(old.token, options);
  await service.command("keys", "rotate", "--now");
  // An instance that has just started signs with the new key at once.
  const second = await startBehind(network, context);
  const { token, user } = await signIn(second);
  await verify(old.token, options);
  assert.equal(await detail(token, options), "`kid` is not one of the service's keys");
  ahead = 10 * SECOND;
  assert.equal((await verify(token, options)).sub, user);
  assert.equal(network.count(JWKS), 2);
  assert.equal(await detail(old.token, options), "`kid` is not one of the service's keys");
  ahead = 5 * MINUTE + 11 * SECOND;
  assert.equal(await detail(idle.token, options), "`kid` is not one of the service's keys");
  await verify(token, options);
  assert.equal(network.count(JWKS), 3);
});

test("keys that are withdrawn are not used for longer than five minutes, even if nobody asks for another", async (context) => {
  const issuer = until(context, await Issuer.start());
  let ahead = 0;
  const options = { issuer: issuer.url, clock: () => NOW + ahead };
  const token = await issuer.sign();
  await verify(token, options);
  await issuer.replaceKey();
  ahead = 5 * MINUTE - SECOND;
  await verify(token, options);
  ahead = 5 * MINUTE;
  assert.equal(await detail(token, options), "`kid` is not one of the service's keys");
});

test("a flood of unknown keys costs the service one request in ten seconds, and the others nothing", async (context) => {
  const issuer = until(context, await Issuer.start());
  let ahead = 0;
  const options = { issuer: issuer.url, clock: () => NOW + ahead };
  const good = await issuer.sign();
  await verify(good, options);
  const flood = async () => {
    const made = Array.from({ length: 500 }, (_, at) => issuer.sign({}, { kid: `made up ${ahead} ${at}` }));
    const outcomes = made.map(async (token) => detail(await token, options));
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(["`kid` is not one of the service's keys"]));
    await verify(good, options);
  };
  for (const [seconds, requests] of [
    [0, 1],
    [9, 1],
    [11, 2],
    [20, 2],
    [22, 3],
  ] as const) {
    ahead = seconds * SECOND;
    await flood();
    assert.equal(issuer.requests, requests, `${seconds}`);
  }
});

test("every claim and header that counts is looked at", async (context) => {
  const issuer = until(context, await Issuer.start());
  const clock = () => 1_800_000_000_000;
  const now = clock() / 1000;
  const options = { issuer: issuer.url, clock };
  const [iss, aud] = ["`iss` is not the service", "`aud` is not the service"];
  for (const [claims, failed] of [
    [{ iss: "https://elsewhere.example.com" }, iss],
    [{ iss: `${issuer.url}/` }, iss],
    [{ iss: undefined }, iss],
    [{ aud: "https://elsewhere.example.com" }, aud],
    [{ aud: ["https://elsewhere.example.com", issuer.url] }, aud],
    [{ aud: undefined }, aud],
    [{ sub: undefined }, "`sub` is missing"],
    [{ sub: "" }, "`sub` is missing"],
    [{ exp: undefined }, "`exp` is missing"],
    [{ exp: `${now + 900}` }, "`exp` is missing"],
    [{ exp: now - 30 }, "it has expired"],
    [{ nbf: now + 31 }, "it is not valid yet"],
    [{ nbf: "soon" }, "it is not valid yet"],
  ] as const) {
    const token = await issuer.sign({ exp: now + 900, ...claims });
    assert.equal(await detail(token, options), failed, JSON.stringify(claims));
  }
  const sound = await issuer.sign({ exp: now + 900 });
  const altered = sound.replace(/\..(?=[^.]*$)/, (first) => (first === ".A" ? ".B" : ".A"));
  assert.equal(await detail(altered, options), "the signature is wrong");
  for (const [header, failed] of [
    [{ alg: "none" }, "`alg` is not ES256"],
    [{ alg: "HS256" }, "`alg` is not ES256"],
    [{ typ: "JWT" }, "`typ` is not at+jwt"],
    [{ typ: undefined }, "`typ` is not at+jwt"],
    [{ kid: undefined }, "`kid` is missing"],
    [{ crit: ["b64"], b64: true }, "`crit` is not supported"],
  ] as const) {
    assert.equal(await detail(await issuer.sign({ exp: now + 900 }, header), options), failed, JSON.stringify(header));
  }
  await verify(await issuer.sign({ exp: now - 29 }), options);
  await verify(await issuer.sign({ exp: now + 900, nbf: now + 30 }), options);
  const strict = { ...options, leeway: 0 };
  assert.equal(await detail(await issuer.sign({ exp: now }), strict), "it has expired");
  await verify(await issuer.sign({ exp: now + 1, nbf: now, roles: ["editor"] }), strict);
});

test("without the service, its keys are used for an hour; without keys, it is not the token's fault", async (context) => {
  const issuer = until(context, await Issuer.start());
  const network = until(context, await Proxy.start(issuer.url));
  let ahead = 0;
  const options = { issuer: network.url, clock: () => NOW + ahead };
  const token = await issuer.sign({ iss: network.url, aud: network.url, exp: NOW / 1000 + 86_400 });
  network.down = true;
  await refused(verify(token, options), "network");
  network.down = false;
  await refused(verify(token, options), "network");
  for (const fault of [
    { status: 503, headers: {} },
    { status: 302, headers: { Location: `${issuer.url}${JWKS}` } },
  ]) {
    ahead += 3 * SECOND;
    network.next(JWKS, fault);
    const { status } = await refused(
      verify(token, options),
      fault.status === 503 ? "service_unavailable" : "invalid_request",
    );
    assert.equal(status, fault.status);
  }
  ahead += 3 * SECOND;
  network.next(JWKS, "hang");
  await refused(verify(token, options), "timeout");
  ahead += 3 * SECOND;
  await verify(token, options);
  network.down = true;
  ahead += 59 * MINUTE;
  await verify(token, options);
  ahead += 2 * MINUTE;
  await refused(verify(token, options), "network");
  network.down = false;
  ahead += 3 * SECOND;
  await verify(token, options);
});

test("of a token that is bound to a key, every part of the proof is looked at", async (context) => {
  const issuer = until(context, await Issuer.start());
  const es256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const [pair, other] = await Promise.all([1, 2].map(() => crypto.subtle.generateKey(es256, true, ["sign", "verify"])));
  assert(pair && other);
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey);
  const jwk = { kty, crv, x, y };
  const hash = (text: string) => createHash("sha256").update(text).digest("base64url");
  const now = Math.floor(NOW / 1000);
  const token = await issuer.sign({ exp: now + 900, cnf: { jkt: hash(JSON.stringify({ crv, kty, x, y })) } });
  const unbound = await issuer.sign({ exp: now + 900 });
  const prove = async (claims: object = {}, header: object = {}, key = pair.privateKey) => {
    const sound = { jti: "1", htm: "POST", htu: "https://api.example.com/orders", iat: now, ath: hash(token) };
    const text = `${encoded({ typ: "dpop+jwt", alg: "ES256", jwk, ...header })}.${encoded({ ...sound, ...claims })}`;
    return `${text}.${Buffer.from(await crypto.subtle.sign(es256, key, Buffer.from(text))).toString("base64url")}`;
  };
  const options: TokenOptions = { issuer: issuer.url, publicUrl: "https://api.example.com/", clock: () => NOW };
  const show = (dpop: string | string[] | undefined, scheme = "DPoP", shown = token, url = "/orders?page=2") =>
    verifyAccessToken({ method: "POST", url, headers: { authorization: `${scheme} ${shown}`, dpop } }, options);
  const refusal = async (shown: Promise<unknown>) => (await refused(shown, "invalid_access_token")).detail;

  const good = await prove();
  for (const scheme of ["DPoP", "dpop"]) assert.equal((await show(good, scheme)).exp, now + 900);
  assert.equal(await refusal(show(good, "Bearer")), "it is bound to a key, and needs the scheme DPoP with a proof");
  assert.equal(await refusal(show(undefined)), "the header `DPoP` is missing");
  assert.equal(await refusal(show([good, good])), "`DPoP` is not one JWT");
  assert.equal(await refusal(show(`${good}, ${good}`)), "`DPoP` is not one JWT");
  assert.equal(await refusal(show(good, "DPoP", unbound)), "it is not bound to a key: its scheme is Bearer");
  const { d } = await crypto.subtle.exportKey("jwk", pair.privateKey);
  const spare = await crypto.subtle.exportKey("jwk", other.publicKey);
  for (const [claims, header, failed, key] of [
    [{}, { typ: "JWT" }, "the proof's `typ` is not dpop+jwt"],
    [{}, { typ: "at+jwt" }, "the proof's `typ` is not dpop+jwt"],
    [{}, { alg: "none" }, "the proof's `alg` is not ES256 or EdDSA"],
    [{}, { alg: "RS256" }, "the proof's `alg` is not ES256 or EdDSA"],
    [{}, { alg: "EdDSA" }, "the proof's `jwk` is no public key"],
    [{}, { crit: ["b64"], b64: true }, "the proof's `crit` is not supported"],
    [{}, { jwk: undefined }, "the proof's `jwk` is no public key"],
    [{}, { jwk: "key" }, "the proof's `jwk` is no public key"],
    [{}, { jwk: { ...jwk, x: "AA" } }, "the proof's `jwk` is no public key"],
    [{}, { jwk: { ...jwk, d } }, "the proof's `jwk` is no public key"],
    [{}, { jwk: { ...jwk, k: "AA" } }, "the proof's `jwk` is no public key"],
    [{}, {}, "the proof's signature is wrong", other.privateKey],
    [{}, { jwk: spare }, "the proof is by another key", other.privateKey],
    [{ jti: undefined }, {}, "the proof's `jti` is missing"],
    [{ htm: "GET" }, {}, "the proof's `htm` is not the method"],
    [{ htm: "post" }, {}, "the proof's `htm` is not the method"],
    [{ htu: undefined }, {}, "the proof's `htu` is not the URL"],
    [{ htu: "https://api.example.com/others" }, {}, "the proof's `htu` is not the URL"],
    [{ htu: "https://elsewhere.example.com/orders" }, {}, "the proof's `htu` is not the URL"],
    [{ htu: "http://api.example.com/orders" }, {}, "the proof's `htu` is not the URL"],
    [{ iat: undefined }, {}, "the proof's `iat` is not now"],
    [{ iat: `${now}` }, {}, "the proof's `iat` is not now"],
    [{ iat: now + 31 }, {}, "the proof's `iat` is not now"],
    [{ iat: now - 91 }, {}, "the proof is too old"],
    [{ ath: undefined }, {}, "the proof's `ath` is not of the token"],
    [{ ath: hash(unbound) }, {}, "the proof's `ath` is not of the token"],
  ] as [object, object, string, CryptoKey?][]) {
    assert.equal(await refusal(show(await prove(claims, header, key))), failed, JSON.stringify([claims, header]));
  }
  for (const claims of [{ iat: now + 29 }, { iat: now - 89 }, { htu: "HTTPS://API.example.com:443/orders?x=1" }]) {
    await show(await prove(claims));
  }
  // The URL of a request counts where no other is set, and a path alone is none.
  const headers = { authorization: `DPoP ${token}`, dpop: good };
  const bare = { ...options };
  delete bare.publicUrl;
  await verifyAccessToken(new Request("https://api.example.com/orders", { method: "POST", headers }), bare);
  const elsewhere = new Request("http://10.0.0.1/orders", { method: "POST", headers });
  assert.equal(await refusal(verifyAccessToken(elsewhere, bare)), "the proof's `htu` is not the URL");
  await verifyAccessToken(elsewhere, options);
  await verifyAccessToken({ method: "POST", url: "/", originalUrl: "/orders", headers }, options);
  await assert.rejects(verifyAccessToken({ method: "POST", url: "/orders", headers }, bare), { name: "TypeError" });
});
