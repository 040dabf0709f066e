// A web server that keeps its users' tokens: docs/web.md. `rows` is your table of encrypted text, a row for each session.

import { createServer, type IncomingMessage } from "node:http";
import { createVestibule, type Vestibule, VestibuleError } from "vestibule-client";

const open = new Map<string, Vestibule>();

/** Makes the session of the browser that sends this request. */
function session(id: string, request: IncomingMessage): Vestibule {
  const storage = { get: () => rows.read(id), set: (text: string) => rows.write(id, text), remove: () => rows.delete(id) };
  // The request is over, and its connection perhaps closed, when the session goes on.
  const [address, agent] = [request.socket.remoteAddress ?? "", request.headers["user-agent"] ?? ""];
  const send: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("X-Forwarded-For", address);
    headers.set("User-Agent", agent);
    return fetch(input, { ...init, headers });
  };
  const vestibule = createVestibule({ baseUrl: "https://id.example.com", storage, fetch: send });
  open.set(id, vestibule);
  return vestibule;
}

/** Returns the session that a request's cookie names, unless the cookie is made up. */
export async function sessionOf(request: IncomingMessage): Promise<Vestibule | undefined> {
  const id = cookie(request, "session");
  if (!id || (!open.has(id) && !(await rows.read(id)))) return undefined;
  return open.get(id) ?? session(id, request);
}

const cookie = (request: IncomingMessage, name: string) =>
  request.headers.cookie?.split("; ").find((part) => part.startsWith(name + "="))?.slice(name.length + 1);

export const server = createServer(async (request, response) => {
  if (request.method !== "POST" || request.url !== "/sign-in") return response.writeHead(404).end();
  let text = "";
  for await (const part of request) if ((text += part).length > 20_000) return request.destroy();
  const form = new URLSearchParams(text);
  const csrf = cookie(request, "g_csrf_token");
  if (!csrf || csrf !== form.get("g_csrf_token")) return response.writeHead(400).end();
  const id = crypto.randomUUID();
  const nonce = cookie(request, "nonce");
  try {
    await session(id, request).signIn("idp", form.get("credential") ?? "", { nonce });
  } catch (error) {
    open.delete(id);
    const why = error instanceof VestibuleError ? error.error : "internal_error";
    return response.writeHead(303, { Location: `/sign-in?error=${why}` }).end();
  }
  const kept = `session=${id}; HttpOnly; Secure; SameSite=Lax; Path=/`;
  return response.writeHead(303, { Location: "/", "Set-Cookie": kept }).end();
});
