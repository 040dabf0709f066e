export type {
  Identity,
  LinkOptions,
  Me,
  Merge,
  MergeOptions,
  Provider,
  Reauthentication,
  RemovalOptions,
  Session,
  SignedIn,
  SignInOptions,
  User,
} from "./api.js";
export type { AuthState, Options, SignedOutReason, Vestibule } from "./client.js";
export { type ErrorDetails, type ErrorName, type Problem, VestibuleError } from "./error.js";
export type { KeyStore } from "./keys.js";
export { memoryStorage, type TokenStorage } from "./storage.js";
export { createVestibule } from "./vestibule.js";
