// What the guides use of Android and of Google's libraries, declared as their documentation has it, and what is the
// app's own.

package guides

import vestibule.SignedOutReason
import java.io.File
import java.security.spec.AlgorithmParameterSpec

fun show(screen: String, reason: SignedOutReason? = null): Unit = TODO("$screen $reason")

fun forgetData(of: String): Unit = TODO(of)

fun freshIdToken(): String = TODO()

fun agreed(question: String): Boolean = TODO(question)

const val WEB_CLIENT_ID = "111-web.apps.googleusercontent.com"

open class Context {
    val noBackupFilesDir: File get() = TODO()
}

open class Application : Context()

open class Activity : Context()

object KeyProperties {
    const val PURPOSE_ENCRYPT = 1
    const val PURPOSE_DECRYPT = 2
    const val BLOCK_MODE_GCM = "GCM"
    const val ENCRYPTION_PADDING_NONE = "NoPadding"
}

class KeyGenParameterSpec : AlgorithmParameterSpec {
    class Builder(val alias: String, val purposes: Int) {
        fun setBlockModes(vararg modes: String): Builder = TODO("${modes.size}")
        fun setEncryptionPaddings(vararg paddings: String): Builder = TODO("${paddings.size}")
        fun build(): KeyGenParameterSpec = TODO()
    }
}

class NoCredentialException : Exception()

open class Credential

class CustomCredential(val type: String, val data: Map<String, Any>) : Credential()

class GetCredentialResponse(val credential: Credential)

class GetCredentialRequest {
    class Builder {
        fun addCredentialOption(option: GetGoogleIdOption): Builder = TODO("$option")
        fun build(): GetCredentialRequest = TODO()
    }
}

interface CredentialManager {
    suspend fun getCredential(context: Context, request: GetCredentialRequest): GetCredentialResponse

    companion object {
        fun create(context: Context): CredentialManager = TODO("$context")
    }
}

class GetGoogleIdOption {
    class Builder {
        fun setServerClientId(id: String): Builder = TODO(id)
        fun setFilterByAuthorizedAccounts(filter: Boolean): Builder = TODO("$filter")
        fun setNonce(nonce: String): Builder = TODO(nonce)
        fun build(): GetGoogleIdOption = TODO()
    }
}

class GoogleIdTokenCredential(val idToken: String) {
    companion object {
        const val TYPE_GOOGLE_ID_TOKEN_CREDENTIAL = "TYPE_GOOGLE_ID_TOKEN_CREDENTIAL"
        fun createFrom(data: Map<String, Any>): GoogleIdTokenCredential = TODO("$data")
    }
}
