import Foundation
import TestSupport
import Testing

@Suite(.exclusive) struct ConsoleTests {
    static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
        form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'
        """

    /// Header fields whose values differ between responses.
    private static let own: Set = ["content-type", "content-length", "etag", "date", "connection", "keep-alive"]

    /// Each file is served at its path, with exactly the expected headers.
    @Test func servesEachFile() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Sources/CoatyGateway/Console")
        let types = [
            "css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml", "ts": "text/plain",
        ]
        let connection = try RawConnection(port: gateway.port)
        let ofPackage: Set = ["README.md", "package.json"]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where !ofPackage.contains(name) {
            let isPublic = name.hasPrefix("client.")
            let path = name == "index.html" ? "/" : isPublic ? "/\(name)" : "/console/\(name)"
            var expected = [
                "content-security-policy": Self.policy, "x-content-type-options": "nosniff",
                "referrer-policy": "no-referrer", "cross-origin-opener-policy": "same-origin",
                "cross-origin-resource-policy": isPublic ? "cross-origin" : "same-origin", "cache-control": "no-cache",
            ]
            if isPublic { expected["access-control-allow-origin"] = "*" }
            expected["vary"] = isPublic ? "Accept-Encoding" : "Origin, Accept-Encoding"
            let file = try [UInt8](Data(contentsOf: folder.appending(path: name)))
            let type = try #require(types[URL(filePath: name).pathExtension])

            let found = try connection.request("GET", path)
            #expect(found.status == 200 && found.body == file, "\(path)")
            #expect(found.headers["content-type"] == "\(type); charset=utf-8", "\(path)")
            #expect(found.headers.filter { !Self.own.contains($0.key) } == expected, "\(path)")
            let tag = try #require(found.headers["etag"])
            #expect(tag.wholeMatch(of: /"[0-9a-f]{16}"/) != nil)

            let head = try connection.request("HEAD", path)
            #expect(head.status == 200 && head.headers["content-length"] == "\(file.count)", "\(path)")
            #expect(head.headers.filter { !Self.own.contains($0.key) } == expected, "\(path)")

            for condition in [tag, "W/\(tag)", "*", #""x", \#(tag)"#] {
                let same = try connection.request("GET", path, headers: [("If-None-Match", condition)])
                #expect(same.status == 304 && same.headers["etag"] == tag, "\(path) \(condition)")
                #expect(same.headers.filter { !Self.own.contains($0.key) } == expected, "\(path)")
            }
            for condition in [#""x""#, "no tag", ""] {
                let other = try connection.request("GET", path, headers: [("If-None-Match", condition)])
                #expect(other.status == 200 && other.body == file, "\(path) \(condition)")
            }
        }
    }

    @Test func servesNothingElse() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        for path in ["/console/none.js", "/console/index.html", "/console/client.js", "/console/..%2Fclient.js"] {
            let response = try gateway.request("GET", path)
            #expect(response.status == 404 && response.problem == "not-found", "\(path)")
        }
        for path in ["/console", "/console/", "/index.html", "/app.js", "/console/dom.js/x"] {
            #expect(try gateway.request("GET", path).status == 404, "\(path)")
        }
        let post = try gateway.request("POST", "/", body: "x")
        #expect(post.status == 405 && post.headers["allow"] == "GET, HEAD, OPTIONS")
        #expect(try gateway.request("GET", "/v1/info").headers["content-security-policy"] == nil)
    }
}
