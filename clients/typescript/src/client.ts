import type {
  Identity,
  LinkOptions,
  Me,
  Merge,
  MergeOptions,
  Provider,
  RemovalOptions,
  Session,
  SignedIn,
  SignInOptions,
  User,
} from "./api.js";
import type { KeyStore } from "./keys.js";
import type { TokenStorage } from "./storage.js";

/** The reasons why nobody is signed in. The service gives those from `session_expired` to `refresh_token_reused`. */
export type SignedOutReason =
  /** Nobody has signed in on this storage, or the last user deleted the account here. */
  | "never"
  /** The person signed out. */
  | "signed_out"
  /** The session was not used for too long (30 days by default), or is too old. */
  | "session_expired"
  /** Staff, or the person on another device, ended the session, or unlinked the identity that it was opened with. */
  | "session_ended"
  /** Staff disabled the user. */
  | "user_disabled"
  /** The account was deleted. */
  | "user_deleted"
  /** The user was merged into another one, as whom the person signs in from now on. */
  | "user_merged"
  /** A refresh token was used twice, so that somebody else may have had it. */
  | "refresh_token_reused"
  /** The service does not know the session and cannot say why: it ended long ago, or the storage is an old copy. */
  | "session_unknown"
  /** The key that the session is bound to is gone: the key store was cleared, or the storage is of another device. */
  | "device_key_lost"
  /** The storage cannot be read: the next call tries again, and a sign-in or a sign-out replaces what is there. */
  | "storage_failed"
  /** With a cookie: the service does not answer, so that it is not known who is signed in. The next call tries again. */
  | "unreachable";

/** The state of the sign-in. It is never changed in place: another state is another object. */
export type AuthState =
  /** The storage has not been read yet, or with a cookie the service has not answered. */
  | { readonly status: "restoring" }
  | {
      readonly status: "signed_in";
      /** The user, as the service described them last: at the sign-in, or to `me()`, which reads new claims. */
      readonly user: User;
      /** True if the last attempt to refresh brought no answer. The session goes on; the next request tries again. */
      readonly offline: boolean;
      /** The user whom this storage belonged to before this sign-in, if another: data of theirs is on this device. */
      readonly userChanged?: { readonly from: string };
    }
  | { readonly status: "signed_out"; readonly reason: SignedOutReason };

/** The settings of a client: either the app has a storage, or the browser a cookie. */
export type Options = Settings &
  (
    | {
        /** The place of the refresh token and of the user. */
        storage: TokenStorage;
        session?: never;
      }
    | {
        /**
         * The service keeps the refresh token in a cookie, which no script can read; the page stores nothing, and its next
         * load asks the service who is signed in. For pages of the service's own site whose origins are in `web.origins`.
         */
        session: "cookie";
        storage?: never;
      }
  );

interface Settings {
  /** The service's public URL, such as `https://id.example.com`. Without a scheme it is a `TypeError`. */
  baseUrl: string;
  /** The `fetch` to use; by default the platform's. */
  fetch?: typeof globalThis.fetch;
  /**
   * Where the keys are to which sessions are bound, so that stolen tokens are worth nothing (DPoP, RFC 9449). By default, in a
   * browser its own key store; elsewhere, sessions are not bound unless the app gives one. With `"none"`, new sessions
   * are not bound.
   */
  deviceKey?: KeyStore | "none";
  /** Returns this device's time in milliseconds; by default `Date.now`. It may be wrong, and may jump. */
  clock?: () => number;
  /** The longest wait for an answer in milliseconds, 10 seconds by default. */
  timeout?: number;
}

/** Sign-in, and the session that follows. Every method fails with a `VestibuleError`. */
export interface Vestibule {
  /** The state now. */
  readonly state: AuthState;
  /**
   * Calls `listener` with the state, and with each that follows, until the returned function is called. What it throws goes
   * to the console.
   */
  onAuthStateChange(listener: (state: AuthState) => void): () => void;

  /** Signs in with the `id_token` that a provider's SDK has just returned. `provider` is its name at the service. */
  signIn(provider: string, idToken: string, options?: SignInOptions): Promise<SignedIn>;
  /**
   * Signs out. The session is forgotten on this device at once, before the returned promise is settled, and whether or
   * not the service can be told. `global` ends the user's other sessions, too; `others` ends only those, and fails if
   * the service cannot be told. So does every sign-out with a cookie, which only the service can remove: the page is
   * signed in until it has answered.
   */
  signOut(options?: { scope?: "local" | "others" | "global" }): Promise<void>;

  /**
   * Sends a request as the signed-in user, to this service (a path) or to any other that accepts its access tokens (a
   * URL; never one of somebody else's, who would get the token). Answers other than 401 are returned as they are. After
   * a 401, it refreshes once and repeats once, unless the body is a stream. `timeout` (in milliseconds, 0 for none) is
   * the longest wait for the answer's head. A request that its `signal` ends fails as the platform's `fetch` does, with the
   * signal's reason.
   */
  fetch(input: Parameters<typeof fetch>[0], init?: RequestInit & { timeout?: number }): Promise<Response>;
  /**
   * Returns an access token that is good for half a minute at least. With `refresh`, it is a new one, which has the claims that
   * the backend has set meanwhile.
   */
  accessToken(options?: { refresh?: boolean }): Promise<string>;
  /**
   * Returns the headers of one request that `fetch` cannot send: `Authorization` with such a token and, in a bound session,
   * `DPoP` with the proof for this method and URL, which is good for this one request.
   */
  headers(url: string | URL, method?: string): Promise<Record<string, string>>;

  /** Returns the user with identities, and updates the state's user. */
  me(): Promise<Me>;
  /**
   * Sets the name that the user wants to be shown under, which no provider overwrites, and updates the state's user.
   * `null` takes it back.
   */
  setName(name: string | null): Promise<Me>;
  /** Returns the accounts that the user signs in with, the oldest first. */
  identities(): Promise<Identity[]>;
  /** Links another account with its provider's `id_token`. */
  link(provider: string, idToken: string, options?: LinkOptions): Promise<Identity>;
  /** Unlinks an account. Unlinking the one that this session was opened with ends the session. */
  unlink(identity: string, options?: RemovalOptions): Promise<void>;
  /**
   * Merges another account, which its provider's `id_token` proves, into this one. With `dry_run`, it returns what that
   * would change, and changes nothing. `merged.user_id` is the id that is gone.
   */
  merge(provider: string, idToken: string, options?: MergeOptions): Promise<Merge>;
  /** Returns where the user is signed in, the last used first. */
  sessions(): Promise<Session[]>;
  /** Ends one of the user's sessions. */
  endSession(session: string): Promise<void>;
  /** Deletes the account, and forgets it on this device. It can be repeated when its answer was lost. */
  deleteAccount(options?: RemovalOptions): Promise<void>;
  /** Returns the providers that the app can offer. It takes no sign-in. */
  providers(): Promise<Provider[]>;
}
