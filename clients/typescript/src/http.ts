import { VestibuleError } from "./error.js";
import type { Proofs } from "./proofs.js";
import type { components } from "./schema.js";

/**
 * Runs `work` and stops waiting for it after `timeout` milliseconds (0 waits for ever).
 *
 * Fails with `network` where `work` fails, with `timeout` after that time, and with the caller's own reason where their
 * `signal` ends it.
 */
export async function within<T>(
  timeout: number,
  signal: AbortSignal | null | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  // Not every platform's `fetch` heeds a signal.
  const stopped = new Promise<never>((_, reject) => {
    const aborted = Object.assign(new Error("aborted"), { name: "AbortError" });
    // Nor does every platform's signal have a reason.
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason ?? aborted));
  });
  const stop = () => controller.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  let late = false;
  const expire = () => {
    late = true;
    controller.abort();
  };
  const timer = timeout ? setTimeout(expire, timeout) : undefined;
  try {
    return await Promise.race([work(controller.signal), stopped]);
  } catch (cause) {
    if (signal?.aborted || cause instanceof VestibuleError) throw cause;
    throw new VestibuleError(late ? "timeout" : "network", { cause });
  } finally {
    clearTimeout(timer);
  }
}

/** Returns true for a body that can be sent only once. */
export const isStream = (body: unknown) => Boolean(body && typeof body === "object" && "getReader" in body);

/** Returns the method and the URL of a request as they are sent. */
export const shown = (input: string | URL, method: string) => {
  const request = new Request(input, { method });
  return { method: request.method, url: request.url };
};

/** Sends requests, those with the cookie of the browser too if there is one. With the name of a key, a request proves it. */
export class Http {
  constructor(
    private readonly base: string,
    private readonly timeout: number,
    private readonly fetch: typeof globalThis.fetch | undefined,
    private readonly cookie: boolean,
    private readonly proofs: Proofs,
  ) {}

  send(input: Parameters<typeof fetch>[0], init: RequestInit = {}, timeout = this.timeout, key?: string, token?: string): Promise<Response> {
    return within(timeout, init.signal, (signal) => {
      const request = typeof input === "object" && "clone" in input ? input : undefined;
      const send = (proof?: string) => {
        const headers = new Headers(init.headers);
        if (proof) headers.set("DPoP", proof);
        return (this.fetch ?? fetch)(request?.clone() ?? input, { ...init, headers, signal });
      };
      if (!key) return send();
      const sent = shown(request?.url ?? (input as string | URL), init.method ?? request?.method ?? "GET");
      return this.proofs.send({ ...sent, key, ...(token && { token }) }, send, !isStream(init.body));
    });
  }

  /** Sends a request with an access token, which is bound to that key if there is one. */
  sendAs(token: string, key: string | undefined, input: Parameters<typeof fetch>[0], init: RequestInit = {}, timeout?: number): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Authorization", `${key ? "DPoP" : "Bearer"} ${token}`);
    return this.send(input, { ...init, headers }, timeout, key, token);
  }

  /** Sends JSON to the service as anybody, or as the cookie says. */
  post(path: string, body?: object, key?: string, signal: AbortSignal | null = null): Promise<Response> {
    const init: RequestInit = {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      signal,
      ...(body ? { body: JSON.stringify(body) } : {}),
      ...(this.cookie ? { credentials: "include" } : {}),
    };
    return this.send(this.base + path, init, this.timeout, key);
  }
}

/** Reads the JSON of an answer, and fails with the problem that it is. */
export async function json<T>(response: Response, timeout: number): Promise<T> {
  if (!response.ok) throw await problem(response, timeout);
  return within(timeout, undefined, async () => {
    const text = await response.text();
    const answer = parse(text);
    // A text that is cut off is a lost answer, and fails like one. The parser's own error would repeat a part of the text,
    // which may be of a token.
    if (text && !answer) throw new Error("the answer is not whole");
    return answer as T;
  });
}

/** Makes an error of an answer that is not one of success. A proxy's answer has no name, and goes by its status. */
export async function problem(response: Response, timeout: number): Promise<VestibuleError> {
  const { status, headers } = response;
  const text = await within(timeout, undefined, () => response.text()).catch(() => "");
  const body = parse<Partial<components["schemas"]["Problem"]> & { reason?: string; merged_into?: string }>(text) ?? {};
  const name = status === 429 ? "rate_limited" : status < 500 ? "invalid_request" : "service_unavailable";
  const requestId = body.request_id ?? headers.get("X-Request-Id");
  const seconds = headers.get("Retry-After");
  return new VestibuleError(body.error ?? name, {
    status,
    ...(body.detail && { detail: body.detail }),
    ...(body.reason && { reason: body.reason }),
    ...(body.merged_into && { mergedInto: body.merged_into }),
    ...(requestId && { requestId }),
    // A proxy may send a date, which is of no use on a device whose clock is wrong.
    ...(seconds && /^\d+$/.test(seconds) && { retryAfter: Number(seconds) }),
  });
}

/** Parses a JSON object, and returns nothing for anything else. */
export function parse<T extends object>(text: string | null): T | undefined {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return value && typeof value === "object" ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}
