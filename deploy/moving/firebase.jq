# Users of Firebase Auth as JSON lines for `vestibule import` (docs/moving.md). In `name`, write your providers' names.
def name: { "google.com": "idp", "apple.com": "apple", "facebook.com": "facebook" }[.];
.users[]
| select(.email or any(.providerUserInfo[]?; .providerId | name))
| {
    email: (.email // null), email_verified: (.emailVerified // false),
    name: (.displayName // null), picture: (.photoUrl // null),
    created_at: (.createdAt | tonumber / 1000 | floor | todate), disabled: (.disabled // false),
    identities: [.providerUserInfo[]? | select(.providerId | name) | {
      provider: (.providerId | name), subject: .rawId, email, email_verified: false } | del(.. | nulls)]
  }
| if .identities == [] then del(.identities) else . end
| del(.. | nulls)
