// Verifies access tokens in nginx, as /etc/nginx/verify.js, by the nginx.conf beside it: docs/verify.md. Replace ISSUER by
// your `public_url`.
const ISSUER = "https://id.example.com";
// A P-256 public key as SPKI (RFC 5480) is this, then x and y.
const SPKI = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d03010703420004", "hex");
const part = (text) => JSON.parse(Buffer.from(text, "base64url"));

async function check(r) {
    try {
        const parts = r.headersIn.Authorization.split(" ")[1].split(".");
        const header = part(parts[0]), claims = part(parts[1]);
        const answer = await r.subrequest("/keys");
        const jwk = JSON.parse(answer.responseText).keys.find((key) => key.kid === header.kid);
        const spki = Buffer.concat([SPKI, Buffer.from(jwk.x, "base64url"), Buffer.from(jwk.y, "base64url")]);
        const p256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
        const key = await crypto.subtle.importKey("spki", spki, p256, false, ["verify"]);
        const sound = parts.length === 3 && header.alg === "ES256" && header.typ === "at+jwt"
            && claims.iss === ISSUER && claims.aud === ISSUER && claims.exp > Date.now() / 1000
            && await crypto.subtle.verify(p256, key, Buffer.from(parts[2], "base64url"), parts[0] + "." + parts[1]);
        if (!sound) { throw new Error("not sound"); }
        r.headersOut["X-User"] = claims.sub;
        r.return(204);
    } catch (error) {
        r.return(401);
    }
}
export default { check };
