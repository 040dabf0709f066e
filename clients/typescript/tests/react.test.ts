// The entry for React: on a server, and where it renders again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { act, create, type ReactTestRenderer } from "react-test-renderer";

import { useAuth, useVestibule, VestibuleProvider } from "../src/react.js";
import { eventually } from "./service.js";
import { phone, signIn } from "./world.js";

function Status(): string {
  const state = useAuth();
  return state.status === "signed_in" ? (state.user.email ?? "") : state.status;
}

test("a page that a server renders is restoring, whoever is signed in there", async () => {
  const mine = phone();
  await signIn(mine);
  const page = createElement(VestibuleProvider, { client: mine.client }, createElement(Status));
  assert.equal(renderToString(page), "restoring");
});

test("a component renders again when somebody signs in, and when they sign out", async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const mine = phone();
  const tree = createElement(VestibuleProvider, { client: mine.client }, createElement(Status));
  const pages: ReactTestRenderer[] = [];
  await act(async () => void pages.push(create(tree)));
  const shown = () => pages[0]?.toJSON() as unknown;
  await act(async () => void (await signIn(mine, "react@example.com")));
  assert.equal(shown(), "react@example.com");
  await act(() => mine.client.signOut());
  await eventually("it has heard of it", async () => shown() === "signed_out" || undefined);
  await act(async () => pages[0]?.unmount());
});

test("a component without a provider above it is told so", () => {
  const lonely = createElement(() => String(useVestibule()));
  assert.throws(() => renderToString(lonely), /no VestibuleProvider above/);
});
