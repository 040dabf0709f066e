# Registers the address of events at Google: docs/provider-events.md. Replace the `url` by yours, and run `. ./google.sh` in
# Bash, beside the key file.
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
part() { jq -jc "$1" service-account.json | base64url; }
message=$(part '{alg: "RS256", typ: "JWT", kid: .private_key_id}').$(part '{
  iss: .client_email, sub: .client_email, iat: (now | floor), exp: (now + 300 | floor),
  aud: "https://risc.googleapis.com/google.identity.risc.v1beta.RiscManagementService"}')
signature=$(printf %s "$message" | openssl dgst -sha256 -sign <(jq -r .private_key service-account.json) | base64url)
risc() {
  curl -sS --fail-with-body -H @<(printf 'Authorization: Bearer %s.%s' "$message" "$signature") \
    -H "Content-Type: application/json" "https://risc.googleapis.com/v1beta/stream$1" "${@:2}"
}

risc :update -d '{
  "delivery": {
    "delivery_method": "https://schemas.openid.net/secevent/risc/delivery-method/push",
    "url": "https://id.example.com/api/v1/providers/google/events"
  },
  "events_requested": [
    "https://schemas.openid.net/secevent/risc/event-type/sessions-revoked",
    "https://schemas.openid.net/secevent/oauth/event-type/tokens-revoked",
    "https://schemas.openid.net/secevent/risc/event-type/account-disabled",
    "https://schemas.openid.net/secevent/risc/event-type/account-enabled",
    "https://schemas.openid.net/secevent/risc/event-type/account-purged",
    "https://schemas.openid.net/secevent/risc/event-type/account-credential-change-required",
    "https://schemas.openid.net/secevent/risc/event-type/verification"
  ]
}'
