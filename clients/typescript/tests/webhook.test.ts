// What a backend does with messages: those that the reference library signs, and those that nobody has signed.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";

import { Webhook as Reference } from "standardwebhooks";

import { createVestibule, memoryStorage } from "../src/index.js";
import {
  type LaterMessage,
  type Received,
  receiveWebhook,
  VestibuleError,
  type Webhook,
  type WebhookOptions,
} from "../src/server.js";
import { Service } from "./service.js";
import { refused, service, somebody } from "./world.js";

const [SECRET, OTHER] = [secret(), secret()];
const ID = "019ac1a5-6d3c-7aa1-9c36-0d5be3a4b5d9";
const USER = "11111111-2222-4333-8444-555555555555";
const BODY = JSON.stringify({
  type: "user.merged",
  timestamp: "2026-11-22T18:00:00Z",
  data: { user_id: USER, user: null, from: ID, into: USER, note: "Grüße, 世界 \u{1F600}" },
});

function secret(bytes = 32): string {
  return `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("base64")}`;
}

/** A message as the reference library signs it, with each of the secrets. */
function signed(body: string, secrets: string[], age = 0): { headers: Record<string, string>; body: string } {
  const at = new Date(Date.now() - age * 1000);
  return {
    headers: {
      "webhook-id": ID,
      "webhook-timestamp": `${Math.floor(at.getTime() / 1000)}`,
      "webhook-signature": secrets.map((secret) => new Reference(secret).sign(ID, at, body)).join(" "),
    },
    body,
  };
}

/** Expects that a message is refused, and returns the check that it failed. */
async function detail(
  request: Received,
  secrets: string | string[],
  options?: WebhookOptions,
): Promise<string | undefined> {
  return (await refused(receiveWebhook(request, secrets, options), "invalid_webhook")).detail;
}

test("messages that the reference library signs are received, in every form that frameworks hand them over", async () => {
  const { headers, body } = signed(BODY, [SECRET]);
  const bytes = Buffer.from(body);
  const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]));
  for (const request of [
    new Request("https://example.com/hooks", { method: "POST", headers, body }),
    { headers, body },
    { headers, body: bytes },
    { headers: new Headers(headers), body: new Uint8Array(bytes) },
    { headers: upper, body: bytes },
  ]) {
    const message: Webhook = await receiveWebhook(request, SECRET);
    assert.deepEqual(message, { ...JSON.parse(BODY), id: ID });
    assert(message.type === "user.merged");
    assert.deepEqual([message.data.from, message.data.into], [ID, USER], "its type tells what is in it");
  }
});

/** Says what a receiver does with a message: the compiler wants its default. */
function handled(message: Webhook): string {
  switch (message.type) {
    case "user.merged":
      return message.data.from;
    default:
      return `nothing is known of ${message.type}`;
  }
}

test("a message of a later version's type is received, and the compiler has a receiver expect it", async () => {
  for (const [type, expected] of [
    ["user.reborn", "nothing is known of user.reborn"],
    ["user.merged", ID],
  ]) {
    assert.equal(handled(await receiveWebhook(signed(BODY.replace("user.merged", type ?? ""), [SECRET]), SECRET)), expected);
  }
  type Known = Exclude<Webhook, LaterMessage>;
  const all = (message: Known): Known["type"] => message.type;
  // @ts-expect-error A receiver of all known types alone is none of all messages.
  const receiver: (message: Webhook) => string = all;
  assert.equal(receiver, all);
});

test("what the reference library refuses is refused, and what it accepts is accepted", async () => {
  const sound = signed(BODY, [SECRET]);
  const header = (name: string, value: string) => ({ ...sound, headers: { ...sound.headers, [name]: value } });
  const signature = sound.headers["webhook-signature"] ?? "";
  const without = (name: string) => ({ ...sound, headers: { ...sound.headers, [name]: "" } });
  for (const request of [
    sound,
    signed(BODY, [OTHER]),
    signed(BODY, [OTHER, SECRET]),
    signed(BODY, [SECRET], 290),
    signed(BODY, [SECRET], 302),
    signed(BODY, [SECRET], -290),
    signed(BODY, [SECRET], -302),
    { ...sound, body: `${sound.body} ` },
    { ...sound, body: sound.body.replace(ID, USER) },
    header("webhook-id", USER),
    header("webhook-timestamp", `${Number(sound.headers["webhook-timestamp"]) + 1}`),
    header("webhook-timestamp", "now"),
    header("webhook-signature", signature.replace("v1,", "v1a,")),
    header("webhook-signature", signature.replace("v1,", "v2,")),
    header("webhook-signature", signature.slice(0, -4)),
    header(
      "webhook-signature",
      `v1,${Buffer.concat([Buffer.from(signature.slice(3), "base64"), Buffer.of(0)]).toString("base64")}`,
    ),
    header("webhook-signature", "v1,"),
    header("webhook-signature", "v1"),
    header("webhook-signature", `v1a,${"A".repeat(88)} v1,%%% ${signature}`),
    header("webhook-signature", ` ${signature} `),
    without("webhook-id"),
    without("webhook-timestamp"),
    without("webhook-signature"),
  ]) {
    let theirs = true;
    try {
      new Reference(SECRET).verify(request.body, request.headers);
    } catch {
      theirs = false;
    }
    const ours = await receiveWebhook(request, SECRET).then(
      () => true,
      (error: VestibuleError) => error.error !== "invalid_webhook",
    );
    assert.equal(ours, theirs, JSON.stringify(request));
  }
});

test("while a secret is being changed, either of two counts", async () => {
  const [old, next] = [SECRET, OTHER];
  for (const signers of [[old], [old, next], [next, old], [next]]) {
    assert.equal((await receiveWebhook(signed(BODY, signers), [old, next])).id, ID);
  }
  assert.equal(await detail(signed(BODY, [secret()]), [old, next]), "the signature is wrong");
});

test("the tolerance is five minutes both ways, or what the receiver says", async () => {
  const request = signed(BODY, [SECRET]);
  const sent = Number(request.headers["webhook-timestamp"]);
  const late = "`webhook-timestamp` is not the time, give or take the tolerance";
  for (const [seconds, options, accepted] of [
    [300, {}, true],
    [301, {}, false],
    [-300, {}, true],
    [-301, {}, false],
    [10, { tolerance: 10 }, true],
    [11, { tolerance: 10 }, false],
  ] as const) {
    const when = { ...options, clock: () => (sent + seconds) * 1000 };
    if (accepted) await receiveWebhook(request, SECRET, when);
    else assert.equal(await detail(request, SECRET, when), late);
  }
  for (const time of ["", " ", "-1", "+1", "1e9", "0x10", "1.5", `${sent}.0`, `${sent} `, "Infinity"]) {
    const mac = createHmac("sha256", Buffer.from(SECRET.slice(6), "base64")).update(`${ID}.${time}.${BODY}`);
    const signature = `v1,${mac.digest("base64")}`;
    const headers = { "webhook-id": ID, "webhook-timestamp": time, "webhook-signature": signature };
    await refused(receiveWebhook({ headers, body: BODY }, SECRET, { tolerance: Infinity }), "invalid_webhook");
  }
});

test("the signature is of the bytes, not of the text that they may be", async () => {
  const body = Buffer.concat([Buffer.from('{"type":"user.created","data":"'), Buffer.from([0xff]), Buffer.from('"}')]);
  const { headers } = signed(body.toString("utf8"), [SECRET]);
  assert.equal(
    await detail({ headers, body }, SECRET),
    "the signature is wrong",
    "another text has the same characters",
  );
});

test("a body that was parsed, and a secret that is none, are the program's mistakes", async () => {
  const { headers, body } = signed(BODY, [SECRET]);
  const parsed = { headers, body: JSON.parse(body) as string };
  await assert.rejects(receiveWebhook(parsed, SECRET), /TypeError: the body has to be the bytes as they came/);
  const unset = process.env.NO_SUCH_SECRET as string;
  for (const wrong of [
    unset,
    "",
    "whsec_",
    [],
    [SECRET, unset],
    secret(23),
    secret(65),
    SECRET.slice(6),
    `${SECRET}%`,
  ]) {
    await assert.rejects(receiveWebhook({ headers, body }, wrong), /^TypeError: .*secret/, JSON.stringify(wrong));
  }
  const limits = [secret(24), secret(64)];
  assert.equal((await receiveWebhook(signed(BODY, limits), limits)).id, ID);
});

test("a receiver gets what the service sends, and answers 401 to what somebody else does", async (context) => {
  const messages: Webhook[] = [];
  let arrived = () => {};
  const server = createServer(async (request, response) => {
    const [headers, body] = [request.headers, await buffer(request)];
    try {
      messages.push(await receiveWebhook({ headers, body }, SECRET));
      new Reference(SECRET).verify(body, headers as Record<string, string>);
      response.writeHead(204).end();
      arrived();
    } catch (error) {
      response.writeHead(error instanceof VestibuleError ? 401 : 500).end(String(error));
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
  assert.equal((await fetch(url, { method: "POST", ...signed(BODY, [OTHER]) })).status, 401);

  const hooks = `{backend={url="${url}",secret=["${SECRET}","${OTHER}"]}}`;
  const instance = await Service.start({ ROCKET_WEBHOOKS: hooks }, service);
  context.after(() => instance.stop());
  const first = new Promise<void>((resolve) => (arrived = resolve));
  const mine = createVestibule({ baseUrl: instance.url, storage: memoryStorage() });
  const { user } = await mine.signIn("idp", await instance.idToken({ email: somebody() }));
  await first;
  const [message] = messages;
  assert(message?.type === "user.created");
  assert.deepEqual([message.data.user_id, message.data.user?.email], [user.id, user.email]);
  const second = new Promise<void>((resolve) => (arrived = resolve));
  await mine.signOut();
  await second;
  const ended = messages.at(-1);
  assert(ended?.type === "sessions.ended");
  assert.deepEqual([ended.data.user_id, ended.data.sessions], [user.id, "one"]);
});
