-- Staff sign-ins under way: what the answer of the identity provider must match, for ten minutes and
-- once. `browser_hash` binds it to the browser that began.
CREATE TABLE staff_sign_ins (
    state_hash    bytea       CONSTRAINT staff_sign_ins_pkey PRIMARY KEY,
    browser_hash  bytea       NOT NULL,
    nonce         text        NOT NULL,
    code_verifier text        NOT NULL,
    next          text        NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX staff_sign_ins_created_at_idx ON staff_sign_ins (created_at);
