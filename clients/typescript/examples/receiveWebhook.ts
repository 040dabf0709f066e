// A backend that receives webhooks: docs/webhooks.md. `once`, `replace` and `forget` are yours.

import { receiveWebhook, VestibuleError } from "vestibule-client/server";

/** Stores the id and does the work in one transaction, and does nothing for a stored id. */
declare function once(id: string, work: () => Promise<void>): Promise<void>;
declare function replace(user: string, by: string): Promise<void>;
declare function forget(user: string): Promise<void>;

export async function receive(request: Request): Promise<Response> {
  const message = await receiveWebhook(request, process.env.VESTIBULE_WEBHOOK_SECRET ?? "").catch((error: unknown) => {
    if (error instanceof VestibuleError && error.error === "invalid_webhook") return undefined;
    throw error;
  });
  if (!message) return new Response(null, { status: 401 });
  await once(message.id, async () => {
    switch (message.type) {
      case "user.merged":
        return replace(message.data.from, message.data.into);
      case "user.deleted":
        return forget(message.data.user_id);
      default: // `webhook.test`, and types of later versions: there is nothing to do.
    }
  });
  return new Response(null, { status: 204 });
}
