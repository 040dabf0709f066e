package vestibule

import com.sun.net.httpserver.HttpServer
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import okhttp3.Call
import okhttp3.Callback
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okio.BufferedSink
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import java.io.File
import java.io.IOException
import java.net.InetSocketAddress
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger
import javax.crypto.KeyGenerator
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

/**
 * A phone's hard life: every way in which requests, processes and people get in each other's way, with sessions that are bound
 * to the phone and with others.
 */
@ParameterizedClass(name = "bound: {0}")
@ValueSource(booleans = [true, false])
class PhoneTest(private val bound: Boolean) {
    init {
        deviceKey = keyStore.takeIf { bound }
    }

    private fun app(vararg args: String, keys: File = keyStore.folder): ProcessBuilder {
        val java = File(System.getProperty("java.home"), "bin/java").path
        val classes = System.getProperty("java.class.path")
        val place = arrayOf(network.url, keys.path)
        return ProcessBuilder(java, "-XX:TieredStopAtLevel=1", "-cp", classes, "vestibule.AppKt", *place, *args)
    }

    /** Starts an app's process, and returns the token or the error that it prints, and its state. */
    private fun start(vararg args: String, keys: File = keyStore.folder): Pair<String, String> {
        val (token, state) = run(app(*args, keys = keys).command()).lines().last().split(" ")
        return token to state
    }

    /** A phone whose storage is a file, and which was signed in and then ended. */
    private suspend fun ended(): Pair<String, String> {
        val file = File.createTempFile("phone", "", folder).apply { delete() }
        return file.path to Phone(FileStorage(file)).signIn()
    }

    private fun signedOut(reason: SignedOutReason) = AuthState.SignedOut(reason)

    @ParameterizedTest
    @ValueSource(strings = ["at once", "an hour later"])
    fun `an app that is killed before it stores a refresh is signed in when it starts`(later: String) = trying {
        val (file, user) = ended()
        val before = File(file).readText()
        val held = network.hold(REFRESH)
        val process = app(file).start()
        held.answered.await()
        process.destroyForcibly().waitFor()
        held.release()
        assertEquals(before, File(file).readText(), "nothing was stored")
        if (later != "at once") pass(user, 1.hours)
        val (token, state) = start(file)
        assertTrue(works(token))
        assertEquals("SignedIn", state)
        assertTrue(works(start(file).first), "and it goes on")
    }

    @Test
    fun `requests that find the access token expired at resume share one refresh`() = trying {
        val mine = Phone()
        val user = mine.signIn()
        mine.quarterOfAnHour()
        val before = network.count(REFRESH)
        val ids = List(10) { async { mine.whoAmI() } }.awaitAll()
        assertEquals(setOf(user), ids.toSet())
        assertEquals(before + 1, network.count(REFRESH))
    }

    @Test
    fun `calls of the app's own OkHttp client share one refresh, however many wait for it`() = trying {
        val shared = OkHttpClient()
        val mine = Phone(http = shared)
        mine.signIn()
        mine.quarterOfAnHour()
        val before = network.count(REFRESH)
        val http = shared.newBuilder().addInterceptor(mine.client.interceptor).build()
        val codes = List(20) { CompletableDeferred<Int>() }
        for (code in codes) {
            http.newCall(mine.me).enqueue(object : Callback {
                override fun onFailure(call: Call, e: IOException) {
                    code.completeExceptionally(e)
                }

                override fun onResponse(call: Call, response: Response) {
                    code.complete(response.use { it.code })
                }
            })
        }
        assertEquals(setOf(200), codes.awaitAll().toSet())
        assertEquals(before + 1, network.count(REFRESH))
    }

    @ParameterizedTest
    @ValueSource(booleans = [true, false])
    fun `two processes on one storage stay signed in, and with a lock refresh one by one`(lock: Boolean) = trying {
        val (file) = ended()
        val before = network.passed.size
        val args = if (lock) arrayOf(file, "$file.lock") else arrayOf(file)
        val told = List(2) { async { start(*args) } }.awaitAll()
        for ((token) in told) assertTrue(works(token))
        val shown = network.passed.drop(before).map { it.body }
        if (lock) assertEquals(2, shown.toSet().size, "the second one shows what the first one stored")
        assertTrue(works(start(*args).first), "what is stored at last is the successor")
    }

    @Test
    fun `an answer that is swallowed is asked for again at once, with the same token`() = trying {
        val mine = Phone()
        val user = mine.signIn()
        mine.quarterOfAnHour()
        val state = mine.state
        val before = network.passed.size
        network.next(REFRESH, Fault.Lose)
        assertEquals(user, mine.whoAmI())
        val (first, second) = network.passed.drop(before)
        assertEquals(listOf(REFRESH, REFRESH), listOf(first.path, second.path))
        assertEquals(first.body, second.body)
        assertTrue(state === mine.state, "the person notices nothing")
    }

    @Test
    fun `answers that never come keep the session, and an hour later it goes on`() = trying {
        val before = Phone()
        val user = before.signIn()
        val mine = Phone(before.storage, timeout = 500.milliseconds)
        repeat(2) { network.next(REFRESH, Fault.Hang) }
        refused(ErrorName.TIMEOUT) { mine.client.fetch(mine.me) }
        assertTrue(mine.offline)
        pass(user, 1.hours)
        assertEquals(user, Phone(mine.storage).whoAmI())
    }

    @Test
    fun `an app that starts without a network knows who is signed in, and goes on when there is one`() = trying {
        val before = Phone()
        val user = before.signIn()
        network.down = true
        val mine = Phone(before.storage)
        val started = mine.client.state.first { it != AuthState.Restoring } as AuthState.SignedIn
        assertEquals(user to false, started.user.id to started.offline)
        refused(ErrorName.NETWORK) { mine.client.fetch(mine.me) }
        assertTrue(mine.offline)
        network.down = false
        assertEquals(user, mine.whoAmI())
        assertEquals(started, mine.state)
    }

    @Test
    fun `after thirty days offline the session has expired, and the phone says whose it was`() = trying {
        val before = Phone()
        val email = somebody()
        val user = before.signIn(email)
        pass(user, 29.days)
        assertEquals(user, Phone(before.storage).whoAmI(), "a day earlier it is good, and good for thirty more")
        pass(user, 31.days)
        val mine = Phone(before.storage)
        mine.setAhead(31.days)
        assertEquals("session_expired", refused(ErrorName.SIGNED_OUT) { mine.client.fetch(mine.me) }.reason)
        assertEquals(signedOut(SignedOutReason.SESSION_EXPIRED), mine.state)
        val next = Phone(mine.storage)
        refused(ErrorName.SIGNED_OUT) { next.client.accessToken() }
        assertEquals(signedOut(SignedOutReason.SESSION_EXPIRED), next.state, "also after the next start")
        assertEquals(user, next.signIn(email))
        assertNull(next.changed)
    }

    @ParameterizedTest
    @ValueSource(ints = [-1, 1])
    fun `a clock that is a day off, or jumps, costs a refresh and no more`(days: Int) = trying {
        val mine = Phone()
        mine.setAhead(days.days)
        val user = mine.signIn()
        val before = network.count(REFRESH)
        assertEquals(user, mine.whoAmI())
        assertEquals(before, network.count(REFRESH), "a clock that is off makes no difference")
        mine.setAhead(0.days)
        repeat(2) { assertEquals(user, mine.whoAmI()) }
        assertEquals(before + 1, network.count(REFRESH), "a clock that is set makes one")
    }

    @Test
    fun `a user whom staff disable is told so, at the next request and at a sign-in`() = trying {
        val mine = Phone()
        val email = somebody()
        val user = mine.signIn(email)
        staff.disable(user)
        assertEquals("user_disabled", refused(ErrorName.SIGNED_OUT) { mine.client.me() }.reason)
        assertEquals(403, refused(ErrorName.USER_DISABLED) { mine.signIn(email) }.status)
        assertEquals(signedOut(SignedOutReason.USER_DISABLED), mine.state)
        staff.enable(user)
        assertEquals(user, mine.signIn(email))
    }

    @Test
    fun `a user who is disabled while the app is closed is told so by the refresh`() = trying {
        val before = Phone()
        staff.disable(before.signIn())
        val mine = Phone(before.storage)
        assertEquals("user_disabled", refused(ErrorName.SIGNED_OUT) { mine.client.accessToken() }.reason)
        assertEquals(signedOut(SignedOutReason.USER_DISABLED), mine.state)
    }

    @ParameterizedTest
    @ValueSource(strings = ["open", "closed"])
    fun `a user who is merged signs in as the other one, and the state says so`(app: String) = trying {
        val before = Phone()
        val email = somebody()
        val from = before.signIn(email)
        val into = Phone().signIn()
        staff.merge(from, into)
        val mine = if (app == "open") before else Phone(before.storage)
        refused(ErrorName.SIGNED_OUT) { mine.client.me() }
        // A merged user's sessions are gone, so that a refresh cannot say why.
        val reason = if (app == "open") SignedOutReason.USER_MERGED else SignedOutReason.SESSION_UNKNOWN
        assertEquals(signedOut(reason), mine.state)
        val next = Phone(mine.storage)
        assertEquals(into, next.signIn(email))
        assertEquals(UserChanged(from), next.changed)
    }

    @Test
    fun `a user whom staff delete is told so, and nothing of theirs is left on the phone`() = trying {
        val mine = Phone()
        staff.delete(mine.signIn())
        assertEquals("user_deleted", refused(ErrorName.SIGNED_OUT) { mine.client.me() }.reason)
        assertEquals(signedOut(SignedOutReason.USER_DELETED), mine.state)
        assertNull(mine.storage.get())
    }

    @Test
    fun `a user whom staff sign out is told so, at the next request and at a refresh`() = trying {
        val (mine, other) = List(2) { Phone() }
        val email = somebody()
        val user = mine.signIn(email)
        other.signIn(email)
        staff.endSessions(user)
        refused(ErrorName.SIGNED_OUT) { mine.client.me() }
        other.quarterOfAnHour()
        refused(ErrorName.SIGNED_OUT) { other.client.accessToken() }
        for (phone in listOf(mine, other)) assertEquals(signedOut(SignedOutReason.SESSION_ENDED), phone.state)
    }

    @Test
    fun `a stolen copy of the storage is found out, and both are told`() = trying {
        val (file) = ended()
        File(file).copyTo(File("$file copy"))
        // Of what no key store gives away, too.
        val keys = File("$file keys").also { keyStore.folder.copyRecursively(it) }
        repeat(2) { assertEquals("SignedIn", start(file).second) }
        assertEquals("signed_out" to "refresh_token_reused", start("$file copy", keys = keys))
        assertEquals("signed_out" to "session_ended", start(file))
    }

    @Test
    fun `a provider that is down, or wants to be left alone, fails the sign-in and nothing else`() = trying {
        val (mine, other) = List(2) { Phone() }
        val user = other.signIn()
        val email = somebody()
        suspend fun attempt() = mine.client.signIn("second", service.idToken("email" to email))
        for (down in listOf(true, false)) {
            provider.down = down
            if (!down) provider.next("/", Fault.Answer(429, 7))
            val error = refused(ErrorName.PROVIDER_UNAVAILABLE) { attempt() }
            assertEquals(503, error.status)
            assertTrue(error.retryAfter != null && error.requestId != null)
        }
        other.quarterOfAnHour()
        assertEquals(user, other.whoAmI(), "whoever is signed in needs no provider")
        assertEquals(email, eventually("the provider is asked again", ::attempt).user.email)
    }

    @Test
    fun `a provider that is slow runs into the app's own timeout, and the late answer signs nobody in`() = trying {
        val mine = Phone(timeout = 500.milliseconds)
        val held = provider.hold("/")
        val idToken = service.idToken("email" to somebody())
        refused(ErrorName.TIMEOUT) { mine.client.signIn("second", idToken) }
        held.release()
        assertEquals(signedOut(SignedOutReason.NEVER), mine.state)
        Phone(mine.storage).run {
            client.signIn("idp", idToken)
            assertTrue(state is AuthState.SignedIn)
        }
    }

    @Test
    fun `a service that wants no refresh for a while gets none, and the session stays`() = trying {
        // To be told a nonce is a request, too.
        val limit = if (bound) 2 else 1
        val strict = Service.start(mapOf("ROCKET_RATE_LIMIT" to "{refresh_per_minute=$limit}"), service)
        try {
            val requests = AtomicInteger()
            val counting = OkHttpClient.Builder().addInterceptor { chain ->
                requests.incrementAndGet()
                chain.proceed(chain.request())
            }.build()
            val before = Phone()
            val user = before.signIn()
            val mine = Phone(before.storage, baseUrl = strict.url, http = counting)
            mine.client.accessToken()
            mine.quarterOfAnHour()
            val error = refused(ErrorName.RATE_LIMITED) { mine.client.accessToken() }
            assertEquals(429, error.status)
            val sent = requests.get()
            mine.pass(2.seconds)
            val later = refused(ErrorName.RATE_LIMITED) { mine.client.accessToken() }
            assertTrue(checkNotNull(later.retryAfter) < checkNotNull(error.retryAfter), "it counts down")
            assertFalse((mine.state as AuthState.SignedIn).offline, "the service has answered")
            assertEquals(sent, requests.get(), "it does not ask")
            assertEquals(user, mine.stored()?.user?.id)
            mine.pass(checkNotNull(error.retryAfter).seconds)
            runCatching { mine.client.accessToken() }
            assertTrue(requests.get() > sent, "then it asks again")
        } finally {
            strict.stop()
        }
    }

    @Test
    fun `what a sign-out leaves under way is thrown away - a refresh, a response, a sign-in`() = trying {
        val mine = Phone()
        mine.signIn()
        val response = network.hold(ME)
        val late = async { refused(ErrorName.SUPERSEDED) { mine.client.me() } }
        response.answered.await()
        mine.quarterOfAnHour()
        val answer = network.hold(REFRESH)
        val token = async { refused(ErrorName.SUPERSEDED) { mine.client.accessToken() } }
        answer.answered.await()
        val signedIn = network.hold(SIGN_IN)
        val attempt = async { refused(ErrorName.SUPERSEDED) { mine.signIn() } }
        signedIn.answered.await()
        val left = network.count(LOGOUT)
        mine.client.signOut()
        assertEquals(signedOut(SignedOutReason.SIGNED_OUT), mine.state)
        for (held in listOf(response, answer, signedIn)) held.release()
        awaitAll(late, token, attempt)
        assertNull(mine.stored())
        assertEquals(signedOut(SignedOutReason.SIGNED_OUT), mine.state)
        until("both sessions are ended at the service") { network.count(LOGOUT) >= left + 2 }
    }

    @Test
    fun `a call of the app's own OkHttp client that a sign-out overtakes brings nothing`() = trying {
        val mine = Phone()
        mine.signIn()
        val http = OkHttpClient.Builder().addInterceptor(mine.client.interceptor).build()
        val held = network.hold(ME)
        val late = async { refused(ErrorName.SUPERSEDED) { http.newCall(mine.me).execute() } }
        held.answered.await()
        mine.client.signOut()
        held.release()
        late.await()
        assertEquals("signed_out", refused(ErrorName.SIGNED_OUT) { http.newCall(mine.me).execute() }.reason)
    }

    @Test
    fun `another user who signs in on the same phone never meets a token or a response of the one before`() = trying {
        val mine = Phone()
        val ada = mine.signIn()
        val hers = mine.client.accessToken()
        mine.quarterOfAnHour()
        val answer = network.hold(REFRESH)
        val late = async { refused(ErrorName.SUPERSEDED) { mine.client.fetch(mine.me) } }
        answer.answered.await()
        mine.client.signOut()
        val grace = mine.signIn()
        val before = network.passed.size
        answer.release()
        late.await()
        assertEquals(grace, mine.stored()?.user?.id)
        assertEquals(grace, mine.whoAmI())
        assertFalse(network.passed.drop(before).any { it.authorization.orEmpty().endsWith(hers) })
        assertEquals(UserChanged(ada), mine.changed)
        assertEquals(grace, Phone(mine.storage).whoAmI())
    }

    @Test
    fun `another user who signs in over the one before takes over, and the session before is ended`() = trying {
        val mine = Phone()
        mine.signIn()
        val hers = mine.client.accessToken()
        val response = network.hold(ME)
        val read = async { refused(ErrorName.SUPERSEDED) { mine.client.me() } }
        response.answered.await()
        mine.quarterOfAnHour()
        val answer = network.hold(REFRESH)
        val late = async { refused(ErrorName.SUPERSEDED) { mine.client.fetch(mine.me) } }
        answer.answered.await()
        val grace = mine.signIn()
        response.release()
        answer.release()
        awaitAll(read, late)
        assertEquals(grace, mine.stored()?.user?.id)
        assertEquals(grace, mine.whoAmI())
        until("her session is over") { !works(hers) }
    }

    @Test
    fun `a client on one storage follows another that signs out, and one that signs somebody else in`() = trying {
        val one = Phone()
        val ada = one.signIn()
        val other = Phone(one.storage)
        assertEquals(ada, other.whoAmI())
        one.client.signOut()
        other.quarterOfAnHour()
        refused(ErrorName.SIGNED_OUT) { other.client.accessToken() }
        assertEquals(signedOut(SignedOutReason.SIGNED_OUT), other.state)
        val third = Phone(one.storage)
        third.signIn()
        val fourth = Phone(one.storage)
        fourth.whoAmI()
        val grace = third.signIn()
        fourth.quarterOfAnHour()
        refused(ErrorName.SUPERSEDED) { fourth.client.accessToken() }
        assertEquals(grace, fourth.whoAmI())
    }

    @ParameterizedTest
    @ValueSource(strings = ["a sign-out", "another user's sign-in"])
    fun `it wins over a refresh whose answer another process is storing at that moment`(wins: String) = trying {
        val mutex = Mutex()
        val asked = AtomicInteger()
        val lock = Lock { _, work ->
            asked.incrementAndGet()
            mutex.withLock { work() }
        }
        val memory = MemoryStorage()
        val mine = Phone(memory, lock)
        mine.signIn()
        val storage = TroubledStorage(memory)
        val gate = Gate().also(storage.writing::set)
        val other = Phone(storage, lock)
        val refreshed = async { other.client.accessToken() }
        gate.arrived.await()
        val before = memory.get()
        val done = async { if (wins == "a sign-out") null.also { mine.client.signOut() } else mine.signIn() }
        until("it asks for the lock, or has written already") { asked.get() > 2 || memory.get() != before }
        gate.open.complete(Unit)
        refreshed.await()
        val grace = done.await()
        assertEquals(grace, mine.stored()?.user?.id)
        assertEquals(grace != null, mine.state is AuthState.SignedIn)
    }

    @Test
    fun `a sign-out wins over the answer to a refresh that is being stored at that moment`() = trying {
        val storage = TroubledStorage()
        val mine = Phone(storage)
        mine.signIn()
        mine.quarterOfAnHour()
        val gate = Gate().also(storage.writing::set)
        val token = async { refused(ErrorName.SUPERSEDED) { mine.client.accessToken() } }
        gate.arrived.await()
        val before = network.count(LOGOUT)
        val out = async { mine.client.signOut() }
        until("the service is told") { network.count(LOGOUT) > before }
        assertEquals(signedOut(SignedOutReason.SIGNED_OUT), mine.state)
        gate.open.complete(Unit)
        awaitAll(token, out)
        assertNull(mine.stored())
    }

    @Test
    fun `the end of the session before does not disturb a sign-in that is under way`() = trying {
        val mine = Phone()
        val email = somebody()
        staff.endSessions(mine.signIn(email))
        val held = network.hold(SIGN_IN)
        val signingIn = async { mine.signIn(email) }
        held.answered.await()
        refused(ErrorName.SIGNED_OUT) { mine.client.me() }
        held.release()
        assertEquals(signingIn.await(), mine.stored()?.user?.id)
        assertEquals(signingIn.await(), mine.whoAmI())
    }

    @Test
    fun `a sign-out that cannot be stored is told to the service all the same`() = trying {
        val storage = TroubledStorage()
        val mine = Phone(storage)
        mine.signIn()
        val token = mine.client.accessToken()
        storage.full = true
        refused(ErrorName.STORAGE) { mine.client.signOut() }
        assertTrue(mine.state is AuthState.SignedOut)
        until("the session is over") { !works(token) }
    }

    @Test
    fun `a sign-out without a network is one, also after the next start`() = trying {
        val mine = Phone()
        mine.signIn()
        network.down = true
        mine.client.signOut()
        network.down = false
        val next = Phone(mine.storage)
        refused(ErrorName.SIGNED_OUT) { next.client.fetch(next.me) }
        assertEquals(signedOut(SignedOutReason.SIGNED_OUT), next.state)
    }

    @Test
    fun `a sign-out right after the start, before the storage was read, is one`() = trying {
        val before = Phone()
        before.signIn()
        val token = before.client.accessToken()
        val storage = TroubledStorage(before.storage)
        val gate = Gate().also(storage.reading::set)
        val mine = Phone(storage)
        val out = async { mine.client.signOut() }
        mine.client.state.first { it == signedOut(SignedOutReason.SIGNED_OUT) }
        gate.open.complete(Unit)
        out.await()
        assertNull(mine.stored())
        assertEquals(signedOut(SignedOutReason.SIGNED_OUT), mine.state)
        assertFalse(works(token), "the service was told")
    }

    @Test
    fun `a deletion whose answer is lost is done when it is repeated`() = trying {
        val mine = Phone()
        val email = somebody()
        val user = mine.signIn(email)
        network.next(ME, Fault.Lose)
        refused(ErrorName.NETWORK) { mine.client.deleteAccount() }
        assertTrue(mine.state is AuthState.SignedIn)
        mine.client.deleteAccount()
        assertEquals(signedOut(SignedOutReason.USER_DELETED), mine.state)
        assertNull(mine.storage.get())
        mine.client.deleteAccount()
        assertNotEquals(user, mine.signIn(email), "only a sign-in makes a new account")
    }

    @Test
    fun `a token that cannot be stored is not used, and the session goes on when it can`() = trying {
        val storage = TroubledStorage()
        val mine = Phone(storage)
        val user = mine.signIn()
        mine.quarterOfAnHour()
        storage.full = true
        val before = network.count(ME)
        val error = refused(ErrorName.STORAGE) { mine.client.fetch(mine.me) }
        assertEquals("no space left", error.cause?.message)
        assertEquals(before, network.count(ME))
        storage.full = false
        assertEquals(user, mine.whoAmI())
    }

    @Test
    fun `a client on a storage with a lock follows another at its next call`() = trying {
        val storage = MemoryStorage()
        val lock = Lock { _, work -> work() }
        val one = Phone(storage, lock)
        one.signIn()
        val other = Phone(storage, lock)
        other.whoAmI()
        val grace = one.signIn()
        refused(ErrorName.SUPERSEDED) { other.whoAmI() }
        assertEquals(grace, other.whoAmI())
        one.client.signOut()
        refused(ErrorName.SIGNED_OUT) { other.whoAmI() }
        assertEquals(AuthState.SignedOut(SignedOutReason.SIGNED_OUT), other.client.state.value)
    }

    @Test
    fun `in an encrypted file, a session survives restarts, and one that the key does not open is none`() = trying {
        val file = File(folder, "encrypted")
        fun key() = KeyGenerator.getInstance("AES").apply { init(256) }.generateKey()
        val mine = key()
        val user = Phone(EncryptedFile(file) { mine }).signIn()
        val token = Phone(EncryptedFile(file) { mine }).apply { assertEquals(user, whoAmI()) }.stored()!!.refreshToken
        assertFalse(token in file.readText(Charsets.ISO_8859_1))

        val other = key()
        val restored = Phone(EncryptedFile(file) { other })
        refused(ErrorName.SIGNED_OUT) { restored.whoAmI() }
        val again = restored.signIn()
        val next = Phone(EncryptedFile(file) { other })
        assertEquals(again, next.whoAmI())
        next.client.signOut()
        next.storage.remove()
        assertFalse(file.exists())
        next.storage.remove()
    }

    @Test
    fun `a storage that cannot be read is told, and a sign-in or a sign-out replaces what is there`() = trying {
        val storage = TroubledStorage()
        storage.locked = true
        val mine = Phone(storage)
        until("it is told") { mine.state == signedOut(SignedOutReason.STORAGE_FAILED) }
        assertEquals("the keystore is locked", refused(ErrorName.STORAGE) { mine.client.me() }.cause?.message)
        val user = mine.signIn()
        storage.locked = false
        assertEquals(user, mine.stored()?.user?.id)
        assertEquals(user, mine.whoAmI())

        storage.locked = true
        val next = Phone(storage)
        refused(ErrorName.STORAGE) { next.client.accessToken() }
        next.client.signOut()
        assertEquals(signedOut(SignedOutReason.SIGNED_OUT), next.state)
        storage.locked = false
        assertNull(next.stored())
    }

    @Test
    fun `a new access token is another one, for all who ask for it at once`() = trying {
        val mine = Phone()
        mine.signIn()
        val before = mine.client.accessToken()
        val sent = network.count(REFRESH)
        val tokens = listOf(true, true).map { async { mine.client.accessToken(refresh = it) } }.awaitAll()
        assertEquals(1, tokens.toSet().size)
        assertNotEquals(before, tokens[0])
        assertEquals(sent + 1, network.count(REFRESH))
    }

    @Test
    fun `a URL without a scheme is refused at once`() {
        for (url in listOf("127.0.0.1:8000", "/api", "")) {
            assertThrows<IllegalArgumentException> { Vestibule(url, MemoryStorage()) }
        }
    }

    @Test
    fun `a lock that somebody else keeps stops nobody for longer than a timeout`() = trying {
        val before = Phone()
        val user = before.signIn()
        val mine = Phone(before.storage, { _, _ -> awaitCancellation() }, 2.seconds)
        assertEquals(user, mine.whoAmI())
    }

    @Test
    fun `a screen that is left while a refresh is under way loses nothing`() = trying {
        val before = Phone()
        before.signIn()
        val token = checkNotNull(before.stored()).refreshToken
        val mine = Phone(before.storage)
        val held = network.hold(REFRESH)
        val screen = async { mine.client.fetch(mine.me) }
        held.answered.await()
        screen.cancel()
        screen.join()
        val refreshes = network.count(REFRESH)
        held.release()
        assertTrue(works(mine.client.accessToken()))
        assertEquals(refreshes, network.count(REFRESH))
        assertNotEquals(token, mine.stored()?.refreshToken)
    }

    @Test
    fun `another service's 401 refreshes once and repeats once, for all requests that were under way`() = trying {
        val mine = Phone()
        mine.signIn()
        val rejected = mine.client.accessToken()
        var everything = false
        val requests = CopyOnWriteArrayList<String>()
        val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        server.executor = Executors.newCachedThreadPool()
        server.createContext("/orders") { exchange ->
            val token = exchange.requestHeaders.getFirst("Authorization").substringAfter(" ")
            requests += token
            exchange.sendResponseHeaders(if (everything || token == rejected) 401 else 200, -1)
            exchange.close()
        }
        server.start()
        val url = "http://127.0.0.1:${server.address.port}/orders"
        val order = Request.Builder().url(url).post("{}".toRequestBody()).build()
        val before = network.count(REFRESH)
        val codes = List(3) { async { mine.client.fetch(order).use { it.code } } }.awaitAll()
        assertEquals(listOf(200, 200, 200), codes)
        assertEquals(before + 1, network.count(REFRESH))
        everything = true
        requests.clear()
        assertEquals(401, mine.client.fetch(order).use { it.code }, "the second one is the caller's to read")
        assertEquals(2, requests.size)
        val stream = object : RequestBody() {
            override fun contentType() = null

            override fun isOneShot() = true

            override fun writeTo(sink: BufferedSink) {
                sink.writeUtf8("{}")
            }
        }
        assertEquals(401, mine.client.fetch(order.newBuilder().post(stream).build()).use { it.code })
        assertEquals(3, requests.size, "a stream is not sent twice")
        assertTrue(mine.state is AuthState.SignedIn)
        server.stop(0)
    }

    @Test
    fun `a key that leaks and is rotated at once costs every phone one refresh`() = trying {
        val mine = Phone()
        val user = mine.signIn()
        val token = mine.client.accessToken()
        service.command("keys", "rotate", "--now")
        until("the service has the new key") { !works(token) }
        val before = network.count(REFRESH)
        val ids = List(3) { async { if (it == 0) mine.client.me().user.id else mine.whoAmI() } }.awaitAll()
        assertEquals(setOf(user), ids.toSet())
        assertEquals(before + 1, network.count(REFRESH))
    }
}
