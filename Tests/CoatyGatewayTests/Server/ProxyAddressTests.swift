import Foundation
import TestSupport
import Testing

@testable import Base
@testable import Edge

/// Addresses of clients behind proxies.
@Suite(.exclusive) struct ProxyAddressTests {
    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.2", false), ("192.168.4.0/22", "192.168.7.255", true),
        ("192.168.4.0/22", "192.168.8.0", false), ("0.0.0.0/0", "1.2.3.4", true), ("0.0.0.0/0", "::1", false),
        ("fd00::/8", "fdff::1", true), ("fd00::/8", "fe00::1", false), ("::ffff:10.1.2.3", "10.1.2.3", true),
        ("10.0.0.0/8", "", false), ("10.0.0.0/8", "name", false),
    ])
    func rangesContainAddresses(range: String, address: String, expected: Bool) throws {
        #expect(try #require(AddressRange(range)).contains(address) == expected)
    }

    @Test(arguments: ["", "10", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "fd00::/129", "host", "10.0.0.0/8/8"])
    func otherTextIsNotARange(text: String) { #expect(AddressRange(text) == nil) }

    @Test(
        arguments: [
            // Addresses that the client itself sent come first and are ignored.
            ("x-forwarded-for", "6.6.6.6, 203.0.113.9", "203.0.113.9"),
            ("x-forwarded-for", "203.0.113.9", "203.0.113.9"),
            ("x-forwarded-for", "6.6.6.6, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
            ("x-forwarded-for", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("x-forwarded-for", "203.0.113.9:4711", "203.0.113.9"),
            ("x-forwarded-for", "[2001:db8::7]:4711", "2001:db8::7"), ("x-forwarded-for", "2001:db8::7", "2001:db8::7"),
            ("x-forwarded-for", "6.6.6.6, unknown", "10.0.0.1"), ("x-forwarded-for", "6.6.6.6,", "10.0.0.1"),
            ("x-forwarded-for", nil, "10.0.0.1"),
            ("forwarded", "for=6.6.6.6, for=203.0.113.9;proto=https", "203.0.113.9"),
            ("forwarded", #"proto=https; For="[2001:db8::7]:47""#, "2001:db8::7"),
            ("forwarded", "for=_hidden", "10.0.0.1"), ("forwarded", "by=203.0.113.9", "10.0.0.1"),
        ] as [(String, String?, String)]
    )
    func theLastUntrustedAddressIsTheClients(field: String, value: String?, expected: String) throws {
        let addressing = ClientAddressing(
            trustedProxies: [try #require(AddressRange("10.0.0.0/8"))],
            field: try #require(ClientAddressing.Field(rawValue: field))
        )
        #expect(addressing.fieldName(forPeer: "10.0.0.1") == field)
        #expect(addressing.fieldName(forPeer: "6.6.6.6") == nil)
        #expect(addressing.client(behind: "10.0.0.1", value) == expected)
    }

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let v4: [UInt8] =
        signature + [0x21, 0x11, 0, 12, 203, 0, 113, 9, 127, 0, 0, 1, 0x12, 0x67, 0x1F, 0x90]

    @Test func readsHeadersOfTheProxyProtocol() {
        #expect(ProxyHeader(Self.v4) == .complete(length: 28, address: "203.0.113.9"))
        #expect(ProxyHeader(Self.v4 + Array("GET /".utf8)) == .complete(length: 28, address: "203.0.113.9"))
        let v6 = Self.signature + [0x21, 0x21, 0, 36, 0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]
        #expect(ProxyHeader(v6 + [UInt8](repeating: 0, count: 20)) == .complete(length: 52, address: "2001:db8::7"))
        #expect(ProxyHeader(Self.signature + [0x20, 0, 0, 0]) == .complete(length: 16, address: nil))
        let extended = Array(Self.v4[..<14]) + [0, 15] + Array(Self.v4[16...]) + [1, 2, 3]
        #expect(ProxyHeader(extended) == .complete(length: 31, address: "203.0.113.9"))
        for count in 0..<Self.v4.count { #expect(ProxyHeader(Array(Self.v4[..<count])) == .incomplete) }
    }

    @Test(arguments: [
        Array("GET / HTTP/1.1\r\n".utf8), Array("PROXY TCP4 1.2.3.4".utf8), signature + [0x31, 0x11, 0, 12],
        signature + [0x22, 0x11, 0, 12], signature + [0x21, 0x11, 0xFF, 0xFF],
        signature + [0x21, 0x11, 0, 4, 1, 2, 3, 4],
    ])
    func invalidProxyHeadersAreRefused(bytes: [UInt8]) { #expect(ProxyHeader(bytes) == .invalid) }

    private static let token = "0123456789abcdef"

    /// Returns the addresses in the audit log after an attempt with a wrong token.
    private func audited(_ flags: [String], _ attempt: (GatewayProcess) throws -> Void) throws -> String {
        let log = FileManager.default.temporaryDirectory.appending(path: "audit-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: log) }
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0", "--audit-log", log] + flags,
            environment: ["COATY_GATEWAY_TOKEN": Self.token]
        )
        try attempt(gateway)
        func text() -> String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
        try waitUntil("it is in the audit log") { text().contains("\n") }
        return text()
    }

    private static let wrong = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n"

    @Test func lastForwardedHeaderLineApplies() throws {
        let log = try audited(["--trusted-proxies", "127.0.0.0/8", "--forwarded-header", "x-forwarded-for"]) {
            gateway in
            let connection = try RawConnection(port: gateway.port)
            try connection.send(
                Self.wrong
                    + "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=7.7.7.7\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
            )
            #expect(try connection.readResponse().status == 401)
        }
        #expect(log.contains("203.0.113.9") && !log.contains("6.6.6.6") && !log.contains("7.7.7.7"))
    }

    @Test func forwardedHeaderOfUntrustedPeerIsIgnored() throws {
        let log = try audited(["--trusted-proxies", "10.0.0.1", "--forwarded-header", "x-forwarded-for"]) { gateway in
            let connection = try RawConnection(port: gateway.port)
            try connection.send(Self.wrong + "X-Forwarded-For: 203.0.113.9\r\n\r\n")
            #expect(try connection.readResponse().status == 401)
        }
        #expect(log.contains("127.0.0.1") && !log.contains("203.0.113.9"))
    }

    @Test(arguments: [true, false])
    func theProxyProtocolNamesTheClient(isEncrypted: Bool) throws {
        let certificates = try Certificates()
        let flags =
            ["--trusted-proxies", "127.0.0.1", "--proxy-protocol", "true"] + (isEncrypted ? certificates.flags : [])
        let log = try audited(flags) { gateway in
            let descriptor = try TLSClient.connect(to: gateway.port)
            // Send the header in two parts. The second part arrives together with the first bytes of the request or
            // handshake.
            #expect(send(descriptor, Self.v4, 20, 0) == 20)
            usleep(100_000)
            #expect(send(descriptor, Array(Self.v4[20...]), 8, 0) == 8)
            if isEncrypted {
                let client = try TLSClient(descriptor: descriptor)
                try client.send(Self.wrong + "\r\n")
                #expect(try client.read(until: "\r\n\r\n").contains(" 401 "))
            } else {
                let request = Array((Self.wrong + "\r\n").utf8)
                #expect(send(descriptor, request, request.count, 0) == request.count)
                var byte: UInt8 = 0
                #expect(recv(descriptor, &byte, 1, 0) == 1)
                close(descriptor)
            }
        }
        #expect(log.contains("203.0.113.9"))
    }

    @Test(arguments: ["127.0.0.1", "10.0.0.1"])
    func aConnectionWithoutTheHeaderIsClosed(proxy: String) throws {
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0", "--trusted-proxies", proxy, "--proxy-protocol", "true"]
        )
        let connection = try RawConnection(port: gateway.port)
        try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try connection.isClosedByPeer(within: 5))
        if proxy == "10.0.0.1" {
            let named = try RawConnection(port: gateway.port)
            try named.send(Self.v4 + Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            #expect(try named.isClosedByPeer(within: 5))
        }
    }
}
