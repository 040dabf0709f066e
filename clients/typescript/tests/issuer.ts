// A stand-in for the service that signs whatever it is told to.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

const P256 = { name: "ECDSA", namedCurve: "P-256" };
const encoded = (bytes: string | ArrayBuffer) => Buffer.from(bytes as string).toString("base64url");

export class Issuer {
  /** How often its keys were asked for. */
  requests = 0;
  private key!: CryptoKey;
  private jwks = "";
  private readonly server: Server = createServer((_, response) => {
    this.requests += 1;
    response.setHeader("Content-Type", "application/json").end(this.jwks);
  });

  static async start(): Promise<Issuer> {
    const issuer = new Issuer();
    await issuer.replaceKey();
    issuer.server.listen(0, "127.0.0.1");
    await once(issuer.server, "listening");
    return issuer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get kid(): string {
    return (JSON.parse(this.jwks) as { keys: { kid: string }[] }).keys[0]?.kid ?? "";
  }

  async stop(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }

  /** Takes another key. Beside it, there are some that no access token is signed with. */
  async replaceKey(): Promise<void> {
    const pair = await crypto.subtle.generateKey(P256, true, ["sign", "verify"]);
    this.key = pair.privateKey;
    const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey);
    const kid = crypto.randomUUID();
    const others = [
      { kty: "RSA", n: "AQAB", e: "AQAB" },
      { kty: "EC", crv: "P-384", x, y },
      { kty, crv, x, y, use: "enc" },
      { kty, crv, x, y, alg: "ECDH-ES" },
    ];
    this.jwks = JSON.stringify({
      keys: [{ kid, kty, crv, x, y, use: "sig", alg: "ES256" }, ...others.map((key) => ({ kid, ...key }))],
    });
  }

  /** Signs claims, which are those of a sound token but for what is given. */
  async sign(claims: object = {}, header: object = {}): Promise<string> {
    const exp = Math.floor(Date.now() / 1000) + 900;
    const sound = { iss: this.url, aud: this.url, sub: "11111111-2222-4333-8444-555555555555", exp };
    const head = { alg: "ES256", typ: "at+jwt", kid: this.kid };
    const signed = [
      { ...head, ...header },
      { ...sound, ...claims },
    ]
      .map((part) => encoded(JSON.stringify(part)))
      .join(".");
    const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, this.key, Buffer.from(signed));
    return `${signed}.${encoded(signature)}`;
  }
}
