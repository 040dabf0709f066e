package vestibule

import java.net.URI
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse
import java.net.http.HttpResponse.BodyHandlers

private const val STAFF = "ada@example.com"

private fun plainText(html: String) =
    html.replace("&#x2F;", "/").replace("&#x27;", "'").replace("&quot;", "\"").replace("&amp;", "&")

/** A member of staff, who uses the admin pages as a browser without scripts does. */
class Staff private constructor(private val url: String) {
    private val cookies = LinkedHashMap<String, String>()

    fun disable(user: String) = submit("/admin/users/$user/disable", "disable")

    fun enable(user: String) = submit("/admin/users/$user/enable", "enable")

    fun endSessions(user: String) = submit("/admin/users/$user/end-sessions", "end-sessions")

    fun delete(user: String) = submit("/admin/users/$user/delete", "delete")

    fun merge(user: String, into: String) = submit("/admin/users/$user/merge?into=$into", "merge")

    /** Fills in and sends the form on a page whose address ends so. */
    private fun submit(page: String, action: String) {
        val html = plainText(request(page).body())
        val forms = Regex("""<form[^>]* action="([^"]*)"[^>]*>((?s:.*?))</form>""").findAll(html)
        val form = forms.find { it.groupValues[1].substringBefore("?").endsWith("/$action") }
        val (_, address, content) = checkNotNull(form) { "$page has a form for $action: $html" }.groupValues
        val fields = Regex("<input[^>]*>").findAll(content).mapNotNull { input ->
            fun attribute(name: String) = Regex(""" $name="([^"]*)"""").find(input.value)?.groupValues?.get(1)
            attribute("name")?.let { it to attribute("value").orEmpty() }
        }
        val answer = request(address, fields.toMap() + ("reason" to "a test of the client"))
        check(answer.statusCode() == 303) { plainText(answer.body()) }
    }

    private fun request(path: String, fields: Map<String, String>? = null): HttpResponse<String> {
        val request = HttpRequest.newBuilder(URI(url + path))
        if (cookies.isNotEmpty()) request.header("Cookie", cookies.entries.joinToString("; "))
        if (fields != null) request.posting(fields)
        val answer = plain.send(request.build(), BodyHandlers.ofString())
        for (cookie in answer.headers().allValues("Set-Cookie")) {
            val (name, value) = cookie.substringBefore(";").split("=", limit = 2)
            cookies[name] = value
        }
        return answer
    }

    companion object {
        private fun HttpRequest.Builder.posting(fields: Map<String, String>) =
            header("Content-Type", "application/x-www-form-urlencoded").POST(BodyPublishers.ofString(form(fields)))

        fun signIn(url: String): Staff {
            val staff = Staff(url)
            val page = staff.request("/admin/sign-in", emptyMap()).headers().firstValue("Location").get()
            val who = HttpRequest.newBuilder(URI(page)).posting(mapOf("email" to STAFF, "verified" to "true")).build()
            val chosen = plain.send(who, BodyHandlers.discarding()).headers().firstValue("Location").get()
            val back = URI(chosen)
            val landed = staff.request("${back.rawPath}?${back.rawQuery}")
            check(landed.statusCode() == 303) { landed.body() }
            return staff
        }
    }
}
