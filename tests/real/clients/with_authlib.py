import sys
from os import environ

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from joserfc.jwk import KeySet

address, client_id, refresh_token = sys.argv[1:]
environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
metadata = requests.get(get_well_known_url(address, external=True)).json()
AuthorizationServerMetadata(metadata).validate()


class Validator(JWTBearerTokenValidator):
    def get_jwks(self):
        return KeySet.import_key_set(requests.get(metadata["jwks_uri"]).json())


session = OAuth2Session(client_id, token_endpoint_auth_method="none", revocation_endpoint_auth_method="none")
tokens = session.refresh_token(metadata["token_endpoint"], refresh_token=refresh_token)
assert tokens["refresh_token"] != refresh_token
validator = Validator(issuer=address, resource_server=address)
claims = validator.authenticate_token(tokens["access_token"])
validator.validate_token(claims, [], None)
assert claims["client_id"] == client_id

for token in [tokens["refresh_token"], "made-up"]:
    answer = session.revoke_token(metadata["revocation_endpoint"], token=token, token_type_hint="refresh_token")
    assert answer.status_code == 200, answer.text
    try:
        session.refresh_token(metadata["token_endpoint"], refresh_token=token)
    except OAuthError as error:
        assert error.error == "invalid_grant", error
    else:
        raise AssertionError("a revoked token was refreshed")
