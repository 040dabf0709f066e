package vestibule

import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.PrivateKey
import java.security.Security
import java.security.UnrecoverableKeyException
import java.security.spec.AlgorithmParameterSpec
import java.security.spec.ECGenParameterSpec
import java.util.concurrent.ConcurrentHashMap

/**
 * Keeps a key pair of this device for each session, which binds the session to the device (DPoP, RFC 9449): whoever copies
 * the tokens cannot use them without the key. The client calls it on a thread that may wait. It signs in the background, so
 * no key may need the person to unlock it.
 */
public interface DeviceKey {
    /** Makes a key pair for ECDSA on P-256 under this [name]. Its private key should not leave the device. */
    public suspend fun create(name: String): KeyPair

    /** Returns the key pair of this [name], or `null` if it is lost. */
    public suspend fun get(name: String): KeyPair?

    /** Removes the key pair of this [name], if there is one. */
    public suspend fun remove(name: String)
}

/**
 * Returns where keys live as long as the storage: in memory beside a [MemoryStorage], else in the Android Keystore; `null`
 * where there is none.
 */
internal fun platformKey(storage: TokenStorage): DeviceKey? = when {
    storage is MemoryStorage -> storage.keys
    Security.getProvider(AndroidKey.STORE) != null -> AndroidKey
    else -> null
}

/** Keys that end with the process. */
internal class MemoryKey : DeviceKey {
    private val pairs = ConcurrentHashMap<String, KeyPair>()

    override suspend fun create(name: String): KeyPair {
        val generator = KeyPairGenerator.getInstance("EC").apply { initialize(ECGenParameterSpec("secp256r1")) }
        return generator.generateKeyPair().also { pairs[name] = it }
    }

    override suspend fun get(name: String): KeyPair? = pairs[name]

    override suspend fun remove(name: String) {
        pairs.remove(name)
    }
}

/** Keys of the Android Keystore: in secure hardware, where the device has it, and in no backup. */
internal object AndroidKey : DeviceKey {
    const val STORE = "AndroidKeyStore"

    private fun keys() = KeyStore.getInstance(STORE).apply { load(null) }

    private fun alias(name: String) = "vestibule $name"

    override suspend fun create(name: String): KeyPair =
        KeyPairGenerator.getInstance("EC", STORE).apply { initialize(spec(alias(name))) }.generateKeyPair()

    override suspend fun get(name: String): KeyPair? {
        val keys = keys()
        val private = try {
            keys.getKey(alias(name), null) as PrivateKey?
        } catch (_: UnrecoverableKeyException) {
            null
        }
        return keys.getCertificate(alias(name))?.let { KeyPair(it.publicKey, private ?: return null) }
    }

    override suspend fun remove(name: String): Unit = keys().deleteEntry(alias(name))

    /** Returns a `KeyGenParameterSpec`, by its name: the library is compiled without Android's SDK. */
    private fun spec(alias: String): AlgorithmParameterSpec {
        val builder = Class.forName("android.security.keystore.KeyGenParameterSpec\$Builder")
        val purposeSign = 4
        val started = builder.getConstructor(String::class.java, Int::class.java).newInstance(alias, purposeSign)
        builder.getMethod("setAlgorithmParameterSpec", AlgorithmParameterSpec::class.java)
            .invoke(started, ECGenParameterSpec("secp256r1"))
        builder.getMethod("setDigests", Array<String>::class.java).invoke(started, arrayOf("SHA-256"))
        return builder.getMethod("build").invoke(started) as AlgorithmParameterSpec
    }
}
