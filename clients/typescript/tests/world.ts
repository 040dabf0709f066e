// One service, one network between it and the phones, and one provider behind another network, for all tests.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as once, type TestContext } from "node:test";

import {
  type AuthState,
  createVestibule,
  type ErrorName,
  memoryStorage,
  type Options,
  type TokenStorage,
  type Vestibule,
  VestibuleError,
} from "../src/index.js";
import { fileKeys } from "./keys.js";
import { Proxy } from "./proxy.js";
import { Service } from "./service.js";
import { Staff } from "./staff.js";

const behind = await Proxy.start();
/** The origin of the pages. */
export const ORIGIN = "http://127.0.0.1:3000";
const second = `client_id="vestibule-development",issuers=["{url}/dev/idp"],token_format="jwt"`;

/** What lies between the phones and the service, whose public URL it is. */
export const network = await Proxy.start();
/** The service. */
export const service = await Service.start({
  ROCKET_PUBLIC_URL: network.url,
  ROCKET_PROVIDERS: `{second={${second},tokeninfo_url="${behind.url}/dev/idp/tokeninfo"}}`,
  ROCKET_WEB: `{origins=["${ORIGIN}"]}`,
});
behind.target = network.target = service.url;
/** What lies between the service and its provider `second`. */
export const provider = behind;
/** A member of staff. */
export const staff = await Staff.signIn(service.url);
/** A folder for files. */
export const folder = mkdtempSync(join(tmpdir(), "vestibule-client-"));
/** The key store of all phones. */
export const keys = fileKeys(join(folder, "keys"));
/** Whether the sessions of this test are bound to keys. */
export let bound = false;

/** Runs a test with sessions that are bound to a key of the device, and with those that are not. */
export function test(name: string, work: (context: TestContext) => Promise<void>): void {
  for (const binding of [false, true]) {
    once(binding ? `with a device key, ${name}` : name, (context) => {
      bound = binding;
      context.after(() => (bound = false));
      return work(context);
    });
  }
}

export async function end(): Promise<void> {
  await network.stop();
  await provider.stop();
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
}

export interface Phone {
  readonly client: Vestibule;
  readonly storage: TokenStorage;
  /** What its listener was told. */
  readonly states: AuthState[];
  /** How far its clock is ahead, in milliseconds. */
  clock: { ahead: number };
}

/** A phone, or the same phone started anew with what it had stored. */
export function phone(options: Partial<Omit<Options, "session">> = {}): Phone {
  const clock = { ahead: 0 };
  const storage = options.storage ?? memoryStorage();
  const now = () => Date.now() + clock.ahead;
  const client = createVestibule({ baseUrl: network.url, clock: now, deviceKey: bound ? keys : "none", ...options, storage });
  const states: AuthState[] = [];
  client.onAuthStateChange((state) => states.push(state));
  return { client, storage, states, clock };
}

/** The state of a phone's client. */
export function state({ client }: Phone): AuthState {
  return client.state;
}

let people = 0;

/** An address that nobody has used. */
export function somebody(): string {
  return `person-${++people}@example.com`;
}

/** Signs in, and returns the user's id. */
export async function signIn({ client }: Phone, email = somebody()): Promise<string> {
  const { user } = await client.signIn("idp", await service.idToken({ email }));
  return user.id;
}

/** Reads who is signed in. */
export async function whoAmI({ client }: Phone): Promise<string> {
  const answer = await client.fetch("/api/v1/me");
  assert.equal(answer.status, 200);
  return ((await answer.json()) as { id: string }).id;
}

/** Expects an error, and returns it. */
export async function refused(promise: Promise<unknown>, error: ErrorName): Promise<VestibuleError> {
  const outcome = await promise.then(
    (value) => assert.fail(`${error} was expected, and this came: ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  assert(outcome instanceof VestibuleError, String(outcome));
  assert.equal(outcome.error, error);
  return outcome;
}

/** The stored session, if there is one. */
export async function stored({ storage }: Phone): Promise<{ refresh_token: string; user: { id: string } } | undefined> {
  return (JSON.parse((await storage.get()) ?? "{}") as { session?: { refresh_token: string; user: { id: string } } })
    .session;
}

/** Lets time pass for the sessions of a user at the service. */
export async function pass(user: string, interval: string): Promise<void> {
  const shift = ["created_at", "expires_at", "rotated_at"].map(
    (column) => `${column} = ${column} - interval '${interval}'`,
  );
  const of = `identity_id IN (SELECT id FROM identities WHERE user_id = '${user}')`;
  await service.sql(`UPDATE sessions SET ${shift.join(", ")} WHERE ${of}`);
}

/** Lets a quarter of an hour pass on a phone: its access token has expired, as it sees it. */
export function quarterOfAnHour({ clock }: Phone): void {
  clock.ahead += 15 * 60_000;
}
