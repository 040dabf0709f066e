# Users of Firebase Auth as JSON lines for `vestibule import` (docs/moving.md). In `name`, write your providers' names.
def name: { "google.com": "idp", "apple.com": "apple", "facebook.com": "facebook" }[.] // .;
.users[]
| [.providerUserInfo[]? | select(.providerId | . and (IN("password", "phone") | not))] as $identities
| select(.email or .phoneNumber or $identities != [])
| {
    email, email_verified: (.emailVerified // false), name: .displayName, picture: .photoUrl, created_at: .createdAt,
    disabled: (.disabled // false), phone: .phoneNumber,
    identities: [$identities[] | { provider: (.providerId | name), subject: .rawId, email }]
  }
| del(.. | nulls)
