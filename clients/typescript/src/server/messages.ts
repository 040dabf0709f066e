import type { webhooks } from "../schema.js";

type Body<Type extends keyof webhooks> = webhooks[Type]["post"]["requestBody"]["content"]["application/json"];

/**
 * A message whose `type` a later version of the service has added. The text is in its place, since TypeScript has no type for
 * all other texts: with it, a `switch` without a `default` does not compile.
 */
export interface LaterMessage {
  readonly type: "(of a later version)";
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}
/** A message, as the service's OpenAPI document describes it. `type` tells what is in `data`. */
export type Message = { [Type in keyof webhooks]: Body<Type> }[keyof webhooks] | LaterMessage;
/** A user, as of the change that a message tells of. */
export type WebhookUser = NonNullable<Body<"user.created">["data"]["user"]>;
/** An account at an identity provider. One that is gone has only `id` and `provider`. */
export type WebhookIdentity = Body<"identity.unlinked">["data"]["identity"];
