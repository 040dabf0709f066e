-- Users of Supabase Auth as JSON lines for `vestibule import` (docs/moving.md). In `CASE`, write your providers' names.
SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', u.id,
    'email', nullif(u.email, ''),
    'email_verified', u.email_confirmed_at IS NOT NULL,
    'name', coalesce(u.raw_user_meta_data->>'full_name', u.raw_user_meta_data->>'name'),
    'picture', coalesce(u.raw_user_meta_data->>'avatar_url', u.raw_user_meta_data->>'picture'),
    'created_at', u.created_at,
    'disabled', u.banned_until IS NOT NULL AND u.banned_until > now(),
    'phone', nullif(u.phone, ''),
    'identities', (
        SELECT jsonb_agg(jsonb_build_object(
            'provider', CASE i.provider WHEN 'google' THEN 'idp' ELSE i.provider END,
            'subject', i.provider_id,
            'email', i.email
        ) ORDER BY i.created_at)
        FROM auth.identities i
        WHERE i.user_id = u.id AND i.provider NOT IN ('email', 'phone')
    )
))
FROM auth.users u
WHERE u.deleted_at IS NULL AND NOT u.is_anonymous AND NOT u.is_sso_user
ORDER BY u.created_at;
