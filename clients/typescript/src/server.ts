export { type ErrorDetails, type ErrorName, type Problem, VestibuleError } from "./error.js";
export type { Message, WebhookIdentity, WebhookUser } from "./server/messages.js";
export { type AccessToken, type TokenOptions, verifyAccessToken } from "./server/tokens.js";
export { type Received, receiveWebhook, type Webhook, type WebhookOptions } from "./server/webhooks.js";
