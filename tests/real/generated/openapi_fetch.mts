import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const [baseUrl, id_token] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl });
const signedIn = await client.POST("/api/v1/auth/oauth/{provider}", {
  params: { path: { provider: "idp" } },
  body: { id_token },
});
if (!signedIn.data) throw new Error(signedIn.error.error);
const outcome: "created" | "linked" | "signed_in" = signedIn.data.outcome;
const refreshed = await client.POST("/api/v1/auth/refresh", { body: { refresh_token: signedIn.data.refresh_token! } });
if (!refreshed.data) throw new Error(refreshed.error.error);
const headers = { Authorization: `Bearer ${refreshed.data.access_token}` };
const me = await client.GET("/api/v1/me", { headers });
if (!me.data) throw new Error(me.error.error);
const refused = await client.POST("/api/v1/auth/refresh", { body: { refresh_token: "made-up" } });
console.log(outcome, me.data.email, refused.error?.error);
