import Foundation
import TestSupport
import Testing

/// An identity provider, `Tests/Fixtures/identity-provider`, and a gateway that accepts its tokens.
final class IdentityProvider {
    private let process: ChildProcess
    let port: UInt16

    init() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let script = folder.appending(path: "../../Fixtures/identity-provider").standardized.path
        let process = try ChildProcess("/usr/bin/python3", [script])
        self.process = process
        var port: UInt16?
        try waitUntil("the identity provider listens") {
            port = process.output.hasSuffix("\n") ? UInt16(process.output.dropLast()) : nil
            return port != nil
        }
        self.port = try #require(port)
    }

    var issuer: String { "http://127.0.0.1:\(port)/realms/plant" }

    private func request(_ method: String, _ target: String) throws -> String {
        let headers = [("Host", "127.0.0.1:\(port)")]
        let response = try RawConnection(port: port).request(method, target, headers: headers)
        try #require(response.status == 200, "\(target)")
        return response.text
    }

    /// Changes what the provider does; see the script.
    func post(_ path: String) throws { _ = try request("POST", path) }

    /// How often the keys were asked for.
    func requests() throws -> Int { Int(try request("GET", "/requests")) ?? 0 }

    /// Returns a token that expires in `rest` seconds, without the gateway's leeway.
    func token(_ shape: String = "keycloak", rest: Double = 300, _ query: String = "") throws -> String {
        try request("POST", "/token?shape=\(shape)&rest=\(rest)\(query)")
    }

    /// A configuration with the provider.
    ///
    /// - Parameter jwt: further members of the mapping.
    func file(keys path: String = "/jwks", roles: String = "claims.realm_access.roles", _ jwt: String = "")
        -> AccessFile
    {
        var file = AccessFile(tokens: [.init("ops", "admin")], roles: Self.roles)
        file.jwt =
            "{issuer: \"\(issuer)\", audience: coaty-gateway, keys: \"http://127.0.0.1:\(port)\(path)\", "
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
