import Foundation
import TestSupport
import Testing

/// An identity provider, `Tests/Fixtures/identity-provider`, and configurations of a gateway that accepts its tokens.
final class IdentityProvider {
    private let process: ChildProcess
    let port: UInt16
    /// The TLS port; nil if the provider has no certificate.
    let encryptedPort: UInt16?

    /// Starts the provider.
    ///
    /// - Parameter certificates: the certificates, of which the provider uses `server`; nil for a provider without TLS.
    init(_ certificates: Certificates? = nil) throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let script = folder.appending(path: "../../Fixtures/identity-provider").standardized.path
        let process = try ChildProcess(
            TestProgram.pythonWithJWT.path(),
            [script] + (certificates.map { [$0.path("server.pem"), $0.path("server.key")] } ?? [])
        )
        self.process = process
        var ports: [UInt16] = []
        try waitUntil("the identity provider listens") {
            guard process.output.hasSuffix("\n") else { return false }
            ports = process.output.dropLast().split(separator: " ").compactMap { UInt16($0) }
            return true
        }
        port = try #require(ports.first)
        encryptedPort = ports.dropFirst().first
    }

    /// The URL of the provider's keys, over TLS if it has a certificate.
    var keys: String { encryptedPort.map { "https://127.0.0.1:\($0)/jwks" } ?? "http://127.0.0.1:\(port)/jwks" }

    var issuer: String { "http://127.0.0.1:\(port)/realms/plant" }

    private func request(_ method: String, _ target: String) throws -> String {
        let headers = [("Host", "127.0.0.1:\(port)")]
        let response = try RawConnection(port: port).request(method, target, headers: headers)
        try #require(response.status == 200, "\(target)")
        return response.text
    }

    /// Changes the provider's behavior; see the script.
    func post(_ path: String) throws { _ = try request("POST", path) }

    /// Returns the number of requests for the keys.
    func requests() throws -> Int { Int(try request("GET", "/requests")) ?? 0 }

    /// Returns a token that expires in `rest` seconds, not counting the gateway's leeway.
    func token(_ shape: String = "keycloak", rest: Double = 300, _ query: String = "") throws -> String {
        try request("POST", "/token?shape=\(shape)&rest=\(rest)\(query)")
    }

    /// Returns a configuration that uses the provider.
    ///
    /// - Parameters:
    ///   - keys: a URL or a file; nil for ``keys``.
    ///   - jwt: further members of the mapping.
    func file(keys: String? = nil, roles: String = "claims.realm_access.roles", _ jwt: String = "") -> AccessFile {
        var file = AccessFile(tokens: [.init("ops", "admin")], roles: Self.roles)
        file.jwt =
            "{issuer: \"\(issuer)\", audience: coaty-gateway, keys: \"\(keys ?? self.keys)\", "
            + "roles: \"\(roles)\"\(jwt)}"
        return file
    }

    static let roles = [
        "viewer": [
            "{observe: [channel], channels: [\"*\"]}", "{read: [status]}", "{request: [call], operations: [\"*\"]}",
            "{observe: [advertise], types: [\"*\"], where: \(AccessFile.ownSite)}",
            "{register: [nodes], contexts: [\"*\"]}", "{read: [nodes], contexts: [\"*\"]}",
        ]
    ]
}

extension AccessScene {
    static func bearer(_ token: String) -> [(String, String)] { [("Authorization", "Bearer " + token)] }

    /// Waits until the gateway has the keys of a token.
    func untilKnown(_ token: String) throws {
        try waitUntil("the token is accepted") {
            try gateway.request("GET", "/v1/access", headers: Self.bearer(token)).status == 200
        }
    }
}
