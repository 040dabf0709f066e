package vestibule

import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration.Companion.minutes

/** What an app does beside signing in, each with one line of the client. */
class ApiTest {
    init {
        deviceKey = keyStore
    }

    @Test
    fun `the errors and the members of every type are those of the service's description`() = trying {
        val document = Json.parseToJsonElement(get("${service.url}/api/v1/openapi.json").body())
        val schemas = document.jsonObject.getValue("components").jsonObject.getValue("schemas").jsonObject
        fun members(schema: String): JsonObject = schemas.getValue(schema).jsonObject.getValue("properties").jsonObject
        val errors = members("Problem").getValue("error").jsonObject.getValue("enum").jsonArray
        val known = ErrorName.entries.dropLast(5).map { it.wire }
        assertEquals(errors.map { it.jsonPrimitive.content }.toSet(), known.toSet())
        val types = mapOf(
            "User" to User.serializer(),
            "Identity" to Identity.serializer(),
            "Device" to Device.serializer(),
            "Session" to vestibule.Session.serializer(),
            "ReauthenticationRequest" to Reauthentication.serializer(),
            "MergeResult" to Merge.serializer(),
            "MovedIdentity" to MovedIdentity.serializer(),
            "GoneUser" to GoneUser.serializer(),
        )
        for ((schema, type) in types) {
            val ours = type.descriptor.run { List(elementsCount, ::getElementName) }
            val snakeCase = ours.map { it.replace(Regex("[A-Z]")) { capital -> "_" + capital.value.lowercase() } }
            // A sign-in and `me` answer a user with claims.
            val more = setOfNotNull("claims".takeIf { schema == "User" })
            assertEquals(members(schema).keys + more, snakeCase.toSet(), schema)
        }
    }

    @Test
    fun `the providers that are switched on can be listed by anybody`() = trying {
        assertEquals(listOf("idp", "second"), Phone().client.providers().map { it.name })
    }

    @Test
    fun `an identity is linked, listed, used and unlinked`() = trying {
        val mine = Phone()
        val user = mine.signIn()
        val other = arrayOf("email" to somebody(), "sub" to "another-account")
        val linked = mine.client.link("idp", service.idToken(*other))
        assertEquals(
            listOf(false to true, true to false),
            mine.client.identities().map { (it.id == linked.id) to it.current },
        )
        val again = Phone().client.signIn("idp", service.idToken(*other))
        assertEquals(user to "signed_in", again.user.id to again.outcome)
        assertEquals(linked.copy(current = true), again.identity.copy(createdAt = linked.createdAt))
        mine.client.unlink(linked.id)
        val last = mine.client.identities().single()
        assertEquals(409, refused(ErrorName.LAST_IDENTITY) { mine.client.unlink(last.id) }.status)
    }

    @Test
    fun `unlinking the identity that the session was opened with signs out`() = trying {
        val mine = Phone()
        mine.signIn()
        mine.client.link("idp", service.idToken("email" to somebody(), "sub" to "one-more-account"))
        mine.client.unlink(mine.client.identities().single { it.current }.id)
        refused(ErrorName.SIGNED_OUT) { mine.client.me() }
        assertEquals(AuthState.SignedOut(SignedOutReason.SESSION_ENDED), mine.state)
    }

    @Test
    fun `sessions are listed with their devices, and ended - one, the others, all`() = trying {
        val email = somebody()
        val device = Device("Ada's phone", "android")
        val (mine, second, third) = List(3) {
            Phone().apply { client.signIn("idp", service.idToken("email" to email), device = device) }
        }
        val sessions = mine.client.sessions()
        assertEquals(List(3) { device }, sessions.map { it.device })
        mine.client.endSession(second.client.sessions().single { it.current }.id)
        refused(ErrorName.SIGNED_OUT) { second.client.me() }
        mine.client.signOut(Vestibule.Scope.OTHERS)
        refused(ErrorName.SIGNED_OUT) { third.client.me() }
        mine.whoAmI()
        third.signIn(email)
        mine.client.signOut(Vestibule.Scope.GLOBAL)
        refused(ErrorName.SIGNED_OUT) { third.client.me() }
    }

    @Test
    fun `what needs a fresh sign-in says so, and takes one`() = trying {
        val mine = Phone()
        val email = somebody()
        pass(mine.signIn(email), 11.minutes)
        assertEquals(403, refused(ErrorName.REAUTHENTICATION_REQUIRED) { mine.client.deleteAccount() }.status)
        assertTrue(mine.state is AuthState.SignedIn)
        mine.client.deleteAccount(Reauthentication("idp", service.idToken("email" to email)))
        assertEquals(AuthState.SignedOut(SignedOutReason.USER_DELETED), mine.state)
    }

    @Test
    fun `an identity that nobody knows is not created where the app does not want it`() = trying {
        val mine = Phone()
        val idToken = service.idToken("email" to somebody())
        refused(ErrorName.USER_NOT_FOUND) { mine.client.signIn("idp", idToken, create = false) }
        assertEquals("created", mine.client.signIn("idp", idToken).outcome)
    }

    @Test
    fun `a nonce is sent as it is, and another one is refused`() = trying {
        val mine = Phone()
        val idToken = service.idToken("email" to somebody(), "nonce" to "n-0S6_WzA2Mj")
        val error = refused(ErrorName.NONCE_MISMATCH) { mine.client.signIn("idp", idToken, "another") }
        assertTrue(error.status == 401 && error.detail != null && error.requestId != null)
        mine.client.signIn("idp", idToken, "n-0S6_WzA2Mj")
    }

    @Test
    fun `a name that changes at the provider is the state's once it was read, also after the next start`() = trying {
        val (mine, other) = List(2) { Phone() }
        val email = somebody()
        mine.signIn(email)
        other.client.signIn("idp", service.idToken("email" to email, "name" to "Ada King"))
        mine.client.me()
        val again = Phone(mine.storage)
        again.client.accessToken()
        for (phone in listOf(mine, again)) assertEquals("Ada King", (phone.state as AuthState.SignedIn).user.name)
    }

    @Test
    fun `two accounts are one after a merge, which a dry run shows, and the other's phone is told`() = trying {
        val (mine, other) = List(2) { Phone() }
        val user = mine.client.signIn("idp", service.idToken("sub" to "mine-without-a-name")).user.id
        val email = somebody()
        val gone = other.signIn(email)
        val shown = mine.client.merge("idp", service.idToken("email" to email), dryRun = true)
        assertEquals(listOf(false, gone, 1L), listOf(shown.applied, shown.merged.userId, shown.endedSessions))
        assertEquals(null, mine.client.me().user.email)
        val done = mine.client.merge("idp", service.idToken("email" to email))
        assertEquals(shown.copy(applied = true), done)
        assertEquals(listOf(done.user, email), listOf((mine.state as AuthState.SignedIn).user, done.user.email))
        assertEquals(2, mine.client.identities().size)
        assertEquals("user_merged", refused(ErrorName.SIGNED_OUT) { other.client.me() }.reason)
        assertEquals(user, other.signIn(email))
        refused(ErrorName.IDENTITY_ALREADY_LINKED) { mine.client.merge("idp", service.idToken("email" to email)) }
    }

    @Test
    fun `a name that the user chose is the state's at once, and stays until it is taken back`() = trying {
        val mine = Phone()
        val nameless = "sub" to "an-account-without-a-name"
        val named = { (mine.state as AuthState.SignedIn).user.name }
        val told = mine.client.signIn("idp", service.idToken(nameless), name = "Ada Lovelace")
        assertEquals("Ada Lovelace", told.user.name)
        assertEquals("Ada", mine.client.setName("Ada").user.name)
        assertEquals("Ada", named())
        mine.client.signIn("idp", service.idToken(nameless, "name" to "Ada King"))
        assertEquals("Ada", named())
        val me = mine.client.setName(null)
        assertEquals(listOf("Ada King", "Ada King", 1), listOf(me.user.name, named(), me.identities.size))
    }

    @Test
    fun `answers that a proxy makes go by their status`() = trying {
        val names = mapOf(
            502 to ErrorName.SERVICE_UNAVAILABLE,
            429 to ErrorName.RATE_LIMITED,
            418 to ErrorName.INVALID_REQUEST,
        )
        for ((status, error) in names) {
            network.next("/api/v1/auth/providers", Fault.Answer(status))
            val told = refused(error) { Phone().client.providers() }
            assertEquals(status to 3, told.status to told.retryAfter)
        }
    }

    @Test
    fun `a listener is told the state, and what follows, until it is enough`() = trying {
        val mine = Phone()
        val told = CopyOnWriteArrayList<String?>()
        mine.signIn()
        val enough = mine.client.onAuthStateChange { told += it::class.simpleName }
        eventually("it is told the state") { told.firstOrNull() }
        mine.client.signOut()
        eventually("it is told what follows") { told.getOrNull(1) }
        enough.close()
        mine.signIn()
        assertEquals(listOf("SignedIn", "SignedOut"), told)
    }
}
