package vestibule

import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonNamingStrategy
import kotlinx.serialization.json.JsonObject
import kotlin.time.Instant

/**
 * A user. Other services store nothing of a user but the `id`.
 *
 * @property id The user's id, never reused.
 * @property email The e-mail address in lower case, unique among users, if a provider gave one.
 * @property emailVerified True if a provider has verified that the address is the user's.
 * @property name The name to be shown: the user's own word, or the name at the provider.
 * @property picture The URL of a picture.
 * @property createdAt The time of the first sign-in.
 * @property claims What the product's backend says of the user, as of the sign-in or the last [Vestibule.me].
 */
@Serializable
public data class User(
    val id: String,
    val email: String? = null,
    val emailVerified: Boolean = false,
    val name: String? = null,
    val picture: String? = null,
    val createdAt: Instant? = null,
    val claims: JsonObject = JsonObject(emptyMap()),
)

/** A user with [identities], the oldest first. */
public data class Me(val user: User, val identities: List<Identity>)

/**
 * An account at an identity provider with which the user signs in.
 *
 * @property id The identity's id, for unlinking it.
 * @property provider The provider's name at the service.
 * @property subject The account's `sub` at the provider.
 * @property email The account's latest e-mail address at the provider.
 * @property createdAt The time at which it was linked, unless a sign-in has just told of it.
 * @property current True for the identity that this session was opened with. Unlinking it ends the session.
 */
@Serializable
public data class Identity(
    val id: String,
    val provider: String,
    val subject: String,
    val email: String? = null,
    val createdAt: Instant? = null,
    val current: Boolean = false,
)

/** A device: its owner's [name] for it, and the [platform] that it runs. */
@Serializable
public data class Device(val name: String? = null, val platform: String? = null)

/**
 * A session of the user, on this device or another.
 *
 * @property id The session's id, for ending it.
 * @property provider The provider that it was opened with.
 * @property device The device, as the sign-in described it.
 * @property createdAt The time at which it was opened.
 * @property lastUsedAt The hour of its last refresh before this hour, or the time at which it was opened if that was later.
 * @property ip The address that it was opened from.
 * @property userAgent The `User-Agent` that opened it.
 * @property current True for the session of this client.
 */
@Serializable
public data class Session(
    val id: String,
    val provider: String,
    val device: Device = Device(),
    val createdAt: Instant,
    val lastUsedAt: Instant,
    val ip: String? = null,
    val userAgent: String? = null,
    val current: Boolean = false,
)

/**
 * An identity provider that the app can offer.
 *
 * @property name The provider's name at the service.
 * @property kind The kind of provider: the name of a preset, such as `google`, `apple` or `oidc`.
 * @property clientId The backend's client id, which some SDKs call the server client id.
 * @property issuer The issuer with a discovery document, for OpenID Connect libraries.
 * @property nonce The rule for nonces: `both_or_neither`, `if_sent` or `always`.
 * @property nonceForm The form of the nonce in the token: `raw` or `sha256`.
 */
@Serializable
public data class Provider(
    val name: String,
    val kind: String,
    val clientId: String,
    val issuer: String? = null,
    val nonce: String,
    val nonceForm: String,
)

/**
 * The answer to a sign-in, without its tokens, which the client keeps to itself. [outcome] is `created`, `linked` or
 * `signed_in`.
 */
@Serializable
public data class SignedIn(val outcome: String, val user: User, val identity: Identity)

/**
 * A merge of another account into this one: what it changed, or would change.
 *
 * @property applied True if the accounts were merged; false for a dry run.
 * @property user This user afterwards.
 * @property claims What the product's backend says of this user in access tokens afterwards.
 * @property identities The identities of the other user, with which this one signs in from then on.
 * @property endedSessions The number of the other user's sessions, all of which end.
 * @property merged The other user, who is no more.
 */
@Serializable
public data class Merge(
    val applied: Boolean,
    val user: User,
    val claims: JsonObject,
    val identities: List<MovedIdentity>,
    val endedSessions: Long,
    val merged: GoneUser,
)

/** An identity of another user: the [provider]'s name, the account's `sub` there, and its latest [email] address. */
@Serializable
public data class MovedIdentity(val provider: String, val subject: String, val email: String? = null)

/** A user who was merged into another. Whatever is stored with [userId] belongs to the other one. Had these [claims]. */
@Serializable
public data class GoneUser(val userId: String, val claims: JsonObject)

/** The proof that it is the user who asks: a sign-in at one of their providers, just now. */
@Serializable
public data class Reauthentication(
    val provider: String,
    val idToken: String,
    val nonce: String? = null,
    val authorizationCode: String? = null,
    val redirectUri: String? = null,
)

/** The body of every request; each has some of it. */
@Serializable
internal class Body(
    val idToken: String? = null,
    val nonce: String? = null,
    val create: Boolean? = null,
    val name: String? = null,
    val device: Device? = null,
    val reauthentication: Reauthentication? = null,
    val refreshToken: String? = null,
    val authorizationCode: String? = null,
    val redirectUri: String? = null,
    val provider: String? = null,
    val dryRun: Boolean? = null,
)

@Serializable
internal class Credential(
    val accessToken: String,
    val refreshToken: String,
    val expiresIn: Long,
    val tokenType: String,
)

@Serializable
internal class Identities(val identities: List<Identity>)

@Serializable
internal class Sessions(val sessions: List<Session>)

@Serializable
internal class Providers(val providers: List<Provider>)

@Serializable
internal class Problem(
    val error: String? = null,
    val detail: String? = null,
    val reason: String? = null,
    val requestId: String? = null,
)

/**
 * A session as it is stored. [id] tells it from any other on this storage, whatever its token is by now, and names its key if
 * it is [bound] to one.
 */
@Serializable
internal data class Kept(val id: String, val refreshToken: String, val user: User, val bound: Boolean = false)

/** The stored text: a session, or why there is none and whose the last one was. */
@Serializable
internal class Stored(val session: Kept? = null, val reason: String? = null, val userId: String? = null)

@OptIn(ExperimentalSerializationApi::class)
internal val json = Json {
    namingStrategy = JsonNamingStrategy.SnakeCase
    ignoreUnknownKeys = true
}
