package vestibule

/**
 * The reasons why nobody is signed in. Only [NEVER], [SIGNED_OUT], [DEVICE_KEY_LOST] and [STORAGE_FAILED] came about on this
 * device.
 */
public enum class SignedOutReason {
    /** Nobody has signed in on this storage, or the last user deleted the account here. */
    NEVER,

    /** The person signed out. */
    SIGNED_OUT,

    /** The session was not used for too long (30 days by default), or is too old. */
    SESSION_EXPIRED,

    /** Staff, or the person on another device, ended the session, or unlinked the identity that it was opened with. */
    SESSION_ENDED,

    /** Staff disabled the user. */
    USER_DISABLED,

    /** The account was deleted. */
    USER_DELETED,

    /** The user was merged into another one, as whom the person signs in from now on. */
    USER_MERGED,

    /** A refresh token was used twice, so that somebody else may have had it. */
    REFRESH_TOKEN_REUSED,

    /** The service does not know the session and cannot say why: it ended long ago, or the storage is an old copy. */
    SESSION_UNKNOWN,

    /** The key that the session is bound to is lost: the key store was cleared, or the storage is of another device. */
    DEVICE_KEY_LOST,

    /** The storage cannot be read: the next call tries again, and a sign-in or a sign-out replaces what is there. */
    STORAGE_FAILED;

    /** The reason as the service and the storage spell it. */
    public val wire: String get() = name.lowercase()

    internal companion object {
        fun of(wire: String?): SignedOutReason? = entries.find { it.wire == wire }
    }
}

/** The user whom a storage belonged to before a sign-in: data of the user with this id is on this device. */
public data class UserChanged(val from: String)

/** The state of the sign-in. It is never changed in place: another state is another object. */
public sealed interface AuthState {
    /** The storage has not been read yet. */
    public data object Restoring : AuthState

    /**
     * Somebody is signed in.
     *
     * @property user The user, as the service described them last.
     * @property offline True if the last attempt to refresh brought no answer. The session goes on; the next request
     *   tries again.
     * @property userChanged The user whom this storage belonged to before this sign-in, if another.
     */
    public data class SignedIn(
        val user: User,
        val offline: Boolean = false,
        val userChanged: UserChanged? = null,
    ) : AuthState

    /** Nobody is signed in, for this [reason]. */
    public data class SignedOut(val reason: SignedOutReason) : AuthState
}
