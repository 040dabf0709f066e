package vestibule

import java.io.File
import java.io.FileNotFoundException
import java.io.FileOutputStream
import java.io.IOException
import java.security.GeneralSecurityException
import javax.crypto.Cipher
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec

/**
 * A storage in a file that is encrypted by AES-GCM with a [key], such as one of the Android Keystore, which never leaves the
 * device. Its tests run on the JVM with a key of the JVM; it was not run on a device. A file that the key does not open, as
 * after a restored backup, counts as none.
 *
 * @param file The file, in a directory that no backup has: Android's `noBackupFilesDir`.
 * @param key Returns the key. It is asked at each use, and may wait.
 */
public class EncryptedFile(private val file: File, private val key: () -> SecretKey) : TokenStorage {
    private fun cipher() = Cipher.getInstance("AES/GCM/NoPadding")

    override suspend fun get(): String? = try {
        val bytes = file.readBytes()
        val cipher = cipher().apply { init(Cipher.DECRYPT_MODE, key(), GCMParameterSpec(TAG_BITS, bytes, 0, IV)) }
        cipher.doFinal(bytes, IV, bytes.size - IV).decodeToString()
    } catch (_: FileNotFoundException) {
        null
    } catch (_: GeneralSecurityException) {
        null
    }

    override suspend fun set(text: String) {
        // The provider chooses the initialization vector: the Keystore permits no other.
        val cipher = cipher().apply { init(Cipher.ENCRYPT_MODE, key()) }
        val next = File("$file.next")
        FileOutputStream(next).use {
            it.write(cipher.iv + cipher.doFinal(text.encodeToByteArray()))
            it.fd.sync()
        }
        if (!next.renameTo(file)) throw IOException("the file cannot be replaced")
    }

    override suspend fun remove() {
        if (!file.delete() && file.exists()) throw IOException("the file cannot be deleted")
    }

    private companion object {
        const val TAG_BITS = 128

        /** Bytes of the initialization vector. */
        const val IV = 12
    }
}
