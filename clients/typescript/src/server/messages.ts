/** The messages of webhooks, by hand until the service's OpenAPI document lists them. */

/** A user, as of the change that a message tells of. */
export interface WebhookUser {
  readonly id: string;
  readonly email: string | null;
  readonly email_verified: boolean;
  readonly name: string | null;
  readonly picture: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly disabled_at: string | null;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly identities: readonly WebhookIdentity[];
}

export interface WebhookIdentity {
  readonly id: string;
  readonly provider: string;
  readonly subject: string;
  readonly email: string | null;
}

interface Data {
  readonly user_id: string;
  /** The user after the change, or nothing if there is none any more. */
  readonly user: WebhookUser | null;
}

interface Of<Type extends string, More = unknown> {
  readonly type: Type;
  /** The time of the change (RFC 3339). */
  readonly timestamp: string;
  readonly data: Data & More;
}

type Changed = { readonly identity: Pick<WebhookIdentity, "id" | "provider"> & Partial<WebhookIdentity> };

export type Message =
  | Of<"user.created" | "user.updated" | "user.disabled" | "user.enabled" | "user.deleted">
  /** `from` is the user who is no more; whatever was theirs is now of `into`. */
  | Of<"user.merged", { readonly from: string; readonly into: string }>
  | Of<"identity.linked" | "identity.unlinked", Changed>
  | Of<"identity.moved", Changed & { readonly from: string; readonly to: string }>
  | Of<"sessions.ended", { readonly sessions: "one" | "others" | "all"; readonly session_id: string | null }>
  | Of<"security.refresh_token_replayed", { readonly session_id: string | null }>;
