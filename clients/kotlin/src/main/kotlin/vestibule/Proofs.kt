package vestibule

import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonObjectBuilder
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonObject
import okhttp3.HttpUrl
import okhttp3.Response
import java.math.BigInteger
import java.security.KeyPair
import java.security.MessageDigest
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import kotlin.io.encoding.Base64

/** Makes DPoP proofs (RFC 9449), and remembers the nonce that each origin wants in its next one. */
internal class Proofs(private val clock: () -> Long) {
    private val nonces = ConcurrentHashMap<String, String>()

    /** Milliseconds that the servers' clocks are ahead of this device's. */
    @Volatile
    private var ahead = 0L

    /** Returns the proof of one request, by the private key of [pair]. It holds for [accessToken] alone, if there is one. */
    fun sign(pair: KeyPair, method: String, url: HttpUrl, accessToken: String? = null): String {
        val header = buildJsonObject {
            put("typ", "dpop+jwt")
            put("alg", "ES256")
            putJsonObject("jwk") { putPublic(pair.public as ECPublicKey) }
        }
        val claims = buildJsonObject {
            put("jti", UUID.randomUUID().toString())
            put("htm", method)
            put("htu", url.newBuilder().query(null).fragment(null).build().toString())
            put("iat", (clock() + ahead) / 1000)
            nonces[origin(url)]?.let { put("nonce", it) }
            accessToken?.let {
                put("ath", base64(MessageDigest.getInstance("SHA-256").digest(it.encodeToByteArray())))
            }
        }
        val message = encoded(header) + "." + encoded(claims)
        val signature = Signature.getInstance("SHA256withECDSA").run {
            initSign(pair.private)
            update(message.encodeToByteArray())
            sign()
        }
        return message + "." + base64(joined(signature))
    }

    /**
     * Remembers the nonce of an answer and the time, for services that compare it. Returns true if the answer is a challenge to
     * repeat the request with the nonce.
     */
    fun learn(response: Response): Boolean {
        nonces[origin(response.request.url)] = response.header("DPoP-Nonce") ?: return false
        response.headers.getDate("Date")?.let { ahead = it.time - clock() }
        return response.headers("WWW-Authenticate").any { "use_dpop_nonce" in it }
    }

    private companion object {
        /** Bytes of a coordinate, and of either half of a signature. */
        const val SIZE = 32
        val BASE64 = Base64.UrlSafe.withPadding(Base64.PaddingOption.ABSENT)

        fun base64(bytes: ByteArray) = BASE64.encode(bytes)

        fun encoded(part: JsonObject) = base64(part.toString().encodeToByteArray())

        fun origin(url: HttpUrl) = "${url.scheme}://${url.host}:${url.port}"

        fun JsonObjectBuilder.putPublic(key: ECPublicKey) {
            fun coordinate(number: BigInteger) = base64(number.toByteArray().atSize())
            put("kty", "EC")
            put("crv", "P-256")
            put("x", coordinate(key.w.affineX))
            put("y", coordinate(key.w.affineY))
        }

        /** A number's bytes without leading zeros, or with more of them. */
        fun ByteArray.atSize() = ByteArray(maxOf(0, SIZE - size)) + takeLast(SIZE)

        /** Returns both numbers of a signature as JWTs have them (RFC 7518 §3.4). Java has them in DER. */
        fun joined(der: ByteArray): ByteArray {
            fun number(at: Int) = der.copyOfRange(at + 2, at + 2 + der[at + 1])
            val first = number(2)
            return first.atSize() + number(2 + 2 + first.size).atSize()
        }
    }
}
