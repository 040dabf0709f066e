import * as api from "./client/index.js";

const [basePath, idToken] = process.argv.slice(2) as [string, string];
const sessions = new api.SessionApi(new api.Configuration({ basePath }));
const signedIn = await sessions.signIn({ provider: "idp", signInRequest: { idToken } });
const outcome: "created" | "linked" | "signed_in" = signedIn.outcome;
const refreshed = await sessions.refresh({ refreshRequest: { refreshToken: signedIn.refreshToken! } });
const me = await new api.AccountApi(new api.Configuration({ basePath, accessToken: refreshed.accessToken })).getMe();
const refused = await sessions.refresh({ refreshRequest: { refreshToken: "made-up" } }).catch(async (error) => {
  if (!(error instanceof api.ResponseError)) throw error;
  return api.ProblemFromJSON(await error.response.json());
});
// What a backend does with a message.
const user_id = me.id;
const merged = { type: "user.merged", timestamp: "2026-01-31T09:41:53Z" };
const data = { user_id, user: null, from: user_id, into: user_id, from_claims: {} };
const message: api.ReceiveUserMergedRequest = api.ReceiveUserMergedRequestFromJSON({ ...merged, data });
if (message.data.from !== user_id || message.data.user !== null) throw new Error(JSON.stringify(message));
console.log(outcome, me.email, "error" in refused ? refused.error : "not refused");
