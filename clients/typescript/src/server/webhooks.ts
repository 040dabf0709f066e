import { VestibuleError } from "../error.js";
import { parse } from "../http.js";
import { decode } from "./base64.js";
import type { Message } from "./messages.js";
import { header, type Incoming } from "./request.js";

/** A message that the service sent, with the id that tells a duplicate: `webhook-id`. */
export type Webhook = Message & { readonly id: string };

export interface WebhookOptions {
  /** The seconds that a message may be old, or ahead of this machine's clock, 300 by default. */
  tolerance?: number;
  /** Returns the time in milliseconds; by default `Date.now`. */
  clock?: () => number;
}

/**
 * A request as a framework has it. The body is its bytes or its text, as they came: what was parsed from them cannot be
 * verified any more.
 */
export interface Received extends Incoming {
  readonly body: Uint8Array | string;
}

/**
 * Verifies a message of the service (https://www.standardwebhooks.com), and returns it.
 *
 * `secrets` are the webhook's `whsec_…`: one, or both while it is being changed. It fails with `invalid_webhook` (answer
 * 401), and with a `TypeError` where the program is wrong. The same message can come twice: its `id` tells. A newer
 * service may send a `type` that is not listed here: answer 204.
 */
export async function receiveWebhook(
  request: Request | Received,
  secrets: string | readonly string[],
  options: WebhookOptions = {},
): Promise<Webhook> {
  const { tolerance = 300, clock = Date.now } = options;
  const keys = [secrets].flat().map(key);
  if (!keys.length) throw new TypeError("there is no secret");
  const [id, time, signatures] = ["id", "timestamp", "signature"].map((name) => header(request, `webhook-${name}`));
  if (!id || !time || !signatures) throw refused("it is not signed");
  const age = /^\d+$/.test(time) ? Math.abs(clock() / 1000 - Number(time)) : NaN;
  if (!(age <= tolerance)) throw refused("`webhook-timestamp` is not the time, give or take the tolerance");
  const body = await bytes(request);
  const signed = concatenated(new TextEncoder().encode(`${id}.${time}.`), body);
  const sent = signatures.split(" ").map((signature) => /^v1,(.*)$/.exec(signature)?.[1] ?? "");
  const decoded = sent.map((signature) => decode(signature, "base64"));
  let sound = false;
  for (const expected of await Promise.all(keys.map((key) => mac(key, signed)))) {
    for (const signature of decoded) sound = (signature !== undefined && equal(signature, expected)) || sound;
  }
  if (!sound) throw refused("the signature is wrong");
  const message = parse<Message>(new TextDecoder().decode(body));
  if (!message) throw refused("it is not JSON");
  return { ...message, id };
}

function key(secret: string): Uint8Array<ArrayBuffer> {
  const key = typeof secret === "string" && secret.startsWith("whsec_") && decode(secret.slice(6), "base64");
  if (!key || key.length < 24 || key.length > 64)
    throw new TypeError("a secret is `whsec_` and base64 of 24 to 64 bytes");
  return key;
}

async function bytes(request: Request | Received): Promise<Uint8Array> {
  if ("arrayBuffer" in request) return new Uint8Array(await request.arrayBuffer());
  const { body } = request;
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError("the body has to be the bytes as they came, not what was parsed from them");
}

function concatenated(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

async function mac(secret: Uint8Array<ArrayBuffer>, content: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, content));
}

/** Compares in a time that does not tell how much is equal. */
function equal(one: Uint8Array, other: Uint8Array): boolean {
  let difference = one.length ^ other.length;
  other.forEach((byte, at) => (difference |= byte ^ (one[at] ?? 0)));
  return difference === 0;
}

function refused(detail: string): VestibuleError {
  return new VestibuleError("invalid_webhook", { detail });
}
