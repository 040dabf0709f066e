import type { SignedOutReason } from "./client.js";
import type { VestibuleError } from "./error.js";
import { parse } from "./http.js";

/** The reasons that the service gives. */
const REASONS: readonly SignedOutReason[] = [
  "session_expired",
  "session_ended",
  "user_disabled",
  "user_deleted",
  "user_merged",
  "refresh_token_reused",
];

/** Returns the reason that the service gives, if it is known here. */
export const reasonOf = (reason: string): SignedOutReason | undefined => REASONS.find((one) => one === reason);

/** Returns why a refused refresh ended its session, or nothing if the session goes on. */
export const endOf = ({ error, reason = error }: VestibuleError): SignedOutReason | undefined =>
  reasonOf(reason) ??
  (error === "invalid_refresh_token" ? "session_unknown" : error === "invalid_dpop_proof" ? "device_key_lost" : undefined);

/** Returns the id of the session that an access token belongs to. It came from the service, and is not verified. */
export const sessionOf = (token: string): string => {
  const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
  return String(parse<{ sid?: string }>(atob(payload))?.sid);
};
