package vestibule

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.runBlocking
import java.io.Closeable
import java.io.InputStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.URI
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.concurrent.thread

/** Something that happens to a request. */
sealed interface Fault {
    /** The request arrives, and the connection ends before the answer. */
    data object Lose : Fault

    /** The request arrives, and the answer never comes. */
    data object Hang : Fault

    /** The request goes nowhere, and this is the answer. */
    data class Answer(val status: Int, val retryAfter: Int = 3) : Fault

    /** The answer comes with a nonce that the service does not take any more. */
    data object OldNonce : Fault

    /** The answer is held back until it is released. */
    class Held : Fault {
        /** Done once the service has answered. */
        val answered = CompletableDeferred<Unit>()
        val released = CompletableDeferred<Unit>()

        fun release() {
            released.complete(Unit)
        }
    }
}

/** A request that came through. */
class Passed(val path: String, val authorization: String?, val body: String)

/**
 * What lies between two programs: it forwards requests, one a connection, and loses, holds or refuses some. A request that is
 * only told a nonce, to be repeated with it, counts apart.
 */
class Network(@Volatile var target: String = "") : Closeable {
    private val server = ServerSocket(0, 50, InetAddress.getLoopbackAddress())
    private val rules = ArrayList<Pair<String, Fault>>()
    val passed = CopyOnWriteArrayList<Passed>()
    val challenged = CopyOnWriteArrayList<Passed>()

    /** While true, everything is refused. */
    @Volatile
    var down = false
    val url = "http://127.0.0.1:${server.localPort}"

    init {
        thread(isDaemon = true) {
            while (!server.isClosed) {
                val socket = runCatching { server.accept() }.getOrNull() ?: break
                // Either side may have left.
                thread(isDaemon = true) { runCatching { socket.use(::pass) } }
            }
        }
    }

    override fun close() = server.close()

    /** Does that to the next request whose path begins so. */
    fun next(path: String, fault: Fault) = synchronized(rules) { rules.add(path to fault) }

    /** Holds back the answer to the next request whose path begins so. */
    fun hold(path: String) = Fault.Held().also { next(path, it) }

    /** How many requests to paths that begin so came through. */
    fun count(path: String) = passed.count { it.path.startsWith(path) }

    private fun pass(socket: Socket) {
        if (down) return
        val input = socket.getInputStream().buffered()
        val request = input.line()
        val headers = generateSequence { input.line().ifEmpty { null } }.toList()
        fun header(name: String) = headers.find { it.startsWith("$name: ", ignoreCase = true) }?.substringAfter(": ")
        val body = input.readNBytes(header("Content-Length")?.toInt() ?: 0)
        val path = request.split(" ")[1]
        val fault = synchronized(rules) { rules.find { path.startsWith(it.first) }?.also(rules::remove) }?.second
        val passing = Passed(path, header("Authorization"), body.decodeToString()).also(passed::add)
        val output = socket.getOutputStream()
        if (fault is Fault.Answer) {
            val head = "HTTP/1.1 ${fault.status} Answer\r\nRetry-After: ${fault.retryAfter}\r\n"
            return output.write("${head}Content-Length: 0\r\nConnection: close\r\n\r\n".toByteArray())
        }
        val answer = Socket("127.0.0.1", URI(target).port).use { onward ->
            val kept = headers.filter { !it.startsWith("Connection:", true) && !it.startsWith("Host:", true) }
            val head = listOf(request, "Host: ${URI(target).authority}", "Connection: close") + kept
            val text = (head + "\r\n").joinToString("\r\n")
            onward.getOutputStream().write(text.toByteArray() + body)
            onward.getInputStream().readAllBytes()
        }
        if (NONCE_WANTED in answer.decodeToString().substringBefore("\r\n\r\n")) {
            passed -= passing
            challenged += passing
            fault?.let { synchronized(rules) { rules.add(0, path to it) } }
            return output.write(answer)
        }
        when (fault) {
            is Fault.Lose -> return
            // Until the client leaves.
            is Fault.Hang -> return check(input.read() < 0)
            is Fault.Held -> runBlocking {
                fault.answered.complete(Unit)
                fault.released.await()
            }
            is Fault.OldNonce -> return output.write(answer.withOldNonce())
            else -> {}
        }
        output.write(answer)
    }

    private fun ByteArray.withOldNonce() = toString(Charsets.ISO_8859_1)
        .replace(Regex("(?i)^(dpop-nonce: ).*", RegexOption.MULTILINE), "$1of-yesterday\r").toByteArray(Charsets.ISO_8859_1)

    private fun InputStream.line(): String {
        val line = StringBuilder()
        while (true) when (val next = read()) {
            -1 -> error("cut off")
            '\n'.code -> return line.toString().trimEnd('\r')
            else -> line.append(next.toChar())
        }
    }

    private companion object {
        const val NONCE_WANTED = "error=\"use_dpop_nonce\""
    }
}
