package vestibule

import java.io.IOException

/** Everything that can go wrong: the errors of the service, and the last five. */
public enum class ErrorName {
    INVALID_TOKEN,
    TOKEN_EXPIRED,
    ISSUER_MISMATCH,
    AUDIENCE_MISMATCH,
    NONCE_MISMATCH,
    DOMAIN_NOT_ALLOWED,
    USER_DISABLED,
    IDENTITY_SUSPENDED,
    USER_NOT_FOUND,
    IDENTITY_CONFLICT,
    LINK_REQUIRED,
    TOO_MANY_IDENTITIES,
    EMAIL_NOT_VERIFIED,
    EMAIL_MISSING,
    INVALID_REQUEST,
    INVALID_ACCESS_TOKEN,
    INVALID_REFRESH_TOKEN,
    USE_DPOP_NONCE,
    INVALID_DPOP_PROOF,
    INVALID_API_KEY,
    INSUFFICIENT_ROLE,
    USER_CHANGED,
    EMAIL_TAKEN,
    IDENTITY_TAKEN,
    IDENTITY_ALREADY_LINKED,
    LAST_IDENTITY,
    REAUTHENTICATION_REQUIRED,
    COOKIE_REFUSED,
    PROVIDER_DISABLED,
    PROVIDER_NOT_FOUND,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    PAYLOAD_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    RATE_LIMITED,
    PROVIDER_UNAVAILABLE,
    SERVICE_UNAVAILABLE,
    INTERNAL_ERROR,

    /** No answer came, or not all of it. The service may have done what was asked. */
    NETWORK,

    /** No answer came in time. The service may have done what was asked. */
    TIMEOUT,

    /** Nobody is signed in; `reason` says since when. */
    SIGNED_OUT,

    /** A sign-out or another sign-in came in between, and the answer was thrown away. */
    SUPERSEDED,

    /** The storage or the device's key failed; `cause` is its error. */
    STORAGE;

    /** The name as the service spells it. */
    public val wire: String get() = name.lowercase()

    internal companion object {
        /** Returns the error of an answer. One without a name that is known here goes by its status. */
        fun of(wire: String?, status: Int): ErrorName = entries.find { it.wire == wire } ?: when {
            status == 429 -> RATE_LIMITED
            status < 500 -> INVALID_REQUEST
            wire != null -> INTERNAL_ERROR
            else -> SERVICE_UNAVAILABLE
        }
    }
}

/**
 * The error that every method of the client fails with. Decide by [error], never by the message.
 *
 * @property error The name of the error.
 * @property status The HTTP status, if there was an answer.
 * @property detail The check that failed, for the log. It never repeats the request's content.
 * @property reason The reason for the end of a session.
 * @property requestId The id that finds the request in the service's log.
 * @property retryAfter Seconds to wait before the next attempt.
 */
public class VestibuleException internal constructor(
    public val error: ErrorName,
    public val status: Int? = null,
    public val detail: String? = null,
    public val reason: String? = null,
    public val requestId: String? = null,
    public val retryAfter: Int? = null,
    cause: Throwable? = null,
) : IOException(listOfNotNull(error.wire, detail).joinToString(": "), cause)
