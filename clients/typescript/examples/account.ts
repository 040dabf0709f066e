// What a user does with their account: docs/react-native.md.

import type { Reauthentication, Vestibule, VestibuleError } from "vestibule-client";

/** Each request about the account, in turn. */
export async function account(vestibule: Vestibule): Promise<void> {
  const me = await vestibule.me();
  const linked = await vestibule.link("apple", await freshIdToken());
  await vestibule.unlink(linked.id);
  await vestibule.setName("Ada"); // null: as the providers say
  const sessions = await vestibule.sessions();
  for (const { id, current } of sessions) if (!current) await vestibule.endSession(id);
  await vestibule.signOut(); // this device
  await vestibule.signOut({ scope: "others" }); // all others
  console.log(me.identities.length);
}

/** Joins another account of the person with this one. */
export async function joinAccounts(vestibule: Vestibule): Promise<void> {
  const idToken = await freshIdToken(); // of the other account
  const shown = await vestibule.merge("apple", idToken, { dry_run: true });
  if (!(await agreed(`Join with ${shown.identities.map(({ email }) => email).join(", ")}?`))) return;
  const { merged } = await vestibule.merge("apple", idToken);
  await forgetData(merged.user_id); // or move it to this user
}

/** Deletes the account, after another sign-in if the session is older than ten minutes. */
export async function deleteAccount(vestibule: Vestibule): Promise<void> {
  const ask = (reauthentication?: Reauthentication) => vestibule.deleteAccount({ reauthentication });
  await ask().catch(async (error: VestibuleError) => {
    if (error.error !== "reauthentication_required") throw error;
    await ask({ provider: "idp", id_token: await freshIdToken() });
  });
}
