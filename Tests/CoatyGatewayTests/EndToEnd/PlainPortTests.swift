import Foundation
import TestSupport
import Testing

/// The unencrypted port for probes on the same machine.
@Suite(.exclusive) struct PlainPortTests {
    private let gateway: GatewayProcess
    private let port: UInt16

    init() throws {
        let certificates = try Certificates()
        port = try FreePort.tcp()
        gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0", "--plain-port", "\(port)"] + certificates.flags,
            environment: ["COATY_GATEWAY_TOKEN": "0123456789abcdef"]
        )
    }

    @Test func probesNeedNeitherTLSNorToken() throws {
        for path in ["/healthz", "/readyz"] {
            try waitUntil("\(path) is 200") { try RawConnection(port: port).request("GET", path).status == 200 }
        }
    }

    @Test func metricsNeedNeitherTLSNorToken() throws {
        let answer = try RawConnection(port: port).request("GET", "/metrics")
        #expect(answer.status == 200)
        #expect(answer.text.contains("# TYPE coaty_gateway_http_requests_total counter\n"))
    }

    @Test func otherPathsAreNotFound() throws {
        for path in ["/v1/info", "/v1/status", "/", "/v1/ws", "/openapi.yaml"] {
            #expect(try RawConnection(port: port).request("GET", path).status == 404)
        }
        #expect(try RawConnection(port: port).request("POST", "/healthz", body: "").status == 405)
    }

    @Test func onlyLoopbackIsListenedOn() throws {
        let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
        let number = String(format: "%04X", port)
        #expect(table.contains("0100007F:\(number) 00000000:0000 0A"))
        #expect(!table.contains("00000000:\(number) 00000000:0000 0A"))
    }
}
