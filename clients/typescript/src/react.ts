import { createContext, createElement, type ReactElement, type ReactNode, useContext, useSyncExternalStore } from "react";

import type { AuthState, Vestibule } from "./client.js";

/** On a server that renders pages, nobody's storage can be read. */
const RESTORING: AuthState = { status: "restoring" };

const Context = createContext<Vestibule | undefined>(undefined);

/** Gives the components below the app's client. */
export function VestibuleProvider(props: { client: Vestibule; children?: ReactNode }): ReactElement {
  return createElement(Context.Provider, { value: props.client }, props.children);
}

/** Returns the client of the `VestibuleProvider` above, without which it throws. */
export function useVestibule(): Vestibule {
  const client = useContext(Context);
  if (!client) throw new Error("there is no VestibuleProvider above this component");
  return client;
}

/** Returns the state of the sign-in, and renders again when there is another. On a server it is `restoring`. */
export function useAuth(): AuthState {
  const client = useVestibule();
  return useSyncExternalStore(client.onAuthStateChange, () => client.state, () => RESTORING);
}
