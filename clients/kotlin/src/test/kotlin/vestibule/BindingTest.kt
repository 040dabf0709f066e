package vestibule

import com.nimbusds.jose.JWSAlgorithm
import com.nimbusds.jose.crypto.ECDSAVerifier
import com.nimbusds.jose.jwk.Curve
import com.nimbusds.jose.jwk.ECKey
import com.nimbusds.jose.jwk.gen.ECKeyGenerator
import com.nimbusds.jwt.SignedJWT
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory
import com.nimbusds.oauth2.sdk.dpop.JWKThumbprintConfirmation
import com.nimbusds.oauth2.sdk.dpop.verifiers.DPoPIssuer
import com.nimbusds.oauth2.sdk.dpop.verifiers.DPoPProtectedResourceRequestVerifier
import com.nimbusds.oauth2.sdk.dpop.verifiers.InvalidDPoPProofException
import com.nimbusds.oauth2.sdk.id.ClientID
import com.nimbusds.oauth2.sdk.token.DPoPAccessToken
import com.nimbusds.openid.connect.sdk.Nonce
import com.sun.net.httpserver.HttpExchange
import com.sun.net.httpserver.HttpServer
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import okhttp3.HttpUrl.Companion.toHttpUrl
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File
import java.io.IOException
import java.net.InetSocketAddress
import java.net.URI
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse
import java.net.http.HttpResponse.BodyHandlers
import java.security.KeyPair
import java.security.Security
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.Executors
import kotlin.time.Duration.Companion.days

/** What a session's key adds to a phone's life. */
class BindingTest {
    init {
        deviceKey = keyStore
    }

    private val lost = AuthState.SignedOut(SignedOutReason.DEVICE_KEY_LOST)

    private fun otherKeys() = FileKeys(File.createTempFile("keys", "", folder).apply { delete() && mkdir() })

    /** Sends the refresh token as it is, with the proof that Nimbus makes by a key, if there is one. */
    private fun refresh(token: String, key: ECKey?): HttpResponse<String> {
        fun ask(nonce: String?): HttpResponse<String> {
            val request = HttpRequest.newBuilder(URI(service.url + REFRESH)).header("Content-Type", "application/json")
            if (key != null) {
                val factory = DefaultDPoPProofFactory(key, JWSAlgorithm.ES256)
                val proof = factory.createDPoPJWT("POST", URI(network.url + REFRESH), nonce?.let(::Nonce))
                request.header("DPoP", proof.serialize())
            }
            request.POST(BodyPublishers.ofString("""{"refresh_token":"$token"}"""))
            return plain.send(request.build(), BodyHandlers.ofString())
        }
        val answer = ask(null)
        return if ("use_dpop_nonce" in answer.body()) ask(answer.headers().firstValue("DPoP-Nonce").get()) else answer
    }

    @Test
    fun `a session is bound, and all that follows has a proof, which costs a round trip once`() = trying {
        val mine = Phone()
        val passed = network.passed.size
        val challenged = network.challenged.size
        mine.signIn()
        mine.whoAmI()
        mine.quarterOfAnHour()
        mine.client.me()
        mine.client.signOut(Vestibule.Scope.OTHERS)
        mine.client.signOut()
        val shown = network.passed.drop(passed).mapNotNull { it.authorization?.substringBefore(" ") }
        assertEquals(List(3) { "DPoP" }, shown)
        assertEquals(listOf(SIGN_IN + "idp"), network.challenged.drop(challenged).map { it.path })
    }

    @Test
    fun `a nonce that is too old costs a round trip, and the person notices nothing`() = trying {
        val mine = Phone()
        val user = mine.signIn()
        network.next(ME, Fault.OldNonce)
        mine.client.me()
        mine.quarterOfAnHour()
        val before = network.challenged.size
        assertEquals(user, mine.whoAmI())
        assertEquals(listOf(REFRESH), network.challenged.drop(before).map { it.path })
    }

    @Test
    fun `a lost key is a sign-in, said as such, also after the next start, and no request is made without it`() = trying {
        val keys = otherKeys()
        val before = Phone(key = keys)
        val email = somebody()
        val user = before.signIn(email)
        keys.remove(checkNotNull(before.stored()).id)
        val passed = network.passed.size
        val mine = Phone(before.storage, key = keys)
        assertEquals("device_key_lost", refused(ErrorName.SIGNED_OUT) { mine.client.me() }.reason)
        assertEquals(lost, mine.state)
        val next = Phone(before.storage, key = keys)
        refused(ErrorName.SIGNED_OUT) { next.client.accessToken() }
        assertEquals(lost, next.state)
        assertEquals(passed, network.passed.size)
        assertEquals(user, next.signIn(email))
        assertEquals(user, Phone(before.storage, key = keys).whoAmI())
    }

    @Test
    fun `a thief with all that is stored is refused, however he tries, and the owner goes on`() = trying {
        val mine = Phone()
        val user = mine.signIn()
        val stored = checkNotNull(mine.stored())
        val accessToken = mine.client.accessToken()
        suspend fun thief(kept: Kept, keys: FileKeys): Phone {
            val storage = MemoryStorage().apply { set(json.encodeToString(Stored(kept))) }
            return Phone(storage, key = keys)
        }

        val copied = thief(stored, otherKeys())
        // He says that it is not bound, or makes a key of the same name.
        val denying = thief(stored.copy(bound = false), otherKeys())
        val forging = thief(stored, otherKeys().apply { create(stored.id) })
        for (thief in listOf(copied, denying, forging)) {
            refused(ErrorName.SIGNED_OUT) { thief.client.me() }
            assertEquals(lost, thief.state)
        }
        for (key in listOf(null, ECKeyGenerator(Curve.P_256).generate())) {
            val answer = refresh(stored.refreshToken, key)
            assertTrue(answer.statusCode() == 401 && "invalid_dpop_proof" in answer.body(), answer.body())
        }
        assertEquals(401, get(service.url + ME, "Authorization", "Bearer $accessToken").statusCode())
        mine.quarterOfAnHour()
        assertEquals(user, mine.whoAmI())
        val owners = checkNotNull(mine.stored()).refreshToken
        val nimbus = refresh(owners, keyStore.keyOf(mine.client.accessToken()))
        assertEquals(200, nimbus.statusCode(), nimbus.body())
    }

    @Test
    fun `a session that is over takes its key along, and so does a sign-in that fails`() = trying {
        val keys = otherKeys()
        fun left() = keys.folder.list().orEmpty().count { !it.endsWith("removed") }
        val mine = Phone(key = keys)
        mine.signIn()
        mine.signIn()
        until("the session before is over") { left() == 1 }
        mine.client.signOut()
        assertEquals(0, left())
        refused(ErrorName.INVALID_REQUEST) { mine.client.signIn("idp", "no-token") }
        val user = mine.signIn()
        staff.endSessions(user)
        refused(ErrorName.SIGNED_OUT) { mine.client.me() }
        mine.signIn()
        mine.client.deleteAccount()
        assertEquals(0, left())
    }

    @Test
    fun `turned off, a session that was bound goes on, and the next one is not bound`() = trying {
        val storage = MemoryStorage()
        fun start(key: DeviceKey?) = Vestibule(network.url, storage, deviceKey = key)
        suspend fun Vestibule.signIn() = signIn("idp", service.idToken("email" to somebody()))
        suspend fun Vestibule.scheme() = headers("GET", network.url + ME).getValue("Authorization").substringBefore(" ")
        val byDefault = Vestibule(network.url, storage)
        byDefault.signIn()
        assertEquals("DPoP", byDefault.scheme())
        val off = start(null)
        assertEquals("DPoP", off.scheme())
        off.me()
        off.signIn()
        assertEquals("Bearer", off.scheme())
        assertFalse("bound" in checkNotNull(storage.get()))
        val on = start(keyStore)
        assertEquals("Bearer", on.scheme(), "a session from before is not bound")
        on.me()
        on.signIn()
        assertEquals("DPoP", on.scheme())
        assertNull(platformKey(FileStorage(File(folder, "any"))), "a file would outlive keys in memory")
    }

    @Test
    fun `a service that binds no sessions gets one that is not bound`() = trying {
        val keys = otherKeys()
        val unbinding = Service.start(mapOf("ROCKET_SESSION" to "{binding=\"off\"}"), service)
        try {
            val mine = Phone(baseUrl = unbinding.url, key = keys)
            mine.client.signIn("idp", unbinding.idToken("email" to somebody()))
            mine.client.me()
            assertEquals(false, mine.stored()?.bound)
            assertEquals(null, keys.get(mine.stored()!!.id))
        } finally {
            unbinding.stop()
        }
    }

    @Test
    fun `a key store that makes no key keeps nobody out, and one that fails later ends no session`() = trying {
        var fails = true
        val keys = object : DeviceKey by keyStore {
            override suspend fun create(name: String) = if (fails) throw IOException("busy") else keyStore.create(name)

            override suspend fun get(name: String): KeyPair? = if (fails) throw IOException("busy") else keyStore.get(name)
        }
        val mine = Phone(key = keys)
        mine.signIn()
        assertEquals(false, mine.stored()?.bound)
        fails = false
        val user = mine.signIn()
        assertEquals(true, mine.stored()?.bound)
        fails = true
        mine.quarterOfAnHour()
        assertEquals("busy", refused(ErrorName.STORAGE) { mine.client.me() }.cause?.message)
        assertFalse(mine.offline)
        fails = false
        assertEquals(user, mine.whoAmI())
    }

    /** A service of the product's own, which checks proofs with Nimbus, and wants a nonce of its own in them. */
    private class Orders : AutoCloseable {
        private val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        val url = "http://127.0.0.1:${server.address.port}/orders"
        val answered = CopyOnWriteArrayList<Int>()

        @Volatile
        var nonce = "first"

        init {
            server.executor = Executors.newCachedThreadPool()
            server.createContext("/orders") { exchange ->
                val status = try {
                    verify(exchange)
                    200
                } catch (e: InvalidDPoPProofException) {
                    val error = if ("nonce" in e.message.orEmpty()) "use_dpop_nonce" else "invalid_dpop_proof: ${e.message}"
                    exchange.responseHeaders.add("WWW-Authenticate", "DPoP error=\"$error\"")
                    401
                }
                answered += status
                exchange.responseHeaders.add("DPoP-Nonce", nonce)
                exchange.sendResponseHeaders(status, -1)
                exchange.close()
            }
            server.start()
        }

        private fun verify(exchange: HttpExchange) {
            val token = DPoPAccessToken.parse(exchange.requestHeaders.getFirst("Authorization"))
            VERIFIER.verify(
                exchange.requestMethod,
                URI(url.removeSuffix("/orders") + exchange.requestURI),
                DPoPIssuer(ClientID("app")),
                SignedJWT.parse(exchange.requestHeaders.getFirst("DPoP")),
                token,
                JWKThumbprintConfirmation.parse(SignedJWT.parse(token.value).jwtClaimsSet),
                Nonce(nonce),
            )
        }

        override fun close() = server.stop(0)

        private companion object {
            /** So far may `iat` be from the clock. */
            const val SECONDS = 5L
            val VERIFIER = DPoPProtectedResourceRequestVerifier(setOf(JWSAlgorithm.ES256), SECONDS, null)
        }
    }

    @Test
    fun `requests to a service that checks proofs with Nimbus come through, with a clock that is a day off`() = trying {
        for (days in listOf(-1, 1)) Orders().use { orders ->
            val mine = Phone()
            mine.setAhead(days.days)
            mine.signIn()
            val http = OkHttpClient.Builder().addInterceptor(mine.client.interceptor).build()
            val read = Request.Builder().url("${orders.url}/1?of=today#first").build()
            val write = Request.Builder().url(orders.url).post("{}".toRequestBody()).build()
            assertEquals(200, mine.client.fetch(write).use { it.code })
            assertEquals(listOf(401, 200), orders.answered, "the nonce is told")
            assertEquals(200, http.newCall(read).execute().use { it.code })
            orders.nonce = "second"
            assertEquals(200, http.newCall(write).execute().use { it.code })
            assertEquals(listOf(401, 200, 200, 401, 200), orders.answered)
            assertEquals(setOf(200), List(3) { async { mine.client.fetch(read).use { it.code } } }.awaitAll().toSet())
            val headers = mine.client.headers("PUT", orders.url)
            val put = HttpRequest.newBuilder(URI(orders.url)).PUT(BodyPublishers.ofString("{}"))
            for ((name, value) in headers) put.header(name, value)
            assertEquals(200, plain.send(put.build(), BodyHandlers.discarding()).statusCode())
            // It is for this method alone.
            val other = HttpRequest.newBuilder(URI(orders.url)).GET()
            for ((name, value) in headers) other.header(name, value)
            assertEquals(401, plain.send(other.build(), BodyHandlers.discarding()).statusCode())
        }
    }

    @Test
    fun `where there is an Android Keystore, it has the keys, without a word of the app`() = trying {
        val keystore = AndroidKeystore()
        Security.addProvider(keystore)
        try {
            val storage = FileStorage(File(folder, "android"))
            fun start() = Vestibule(network.url, storage)
            val user = start().signIn("idp", service.idToken("email" to somebody())).user.id
            val kept = checkNotNull(Phone(storage).stored())
            assertEquals(setOf("vestibule ${kept.id}"), keystore.aliases)
            assertTrue(start().headers("GET", network.url + ME).getValue("Authorization").startsWith("DPoP "))
            assertEquals(user, start().me().user.id)
            start().signOut()
            assertEquals(emptySet<String>(), keystore.aliases)
        } finally {
            Security.removeProvider(keystore.name)
        }
    }

    @Test
    fun `keys and signatures are as long as they have to be, whatever their numbers`() = trying {
        val proofs = Proofs(System::currentTimeMillis)
        val url = network.url.toHttpUrl()
        // A number is shorter than 32 bytes once in 256 times, and longer every other time.
        repeat(2000) {
            val proof = SignedJWT.parse(proofs.sign(MemoryKey().create("any"), "GET", url))
            assertTrue(proof.verify(ECDSAVerifier(proof.header.jwk.toECKey())))
        }
    }
}
