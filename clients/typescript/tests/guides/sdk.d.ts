// What the guides use of packages that are not installed here, by their documentation.

declare module "@react-native-google-signin/google-signin" {
  export const GoogleSignin: {
    configure(options: { webClientId: string; iosClientId?: string }): void;
    hasPlayServices(): Promise<boolean>;
    signIn(): Promise<{ type: "success"; data: { idToken: string | null } } | { type: "cancelled"; data: null }>;
    signOut(): Promise<null>;
    revokeAccess(): Promise<null>;
  };
  export function isSuccessResponse<T extends { type: string }>(
    response: T,
  ): response is Extract<T, { type: "success" }>;
}

declare module "expo-apple-authentication" {
  export enum AppleAuthenticationScope {
    FULL_NAME,
    EMAIL,
  }
  export function signInAsync(options: { requestedScopes?: AppleAuthenticationScope[]; nonce?: string }): Promise<{
    identityToken: string | null;
    authorizationCode: string | null;
    fullName: { givenName: string | null; familyName: string | null } | null;
  }>;
}

declare module "@invertase/react-native-apple-authentication" {
  export const appleAuth: {
    Operation: { LOGIN: number };
    Scope: { EMAIL: number; FULL_NAME: number };
    performRequest(options: { requestedOperation: number; requestedScopes: number[] }): Promise<{
      identityToken: string | null;
      authorizationCode: string | null;
      nonce: string;
      fullName: { givenName: string | null; familyName: string | null } | null;
    }>;
  };
}

declare module "expo-crypto" {
  export enum CryptoDigestAlgorithm {
    SHA256 = "SHA-256",
  }
  export enum CryptoEncoding {
    BASE64 = "base64",
  }
  export function digestStringAsync(
    algorithm: CryptoDigestAlgorithm,
    data: string,
    options?: { encoding: CryptoEncoding },
  ): Promise<string>;
  export function getRandomBytes(count: number): Uint8Array;
}

declare module "@pagopa/io-react-native-crypto" {
  export type PublicKey = { kty: "EC"; crv: string; x: string; y: string } | { kty: "RSA"; alg: string; e: string; n: string };
  export function generate(keyTag: string): Promise<PublicKey>;
  export function getPublicKeyFixed(keyTag: string): Promise<PublicKey>;
  export function sign(message: string, keyTag: string): Promise<string>;
  export function deleteKey(keyTag: string): Promise<void>;
}

declare module "react-native" {
  export const Platform: { OS: "ios" | "android" };
}
