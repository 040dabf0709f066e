package vestibule

import kotlinx.coroutines.runBlocking
import java.io.File
import java.io.RandomAccessFile
import java.nio.file.Files
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
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

/** The process of an app, started anew: it wants an access token, and prints it, or what it got instead. */
fun main(args: Array<String>) {
    val lock = args.getOrNull(2)?.let { FileLock(File(it)) }
    val client = Vestibule(args[0], FileStorage(File(args[1])), lock)
    val token = runBlocking { runCatching { client.accessToken() } }.getOrElse { (it as VestibuleException).error.wire }
    val state = when (val state = client.state.value) {
        is AuthState.SignedOut -> state.reason.wire
        else -> state::class.simpleName
    }
    println("$token $state")
    // OkHttp's threads would wait for more.
    exitProcess(0)
}
