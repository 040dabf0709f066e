// What an app has beside the blocks of the guides.

declare const webClientId: string;
declare const iosClientId: string;
/** Shows a page. */
declare function show(page: "splash" | "home" | "sign-in", why?: string): void;
/** Has the person sign in at their provider once more. */
declare function freshIdToken(): Promise<string>;
/** Asks the person. */
declare function agreed(question: string): Promise<boolean>;
/** Deletes what the app keeps of a user. */
declare function forgetData(user: string): Promise<void>;
/** Rows of the backend's sessions. */
declare const rows: {
  read(id: string): Promise<string | null>;
  write(id: string, text: string): Promise<void>;
  delete(id: string): Promise<void>;
};
