package vestibule

import kotlinx.coroutines.delay
import java.io.File
import java.net.ServerSocket
import java.net.URI
import java.net.URLEncoder
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.net.http.HttpResponse.BodyHandlers
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import kotlin.random.Random
import kotlin.time.Duration.Companion.minutes
import kotlin.time.TimeSource.Monotonic

// Whatever ends this process closes the shell's input, and so ends the service with its database.
private const val UNTIL_WE_END = "\"$0\" & service=$!; read -r _; kill -TERM \$service; wait \$service"
private val program = System.getenv("VESTIBULE") ?: File("../../target/debug/vestibule").canonicalPath

/** A client of nobody's. */
val plain: HttpClient = HttpClient.newHttpClient()

fun get(url: String, vararg headers: String): HttpResponse<String> {
    val request = HttpRequest.newBuilder(URI(url))
    if (headers.isNotEmpty()) request.headers(*headers)
    return plain.send(request.build(), BodyHandlers.ofString())
}

fun form(fields: Map<String, String>): String =
    fields.entries.joinToString("&") { (name, value) -> name + "=" + URLEncoder.encode(value, Charsets.UTF_8) }

/** Tries until it succeeds. */
suspend fun <T : Any> eventually(what: String, attempt: suspend () -> T?): T {
    val end = Monotonic.markNow() + 10.minutes
    while (end.hasNotPassedNow()) {
        runCatching { attempt() }.getOrNull()?.let { return it }
        delay(50)
    }
    error("never: $what")
}

/** Waits until it is so. */
suspend fun until(what: String, condition: suspend () -> Boolean) {
    eventually(what) { Unit.takeIf { condition() } }
}

fun run(command: List<String>, folder: File? = null, environment: Map<String, String> = emptyMap()): String {
    val builder = ProcessBuilder(command).directory(folder).redirectErrorStream(true)
    builder.environment().putAll(environment)
    val process = builder.start()
    val said = process.inputStream.reader().readText()
    check(process.waitFor() == 0) { "$command: $said" }
    return said.trim()
}

/** The service itself, as `cargo run` starts it: with a database, an identity provider and staff of its own. */
class Service private constructor(
    val url: String,
    private val folder: File,
    private val environment: Map<String, String>,
    private val shell: Process,
) {
    fun stop() {
        shell.outputStream.close()
        shell.waitFor()
        folder.deleteRecursively()
    }

    fun log(): String = folder.resolve("log").readText()

    /** Runs one of its commands. */
    fun command(vararg args: String) {
        run(listOf(program, *args), folder, environment + ("DATABASE_URL" to database()))
    }

    /** The database's URL, which it prints. */
    fun database(): String = checkNotNull(Regex("psql '([^']+)'").find(log())) { log() }.groupValues[1]

    /** Changes what only time changes. */
    fun sql(statement: String) {
        run(listOf("psql", database(), "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement))
    }

    /** An `id_token` of the development provider. */
    fun idToken(vararg account: Pair<String, String>): String {
        val answer = get("$url/dev/idp/mint?${form(account.toMap())}")
        check(answer.statusCode() == 200) { answer.body() }
        return answer.body().trim()
    }

    companion object {
        /** Starts it with further settings; `url` is known to them as `{url}`. */
        suspend fun start(settings: Map<String, String>, beside: Service? = null): Service {
            // The database's user has to enter.
            val enter = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x"))
            val folder = Files.createTempDirectory("vestibule-client-", enter).toFile()
            val port = freePort()
            val url = "http://127.0.0.1:$port"
            val environment = mapOf(
                "ROCKET_PORT" to "$port",
                "ROCKET_DEV_DIR" to (beside?.folder ?: folder).resolve("data").path,
                "ROCKET_DRAIN" to "0",
                "ROCKET_RATE_LIMIT" to "{enabled=false}",
                "ROCKET_SECRET_KEY" to "a secret key that only the tests use",
            ) + listOfNotNull(beside?.let { "DATABASE_URL" to it.database() }) +
                settings.mapValues { it.value.replace("{url}", url) }
            val shell = ProcessBuilder("sh", "-c", UNTIL_WE_END, program).directory(folder).redirectErrorStream(true)
            shell.redirectOutput(folder.resolve("log")).environment().apply {
                keys.retainAll(setOf("PATH"))
                putAll(environment)
            }
            val service = Service(url, folder, environment, shell.start())
            runCatching {
                until("$program is ready") { get("$url/readyz").statusCode() == 200 }
            }.onFailure { throw IllegalStateException(service.log(), it) }
            return service
        }

        /** A port that nothing listens on, none of those that connections go out from. */
        private suspend fun freePort(): Int = eventually("a port is free") {
            val port = Random.nextInt(10_000, 32_000)
            ServerSocket(port).close()
            port
        }
    }
}
