package vestibule

import android.security.keystore.KeyGenParameterSpec
import java.io.InputStream
import java.io.OutputStream
import java.security.Key
import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.KeyPairGeneratorSpi
import java.security.KeyStoreSpi
import java.security.Provider
import java.security.PublicKey
import java.security.SecureRandom
import java.security.cert.Certificate
import java.security.spec.AlgorithmParameterSpec
import java.util.Collections
import java.util.Date
import java.util.Enumeration
import java.util.concurrent.ConcurrentHashMap

private val pairs = ConcurrentHashMap<String, KeyPair>()

/** A provider in the place of Android's, with its names: it makes a key as a `KeyGenParameterSpec` says, and keeps it. */
class AndroidKeystore : Provider("AndroidKeyStore", "1", "in memory") {
    val aliases: Set<String> get() = pairs.keys

    init {
        put("KeyStore.AndroidKeyStore", Keys::class.java.name)
        put("KeyPairGenerator.EC", Generator::class.java.name)
    }

    class Generator : KeyPairGeneratorSpi() {
        private lateinit var spec: KeyGenParameterSpec

        override fun initialize(params: AlgorithmParameterSpec, random: SecureRandom?) {
            spec = params as KeyGenParameterSpec
        }

        override fun initialize(size: Int, random: SecureRandom?) = throw UnsupportedOperationException()

        override fun generateKeyPair(): KeyPair {
            val purposeSign = 4
            check(spec.purposes == purposeSign && spec.digests == listOf("SHA-256"))
            val generator = KeyPairGenerator.getInstance("EC", "SunEC")
            generator.initialize(spec.algorithmParameterSpec)
            return generator.generateKeyPair().also { pairs[spec.keystoreAlias] = it }
        }
    }

    private class SelfSigned(private val key: PublicKey) : Certificate("X.509") {
        override fun getPublicKey() = key
        override fun getEncoded() = throw UnsupportedOperationException()
        override fun verify(key: PublicKey) = throw UnsupportedOperationException()
        override fun verify(key: PublicKey, provider: String) = throw UnsupportedOperationException()
        override fun toString() = "a certificate"
    }

    class Keys : KeyStoreSpi() {
        override fun engineLoad(stream: InputStream?, password: CharArray?) = check(stream == null)
        override fun engineGetKey(alias: String, password: CharArray?): Key? = pairs[alias]?.private
        override fun engineGetCertificate(alias: String): Certificate? = pairs[alias]?.let { SelfSigned(it.public) }
        override fun engineGetCertificateChain(alias: String) = arrayOf(engineGetCertificate(alias))
        override fun engineDeleteEntry(alias: String) = Unit.also { pairs.remove(alias) }
        override fun engineContainsAlias(alias: String) = pairs.containsKey(alias)
        override fun engineIsKeyEntry(alias: String) = pairs.containsKey(alias)
        override fun engineIsCertificateEntry(alias: String) = false
        override fun engineAliases(): Enumeration<String> = Collections.enumeration(pairs.keys)
        override fun engineSize() = pairs.size
        override fun engineGetCreationDate(alias: String): Date? = null
        override fun engineGetCertificateAlias(cert: Certificate?): String? = null
        override fun engineSetKeyEntry(alias: String, key: Key, password: CharArray?, chain: Array<Certificate>?) =
            throw UnsupportedOperationException()

        override fun engineSetKeyEntry(alias: String, key: ByteArray, chain: Array<Certificate>?) =
            throw UnsupportedOperationException()

        override fun engineSetCertificateEntry(alias: String, cert: Certificate?) = throw UnsupportedOperationException()
        override fun engineStore(stream: OutputStream?, password: CharArray?) = throw UnsupportedOperationException()
    }
}
