import Foundation
import TestSupport
import Testing
@testable import Base

/// Clients that authenticate with a certificate, over HTTP, SSE and WebSocket, against the real gateway.
@Suite(.exclusive) struct CertificatePrincipalTests {
    private let certificates: Certificates
    private let scene: AccessScene

    private static let file = AccessFile(
        tokens: [.init("dashboard", "reader")],
        certificates: [
            "{name: \"urn:client:*\", roles: [reader, jobs], attributes: {site: hall-2}}",
            "{name: short, roles: [jobs]}",
        ],
        roles: [
            "reader": ["read: [info, status]"],
            "jobs": [
                "{publish: [advertise], types: [com.example.Job]}", "{observe: [advertise], types: [com.example.Job]}",
            ],
        ]
    )

    init() throws {
        certificates = try Certificates()
        try certificates.make("unknown", "subjectAltName=DNS:unknown.example")
        scene = try AccessScene(
            Self.file,
            certificates.flags + ["--tls-client-ca-file", certificates.path("ca.pem")],
            isEncrypted: true
        )
    }

    private func client(_ name: String?) throws -> TLSClient {
        try TLSClient(port: scene.gateway.port, identity: name.map(certificates.path))
    }

    @Test func principalIsNamedByTheCertificate() throws {
        let client = try client("client")
        for _ in 0..<2 {
            let access = try client.request("GET /v1/access")
            #expect(access.contains(#"{"name":"urn:client:1","credentials":"certificate","expires":"#), "\(access)")
            #expect(access.contains(#""roles":["reader","jobs"],"attributes":{"site":"hall-2"}"#))
        }
        #expect(try client.request("GET /v1/routing/contexts").contains(" 403 "))
        try waitUntil("the audit log names it") {
            scene.audit.contains(#""principal":"urn:client:1","credentials":"certificate""#)
        }
    }

    /// A client that resumes a TLS session does not send its certificate again.
    @Test(arguments: ["-tls1_2", "-tls1_3"]) func resumedTLSSessionKeepsThePrincipal(version: String) throws {
        let request = certificates.path("request")
        try "GET /v1/access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            .write(toFile: request, atomically: true, encoding: .utf8)
        func ask(_ arguments: [String]) throws -> String {
            let process = try ChildProcess(
                TestProgram.openssl.path(),
                ["s_client", "-connect", "127.0.0.1:\(scene.gateway.port)", "-ign_eof", version] + arguments,
                input: request,
                errors: "/dev/null"
            )
            _ = try process.waitForEnd()
            return process.output
        }
        let session = certificates.path("session")
        let identity = ["-cert", certificates.path("client.pem"), "-key", certificates.path("client.key")]
        #expect(try ask(identity + ["-sess_out", session]).contains(#""name":"urn:client:1""#))
        let resumed = try ask(["-sess_in", session])
        #expect(resumed.contains("Reused, TLS") && resumed.contains(#""name":"urn:client:1""#), "\(resumed)")
    }

    @Test func tokenOverridesCertificate() throws {
        let client = try client("client")
        let token = "Authorization: Bearer \(AccessFile.secret(of: "dashboard"))\r\n"
        #expect(try client.request("GET /v1/access", headers: token).contains(#""name":"dashboard""#))
        #expect(try client.request("GET /v1/access").contains(#""name":"urn:client:1""#))
        let wrong = try client.request("GET /v1/access", headers: "Authorization: Bearer wrong\r\n")
        #expect(wrong.contains(" 401 "))
    }

    @Test func clientsWithoutAnEntryAreAnonymous() throws {
        for name in [nil, "unknown"] {
            #expect(try client(name).request("GET /v1/access").contains(" 401 "), "\(name ?? "none")")
        }
        var open = Self.file
        open.anonymous = ["reader"]
        try scene.reload(open)
        #expect(try client("unknown").request("GET /v1/access").contains(#""name":null"#))
        #expect(try client("client").request("GET /v1/access").contains(#""name":"urn:client:1""#))
    }

    @Test func streamsUseTheCertificatePrincipal() throws {
        let job = Scene.job("from a device")
        let events = try client("client")
        try events.send("GET /v1/sse/advertise?objectType=com.example.Job HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try events.read(until: "\r\n\r\n").contains("200 OK"))
        let socket = try client("client")
        let opening = try socket.open("/v1/ws/advertise?objectType=com.example.Job", until: #"{"op":"ok""#)
        #expect(opening.contains(" 101 "))
        let refused = try client("unknown").open("/v1/ws/advertise?objectType=com.example.Job", until: "}")
        #expect(refused.contains(" 401 "))
        let request =
            "POST /v1/advertise HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(job.utf8.count + 11)\r\n\r\n{\"object\":\(job)}"
        let publisher = try client("client")
        try publisher.send(request)
        #expect(try publisher.read(until: "\r\n\r\n").contains(" 202 "))
        #expect(try socket.read(until: "from a device").contains(#""event":"advertise""#))
        _ = try events.read(until: "from a device")
    }

    /// A browser presents a client certificate for every page, so a page with a rebound host name must not reach the
    /// gateway.
    @Test func aForeignHostNameIsRefused() throws {
        let client = try client("client")
        #expect(try client.request("GET /v1/access", host: "rebound.example").contains(" 421 "))
        let opening = try self.client("client").open("/v1/ws", host: "rebound.example", until: "}")
        #expect(opening.contains(" 421 "))
        let page = try self.client("client").request("GET /v1/access", headers: "Origin: https://foreign.example\r\n")
        #expect(page.contains(" 403 "))
    }

    @Test func aBrowserWithACertificateCanUseAToken() throws {
        let socket = try client("client")
        _ = try socket.open("/v1/ws", until: "\r\n\r\n")
        let token = AccessFile.secret(of: "dashboard")
        let frame = Array(#"{"op":"authenticate","id":"a","token":"\#(token)"}"#.utf8)
        try socket.send(WebSocketClient.frame(opcode: 1, payload: frame))
        #expect(try socket.read(until: #""id":"a""#).contains(#""op":"ok""#))
    }

    @Test func aRemovedEntryEndsItsStreams() throws {
        let socket = try client("client")
        _ = try socket.open("/v1/ws/advertise?objectType=com.example.Job", until: #"{"op":"ok""#)
        var without = Self.file
        without.certificates.removeFirst()
        try scene.reload(without)
        #expect(try socket.read(until: #""status":401"#).contains(#""op":"error""#))
        #expect(try client("client").request("GET /v1/access").contains(" 401 "))
    }

    @Test func principalExpiresWithTheCertificate() throws {
        let end = Date(timeIntervalSinceNow: 4)
        try certificates.make("short", until: end)
        let rest = try client("short")
        #expect(try rest.request("GET /v1/access").contains(#""name":"short""#))
        let socket = try client("short")
        _ = try socket.open("/v1/ws/advertise?objectType=com.example.Job", until: #"{"op":"ok""#)
        #expect(try socket.read(until: #""status":401"#).contains("token-expired"))
        // The times in a certificate have no fractions of seconds.
        let late = Date().timeIntervalSince(end)
        #expect(late > -1 && late < 1.5)
        #expect(try rest.request("GET /v1/access").contains(" 401 "))
        #expect(throws: (any Error).self) { try client("short").request("GET /healthz") }
    }
}
