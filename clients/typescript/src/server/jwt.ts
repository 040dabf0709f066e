import { VestibuleError } from "../error.js";
import { parse } from "../http.js";
import { decode } from "./base64.js";

/** A JWT whose signature is not verified yet. */
export interface Jwt {
  readonly header: Record<string, unknown>;
  readonly claims: Record<string, unknown>;
  readonly signature: Uint8Array<ArrayBuffer>;
  readonly signed: Uint8Array<ArrayBuffer>;
}

/** Reads a JWT. */
export function read(text: string): Jwt | undefined {
  const parts = text.split(".");
  const [head = "", body = "", rest = ""] = parts;
  const [header, claims, signature] = [object(head), object(body), decode(rest, "base64url")];
  if (parts.length !== 3 || !header || !claims || !signature) return undefined;
  return { header, claims, signature, signed: new TextEncoder().encode(`${head}.${body}`) };
}

function object(part: string): Record<string, unknown> | undefined {
  const bytes = decode(part, "base64url");
  return bytes && parse(new TextDecoder().decode(bytes));
}

/** Makes the error of a request that nobody may be let in by. */
export function refused(detail: string): VestibuleError {
  return new VestibuleError("invalid_access_token", { detail });
}
