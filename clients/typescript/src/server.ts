export {
  adminClient,
  type AdminClient,
  type AdminOptions,
  type Change,
  type ChangeRequest,
  type ChangeResult,
  type ClaimsRequest,
  type EventFeed,
  type EventRecord,
  type NewUser,
  type SessionRecord,
  type UserRecord,
  type UserRecords,
  type UserSearch,
} from "./server/admin.js";
export { type ErrorDetails, type ErrorName, type Problem, VestibuleError } from "./error.js";
export type { LaterMessage, Message, WebhookIdentity, WebhookUser } from "./server/messages.js";
export { type AccessToken, type Bearing, type TokenOptions, verifyAccessToken } from "./server/tokens.js";
export { type Received, receiveWebhook, type Webhook, type WebhookOptions } from "./server/webhooks.js";
