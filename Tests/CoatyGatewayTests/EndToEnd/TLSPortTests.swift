import Foundation
import TestSupport
import Testing
@testable import Base

/// TLS on the gateway's port, with curl and openssl as clients.
@Suite(.exclusive) struct TLSPortTests {
    private let certificates: Certificates
    private let gateway: GatewayProcess

    init() throws {
        certificates = try Certificates()
        gateway = try Self.start(certificates)
    }

    private static func start(_ certificates: Certificates, _ arguments: [String] = []) throws -> GatewayProcess {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"] + certificates.flags + arguments)
        try waitUntil("the gateway is ready") {
            let client = try TLSClient(port: gateway.port)
            return try client.request("GET /readyz").contains("200 OK")
        }
        return gateway
    }

    /// Runs curl, and returns its exit code and output.
    private func curl(_ target: String, _ arguments: [String]) throws -> (code: Int32, output: String) {
        let url = "https://127.0.0.1:\(gateway.port)\(target)"
        let process = try ChildProcess(
            TestProgram.curl.path(),
            ["-s", "--max-time", "10", "--cacert", certificates.path("ca.pem")] + arguments + [url]
        )
        return (try process.waitForEnd(), process.output)
    }

    private func handshake(_ arguments: [String]) throws -> (code: Int32, output: String) {
        let process = try ChildProcess(
            TestProgram.openssl.path(),
            ["s_client", "-connect", "127.0.0.1:\(gateway.port)"] + arguments,
            input: "/dev/null",
            errors: "/dev/null"
        )
        return (try process.waitForEnd(), process.output)
    }

    @Test func theReadyLineNamesTheScheme() {
        #expect(gateway.output.contains("ready on https://127.0.0.1:"))
    }

    @Test(arguments: [["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3"]])
    func restWorksOverBothVersions(arguments: [String]) throws {
        let version = arguments[0] == "--tlsv1.3" ? "1.3" : "1.2"
        let (code, output) = try curl("/v1/info", arguments + ["-v", "--stderr", "-"])
        #expect(code == 0 && output.contains("HTTP/1.1 200 OK") && output.contains("TLSv\(version)"), "\(output)")
    }

    @Test func olderVersionsAreRefused() throws {
        #expect(try handshake(["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]).code != 0)
        #expect(try handshake(["-tls1_2"]).code == 0)
    }

    @Test func onlyHTTP1IsNegotiated() throws {
        #expect(try handshake(["-alpn", "h2"]).code != 0)
        let (code, output) = try handshake(["-alpn", "h2,http/1.1"])
        #expect(code == 0 && output.contains("ALPN protocol: http/1.1"))
    }

    @Test func streamsOfAllKindsShareThePort() throws {
        let events = try TLSClient(port: gateway.port, authorities: certificates.path("ca.pem"))
        try events.send("GET /v1/sse/advertise?objectType=com.example.Job HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let head = try events.read(until: "\r\n\r\n")
        #expect(head.contains("text/event-stream"), "\(head)")
        let socket = try TLSClient(port: gateway.port, authorities: certificates.path("ca.pem"))
        let opening = try socket.open("/v1/ws/advertise?objectType=com.example.Job", until: #"{"op":"ok""#)
        #expect(opening.contains("101 Switching Protocols"))
        let rest = try TLSClient(port: gateway.port, authorities: certificates.path("ca.pem"))
        let job = Scene.job("over TLS")
        try rest.send(
            "POST /v1/advertise HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(job.utf8.count + 11)\r\n\r\n{\"object\":\(job)}"
        )
        #expect(try rest.read(until: "\r\n\r\n").contains("202"))
        #expect(try socket.read(until: "over TLS").contains("over TLS"))
    }

    @Test func aPlainRequestGetsAHint() throws {
        for method in ["GET", "DELETE"] {
            let response = try gateway.request(method, "/v1/info")
            #expect(response.status == 400 && response.problem == "tls-required")
        }
        let plain = try RawConnection(port: gateway.port)
        try plain.send([0, 1, 2, 3, 4, 5, 6, 7])
        _ = try plain.isClosedByPeer()
        #expect(try curl("/healthz", []).code == 0)
    }

    @Test func largeBodiesAreTransferredBothWays() throws {
        let name = String(repeating: "large ", count: 150_000)
        let file = certificates.directory.appending(path: "body")
        try #"{"object":\#(Scene.job(name))}"#.write(to: file, atomically: true, encoding: .utf8)
        let json = ["-H", "Content-Type: application/json", "--data-binary", "@\(file.path)", "-w", "%{http_code}"]
        let (code, output) = try curl("/v1/advertise", json)
        #expect(code == 0 && output.hasSuffix("202"), "\(output)")
        let contract = try curl("/openapi.yaml", []).output
        #expect(contract.utf8.count > 50_000 && contract.hasPrefix("openapi:"))
    }

    @Test func theAddressReachesTheAuditLog() throws {
        let log = certificates.path("audit")
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0", "--audit-log", log] + certificates.flags,
            environment: ["COATY_GATEWAY_TOKEN": "0123456789abcdef"]
        )
        let client = try TLSClient(port: gateway.port)
        #expect(try client.request("GET /v1/status", headers: "Authorization: Bearer wrong\r\n").contains("401"))
        try waitUntil("it is in the audit log") {
            (try? String(contentsOfFile: log, encoding: .utf8))?.contains("127.0.0.1") == true
        }
    }

    @Test func manyIdleConnectionsAreServed() throws {
        let clients = try (0..<200).map { _ in try TLSClient(port: gateway.port) }
        for client in clients { #expect(try client.request("GET /v1/info").contains("200 OK")) }
        let descriptors = try gateway.descriptors()
        #expect(descriptors > 600)
        _ = consume clients
        try waitUntil("they are closed") { try gateway.descriptors() < descriptors - 590 }
    }

    /// The gateway closes the connection of a client that does not read replies. The relay must release its descriptors
    /// although there are unsent bytes.
    @Test func closedClientsThatDoNotReadKeepNoDescriptors() throws {
        let id = String(repeating: "x", count: 128)
        let ping = WebSocketClient.frame(opcode: 1, payload: Array(#"{"op":"ping","id":"\#(id)"}"#.utf8))
        let clients = try (0..<2).map { _ in
            let client = try TLSClient(port: gateway.port, receiveBuffer: 4096)
            _ = try client.open("/v1/ws", until: "\r\n\r\n")
            return client
        }
        let open = try gateway.descriptors()
        for client in clients { client.sendUntilBlocked(ping) }
        try waitUntil("all descriptors are closed") { try gateway.descriptors() <= open - 3 * clients.count }
        for client in clients { #expect(client.isReset(within: 0)) }
    }

    @Test func strictTransportSecurityIsSentOnRequest() throws {
        let client = try TLSClient(port: gateway.port)
        #expect(try !client.request("GET /v1/info").contains("Strict-Transport-Security"))
        let strict = try Self.start(certificates, ["--hsts-max-age", "3600"])
        for path in ["/v1/info", "/v1/nothing"] {
            let client = try TLSClient(port: strict.port)
            #expect(try client.request("GET \(path)").contains("Strict-Transport-Security: max-age=3600\r\n"))
        }
    }

    @Test func aClientMayBeAskedForACertificate() throws {
        let ca = ["--tls-client-ca-file", certificates.path("ca.pem")]
        let required = try Self.startUnready(certificates, ca + ["--tls-client-certificates", "required"])
        let client = try TLSClient(port: required.port, identity: certificates.path("client"))
        #expect(try client.request("GET /healthz").contains("200 OK"))
        #expect(throws: (any Error).self) { try TLSClient(port: required.port).request("GET /healthz") }
        let optional = try Self.startUnready(certificates, ca)
        #expect(try TLSClient(port: optional.port).request("GET /healthz").contains("200 OK"))
        try certificates.make("stranger", "subjectAltName=DNS:client.example", authority: "other-ca")
        #expect(throws: (any Error).self) {
            try TLSClient(port: optional.port, identity: certificates.path("stranger")).request("GET /healthz")
        }
    }

    private static func startUnready(_ certificates: Certificates, _ arguments: [String]) throws -> GatewayProcess {
        try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"] + certificates.flags + arguments)
    }

    @Test func stopEndsInTimeWithOpenConnections() throws {
        let socket = try TLSClient(port: gateway.port)
        #expect(try socket.request("GET /v1/info").contains("200 OK"))
        let start = Date()
        #expect(try gateway.stop() == 0)
        #expect(Date().timeIntervalSince(start) < 10)
        #expect(try socket.read().isEmpty)
    }

    @Test func anExpiredCertificateIsLoggedAtTheStart() throws {
        #expect(!gateway.log.contains("the certificate is not valid at this time"))
        try certificates.make("server", until: Date(timeIntervalSinceNow: -60))
        let expired = try Self.start(certificates)
        #expect(expired.log.contains("the certificate is not valid at this time"))
    }

    @Test func filesThatCannotBeUsedPreventTheStart() throws {
        try "no certificate".write(toFile: certificates.path("bad"), atomically: true, encoding: .utf8)
        for (certificate, key) in [("bad", "server.key"), ("server.pem", "client.key"), ("missing", "server.key")] {
            let process = try GatewayProcess(
                unready: [
                    "--port", "0", "--tls-certificate-file", certificates.path(certificate), "--tls-key-file",
                    certificates.path(key),
                ]
            )
            #expect(try process.waitForEnd() != 0)
            #expect(
                process.log.contains(certificates.path(certificate)) || process.log.contains(certificates.path(key))
            )
        }
    }
}
