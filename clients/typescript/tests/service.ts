// The service itself, as `cargo run` starts it: with a database, an identity provider and staff of its own.

import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** The folder of the client. */
export const CLIENT = resolve(import.meta.dirname, "../..");
const PROGRAM = process.env.VESTIBULE ?? resolve(CLIENT, "../../target/debug/vestibule");
// Whatever ends this process closes the shell's input, and so ends the service with its database.
const UNTIL_WE_END = '"$0" & service=$!; read -r _; kill -TERM $service; wait $service';

/** Tries until it succeeds. */
export async function eventually<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + 600_000; Date.now() < end; ) {
    const done = await attempt().catch(() => undefined);
    if (done !== undefined) return done;
    await new Promise((later) => setTimeout(later, 50));
  }
  throw new Error(`never: ${what}`);
}

/** A port that nothing listens on, none of those that connections go out from. */
async function freePort(): Promise<number> {
  return eventually("a port is free", async () => {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    server.close();
    await once(server, "close");
    return port;
  });
}

export class Service {
  private constructor(
    readonly url: string,
    private readonly folder: string,
    private readonly environment: NodeJS.ProcessEnv,
    private readonly shell: ChildProcess,
  ) {}

  /** Starts it with further settings; `url` is known to them as `{url}`. */
  static async start(settings: Record<string, string> = {}, beside?: Service): Promise<Service> {
    const folder = mkdtempSync(join(tmpdir(), "vestibule-client-"));
    // The database's user has to enter.
    chmodSync(folder, 0o755);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const environment: NodeJS.ProcessEnv = {
      PATH: process.env.PATH,
      ROCKET_PORT: String(port),
      ROCKET_DEV_DIR: join(beside?.folder ?? folder, "data"),
      ROCKET_DRAIN: "0",
      ROCKET_RATE_LIMIT: "{enabled=false}",
      ROCKET_SECRET_KEY: "a secret key that only the tests use",
      ...(beside && { DATABASE_URL: beside.database() }),
    };
    for (const [name, value] of Object.entries(settings)) environment[name] = value.replaceAll("{url}", url);
    const log = openSync(join(folder, "log"), "w");
    const shell = spawn("sh", ["-c", UNTIL_WE_END, PROGRAM], {
      cwd: folder,
      env: environment,
      stdio: ["pipe", log, log],
    });
    closeSync(log);
    const service = new Service(url, folder, environment, shell);
    try {
      await eventually(`${PROGRAM} is ready`, async () => ((await fetch(`${url}/readyz`)).ok ? true : undefined));
    } catch (error) {
      throw new Error(service.log(), { cause: error });
    }
    return service;
  }

  async stop(): Promise<void> {
    this.shell.stdin?.end();
    if (this.shell.exitCode === null) await once(this.shell, "exit");
    rmSync(this.folder, { recursive: true, force: true });
  }

  log(): string {
    return readFileSync(join(this.folder, "log"), "utf8");
  }

  /** Runs one of its commands, and returns what it prints. */
  async command(...args: string[]): Promise<string> {
    const env = { ...this.environment, DATABASE_URL: this.database() };
    return (await run(PROGRAM, args, { cwd: this.folder, env })).stdout.trim();
  }

  /** The database's URL, which it prints. */
  database(): string {
    const [, url] = /psql '([^']+)'/.exec(this.log()) ?? [];
    assert(url, this.log());
    return url;
  }

  /** Changes what only time changes. */
  async sql(statement: string): Promise<string> {
    const { stdout } = await run("psql", [this.database(), "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement]);
    return stdout.trim();
  }

  /** An `id_token` of the development provider. */
  async idToken(account: Record<string, string>): Promise<string> {
    const answer = await fetch(`${this.url}/dev/idp/mint?${new URLSearchParams(account)}`);
    assert(answer.ok, await answer.clone().text());
    return (await answer.text()).trim();
  }
}
