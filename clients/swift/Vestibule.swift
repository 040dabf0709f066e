// The session of an app on iOS, to copy into the app: docs/ios.md. The URL has no slash at its end.

import Foundation
import Security

struct User: Codable, Equatable { let id: String; var email: String?; var name: String? }

enum AuthState: Equatable {
    case restoring
    /// `offline`: the last refresh brought no answer. `changedFrom`: the former user, whose data is on this device.
    case signedIn(User, offline: Bool, changedFrom: String?)
    /// Why nobody is signed in: `never`, `signed_out`, `storage_failed`, or the service's `reason`.
    case signedOut(String)
}

struct VestibuleError: Error {
    let error: String          // of the service, or `network`, `signed_out`, `superseded`, `storage`
    var status: Int? = nil
    var reason: String? = nil
    var retryAfter: Double? = nil
}

actor Vestibule {
    private struct Kept: Codable { let id: String; var refreshToken: String; var user: User }
    private struct Stored: Codable { var session: Kept?; var reason: String?; var userId: String? }
    private struct Credential: Decodable { let accessToken: String; let refreshToken: String; let expiresIn: Double }
    private struct SignedIn: Decodable { let user: User }
    private struct Problem: Decodable { var error: String?; var reason: String? }

    nonisolated let states: AsyncStream<AuthState>
    private let publish: AsyncStream<AuthState>.Continuation
    private(set) var state = AuthState.restoring { didSet { if state != oldValue { publish.yield(state) } } }
    private let base: URL
    private var session: Kept?
    private var lastUser: String?
    private var access: (token: String, good: Range<Date>)?
    private var refreshing: Task<String, Error>?
    private var pause: (error: VestibuleError, lasts: Range<Date>)?
    private var generation = 0     // counts the sessions: what began under another number is thrown away
    private var attempts = 0       // counts the sign-ins, of which only the last one may succeed

    init(_ base: URL) {
        self.base = base
        (states, publish) = AsyncStream.makeStream()
        publish.yield(.restoring)
    }

    // MARK: The keychain: this device only, no backup, readable in the background. It has no `await`, so nothing comes between.

    private let item: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrService: "vestibule"]

    private func load() throws -> Stored {
        var found: CFTypeRef?
        let query = item.merging([kSecReturnData: true]) { $1 }
        switch SecItemCopyMatching(query as CFDictionary, &found) {
        case errSecSuccess: return (try? JSONDecoder().decode(Stored.self, from: found as? Data ?? Data())) ?? Stored()
        case errSecItemNotFound: return Stored()
        default: throw VestibuleError(error: "storage")
        }
    }

    private func save(_ stored: Stored) throws {
        let values: [CFString: Any] = [
            kSecValueData: try JSONEncoder().encode(stored),
            kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        var status = SecItemUpdate(item as CFDictionary, values as CFDictionary)
        if status == errSecItemNotFound { status = SecItemAdd(item.merging(values) { $1 } as CFDictionary, nil) }
        if status != errSecSuccess { throw VestibuleError(error: "storage") }
    }

    // MARK: The beginning and the end of a session.

    /// Call it at the start. The keychain outlives the app: call `signOut` at the first start after an installation.
    func restore() throws {
        guard state == .restoring || state == .signedOut("storage_failed") else { return }
        do {
            let stored = try load()
            lastUser = stored.userId
            if let kept = stored.session { enter(kept) } else { become(nil, stored.reason ?? "never") }
        } catch {
            state = .signedOut("storage_failed")      // the next call reads it again, a sign-in replaces it
            throw error
        }
    }

    private func become(_ next: Kept?, _ reason: String = "signed_out") {
        generation += 1
        (session, access, refreshing, pause) = (next, nil, nil, nil)
        if next == nil { state = .signedOut(reason) }
    }

    private func enter(_ next: Kept) {
        let from = lastUser == next.user.id ? nil : lastUser
        lastUser = next.user.id
        become(next)
        state = .signedIn(next.user, offline: false, changedFrom: from)
    }

    private func end(_ reason: String) throws -> VestibuleError {
        become(nil, reason)                           // here at once, then in the keychain
        try save(Stored(reason: reason, userId: lastUser))
        return VestibuleError(error: "signed_out", reason: reason)
    }

    func signIn(_ provider: String, idToken: String, nonce: String?, more: [String: any Sendable] = [:]) async throws {
        attempts += 1
        let mine = attempts
        try? restore()
        var body: [String: Any] = more
        body["id_token"] = idToken
        body["nonce"] = nonce
        let asked = Date.now
        let data = try await post("auth/oauth/\(provider)", body)
        let (answer, user) = (try decode(Credential.self, data), try decode(SignedIn.self, data).user)
        let next = Kept(id: UUID().uuidString, refreshToken: answer.refreshToken, user: user)
        guard mine == attempts else {
            tell(next.refreshToken, "local")
            throw VestibuleError(error: "superseded")
        }
        try save(Stored(session: next))
        if let left = session { tell(left.refreshToken, "local") }
        enter(next)
        keep(answer, asked)
    }

    /// Signs out here, whether or not the service can be told. `scope`: `local` or `global`.
    func signOut(scope: String = "local") throws {
        attempts += 1
        try? restore()
        let left = session
        if let left { tell(left.refreshToken, scope) }
        _ = try end("signed_out")
    }

    private func tell(_ token: String, _ scope: String) {
        Task { _ = try? await post("auth/logout?scope=\(scope)", ["refresh_token": token]) }
    }

    // MARK: Tokens.

    private func keep(_ answer: Credential, _ asked: Date) {
        access = (answer.accessToken, asked..<asked.addingTimeInterval(max(0, answer.expiresIn - 30)))
    }

    /// A token that is good for half a minute at least. `rejected`: one that was answered with 401, or is too old.
    func accessToken(rejected: String? = nil) async throws -> String {
        try restore()
        guard session != nil else { throw signedOut() }
        // A clock that was set back ends a period.
        if let access, access.token != rejected, access.good.contains(.now) { return access.token }
        if let pause, pause.lasts.contains(.now) { throw pause.error }
        if let refreshing { return try await refreshing.value }
        let mine = generation
        let task = Task { try await refresh(mine) }
        refreshing = task                             // all who need it wait for the same one
        return try await task.value
    }

    private func refresh(_ mine: Int) async throws -> String {
        defer { if mine == generation { refreshing = nil } }
        guard mine == generation, var kept = session else { throw VestibuleError(error: "superseded") }
        let asked = Date.now
        do {
            let answer = try await exchange(kept.refreshToken)
            guard mine == generation else { throw VestibuleError(error: "superseded") }
            kept.refreshToken = answer.refreshToken
            try save(Stored(session: kept))           // before the new token is used
            session = kept
            keep(answer, asked)
            offline(false)
            return answer.accessToken
        } catch let error as VestibuleError {
            guard mine == generation else { throw VestibuleError(error: "superseded") }
            if error.error == "invalid_refresh_token" || error.error == "user_disabled" {
                throw try end(error.reason ?? (error.error == "user_disabled" ? error.error : "session_unknown"))
            }
            if let wait = error.retryAfter { pause = (error, .now..<Date.now.addingTimeInterval(wait)) }
            if error.error == "network" || (error.status ?? 0) >= 500 { offline(true) }
            throw error
        }
    }

    /// A lost answer is asked for again at once, with the same token: its answer is the same, or as good.
    private func exchange(_ token: String) async throws -> Credential {
        func once() async throws -> Credential {
            try decode(Credential.self, try await post("auth/refresh", ["refresh_token": token]))
        }
        do { return try await once() } catch let error as VestibuleError {
            guard error.status ?? 500 >= 500, error.retryAfter == nil else { throw error }
            return try await once()
        }
    }

    private func offline(_ offline: Bool) {
        if case let .signedIn(user, _, from) = state { state = .signedIn(user, offline: offline, changedFrom: from) }
    }

    private func signedOut() -> VestibuleError {
        if case let .signedOut(reason) = state { return VestibuleError(error: "signed_out", reason: reason) }
        return VestibuleError(error: "signed_out")
    }

    // MARK: Requests.

    /// Sends a request as the user, to services that accept these tokens and to no others, and repeats it once after a 401.
    func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        try restore()
        let mine = generation
        func attempt(_ token: String) async throws -> (Data, HTTPURLResponse) {
            guard mine == generation else { throw VestibuleError(error: "superseded") }
            var request = request
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
            let answer = try await exchange(request)
            guard mine == generation else { throw VestibuleError(error: "superseded") }
            return answer
        }
        let token = try await accessToken()
        let answer = try await attempt(token)
        guard answer.1.statusCode == 401 else { return answer }
        let ours = request.url?.absoluteString.hasPrefix("\(base.absoluteString)/") == true
        let problem = try? decode(Problem.self, answer.0)
        if ours, let reason = problem?.reason { throw try end(reason) }   // genuine, but its session is over
        return try await attempt(try await accessToken(rejected: token))
    }

    private func exchange(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        var request = request
        request.timeoutInterval = 10
        do {
            let (data, response) = try await URLSession.shared.data(for: request)
            guard let http = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            return (data, http)
        } catch {
            throw VestibuleError(error: "network")
        }
    }

    private func post(_ path: String, _ body: [String: Any]) async throws -> Data {
        var request = URLRequest(url: URL(string: "\(base.absoluteString)/api/v1/\(path)")!)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONSerialization.data(withJSONObject: body)
        let (data, response) = try await exchange(request)
        let status = response.statusCode
        if (200..<300).contains(status) { return data }
        let problem = try? decode(Problem.self, data)
        // A proxy's answer has no name, and goes by its status.
        let name = status == 429 ? "rate_limited" : status < 500 ? "invalid_request" : "service_unavailable"
        let wait = response.value(forHTTPHeaderField: "Retry-After").flatMap(Double.init)
        throw VestibuleError(error: problem?.error ?? name, status: status, reason: problem?.reason, retryAfter: wait)
    }

    /// An answer that is cut off is a lost answer.
    private nonisolated func decode<T: Decodable>(_ type: T.Type, _ data: Data) throws -> T {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        do { return try decoder.decode(type, from: data) } catch { throw VestibuleError(error: "network") }
    }
}
