// A member of staff, who uses the admin pages as a browser without scripts does.

import assert from "node:assert/strict";

const STAFF = "ada@example.com";

function plain(html: string): string {
  return html.replaceAll("&#x2F;", "/").replaceAll("&#x27;", "'").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}

export class Staff {
  private readonly cookies = new Map<string, string>();

  private constructor(private readonly url: string) {}

  static async signIn(url: string): Promise<Staff> {
    const staff = new Staff(url);
    const begun = await staff.request("/admin/sign-in", new URLSearchParams());
    const page = begun.headers.get("location");
    assert(page, `${begun.status}`);
    const who = new URLSearchParams({ email: STAFF, verified: "true" });
    const chosen = await fetch(page, { method: "POST", body: who, redirect: "manual" });
    const back = new URL(chosen.headers.get("location") ?? "");
    const landed = await staff.request(back.pathname + back.search);
    assert.equal(landed.status, 303, await landed.text());
    return staff;
  }

  async disable(user: string): Promise<void> {
    await this.submit(`/admin/users/${user}/disable`, "disable");
  }

  async enable(user: string): Promise<void> {
    await this.submit(`/admin/users/${user}/enable`, "enable");
  }

  async endSessions(user: string): Promise<void> {
    await this.submit(`/admin/users/${user}/end-sessions`, "end-sessions");
  }

  async delete(user: string): Promise<void> {
    await this.submit(`/admin/users/${user}/delete`, "delete");
  }

  async merge(user: string, into: string): Promise<void> {
    await this.submit(`/admin/users/${user}/merge?into=${into}`, "merge");
  }

  /** Fills in and sends the form on a page whose address ends so. */
  private async submit(page: string, action: string): Promise<void> {
    const html = plain(await (await this.request(page)).text());
    const forms = [...html.matchAll(/<form[^>]* action="([^"]*)"[^>]*>(.*?)<\/form>/gs)];
    const form = forms.find(([, address]) => address?.split("?")[0]?.endsWith(`/${action}`));
    assert(form?.[1] && form[2], `${page} has a form for ${action}: ${html}`);
    const fields = new URLSearchParams();
    for (const [input] of form[2].matchAll(/<input[^>]*>/g)) {
      const attribute = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1];
      const name = attribute("name");
      if (name) fields.set(name, attribute("value") ?? "");
    }
    fields.set("reason", "a test of the client");
    const answer = await this.request(form[1], fields);
    assert.equal(answer.status, 303, plain(await answer.text()));
  }

  private async request(path: string, form?: URLSearchParams): Promise<Response> {
    const cookies = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { Cookie: cookies };
    const answer = await fetch(this.url + path, {
      ...(form && { method: "POST", body: form }),
      headers,
      redirect: "manual",
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]*)=([^;]*)/.exec(cookie) ?? [];
      if (name) this.cookies.set(name, value ?? "");
    }
    return answer;
  }
}
