# Creates a stream of events at a provider: docs/provider-events.md. Replace the provider's URL and the `endpoint_url` by yours,
# and run `. ./ssf.sh` in Bash, beside the file `token`.
document=$(curl -sS --fail-with-body https://idp.example.com/.well-known/ssf-configuration)
ssf() {
  curl -sS --fail-with-body --proto =https -H @<(printf 'Authorization: Bearer %s' "$(cat token)") \
    -H "Content-Type: application/json" "$(jq -r ".$1" <<< "$document")$2" "${@:3}"
}
events='[
  "https://schemas.openid.net/secevent/caep/event-type/session-revoked",
  "https://schemas.openid.net/secevent/caep/event-type/credential-change",
  "https://schemas.openid.net/secevent/risc/event-type/account-disabled",
  "https://schemas.openid.net/secevent/risc/event-type/account-enabled",
  "https://schemas.openid.net/secevent/risc/event-type/account-purged",
  "https://schemas.openid.net/secevent/risc/event-type/account-credential-change-required",
  "https://schemas.openid.net/secevent/risc/event-type/credential-compromise",
  "https://schemas.openid.net/secevent/risc/event-type/identifier-changed",
  "https://schemas.openid.net/secevent/risc/event-type/identifier-recycled"
]'
ssf configuration_endpoint "" -d '{"delivery": {"method": "urn:ietf:rfc:8935",
  "endpoint_url": "https://id.example.com/api/v1/providers/keycloak/events"}, "events_requested": '"$events"'}'
