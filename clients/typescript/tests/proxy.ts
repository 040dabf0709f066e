// What lies between two programs: it forwards requests, and loses, holds or refuses what it is told to.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/**
 * - `refuse`: the request goes nowhere, and its connection ends.
 * - `lose`: the request arrives, and the connection ends before the answer.
 * - `hang`: the request arrives, and the answer never comes.
 * - A response: the request goes nowhere, and this is the answer.
 */
export type Fault = "refuse" | "lose" | "hang" | { status: number; headers: Record<string, string> };

/** An answer that is held back. */
export interface Held {
  /** Settled once the service has answered. */
  readonly answered: Promise<void>;
  release(): void;
}

/** A request that came through. */
export interface Passed {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly dpop: string | string[] | undefined;
  readonly body: string;
}

type Rule = { path: string; fault: Fault } | { path: string; answered: () => void; until: Promise<void> };

export class Proxy {
  /** What came through, in order, but for proofs without a nonce. */
  passed: Passed[] = [];
  /** While true, everything is refused. */
  down = false;
  private rules: Rule[] = [];

  private constructor(
    private readonly server: Server,
    public target: string,
  ) {}

  static async start(target = ""): Promise<Proxy> {
    const server = createServer();
    const proxy = new Proxy(server, target);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      // The client may have left.
      proxy.pass(request, response).catch(() => request.socket.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }

  /** Does that to the next request whose path begins so. */
  next(path: string, fault: Fault): void {
    this.rules.push({ path, fault });
  }

  /** Holds back the answer to the next request whose path begins so. */
  hold(path: string): Held {
    let [answered, release] = [() => {}, () => {}];
    const done = new Promise<void>((resolve) => (answered = resolve));
    const until = new Promise<void>((resolve) => (release = resolve));
    this.rules.push({ path, answered, until });
    return { answered: done, release };
  }

  /** How many requests to paths that begin so came through. */
  count(path: string): number {
    return this.passed.filter((request) => request.path.startsWith(path)).length;
  }

  private async pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [method, path] = [request.method ?? "GET", request.url ?? "/"];
    const body = await buffer(request);
    // A first proof only fetches the nonce for the next one.
    const { dpop } = request.headers;
    const asks = typeof dpop === "string" && !Buffer.from(dpop.split(".")[1] ?? "", "base64url").includes('"nonce"');
    const at = asks ? -1 : this.rules.findIndex((rule) => path.startsWith(rule.path));
    const [rule] = at < 0 ? [] : this.rules.splice(at, 1);
    const fault = rule && "fault" in rule ? rule.fault : undefined;
    if (this.down || fault === "refuse") return void request.socket.destroy();
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (!["connection", "host", "content-length", "transfer-encoding"].includes(name))
        headers.set(name, String(value));
    }
    const { authorization } = request.headers;
    if (!asks) this.passed.push({ method, path, authorization, dpop, body: body.toString() });
    if (typeof fault === "object") return void response.writeHead(fault.status, fault.headers).end();
    const answer = await fetch(this.target + path, {
      method,
      headers,
      redirect: "manual",
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (fault === "lose") return void request.socket.destroy();
    if (fault === "hang") return;
    if (rule && "until" in rule) {
      rule.answered();
      await rule.until;
    }
    for (const [name, value] of answer.headers) {
      if (!["connection", "content-encoding", "content-length", "transfer-encoding"].includes(name))
        response.setHeader(name, value);
    }
    response.writeHead(answer.status).end(bytes);
  }
}
