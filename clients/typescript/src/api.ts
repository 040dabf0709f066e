import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

/** A user, with the claims that the product's backend has set. Other services store nothing of a user but the `id`. */
export type User = Schemas["UserWithClaims"];
/** A user with identities. */
export type Me = Schemas["Me"];
/** An account at an identity provider with which the user signs in. */
export type Identity = Schemas["Identity"];
/** A session of the user, on this device or another. */
export type Session = Schemas["Session"];
/** An identity provider that the app can offer. */
export type Provider = Schemas["Provider"];
/** The answer to a sign-in without its tokens, which the client keeps to itself. */
export type SignedIn = Pick<Schemas["SignedIn"], "outcome" | "user" | "identity">;
/** The proof that it is the user who asks: a sign-in at one of their providers, just now. */
export type Reauthentication = Schemas["ReauthenticationRequest"];
/** The further members of a sign-in. `name` is what the app was told; Apple tells it once, and only to the app. */
export type SignInOptions = Omit<Schemas["SignInRequest"], "id_token" | "session">;
/** The further members of a request that links an identity. */
export type LinkOptions = Omit<Schemas["LinkRequest"], "id_token">;
/** What a merge changed, or would change. */
export type Merge = Schemas["MergeResult"];
/** The further members of a request to merge another account. */
export type MergeOptions = Omit<Schemas["MergeMeRequest"], "provider" | "id_token">;
/** The proof for a request that removes something, needed unless the session is younger than ten minutes. */
export type RemovalOptions = Schemas["RemovalRequest"];

type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : undefined;

/** The methods that the client uses. */
export type Method = "get" | "post" | "patch" | "delete";
/** The operation of a path's method. */
type Operation<Path extends keyof paths, M extends string> = M extends keyof paths[Path] ? paths[Path][M] : never;
/** The JSON that a method of a path is sent. */
export type Sent<Path extends keyof paths, M extends string> =
  Operation<Path, M> extends { requestBody?: infer Body } ? Json<NonNullable<Body>> : undefined;
/** The JSON that it answers. */
export type Answered<Path extends keyof paths, M extends string> =
  Operation<Path, M> extends { responses: infer R }
    ? { [Status in keyof R]: Status extends 200 | 201 | 204 ? Json<R[Status]> : never }[keyof R]
    : never;
