// What apps get: a small bundle, the types of the service, and guides whose code compiles.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";

import { buildSync } from "esbuild";

import type { Vestibule } from "../src/index.js";
import { CLIENT } from "./service.js";
import { network, service, somebody } from "./world.js";

const LIMITS = { index: 6_000, expo: 700, keychain: 500, react: 500, server: 4_500 };
/** What an app has installed. */
const INSTALLED = ["expo-secure-store", "react", "react-native-keychain"];
const GUIDES = ["docs/react-native.md", "docs/web.md", "clients/typescript/README.md"];

/** Runs a program, and returns what it says. */
async function run(program: string, ...args: string[]): Promise<string> {
  return promisify(execFile)(process.execPath, [program, ...args], { cwd: CLIENT }).then(
    ({ stdout }) => stdout,
    (error: { stdout: string; stderr: string }) => assert.fail(error.stdout + error.stderr),
  );
}

for (const [entry, limit] of Object.entries(LIMITS)) {
  test(`${entry} is at most ${limit} bytes, compressed, and imports nothing that the app has not installed, not even from Node`, (context) => {
    const { outputFiles, metafile } = buildSync({
      entryPoints: [join(CLIENT, `src/${entry}.ts`)],
      bundle: true,
      minify: true,
      format: "esm",
      platform: "neutral",
      external: INSTALLED,
      target: "es2022",
      write: false,
      metafile: true,
    });
    const [bundle] = outputFiles;
    assert(bundle);
    const compressed = gzipSync(bundle.contents, { level: 9 }).length;
    context.diagnostic(`${bundle.contents.length} bytes minified, ${compressed} compressed`);
    assert(compressed <= limit, `${compressed} bytes`);
    assert(Object.keys(metafile.inputs).every((input) => !input.includes("node_modules")));
  });
}

/** What an app does in its life, in JavaScript that is TypeScript, too. */
const LIFE = `
const [url = "", idToken = ""] = process.argv.slice(2);
const storage = memoryStorage();
const started = () => createVestibule({ baseUrl: url, storage });
async function live() {
  const { user } = await started().signIn("idp", idToken);
  const app = started();
  if ((await app.me()).id !== user.id) throw new Error("it is signed in when it starts again");
  const token = await app.accessToken();
  const next = await app.accessToken({ refresh: true });
  if (next === token) throw new Error("it refreshes");
  const request = { headers: { authorization: "Bearer " + next } };
  if ((await verifyAccessToken(request, { issuer: url })).sub !== user.id) throw new Error("a backend knows who it is");
  await app.signOut();
  const over = await fetch(url + "/api/v1/me", { headers: { Authorization: "Bearer " + next } });
  if (over.status !== 401 || typeof useAuth !== "function") throw new Error("it is signed out");
  console.log("lived");
}
void live();
`;

test("the packed file signs programs of both kinds of modules in and out, and compiles in each way", async () => {
  const app = join(CLIENT, "target/app");
  rmSync(app, { recursive: true, force: true });
  mkdirSync(join(app, "node_modules"), { recursive: true });
  await run(process.env.npm_execpath ?? assert.fail("npm runs the tests"), "pack", "--pack-destination", app);
  const { version } = JSON.parse(readFileSync(join(CLIENT, "package.json"), "utf8")) as { version: string };
  await promisify(execFile)("tar", ["-xzf", `vestibule-client-${version}.tgz`, "-C", "node_modules"], { cwd: app });
  renameSync(join(app, "node_modules/package"), join(app, "node_modules/vestibule-client"));

  const names = ["{ createVestibule, memoryStorage }", "{ verifyAccessToken }", "{ useAuth }"];
  const packages = ["vestibule-client", "vestibule-client/server", "vestibule-client/react"];
  const [imports, requires] = [
    names.map((name, at) => `import ${name} from "${packages[at]}";`).join("\n"),
    names.map((name, at) => `const ${name} = require("${packages[at]}");`).join("\n"),
  ];
  // Metro before 0.82 and others read `main` and folders, and no `exports`.
  const folders = requires.replaceAll('"vestibule-client', '"./node_modules/vestibule-client');
  const programs = { "app.mjs": imports, "app.cjs": requires, "folders.cjs": folders };
  for (const [name, head] of Object.entries(programs)) {
    writeFileSync(join(app, name), head + LIFE);
    assert.equal(await run(join(app, name), network.url, await service.idToken({ email: somebody() })), "lived\n");
  }
  for (const name of ["app.ts", "app.mts", "app.cts"]) writeFileSync(join(app, name), imports + LIFE);
  const strict = ["--strict", "--target", "es2022"];
  for (const [modules, resolution, ...files] of [
    ["commonjs", "node10", "app.ts"],
    ["nodenext", "nodenext", "app.mts", "app.cts"],
    ["esnext", "bundler", "app.ts"],
  ] as const) {
    const made = ["--rootDir", app, "--outDir", join(app, modules)];
    const how = ["--module", modules, "--moduleResolution", resolution, ...made, ...strict];
    await run("node_modules/typescript/bin/tsc", ...how, ...files.map((file) => join(app, file)));
  }
  // What the compiler makes for CommonJS, in a folder that says so.
  writeFileSync(join(app, "commonjs/package.json"), '{ "type": "commonjs" }');
  const made = join(app, "commonjs/app.js");
  assert.equal(await run(made, network.url, await service.idToken({ email: somebody() })), "lived\n");
});

test("the package has no dependency", () => {
  const { dependencies } = JSON.parse(readFileSync(join(CLIENT, "package.json"), "utf8")) as { dependencies?: object };
  assert.equal(dependencies, undefined);
});

test("the types are those of the running service's description; `npm run types` makes them anew", async () => {
  const kept = readFileSync(join(CLIENT, "src/schema.ts"), "utf8").split("\n");
  const made = (await run("types.mjs", service.url)).split("\n");
  const other = made.findIndex((line, at) => line !== kept[at]);
  assert.equal(kept[other], made[other]);
  assert.equal(kept.length, made.length);
});

test("every block of TypeScript in the guides compiles, and so do the examples", async () => {
  const blocks = join(CLIENT, "target/guides");
  rmSync(blocks, { recursive: true, force: true });
  mkdirSync(blocks, { recursive: true });
  let count = 0;
  for (const guide of GUIDES) {
    const text = readFileSync(join(CLIENT, "../..", guide), "utf8");
    for (const [, language, code] of text.matchAll(/^```(tsx?)\n(.*?)^```$/gms)) {
      const name = /^\/\/ (\w+)\.ts/.exec(code ?? "")?.[1] ?? `${guide.replaceAll(/\W/g, "_")}_${++count}`;
      // A block without imports is a script otherwise, whose names the others see.
      writeFileSync(join(blocks, `${name}.${language}`), `${code}\nexport {};\n`);
    }
    assert(!/^```(js|javascript|typescript)$/m.test(text), `${guide} has code that is not compiled`);
  }
  assert(count > 5, "they are found");
  await run("node_modules/typescript/bin/tsc", "-p", "tests/guides");
});

test("the web server of the guide signs a browser in under its name, and keeps nothing for a made-up cookie", async (context) => {
  const code = readFileSync(join(CLIENT, "examples/webServer.ts"), "utf8");
  const built = join(CLIENT, "target/web_server.mjs");
  buildSync({
    stdin: { contents: code.replace("https://id.example.com", service.url), loader: "ts", resolveDir: CLIENT },
    alias: { "vestibule-client": join(CLIENT, "src/index.ts") },
    bundle: true,
    format: "esm",
    platform: "node",
    outfile: built,
  });
  const table = new Map<string, string>();
  const rows = {
    read: async (id: string) => table.get(id) ?? null,
    write: async (id: string, text: string) => void table.set(id, text),
    delete: async (id: string) => void table.delete(id),
  };
  Object.assign(globalThis, { rows });
  const { server, sessionOf } = (await import(built)) as {
    server: Server;
    sessionOf(request: object): Promise<Vestibule | undefined>;
  };
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;

  const credential = await service.idToken({ email: somebody(), nonce: "n-1" });
  const post = (csrf: string) =>
    fetch(`http://127.0.0.1:${port}/sign-in`, {
      method: "POST",
      redirect: "manual",
      headers: { Cookie: "g_csrf_token=abc; nonce=n-1", "User-Agent": "Browser of Ada" },
      body: new URLSearchParams({ credential, g_csrf_token: csrf }),
    });
  assert.equal((await post("another")).status, 400);
  const answer = await post("abc");
  assert.deepEqual([answer.status, answer.headers.get("Location")], [303, "/"]);
  const [cookie = ""] = answer.headers.getSetCookie()[0]?.split(";") ?? [];
  const browser = (cookie: string) => ({ headers: { cookie, "user-agent": "Browser of Ada" }, socket: {} });
  const session = (await sessionOf(browser(cookie))) ?? assert.fail("it is signed in");
  assert.equal((await session.sessions())[0]?.user_agent, "Browser of Ada");
  for (let tries = 0; tries < 2; tries++) assert.equal(await sessionOf(browser("session=made-up")), undefined);
  await session.signOut();
  assert.equal(session.state.status, "signed_out");
});
