package vestibule

/**
 * The place of one secret text on this device, out of reach of other apps and of backups. The client calls it on a
 * thread that may wait, one call at a time.
 */
public interface TokenStorage {
    /** Returns the text, or `null` if there is none. */
    public suspend fun get(): String?

    /** Replaces the text. It returns when the text will survive the end of the process. */
    public suspend fun set(text: String)

    /** Removes the text. */
    public suspend fun remove()
}

/** A storage that ends with the process: for servers and tests. */
public class MemoryStorage : TokenStorage {
    internal val keys = MemoryKey()

    @Volatile
    private var text: String? = null

    override suspend fun get(): String? = text

    override suspend fun set(text: String) {
        this.text = text
    }

    override suspend fun remove() {
        text = null
    }
}

/** A lock between clients on the same storage, in this process or in others. Apps with one process need none. */
public fun interface Lock {
    /** Runs [work] while no other client on the same storage runs work under the same [name]. */
    public suspend fun hold(name: String, work: suspend () -> Unit)
}
