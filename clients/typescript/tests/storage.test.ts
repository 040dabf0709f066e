// The storages to import, on the packages' own JavaScript. Their native modules, which only a device has, are maps here.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { build, type Plugin } from "esbuild";

import type { TokenStorage } from "../src/index.js";
import { CLIENT } from "./service.js";
import { network, phone, quarterOfAnHour, refused, signIn, state, test, whoAmI } from "./world.js";

/** What the native modules keep. */
const entries = new Map<string, string>();
/** Names of entries in the order in which they were written or removed. */
let changes: string[] = [];
/** The change at which the process ends, counted from now. */
let killed = Infinity;

function change(name: string, value?: string): void {
  if (changes.length >= killed) throw new Error("the app was killed");
  changes.push(name);
  if (value === undefined) entries.delete(name);
  else entries.set(name, value);
}

const native = {
  ExpoSecureStore: {
    AFTER_FIRST_UNLOCK_THIS_DEVICE_ONLY: 2,
    getValueWithKeyAsync: async (key: string) => entries.get(key) ?? null,
    setValueWithKeyAsync: async (value: string, key: string) => {
      assert(Buffer.byteLength(value) <= 2048, "what iOS may refuse");
      change(key, value);
    },
    deleteValueWithKeyAsync: async (key: string) => change(key),
  },
  RNKeychainManager: {
    getGenericPasswordForOptions: async ({ service }: { service: string }) =>
      entries.has(service) && { username: "vestibule", password: entries.get(service) },
    setGenericPasswordForOptions: async ({ service }: { service: string }, _: string, password: string) => {
      if (password === "refused") return false;
      change(service, password);
      return { service };
    },
    resetGenericPasswordForOptions: async ({ service }: { service: string }) => {
      change(service);
      return true;
    },
  },
};
Object.assign(globalThis, { native });

/** In the place of React Native's own packages. */
const device: Plugin = {
  name: "device",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(expo-modules-core|react-native)$/ }, ({ path }) => ({ path, namespace: "device" }));
    const contents = `export const requireNativeModule = (name) => native[name];
      export const NativeModules = native;
      export const Platform = { OS: "ios" };`;
    onLoad({ filter: /./, namespace: "device" }, () => ({ contents }));
  },
};

async function load(entry: string): Promise<Record<string, () => TokenStorage>> {
  const outfile = join(CLIENT, `target/${entry}.bundle.mjs`);
  const entryPoints = [join(CLIENT, `src/${entry}.ts`)];
  await build({ entryPoints, outfile, bundle: true, format: "esm", plugins: [device] });
  return (await import(pathToFileURL(outfile).href)) as Record<string, () => TokenStorage>;
}

const expo = (await load("expo")).expoStorage ?? assert.fail();
const keychain = (await load("keychain")).keychainStorage ?? assert.fail();

for (const [name, create] of Object.entries({ expo, keychain })) {
  test(`on ${name}, a session survives restarts and refreshes, and a sign-out leaves none`, async () => {
    entries.clear();
    assert.equal(await create().get(), null);
    const user = await signIn(phone({ storage: create() }));
    for (let starts = 0; starts < 3; starts++) {
      const mine = phone({ storage: create() });
      assert.equal(await whoAmI(mine), user);
      quarterOfAnHour(mine);
      assert.equal(await whoAmI(mine), user);
    }
    network.down = true;
    const away = phone({ storage: create() });
    await refused(away.client.me(), "network");
    network.down = false;
    const now = state(away);
    assert(now.status === "signed_in" && now.user.id === user);
    await away.client.signOut();
    const next = phone({ storage: create() });
    await refused(next.client.me(), "signed_out");
    await create().remove();
    assert.equal(entries.size, 0);
  });
}

test("on expo, a text of any length is whole or the one before, whenever the app is killed", async () => {
  entries.clear();
  const texts = ["{}", "ä€😀".repeat(1500), "", "x".repeat(501), "😀".repeat(500)];
  for (let at = 0; ; at++) {
    const [before = "", after = ""] = [texts[at % 5], texts[(at + 1) % 5]];
    killed = Infinity;
    await expo().set(before);
    assert.equal(await expo().get(), before || null);
    changes = [];
    killed = Math.floor(at / 5);
    const done = await expo().set(after).then(
      () => true,
      () => false,
    );
    assert([before || null, after || null].includes(await expo().get()), `killed after ${killed} changes`);
    if (done && killed > 25) break;
  }
  killed = Infinity;
});

test("on keychain, a text that is not stored is an error", async () => {
  await assert.rejects(keychain().set("refused"), /stored nothing/);
});
