/** A request as a framework has it: that of Node and Express, or a plain object. */
export interface Incoming {
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Returns the value of a header, several ones with commas between them. */
export function header({ headers }: Incoming, name: string): string | undefined {
  // Not `instanceof`: another package or realm has a class of its own.
  if (typeof headers.get === "function") return (headers as Headers).get(name) ?? undefined;
  const [, value] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? [];
  return value?.toString();
}
