package android.security.keystore

import java.security.spec.AlgorithmParameterSpec

/** Android's class, as far as the client uses it, declared as its documentation has it. */
class KeyGenParameterSpec private constructor(
    val keystoreAlias: String,
    val purposes: Int,
    val algorithmParameterSpec: AlgorithmParameterSpec?,
    val digests: List<String>,
) : AlgorithmParameterSpec {
    class Builder(private val keystoreAlias: String, private val purposes: Int) {
        private var spec: AlgorithmParameterSpec? = null
        private var digests = emptyList<String>()

        fun setAlgorithmParameterSpec(spec: AlgorithmParameterSpec): Builder = apply { this.spec = spec }

        fun setDigests(vararg digests: String): Builder = apply { this.digests = digests.toList() }

        fun build(): KeyGenParameterSpec = KeyGenParameterSpec(keystoreAlias, purposes, spec, digests)
    }
}
