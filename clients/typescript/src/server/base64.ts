/** Decodes base64, or base64url without padding, and returns nothing for anything else. */
export function decode(text: string, alphabet: "base64" | "base64url"): Uint8Array<ArrayBuffer> | undefined {
  const form = alphabet === "base64" ? /^[A-Za-z0-9+/]*={0,2}$/ : /^[\w-]*$/;
  if (!form.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
      character.charCodeAt(0),
    );
  } catch {
    return undefined;
  }
}
