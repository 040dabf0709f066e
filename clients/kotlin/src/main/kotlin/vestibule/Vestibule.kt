package vestibule

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart.UNDISPATCHED
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Dispatcher
import okhttp3.HttpUrl
import okhttp3.HttpUrl.Companion.toHttpUrl
import okhttp3.Interceptor
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import java.io.IOException
import java.io.InterruptedIOException
import java.security.KeyPair
import java.util.UUID
import java.util.concurrent.TimeUnit
import kotlin.coroutines.resumeWithException
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds

/**
 * Sign-in, and the session that follows. An app has one client for each storage, for as long as it runs. Every method
 * can be called from any thread, and fails with a [VestibuleException]. What a method has begun goes on when its caller
 * is cancelled, so that no answer with a token in it is lost.
 *
 * @param baseUrl The service's public URL, such as `https://id.example.com`. Any other text is an
 *   [IllegalArgumentException].
 * @param storage The place of the refresh token and of the user.
 * @param lock The lock between clients on this storage, if there may be several. With it, each call reads the storage
 *   first, so that it follows a sign-out or a sign-in of another process.
 * @param http The app's OkHttp client, whose connections and settings are used, but not its dispatcher.
 * @param clock Returns this device's time in milliseconds. It may be wrong, and may jump.
 * @param timeout The longest wait for an answer.
 * @param deviceKey Binds each new session to a key of this device, so that its tokens are of no use to a thief. The default is
 *   the Android Keystore, or for a [MemoryStorage] keys in memory; elsewhere, and with `null`, new sessions are not bound.
 */
public class Vestibule(
    baseUrl: String,
    private val storage: TokenStorage,
    private val lock: Lock? = null,
    http: OkHttpClient = OkHttpClient(),
    private val clock: () -> Long = System::currentTimeMillis,
    private val timeout: Duration = 10.seconds,
    private val deviceKey: DeviceKey? = platformKey(storage),
) {
    /** A time by this device's clock, and seconds from then on. */
    private class Period(val since: Long, val seconds: Long)

    /** An access token, and the key that it is bound to, if any. */
    private class Access(val token: String, val key: KeyPair?, val good: Period)

    /** The time for which the service wants no refresh, and how it said so. */
    private class Pause(val error: VestibuleException, val period: Period)

    /** Returns the error with the seconds that are left. */
    private fun Pause.left(): VestibuleException = with(error) {
        val passed = (clock() - period.since) / 1000
        VestibuleException(error, status, detail, reason, requestId, (period.seconds - passed).toInt())
    }

    private val base = baseUrl.trimEnd('/')
    private val proofs = Proofs(clock)

    // A session that was bound before that was turned off stays so.
    private val keys = deviceKey ?: platformKey(storage)

    // One of its own: requests of the app that wait for a token must not fill the queue of the refresh.
    private val http = http.newBuilder()
        .dispatcher(Dispatcher().apply { maxRequestsPerHost = maxRequests })
        .callTimeout(timeout.inWholeMilliseconds, TimeUnit.MILLISECONDS)
        .build()

    // All that follows is used by one thread at a time, none of those that apps may block.
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.IO.limitedParallelism(1))
    private val current = MutableStateFlow<AuthState>(AuthState.Restoring)
    private var session: Kept? = null
    private var access: Access? = null
    private var lastUser: String? = null
    private var refreshing: Deferred<Access>? = null
    private var pause: Pause? = null
    private val queue = Mutex()

    /** Counts the attempts to sign in, of which only the last one may succeed. */
    private var attempts = 0

    /** Counts the sessions: whatever began under another number is thrown away. */
    @Volatile
    private var generation = 0

    /** The state now, and those that follow. */
    public val state: StateFlow<AuthState> = current.asStateFlow()

    init {
        // Every call would fail with it.
        base.toHttpUrl()
        scope.launch { runCatching { restore() } }
    }

    /**
     * Calls [listener] with the state, and with each that follows, until the returned object is closed. A listener that
     * is slow misses states in between, but never the last one.
     */
    public fun onAuthStateChange(listener: (AuthState) -> Unit): AutoCloseable {
        val job = scope.launch(Dispatchers.Default) { state.collect { listener(it) } }
        return AutoCloseable { job.cancel() }
    }

    /**
     * Signs in with the [idToken] that a provider's SDK has just returned.
     *
     * @param provider The provider's name at the service.
     * @param nonce The raw nonce that the SDK was given, if any.
     * @param create `false` refuses an identity that has never signed in, with `user_not_found`.
     * @param name The name that the app was told; Apple tells it once, and only to the app.
     * @param device The description of this device in the user's list of sessions.
     * @param authorizationCode The code that came with the token: with it, the provider's tokens can be revoked (Apple).
     * @param redirectUri The redirect URI of the request that led to the code, if it had one.
     */
    public suspend fun signIn(
        provider: String,
        idToken: String,
        nonce: String? = null,
        create: Boolean? = null,
        name: String? = null,
        device: Device? = null,
        authorizationCode: String? = null,
        redirectUri: String? = null,
    ): SignedIn = own {
        val mine = ++attempts
        // It replaces what cannot be read.
        runCatching { restore() }
        val since = clock()
        val body = Body(
            idToken, nonce, create, name, device, authorizationCode = authorizationCode, redirectUri = redirectUri,
        )
        val id = UUID.randomUUID().toString()
        // A key store that fails keeps nobody out.
        val made = runCatching { withContext(Dispatchers.IO) { deviceKey?.create(id) } }.getOrNull()
        val (answer, credential) = try {
            val text = post(url("auth/oauth", provider), body, made)
            read { json.decodeFromString<SignedIn>(text) to json.decodeFromString<Credential>(text) }
        } catch (e: VestibuleException) {
            drop(id)
            throw e
        }
        // The service may not bind sessions.
        val key = made?.takeIf { credential.tokenType == "DPoP" }
        if (key == null) drop(id)
        val next = Kept(id, credential.refreshToken, answer.user, bound = key != null)
        fun last() {
            if (mine != attempts) throw superseded()
        }
        try {
            locked {
                last()
                queued { save(Stored(next)) }
            }
            last()
        } catch (e: VestibuleException) {
            scope.launch { tell(next) }
            throw e
        }
        val left = session
        // A call that has read the storage meanwhile has entered it already.
        if (left?.id != next.id) {
            enter(next)
            if (left != null) scope.launch { tell(left) }
        }
        access = Access(credential.accessToken, key, Period(since, credential.expiresIn - MARGIN))
        answer.copy(identity = answer.identity.copy(current = true))
    }

    /** The sessions that a sign-out ends. */
    public enum class Scope {
        /** This one. */
        LOCAL,

        /** The user's other sessions. */
        OTHERS,

        /** All of the user's sessions. */
        GLOBAL,
    }

    /**
     * Signs out. The session is forgotten on this device at once, and whether or not the service can be told. Only
     * [Scope.OTHERS], which keeps it, fails if the service cannot be told.
     */
    public suspend fun signOut(scope: Scope = Scope.LOCAL): Unit = own {
        if (scope == Scope.OTHERS) {
            call("POST", url("auth/logout").scoped(scope))
            return@own
        }
        attempts++
        val known = session
        val forgotten = begin { forget(SignedOutReason.SIGNED_OUT) }
        val left = suspend { known ?: forgotten.await() }
        val told = begin { left()?.let { tell(it, scope) } }
        // Another process may have stored the answer to a refresh meanwhile.
        val again = begin {
            left()?.let { end ->
                locked { replace(end.id) { Stored(reason = SignedOutReason.SIGNED_OUT.wire, userId = it.user.id) } }
            }
        }
        awaitAll(forgotten, told, again)
    }

    /**
     * Sends a request as the signed-in user, to this service or to any other that accepts its access tokens; never to
     * one of somebody else, who would get the token. Answers other than 401 are returned as they are. After a 401, it
     * refreshes once and repeats once, unless the body is one-shot. The whole answer has to be read within the timeout:
     * for what takes longer, use the [interceptor].
     */
    public suspend fun fetch(request: Request): Response = authorized(request, ::send)

    /**
     * Does for an OkHttp client of the app's what [fetch] does, with that client's own timeouts. Only requests to
     * services that accept the access tokens may go through it.
     */
    public val interceptor: Interceptor = Interceptor { chain ->
        try {
            runBlocking { authorized(chain.request()) { chain.proceed(it) } }
        } catch (e: InterruptedException) {
            throw InterruptedIOException().initCause(e)
        }
    }

    /**
     * Returns an access token that is good for half a minute at least. With [refresh], it is a new one, which has the claims that
     * the backend has set meanwhile. That of a bound session is sent with a proof: see [headers].
     */
    public suspend fun accessToken(refresh: Boolean = false): String = own {
        restore()
        access(access?.token.takeIf { refresh }).token
    }

    /**
     * Returns the headers of one request as the signed-in user, for what cannot be sent with OkHttp: `Authorization` and, in a
     * bound session, `DPoP`, a proof for this [method] and this [url] alone.
     */
    public suspend fun headers(method: String, url: String): Map<String, String> {
        val access = own { access(null) }
        return authorization(access.token, access.key, method, url.toHttpUrl())
    }

    /** Returns the user with identities, and updates the state's user. */
    public suspend fun me(): Me = own { learned(call("GET", url("me"))) }

    /**
     * Sets the [name] that the user wants to be shown under, which no provider overwrites, and updates the state's user.
     * `null` takes it back.
     */
    public suspend fun setName(name: String?): Me = own { learned(call("PATCH", url("me"), Body(name = name.orEmpty()))) }

    private suspend fun learned(text: String): Me {
        val me = read { Me(json.decodeFromString<User>(text), json.decodeFromString<Identities>(text).identities) }
        learn(me.user)
        return me
    }

    /** Takes over what the service says of the user. */
    private suspend fun learn(user: User) {
        val kept = session
        if (kept == null || kept.user == user) return
        session = kept.copy(user = user)
        goesOn(user, (state.value as? AuthState.SignedIn)?.offline == true)
        locked { replace(kept.id) { Stored(it.copy(user = user)) } }
    }

    /** Returns the accounts that the user signs in with, the oldest first. */
    public suspend fun identities(): List<Identity> = own {
        val text = call("GET", url("me/identities"))
        read { json.decodeFromString<Identities>(text).identities }
    }

    /** Links another account with its provider's [idToken] and the raw [nonce] that its SDK was given, if any. */
    public suspend fun link(
        provider: String,
        idToken: String,
        nonce: String? = null,
        reauthentication: Reauthentication? = null,
        authorizationCode: String? = null,
        redirectUri: String? = null,
    ): Identity = own {
        val body = Body(
            idToken,
            nonce,
            reauthentication = reauthentication,
            authorizationCode = authorizationCode,
            redirectUri = redirectUri,
        )
        val text = call("POST", url("me/identities", provider), body)
        read { json.decodeFromString<Identity>(text) }
    }

    /** Unlinks an account. Unlinking the one that this session was opened with ends the session. */
    public suspend fun unlink(identity: String, reauthentication: Reauthentication? = null): Unit = own {
        call("DELETE", url("me/identities", identity), Body(reauthentication = reauthentication))
    }

    /**
     * Merges another account, which its provider's [idToken] proves, into this one. With [dryRun], it returns what that
     * would change, and changes nothing.
     */
    public suspend fun merge(
        provider: String,
        idToken: String,
        nonce: String? = null,
        dryRun: Boolean = false,
        reauthentication: Reauthentication? = null,
    ): Merge = own {
        val body = Body(idToken, nonce, reauthentication = reauthentication, provider = provider, dryRun = dryRun)
        val text = call("POST", url("me/merge"), body)
        val merge = read { json.decodeFromString<Merge>(text) }
        if (merge.applied) learn(merge.user.copy(claims = merge.claims))
        merge
    }

    /** Returns where the user is signed in, the last used first. */
    public suspend fun sessions(): List<Session> = own {
        val text = call("GET", url("me/sessions"))
        read { json.decodeFromString<Sessions>(text).sessions }
    }

    /** Ends one of the user's sessions. */
    public suspend fun endSession(session: String): Unit = own { call("DELETE", url("me/sessions", session)) }

    /** Deletes the account, and forgets it on this device. It can be repeated when its answer was lost. */
    public suspend fun deleteAccount(reauthentication: Reauthentication? = null): Unit = own {
        try {
            call("DELETE", url("me"), Body(reauthentication = reauthentication))
        } catch (e: VestibuleException) {
            // It was done before, and the answer was lost.
            if (e.reason != SignedOutReason.USER_DELETED.wire) throw e
        }
        if (session != null) forget(SignedOutReason.USER_DELETED)?.let { drop(it.id) }
    }

    /** Returns the providers that the app can offer. It takes no sign-in. */
    public suspend fun providers(): List<Provider> = own {
        val text = text(send(Request.Builder().url(url("auth/providers")).build()))
        read { json.decodeFromString<Providers>(text).providers }
    }

    /** Runs work by itself: it ends well also where the caller does not wait for it. */
    private suspend fun <T> own(work: suspend () -> T): T = scope.async { work() }.await()

    /** Runs the beginning of some work at once, as far as its first wait. */
    private fun <T> begin(work: suspend () -> T): Deferred<T> = scope.async(start = UNDISPATCHED) { work() }

    /** Returns true while a period lasts. The clock may have been set back since it began, which ends it. */
    private fun lasts(period: Period) = clock() - period.since in 0 until period.seconds * 1000

    /** Publishes how the session goes on. */
    private fun goesOn(user: User, offline: Boolean) {
        val now = current.value
        if (now is AuthState.SignedIn) current.value = now.copy(user = user, offline = offline)
    }

    private fun superseded() = VestibuleException(ErrorName.SUPERSEDED)

    private fun signedOut() =
        VestibuleException(ErrorName.SIGNED_OUT, reason = (state.value as? AuthState.SignedOut)?.reason?.wire)

    /** Fails if a sign-out or another sign-in has come in between. */
    private fun still(mine: Int) {
        if (mine != generation) throw superseded()
    }

    // The storage. Its uses follow each other in the order in which they were begun.

    private suspend fun <T> queued(work: suspend () -> T): T = queue.withLock {
        try {
            work()
        } catch (e: Exception) {
            throw VestibuleException(ErrorName.STORAGE, cause = e)
        }
    }

    private suspend fun load(): Stored {
        val text = withContext(Dispatchers.IO) { storage.get() } ?: return Stored()
        return try {
            json.decodeFromString(text)
        } catch (_: IllegalArgumentException) {
            Stored()
        }
    }

    private suspend fun save(next: Stored) = withContext(Dispatchers.IO) {
        val nothing = next.reason == SignedOutReason.USER_DELETED.wire
        if (nothing) storage.remove() else storage.set(json.encodeToString(next))
    }

    /** Stores what [change] makes of a session. What another client has stored instead stays, and is returned. */
    private suspend fun replace(id: String, change: (Kept) -> Stored): Stored? = queued {
        val stored = load()
        val kept = stored.session
        if (kept?.id == id) save(change(kept))
        stored.takeIf { kept?.id != id }
    }

    /** Runs work under the lock. A lock that cannot be had in time is done without: its holder may hang. */
    private suspend fun <T> locked(work: suspend () -> T): T {
        if (lock == null) return work()
        val turn = CompletableDeferred<Unit>()
        val done = Job()
        scope.launch(Dispatchers.IO) {
            runCatching {
                lock.hold("vestibule $base") {
                    turn.complete(Unit)
                    done.join()
                }
            }
            turn.complete(Unit)
        }
        withTimeoutOrNull(timeout) { turn.await() }
        return try {
            work()
        } finally {
            done.complete()
        }
    }

    // The beginning and the end of a session.

    /** Makes a session the current one. What is under way belongs to another one from here on. */
    private fun become(next: Kept?) {
        generation++
        lastUser = next?.user?.id ?: lastUser
        session = next
        access = null
        refreshing = null
        pause = null
    }

    private fun enter(next: Kept) {
        val from = lastUser?.takeIf { it != next.user.id }
        become(next)
        current.value = AuthState.SignedIn(next.user, userChanged = from?.let(::UserChanged))
    }

    /** Takes over what an earlier process or another client has stored. */
    private fun follow(stored: Stored) {
        if (stored.session != null) return enter(stored.session)
        lastUser = lastUser ?: stored.userId
        become(null)
        val otherwise = if (lastUser == null) SignedOutReason.NEVER else SignedOutReason.SIGNED_OUT
        current.value = AuthState.SignedOut(SignedOutReason.of(stored.reason) ?: otherwise)
    }

    /** Takes over what another process has stored. */
    private suspend fun hear() {
        val mine = generation
        val stored = queued { load() }
        if (mine == generation && stored.session?.id != session?.id) follow(stored)
    }

    /** Returns true if the storage has told nothing so far. */
    private fun unread() =
        state.value == AuthState.Restoring || state.value == AuthState.SignedOut(SignedOutReason.STORAGE_FAILED)

    private suspend fun restore() {
        if (!unread()) return
        val stored = try {
            queued { load() }
        } catch (e: VestibuleException) {
            if (state.value == AuthState.Restoring) {
                current.value = AuthState.SignedOut(SignedOutReason.STORAGE_FAILED)
            }
            throw e
        }
        if (unread()) follow(stored)
    }

    /** Forgets the session: at once here, and then in the storage. Returns it. */
    private suspend fun forget(reason: SignedOutReason): Kept? {
        val left = session
        val blind = unread()
        become(null)
        current.value = AuthState.SignedOut(reason)
        return queued {
            val stored = if (blind) runCatching { load() }.getOrDefault(Stored()) else load()
            if (!blind && stored.session?.id != left?.id) return@queued left
            lastUser = lastUser ?: stored.session?.user?.id ?: stored.userId
            save(Stored(reason = reason.wire, userId = lastUser))
            left ?: stored.session
        }
    }

    /** Forgets a session that the service has ended, and returns the error for whoever asked. */
    private suspend fun ended(reason: String): VestibuleException {
        forget(SignedOutReason.of(reason) ?: SignedOutReason.SESSION_UNKNOWN)?.let { drop(it.id) }
        return signedOut()
    }

    // Requests.

    private fun url(path: String, id: String? = null): HttpUrl =
        "$base/api/v1/$path".toHttpUrl().newBuilder().apply { id?.let(::addPathSegment) }.build()

    private fun HttpUrl.scoped(scope: Scope) =
        newBuilder().addQueryParameter("scope", scope.name.lowercase()).build()

    private fun Body.toRequestBody() = json.encodeToString(this).toRequestBody(JSON)

    private suspend fun send(request: Request): Response = try {
        suspendCancellableCoroutine { waiting ->
            val call = http.newCall(request)
            waiting.invokeOnCancellation { call.cancel() }
            call.enqueue(object : Callback {
                override fun onFailure(call: Call, e: IOException) = waiting.resumeWithException(e)

                override fun onResponse(call: Call, response: Response) =
                    waiting.resume(response) { _, unwanted, _ -> unwanted.close() }
            })
        }
    } catch (e: IOException) {
        throw lost(e)
    }

    private fun lost(e: Exception) =
        VestibuleException(if (e is InterruptedIOException) ErrorName.TIMEOUT else ErrorName.NETWORK, cause = e)

    /** Returns the text of an answer, and fails with the problem that it is. */
    private suspend fun text(response: Response): String = withContext(Dispatchers.IO) {
        response.use {
            if (!it.isSuccessful) throw problem(it, runCatching { it.body.string() }.getOrDefault(""))
            try {
                it.body.string()
            } catch (e: IOException) {
                throw lost(e)
            }
        }
    }

    /**
     * Reads JSON. One that is cut off is a lost answer, and fails like one. The parser's own error would repeat a part of the
     * text, which may be of a token.
     */
    private fun <T> read(decode: () -> T): T = try {
        decode()
    } catch (_: IllegalArgumentException) {
        throw lost(IOException("the answer is not whole"))
    }

    /** Makes an error of an answer that is not one of success. A proxy's answer has no name, and goes by its status. */
    private fun problem(response: Response, text: String): VestibuleException {
        val said = runCatching { json.decodeFromString<Problem>(text) }.getOrElse { Problem() }
        return VestibuleException(
            ErrorName.of(said.error, response.code),
            response.code,
            said.detail,
            said.reason,
            said.requestId ?: response.header("X-Request-Id"),
            // A proxy may send a date, which is of no use on a device whose clock is wrong.
            response.header("Retry-After")?.toIntOrNull()?.takeIf { it >= 0 },
        )
    }

    /** Sends JSON as anybody, or as the holder of a key. */
    private suspend fun post(url: HttpUrl, body: Body, key: KeyPair?): String =
        text(proven(Request.Builder().url(url).post(body.toRequestBody()).build(), null, key, ::send))

    /** Ends a session at the service, if it can be reached. */
    private suspend fun tell(left: Kept, scope: Scope = Scope.LOCAL) {
        runCatching { post(url("auth/logout").scoped(scope), Body(refreshToken = left.refreshToken), keyOf(left)) }
        drop(left.id)
    }

    // The keys of sessions.

    /** Returns the key that a session is bound to, if any. One that is lost fails as its proof would. */
    private suspend fun keyOf(kept: Kept): KeyPair? {
        if (!kept.bound) return null
        val key = secret { keys?.get(kept.id) }
        return key ?: throw VestibuleException(ErrorName.INVALID_DPOP_PROOF)
    }

    /** Removes the key of a session that is over, if it had one. */
    private suspend fun drop(id: String) {
        runCatching { withContext(Dispatchers.IO) { keys?.remove(id) } }
    }

    private suspend fun <T> secret(work: suspend () -> T): T = withContext(Dispatchers.IO) {
        try {
            work()
        } catch (e: Exception) {
            throw VestibuleException(ErrorName.STORAGE, cause = e)
        }
    }

    /** Returns the headers that a request needs by its access token and its key, if it has them. */
    private suspend fun authorization(token: String?, key: KeyPair?, method: String, url: HttpUrl) = buildMap {
        if (token != null) put("Authorization", (if (key == null) "Bearer " else "DPoP ") + token)
        if (key != null) put("DPoP", secret { proofs.sign(key, method, url, token) })
    }

    /** Sends a request with an access token and a key, if it has them, and repeats it once where its proof lacks a nonce. */
    private suspend fun proven(
        request: Request,
        token: String?,
        key: KeyPair?,
        send: suspend (Request) -> Response,
    ): Response {
        suspend fun attempt(): Response {
            val proven = request.newBuilder()
            for ((name, value) in authorization(token, key, request.method, request.url)) proven.header(name, value)
            return send(proven.build())
        }
        val response = attempt()
        if (key == null || !proofs.learn(response) || request.body?.isOneShot() == true) return response
        response.close()
        return attempt().also { proofs.learn(it) }
    }

    private suspend fun exchange(token: String, key: KeyPair?, mine: Int, last: Boolean = false): Credential = try {
        val text = post(url("auth/refresh"), Body(refreshToken = token), key)
        read { json.decodeFromString(text) }
    } catch (e: VestibuleException) {
        still(mine)
        val refused = (e.status ?: 500) < 500 && e.error != ErrorName.INVALID_DPOP_PROOF
        if (last || refused || e.retryAfter != null) throw e
        // The answer to the same token is the same, or as good.
        exchange(token, key, mine, last = true)
    }

    private suspend fun refresh(mine: Int): Access = locked {
        fun elsewhere(stored: Stored): VestibuleException {
            follow(stored)
            return if (session == null) signedOut() else superseded()
        }
        still(mine)
        val stored = queued { load() }
        still(mine)
        val kept = stored.session?.takeIf { it.id == session?.id } ?: throw elsewhere(stored)
        val since = clock()
        val (key, answer) = try {
            val key = keyOf(kept)
            key to exchange(kept.refreshToken, key, mine)
        } catch (e: VestibuleException) {
            still(mine)
            if (e.error == ErrorName.INVALID_DPOP_PROOF) throw ended(SignedOutReason.DEVICE_KEY_LOST.wire)
            if (e.error == ErrorName.INVALID_REFRESH_TOKEN || e.error == ErrorName.USER_DISABLED) {
                throw ended(e.reason ?: e.error.wire)
            }
            if (e.retryAfter != null) pause = Pause(e, Period(clock(), e.retryAfter.toLong()))
            // A refusal is an answer.
            if ((e.status ?: 500) >= 500 && e.error != ErrorName.STORAGE) goesOn(kept.user, offline = true)
            throw e
        }
        still(mine)
        // Before anything else: a token that was lost could not be told from a stolen one.
        val instead = replace(kept.id) { Stored(it.copy(refreshToken = answer.refreshToken)) }
        still(mine)
        if (instead != null) throw elsewhere(instead)
        session = kept.copy(refreshToken = answer.refreshToken)
        goesOn(kept.user, offline = false)
        Access(answer.accessToken, key, Period(since, answer.expiresIn - MARGIN)).also { access = it }
    }

    /** Returns a token that is good for a while, and is not the one that was rejected. */
    private suspend fun access(rejected: String?): Access {
        restore()
        if (lock != null) runCatching { hear() }
        if (session == null) throw signedOut()
        access?.let { if (it.token != rejected && lasts(it.good)) return it }
        pause?.let { if (lasts(it.period)) throw it.left() }
        val mine = generation
        val begun = refreshing ?: scope.async {
            try {
                refresh(mine)
            } finally {
                if (refreshing === coroutineContext.job) refreshing = null
            }
        }
        refreshing = begun
        return begun.await().also { still(mine) }
    }

    private suspend fun authorized(request: Request, send: suspend (Request) -> Response): Response {
        val (mine, first) = own {
            restore()
            val mine = generation
            mine to access(null)
        }
        suspend fun attempt(access: Access): Response {
            val response = proven(request, access.token, access.key) {
                still(mine)
                send(it)
            }
            if (mine != generation) {
                response.close()
                throw superseded()
            }
            return response
        }
        val response = attempt(first)
        if (response.code != 401) return response
        val ours = request.url.toString().startsWith("$base/")
        val text = if (ours) withContext(Dispatchers.IO) { runCatching { response.peekBody(LIMIT).string() } } else null
        val reason = text?.let { problem(response, it.getOrDefault("")).reason }
        // With a reason, the token is genuine and its session is over: a refresh would only be told less.
        if (reason == null && request.body?.isOneShot() == true) return response
        response.close()
        still(mine)
        if (reason != null) {
            throw own {
                still(mine)
                ended(reason)
            }
        }
        return attempt(own { access(first.token) })
    }

    /** Sends a request of the API as the user. */
    private suspend fun call(method: String, url: HttpUrl, body: Body? = null): String {
        restore()
        val mine = generation
        val content = body ?: if (method == "POST") Body() else null
        val text = text(fetch(Request.Builder().url(url).method(method, content?.toRequestBody()).build()))
        still(mine)
        return text
    }

    private companion object {
        /** Seconds before its end from which an access token is used no more. */
        const val MARGIN = 30

        /** The most that is read of a refusal. */
        const val LIMIT = 65_536L
        val JSON = "application/json".toMediaType()
    }
}
