// A backend that calls the admin API: docs/admin-api.md.

import { adminClient, VestibuleError } from "vestibule-client/server";

const admin = adminClient({ url: "https://id.example.com", key: process.env.VESTIBULE_API_KEY ?? "" });

for await (const user of admin.users({ status: "disabled" })) console.log(user.email);
const ada = await admin.userBy({ email: "ada@example.com" });
if (ada) {
  await admin.setClaims(ada.id, { reason: "she joined the editors", claims: { roles: ["editor"] } });
  const { fingerprint, ended_sessions } = await admin.change(ada.id, "disable", { reason: "left", dry_run: true });
  if (ended_sessions === 0) await admin.change(ada.id, "disable", { reason: "left", seen: fingerprint });
}

/** Returns the user's id, or that of the user with whom they were merged. */
export async function currentId(id: string): Promise<string | undefined> {
  return admin.user(id).then(
    (user) => user.id,
    (error: unknown) => {
      if (!(error instanceof VestibuleError) || error.error !== "user_not_found") throw error;
      return error.mergedInto;
    },
  );
}
