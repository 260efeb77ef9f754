import TestSupport
import Testing

@testable import Access
@testable import Base
@testable import CoatyGateway

/// Checks of host names and origins.
@Suite(.exclusive) struct BrowserPolicyTests {
    @Test(arguments: [
        "localhost", "LOCALHOST:8080", "localhost.", "app.localhost", "127.0.0.1", "127.0.0.1:1", "10.0.0.1:65535",
        "[::1]",
        "[::1]:8080", "[fe80::1]", "[::ffff:192.0.2.1]:80", "gateway", "gateway:8080", "my_host-1", "printer.local",
        "printer.local.:80", "localhost:", "svc.internal", "nas.home.arpa", "0.0.0.0",
    ])
    func privateHosts(_ authority: String) throws {
        #expect(try #require(HostName(authority: authority)).isPrivate)
    }

    @Test(arguments: [
        "example.com", "example.com:8080", "localhost.example.com", "127.0.0.1.example.com", "local.example",
        "notlocal.com",
        "1.2.3", "127.1.1", "0x7f.0.0.1", "1.2.3.4.5", "internal.example:80", "xlocalhost.com", "home.arpa.example.com",
        "mylocal.xlocal", "256.1.1.1", "ai.", "gateway.:80",
    ])
    func publicHosts(_ authority: String) throws {
        #expect(try !#require(HostName(authority: authority)).isPrivate)
    }

    @Test(arguments: [
        "", ":80", "a b", "a/b", "a@b", "user@localhost", "localhost:80x", "localhost:80:90", "::1", "[::1", "::1]",
        "[]",
        "[127.0.0.1]", "[localhost]", "lo\u{0}cal", "ex\u{E4}mple", "localhost,evil.example", "[::1]evil.example",
        "localhost:0", "localhost:65536", ".", ".local", "\u{212A}.local",
        "[fe80::1%25lo]",
    ])
    func malformedHosts(_ authority: String) { #expect(HostName(authority: authority) == nil) }

    @Test func hostsAreComparedWithoutCasePortAndEndingDot() {
        #expect(HostName(authority: "Gateway.Example.COM.:8080") == HostName(authority: "gateway.example.com"))
    }

    @Test func originsAreComparedWithoutCaseAndDefaultPort() {
        #expect(WebOrigin("https://App.Example.com:443") == WebOrigin("https://app.example.com"))
        #expect(WebOrigin("http://a:80")?.text == "http://a")
        #expect(WebOrigin("http://a:443") != WebOrigin("http://a"))
        #expect(WebOrigin("http://a") != WebOrigin("https://a"))
    }

    @Test(arguments: [
        "null", "", "*", "http://a:0", "http://a:99999", "file://", "http://", "http:/a", "ftp://a", "http://a/",
        "http://a/b", "http://a?b",
        "http://u@a",
        "http://a b", "http://a, http://b", "chrome-extension://abc",
    ])
    func malformedOrigins(_ text: String) { #expect(WebOrigin(text) == nil) }

    @Test(arguments: [
        ("http://localhost:8080", "localhost:8080", true), ("http://LOCALHOST:8080", "localhost:8080", true),
        ("http://gateway", "gateway", true), ("http://gateway", "gateway:80", true),
        ("https://gateway", "gateway:443", true),
        ("https://gateway", "gateway", true), ("http://gateway:80", "gateway", true),
        ("http://[::1]:80", "[::1]", true),
        ("http://localhost:8081", "localhost:8080", false), ("http://localhost", "localhost:8080", false),
        ("http://localhost:8080", "localhost", false), ("http://127.0.0.1:8080", "localhost:8080", false),
        ("https://gateway", "gateway:80", false), ("http://gateway.example", "gateway", false),
    ])
    func ownOrigin(_ origin: String, _ host: String, _ isSame: Bool) throws {
        #expect(try #require(WebOrigin(origin)).isSame(asHost: host) == isSame)
    }
}
