package vestibule

import com.nimbusds.jose.jwk.Curve
import com.nimbusds.jose.jwk.ECKey
import com.nimbusds.jwt.SignedJWT
import com.nimbusds.oauth2.sdk.dpop.JWKThumbprintConfirmation
import kotlinx.coroutines.runBlocking
import java.io.File
import java.io.ObjectInputStream
import java.io.ObjectOutputStream
import java.io.RandomAccessFile
import java.nio.file.Files
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.security.KeyPair
import java.security.interfaces.ECPublicKey
import kotlin.system.exitProcess

/** A storage that processes share. */
class FileStorage(private val file: File) : TokenStorage {
    override suspend fun get() = file.takeIf(File::exists)?.readText()

    override suspend fun set(text: String) {
        val whole = File("$file.${ProcessHandle.current().pid()}")
        whole.writeText(text)
        Files.move(whole.toPath(), file.toPath(), ATOMIC_MOVE)
    }

    override suspend fun remove() {
        file.delete()
    }
}

/** A lock between processes. */
class FileLock(private val file: File) : Lock {
    override suspend fun hold(name: String, work: suspend () -> Unit) {
        RandomAccessFile(file, "rw").channel.use { channel -> channel.lock().use { work() } }
    }
}

/** Keys that processes share, as those of one app do in a key store. Those that are removed are only out of its reach. */
class FileKeys(val folder: File) : DeviceKey {
    override suspend fun create(name: String): KeyPair = MemoryKey().create(name).also { pair ->
        ObjectOutputStream(File(folder, name).outputStream()).use { it.writeObject(pair) }
    }

    override suspend fun get(name: String) = File(folder, name).takeIf(File::exists)?.let(::read)

    override suspend fun remove(name: String) {
        File(folder, name).renameTo(File(folder, "$name removed"))
    }

    private fun read(file: File) = ObjectInputStream(file.inputStream()).use { it.readObject() as KeyPair }

    /** The key that an access token is bound to, if any, for Nimbus. */
    fun keyOf(token: String): ECKey? {
        val bound = JWKThumbprintConfirmation.parse(SignedJWT.parse(token).jwtClaimsSet) ?: return null
        val keys = folder.listFiles().orEmpty().map { file ->
            val pair = read(file)
            ECKey.Builder(Curve.P_256, pair.public as ECPublicKey).privateKey(pair.private).build()
        }
        return keys.first { it.computeThumbprint() == bound.value }
    }
}

/** The process of an app, started anew: it wants an access token, and prints it, or what it got instead. */
fun main(args: Array<String>) {
    val (url, keys, file) = args
    val lock = args.getOrNull(3)?.let { FileLock(File(it)) }
    val client = Vestibule(url, FileStorage(File(file)), lock, deviceKey = FileKeys(File(keys)))
    val token = runBlocking { runCatching { client.accessToken() } }.getOrElse { (it as VestibuleException).error.wire }
    val state = when (val state = client.state.value) {
        is AuthState.SignedOut -> state.reason.wire
        else -> state::class.simpleName
    }
    println("$token $state")
    // OkHttp's threads would wait for more.
    exitProcess(0)
}
