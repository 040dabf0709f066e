// An app's process, started anew: it wants an access token, and prints it, or what it got instead.

import { createVestibule, VestibuleError } from "../src/index.js";
import { fileLock, fileStorage } from "./file.js";
import { fileKeys } from "./keys.js";

const [baseUrl = "", keys = "", storage = "", lock] = process.argv.slice(2);
const client = createVestibule({
  baseUrl,
  storage: { ...fileStorage(storage), ...(lock && { lock: fileLock(lock) }) },
  deviceKey: keys ? fileKeys(keys) : "none",
});
const token = await client.accessToken().catch((error: VestibuleError) => error.error);
console.log(JSON.stringify({ token, state: client.state }));
