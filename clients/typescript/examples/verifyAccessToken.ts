// A backend that takes requests with access tokens: docs/verify.md.

import { verifyAccessToken, VestibuleError } from "vestibule-client/server";

/** Returns the id of the request's user, or the answer to a request without a good token. */
export async function userOf(request: Request): Promise<string | Response> {
  try {
    const options = { issuer: "https://id.example.com", publicUrl: "https://api.example.com" };
    return (await verifyAccessToken(request, options)).sub;
  } catch (error) {
    const refused = error instanceof VestibuleError && error.error === "invalid_access_token";
    return new Response(null, { status: refused ? 401 : 503 });
  }
}
