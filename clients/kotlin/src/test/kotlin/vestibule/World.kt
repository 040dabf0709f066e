package vestibule

import com.nimbusds.jose.JWSAlgorithm
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory
import com.nimbusds.oauth2.sdk.token.DPoPAccessToken
import com.nimbusds.openid.connect.sdk.Nonce
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import okhttp3.OkHttpClient
import okhttp3.Request
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.fail
import java.io.File
import java.io.IOException
import java.net.URI
import java.net.http.HttpResponse
import java.nio.file.Files
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.atomic.AtomicReference
import kotlin.time.Duration
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

const val REFRESH = "/api/v1/auth/refresh"
const val SIGN_IN = "/api/v1/auth/oauth/"
const val LOGOUT = "/api/v1/auth/logout"
const val ME = "/api/v1/me"
private const val SECOND = """client_id="vestibule-development",issuers=["{url}/dev/idp"],token_format="jwt""""

/** What lies between the service and its provider `second`. */
val provider = Network()

/** What lies between the phones and the service. */
val network = Network()

/** The service, for all tests. */
val service: Service = runBlocking {
    val second = "$SECOND,tokeninfo_url=\"${provider.url}/dev/idp/tokeninfo\""
    Service.start(mapOf("ROCKET_PROVIDERS" to "{second={$second}}", "ROCKET_PUBLIC_URL" to network.url)).also {
        provider.target = it.url
        network.target = it.url
        Runtime.getRuntime().addShutdownHook(Thread(it::stop))
    }
}

/** A member of staff. */
val staff = Staff.signIn(service.url)

/** A folder for files. */
val folder: File = Files.createTempDirectory("vestibule-client-").toFile().also { folder ->
    Runtime.getRuntime().addShutdownHook(Thread { folder.deleteRecursively() })
}

/** The key store of the phones, which goes on when their processes end. */
val keyStore = FileKeys(File(folder, "keys").apply { mkdir() })

/** Where phones have the keys that they bind new sessions to, if they do. */
@Volatile
var deviceKey: DeviceKey? = keyStore

/** A phone, or the same phone started anew with what it had stored. */
class Phone(
    val storage: TokenStorage = MemoryStorage(),
    lock: Lock? = null,
    timeout: Duration = 10.seconds,
    private val baseUrl: String = network.url,
    http: OkHttpClient = OkHttpClient(),
    key: DeviceKey? = deviceKey,
) {
    private val ahead = AtomicLong()
    val client = Vestibule(baseUrl, storage, lock, http, { System.currentTimeMillis() + ahead.get() }, timeout, key)
    val state get() = client.state.value
    val offline get() = (state as AuthState.SignedIn).offline
    val changed get() = (state as AuthState.SignedIn).userChanged
    val me = Request.Builder().url(baseUrl + ME).build()

    /** Sets its clock so far ahead of the service's. */
    fun setAhead(duration: Duration) = ahead.set(duration.inWholeMilliseconds)

    /** Lets time pass on the phone. */
    fun pass(duration: Duration) {
        ahead.addAndGet(duration.inWholeMilliseconds)
    }

    /** Lets a quarter of an hour pass: its access token has expired, as it sees it. */
    fun quarterOfAnHour() = pass(15.minutes)

    /** Signs in, and returns the user's id. */
    suspend fun signIn(email: String = somebody()): String =
        client.signIn("idp", service.idToken("email" to email)).user.id

    /** Reads who is signed in. */
    suspend fun whoAmI(): String = client.fetch(me).use {
        assertEquals(200, it.code)
        json.decodeFromString<User>(it.body.string()).id
    }

    /** The stored session, if there is one. */
    internal suspend fun stored(): Kept? = storage.get()?.let { json.decodeFromString<Stored>(it) }?.session
}

private val people = AtomicInteger()

/** An address that nobody has used. */
fun somebody() = "person-${people.incrementAndGet()}@example.com"

/** Runs a test, which does not go on for ever. */
fun trying(work: suspend CoroutineScope.() -> Unit) = runBlocking(Dispatchers.IO) { withTimeout(10.minutes) { work() } }

/** Expects an error, and returns it. */
suspend fun refused(error: ErrorName, work: suspend () -> Any?): VestibuleException {
    val value = try {
        work()
    } catch (e: VestibuleException) {
        assertEquals(error, e.error, "$e ${e.cause}")
        return e
    }
    fail("$error was expected, and this came: $value")
}

/** Lets time pass for the sessions of a user at the service. */
fun pass(user: String, duration: Duration) {
    val shift = listOf("created_at", "expires_at", "rotated_at")
        .joinToString { "$it = $it - interval '${duration.inWholeSeconds} seconds'" }
    service.sql("UPDATE sessions SET $shift WHERE identity_id IN (SELECT id FROM identities WHERE user_id = '$user')")
}

/** Whether the service takes an access token, with Nimbus's proof by its key if it is bound to one. */
fun works(token: String): Boolean {
    val key = keyStore.keyOf(token) ?: return get(service.url + ME, "Authorization", "Bearer $token").statusCode() == 200
    fun ask(nonce: Nonce?): HttpResponse<String> {
        val proof = DefaultDPoPProofFactory(key, JWSAlgorithm.ES256)
            .createDPoPJWT("GET", URI(network.url + ME), DPoPAccessToken(token), nonce)
        return get(service.url + ME, "Authorization", "DPoP $token", "DPoP", proof.serialize())
    }
    val challenge = ask(null)
    if ("use_dpop_nonce" !in challenge.body()) return false
    return ask(Nonce(challenge.headers().firstValue("DPoP-Nonce").get())).statusCode() == 200
}

/** A storage that is full or locked while it is told to be, and whose next use waits at a gate. */
class TroubledStorage(private val beneath: TokenStorage = MemoryStorage()) : TokenStorage by beneath {
    @Volatile
    var full = false

    @Volatile
    var locked = false
    val reading = AtomicReference<Gate>()
    val writing = AtomicReference<Gate>()

    override suspend fun get(): String? {
        if (locked) throw IOException("the keystore is locked")
        reading.getAndSet(null)?.pass()
        return beneath.get()
    }

    override suspend fun set(text: String) {
        if (full) throw IOException("no space left")
        writing.getAndSet(null)?.pass()
        beneath.set(text)
    }
}

class Gate {
    val arrived = CompletableDeferred<Unit>()
    val open = CompletableDeferred<Unit>()

    suspend fun pass() {
        arrived.complete(Unit)
        open.await()
    }
}

