// A text for each error, to copy into the app: docs/react-native.md.

import { VestibuleError } from "vestibule-client";

/** What to show, or nothing. */
export function sentence(thrown: unknown): string | undefined {
  if (!(thrown instanceof VestibuleError)) throw thrown;
  switch (thrown.error) {
    case "signed_out":                 // the state says why
    case "superseded":                 // meanwhile the person signed out, or in as another user
      return undefined;
    case "network":
    case "timeout":
    case "service_unavailable":
    case "rate_limited":
      return thrown.retryAfter ? `Please try again in ${thrown.retryAfter} seconds.` : "Please try again.";
    case "provider_unavailable":
      return "This way to sign in does not answer at the moment. Try another one.";
    case "user_disabled":
      return "This account is disabled. Please write to support.";
    case "identity_suspended":
      return "This account is suspended. Recover it at its provider, or sign in another way.";
    case "user_not_found":             // only with `create: false`
      return "There is no account yet. Sign up?";
    case "link_required":
      return "There is an account with this address. Sign in as you did before.";
    case "identity_conflict":
      return "This address belongs to another account. Please write to support.";
    case "identity_already_linked":
      return "This belongs to another account here. Join the two?";
    case "last_identity":
      return "Add another way to sign in first.";
    case "too_many_identities":
      return "You have 20 ways to sign in. Remove one first.";
    case "email_not_verified":
      return "Please confirm your address with your provider first.";
    case "email_missing":
      return "We need your address.";
    case "domain_not_allowed":
      return "Please use the account of your organisation.";
    default:
      return `Something went wrong (${thrown.requestId ?? thrown.error}).`;
  }
}
