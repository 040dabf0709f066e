package vestibule

import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File

class GuidesTest {
    @Test
    fun `every block of Kotlin in the guides is compiled with these tests`() {
        val compiled = File("src/test/kotlin/guides/Guides.kt").readText()
        val guides = listOf("../../docs/android.md", "README.md").map { File(it).readText() }
        val block = Regex("^```kotlin\n(.*?)^```$", setOf(RegexOption.MULTILINE, RegexOption.DOT_MATCHES_ALL))
        val blocks = guides.flatMap { block.findAll(it) }.map { it.groupValues[1] }
        assertTrue(blocks.size >= 9, "they are found: ${blocks.size}")
        for (code in blocks) assertTrue(code in compiled, "src/test/kotlin/guides/Guides.kt has not got\n$code")
    }
}
