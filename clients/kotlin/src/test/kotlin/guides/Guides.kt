// The guides' code, as it stands there: a test compares it.

package guides

import guides.GoogleIdTokenCredential.Companion.TYPE_GOOGLE_ID_TOKEN_CREDENTIAL
import okhttp3.OkHttpClient
import okhttp3.Request
import vestibule.AuthState
import vestibule.Device
import vestibule.EncryptedFile
import vestibule.ErrorName.*
import vestibule.Lock
import vestibule.Reauthentication
import vestibule.TokenStorage
import vestibule.Vestibule
import vestibule.VestibuleException
import java.io.File
import java.io.RandomAccessFile
import java.security.KeyStore
import java.security.SecureRandom
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey

class App : Application() {
    /** One client for the whole app. */
    val vestibule by lazy {
        Vestibule("https://id.example.com", EncryptedFile(File(noBackupFilesDir, "vestibule"), ::key))
    }
}

/** A key that does not leave the device. */
fun key(): SecretKey {
    val keys = KeyStore.getInstance("AndroidKeyStore").apply { load(null) }
    (keys.getKey("vestibule", null) as SecretKey?)?.let { return it }
    val purposes = KeyProperties.PURPOSE_ENCRYPT or KeyProperties.PURPOSE_DECRYPT
    val spec = KeyGenParameterSpec.Builder("vestibule", purposes)
        .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
        .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
        .build()
    return KeyGenerator.getInstance("AES", "AndroidKeyStore").apply { init(spec) }.generateKey()
}

suspend fun follow(vestibule: Vestibule) {
    vestibule.state.collect { state ->
        when (state) {
            is AuthState.Restoring -> show("splash")
            is AuthState.SignedOut -> show("sign-in", state.reason)
            is AuthState.SignedIn -> {
                // Another person used this phone, or two accounts of one person were merged.
                state.userChanged?.let { forgetData(it.from) }
                show("home")
            }
        }
    }
}

suspend fun signIn(activity: Activity, vestibule: Vestibule) {
    val nonce = newNonce()
    vestibule.signIn("idp", idToken(activity, nonce), nonce, device = Device(platform = "android"))
}

suspend fun idToken(activity: Activity, nonce: String): String {
    suspend fun ask(onlyKnown: Boolean) = CredentialManager.create(activity).getCredential(
        activity,
        GetCredentialRequest.Builder().addCredentialOption(
            GetGoogleIdOption.Builder()
                .setServerClientId(WEB_CLIENT_ID)             // never the Android one
                .setFilterByAuthorizedAccounts(onlyKnown)
                .setNonce(nonce)
                .build(),
        ).build(),
    )
    // First those who used the app before, then every account on the device.
    val credential = try { ask(true) } catch (e: NoCredentialException) { ask(false) }.credential
    check(credential is CustomCredential && credential.type == TYPE_GOOGLE_ID_TOKEN_CREDENTIAL)
    return GoogleIdTokenCredential.createFrom(credential.data).idToken
}

fun newNonce(): String =
    ByteArray(32).also { SecureRandom().nextBytes(it) }.joinToString("") { "%02x".format(it) }

/** Returns what to show, or nothing. */
fun sentence(thrown: VestibuleException): String? = when (thrown.error) {
    SIGNED_OUT,                                // the state says why
    SUPERSEDED -> null                         // meanwhile the person signed out, or in as another user
    NETWORK, TIMEOUT, SERVICE_UNAVAILABLE, RATE_LIMITED ->
        thrown.retryAfter?.let { "Please try again in $it seconds." } ?: "Please try again."
    PROVIDER_UNAVAILABLE -> "This way to sign in does not answer at the moment. Try another one."
    USER_DISABLED -> "This account is disabled. Please write to support."
    IDENTITY_SUSPENDED -> "This account is suspended. Recover it at its provider, or sign in another way."
    USER_NOT_FOUND -> "There is no account yet. Sign up?"          // only with `create = false`
    LINK_REQUIRED -> "There is an account with this address. Sign in as you did before."
    IDENTITY_CONFLICT -> "This address belongs to another account. Please write to support."
    IDENTITY_ALREADY_LINKED -> "This belongs to another account here. Join the two?"
    LAST_IDENTITY -> "Add another way to sign in first."
    TOO_MANY_IDENTITIES -> "You have 20 ways to sign in. Remove one first."
    EMAIL_NOT_VERIFIED -> "Please confirm your address with your provider first."
    EMAIL_MISSING -> "We need your address."
    DOMAIN_NOT_ALLOWED -> "Please use the account of your organisation."
    else -> "Something went wrong (${thrown.requestId ?: thrown.error.wire})."
}

fun api(vestibule: Vestibule): OkHttpClient = OkHttpClient.Builder().addInterceptor(vestibule.interceptor).build()

suspend fun account(vestibule: Vestibule) {
    val me = vestibule.me()
    val linked = vestibule.link("apple", freshIdToken())
    vestibule.unlink(linked.id)
    vestibule.setName("Ada")                          // null: as the providers say
    for (session in vestibule.sessions()) if (!session.current) vestibule.endSession(session.id)
    vestibule.signOut()                               // this device
    vestibule.signOut(Vestibule.Scope.OTHERS)         // all others
    println(me.identities.size)
}

suspend fun joinAccounts(vestibule: Vestibule) {
    val idToken = freshIdToken()                      // of the other account
    val shown = vestibule.merge("apple", idToken, dryRun = true)
    if (!agreed("Join with ${shown.identities.joinToString { it.email ?: it.provider }}?")) return
    forgetData(vestibule.merge("apple", idToken).merged.userId)   // or move it to this user
}

suspend fun deleteAccount(activity: Activity, vestibule: Vestibule) = try {
    vestibule.deleteAccount()
} catch (e: VestibuleException) {
    if (e.error != REAUTHENTICATION_REQUIRED) throw e
    val nonce = newNonce()
    vestibule.deleteAccount(Reauthentication("idp", idToken(activity, nonce), nonce))
}

suspend fun begin(storage: TokenStorage) {
    val vestibule = Vestibule("https://id.example.com", storage)
    vestibule.onAuthStateChange { state ->
        when (state) {
            is AuthState.Restoring -> show("splash")
            is AuthState.SignedIn -> show("home")
            is AuthState.SignedOut -> show("sign-in", state.reason)
        }
    }
    vestibule.signIn("google", freshIdToken())
    val http = OkHttpClient.Builder().addInterceptor(vestibule.interceptor).build()
    http.newCall(Request.Builder().url("https://api.example.com/orders").build()).execute()
}

class FileLock(private val file: File) : Lock {
    override suspend fun hold(name: String, work: suspend () -> Unit) {
        RandomAccessFile(file, "rw").channel.use { channel -> channel.lock().use { work() } }
    }
}
