import type { SignedOutReason } from "./client.js";
import type { components } from "./schema.js";

/** The errors of the service, as its OpenAPI document lists them. */
export type Problem = components["schemas"]["Problem"]["error"];

/**
 * Everything that can go wrong: the errors of the service, and
 *
 * - `network`: no answer came, or not all of it. The service may have done what was asked.
 * - `timeout`: no answer came in time. The service may have done what was asked.
 * - `signed_out`: nobody is signed in; `reason` says since when.
 * - `superseded`: a sign-out or another sign-in came in between, and the answer was thrown away.
 * - `storage`: the storage failed; `cause` is its error.
 * - `invalid_webhook`: a message is not one that the service has just sent. Only a backend receives them.
 */
export type ErrorName =
  | Problem
  | "network"
  | "timeout"
  | "signed_out"
  | "superseded"
  | "storage"
  | "invalid_webhook"
  // What a newer service may send.
  | (string & {});

/** The details of an error, each of which may be absent. */
export interface ErrorDetails {
  /** The HTTP status. */
  readonly status?: number;
  /** The check that failed, for the log. It never repeats the request's content. */
  readonly detail?: string;
  /** The reason for the end of a session. A newer service may send others. */
  readonly reason?: SignedOutReason | (string & {});
  /** The user into whom the one that a backend asked for was merged. */
  readonly mergedInto?: string;
  /** The id that finds the request in the service's log. */
  readonly requestId?: string;
  /** Seconds to wait before the next attempt. */
  readonly retryAfter?: number;
  /** The error behind it. */
  readonly cause?: unknown;
}

/** The error that every method of the client fails with. Decide by `error`, never by `message`. */
export class VestibuleError extends Error implements ErrorDetails {
  override readonly name = "VestibuleError";
  declare readonly status?: number;
  declare readonly detail?: string;
  declare readonly reason?: SignedOutReason | (string & {});
  declare readonly mergedInto?: string;
  declare readonly requestId?: string;
  declare readonly retryAfter?: number;

  /**
   * The name of the error. A newer service may send a name that is not listed here: treat it as its `status` says, 4xx
   * like `invalid_request` and 5xx like `internal_error`.
   */
  readonly error: ErrorName;

  constructor(error: ErrorName, details: ErrorDetails = {}) {
    const why = details.detail ?? innermost(details.cause);
    super(why ? `${error}: ${why}` : error);
    this.error = error;
    Object.assign(this, details);
  }
}

/** Returns what the error at the bottom says, such as the name that was not resolved. */
function innermost(cause: unknown): string | undefined {
  const { message, cause: inner } = (cause ?? {}) as { message?: string; cause?: unknown };
  return (inner ? innermost(inner) : undefined) ?? message;
}
