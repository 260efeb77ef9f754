import Foundation
import TestSupport
import Testing

/// Requests of web pages from other origins and with foreign host names, on every transport.
@Suite(.exclusive) struct BrowserAccessTests {
    private static let foreign = "https://evil.example"
    private static let allowed = "https://app.example.com"
    private static let wsPath = "/v1/ws/deadvertise"
    private static let corsFields = ["access-control-allow-origin", "access-control-expose-headers"]

    private static func gateway() throws -> GatewayProcess {
        try GatewayProcess([
            "--embedded-broker-listen", "127.0.0.1:0", "--allowed-origins", "\(allowed), http://localhost:3000",
            "--allowed-hosts", "gateway.example.com,other.example.com",
        ])
    }

    /// Sends a request on every transport.
    ///
    /// - Returns: status and problem of each answer, by transport.
    private func answers(_ gateway: GatewayProcess, _ headers: [(String, String)]) throws -> [String: String] {
        var answers: [String: String] = [:]
        func note(_ name: String, _ status: Int, _ type: String?) {
            answers[name] = [String(status), type?.split(separator: ":").last.map(String.init)].compactMap(\.self)
                .joined(separator: " ")
        }
        let post = try RawConnection(port: gateway.port).request(
            "POST",
            "/v1/deadvertise",
            headers: headers + [("Content-Type", "application/json")],
            body: #"{"objectIds":["x"]}"#
        )
        note("POST", post.status, post.problem)
        let get = try RawConnection(port: gateway.port).request("GET", "/v1/status", headers: headers)
        note("GET", get.status, get.problem)
        let nothing = try RawConnection(port: gateway.port).request("GET", "/v1/nothing", headers: headers)
        note("404", nothing.status, nothing.problem)

        let stream = try RawConnection(port: gateway.port)
        try stream.send("GET /v1/sse/deadvertise HTTP/1.1\r\n\(lines(headers))\r\n")
        let head = try stream.readHead()
        note("SSE", head.status, head.status == 200 ? nil : "problem")
        let socket = try WebSocketClient(port: gateway.port).shakeHands(path: Self.wsPath, headers: headers)
        let problem = try? JSONSerialization.jsonObject(with: Data(socket.body)) as? [String: Any]
        note("WebSocket", socket.status, problem?["type"] as? String)
        return answers
    }

    private func lines(_ headers: [(String, String)]) -> String {
        let all = headers.contains { $0.0 == "Host" } ? headers : [("Host", "localhost")] + headers
        return all.map { "\($0.0): \($0.1)\r\n" }.joined()
    }

    private static let passed = [
        "POST": "202", "GET": "200", "404": "404 not-found", "SSE": "200", "WebSocket": "101",
    ]

    private static func refused(_ status: Int, _ problem: String) -> [String: String] {
        var refused = passed.mapValues { _ in "\(status) \(problem)" }
        refused["SSE"] = "\(status) problem"
        return refused
    }

    @Test func originsAreCheckedOnEveryTransport() throws {
        let gateway = try Self.gateway()
        let own = "localhost:\(gateway.port)"
        for (origin, host) in [
            ("http://\(own)", own), ("http://127.0.0.1:\(gateway.port)", "127.0.0.1:\(gateway.port)"),
            ("https://gateway.example.com", "gateway.example.com"), (Self.allowed, own),
            ("HTTPS://APP.example.com:443", own),
            ("http://localhost:3000", own), (Self.allowed, "gateway.example.com"),
        ] {
            #expect(try answers(gateway, [("Host", host), ("Origin", origin)]) == Self.passed, "\(origin) \(host)")
        }
        let refused = Self.refused(403, "origin-not-allowed")
        for origin in [
            Self.foreign, "null", "http://localhost", "http://localhost:3001", "http://127.0.0.1:\(gateway.port)",
            "http://app.example.com", "https://app.example.com.evil.example", "https://app.example.com:8443", "*",
            "\(Self.allowed), \(Self.foreign)", "https://gateway.example.com",
        ] {
            #expect(try answers(gateway, [("Host", own), ("Origin", origin)]) == refused, "\(origin)")
        }
        #expect(try gateway.request("GET", "/v1/status").status == 200, "a client that is not a page sends no origin")
        // Few pages show why they are refused, so the log names the origin.
        let line = "a page of another origin was refused; allowed-origins lists the origins that are allowed origin="
        try waitUntil("the log names the origin") { gateway.log.contains(line + Self.foreign) }
    }

    @Test func hostsAreCheckedOnEveryTransport() throws {
        let gateway = try Self.gateway()
        for host in [
            "127.0.0.1", "[::1]:80", "gateway", "printer.local", "gateway.example.com:8443", "OTHER.example.com.",
        ] {
            #expect(try answers(gateway, [("Host", host)]) == Self.passed, "\(host)")
        }
        let refused = Self.refused(421, "host-not-allowed")
        for host in [
            "evil.example", "evil.example:\(gateway.port)", "sub.gateway.example.com", "localhost.evil.example",
        ] {
            #expect(try answers(gateway, [("Host", host)]) == refused, "\(host)")
            // A page with a rebound host name has the same origin as the gateway.
            #expect(try answers(gateway, [("Host", host), ("Origin", "http://\(host)")]) == refused, "\(host)")
        }
        for path in ["/healthz", "/readyz"] {
            #expect(try gateway.request("GET", path, headers: [("Host", "evil.example")]).status == 200, "\(path)")
        }
        // The authority of an absolute target overrides the Host field.
        let absolute = try RawConnection(port: gateway.port)
        try absolute.send("GET http://evil.example/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try absolute.readResponse().problem == "host-not-allowed")
        let old = try RawConnection(port: gateway.port)
        try old.send("GET /v1/status HTTP/1.0\r\n\r\n")
        #expect(try old.readResponse().status == 200)
    }

    @Test func refusalsNameTheSetting() throws {
        let gateway = try Self.gateway()
        let origin = try gateway.request("GET", "/v1/status", headers: [("Origin", Self.foreign)])
        let detail = try #require(origin.json?["detail"] as? String)
        #expect(detail.contains(Self.foreign) && detail.contains("allowed-origins"))
        // The page can read the refusal, without credentials and further fields.
        let fields = origin.headers.filter { $0.key.hasPrefix("access-control") || $0.key == "vary" }
        #expect(fields == ["access-control-allow-origin": Self.foreign, "vary": "Origin"])
        let origins = [("Origin", "HTTPS://EVIL.example:443")]
        let post = try gateway.request("POST", "/v1/nothing", headers: origins, body: "{")
        #expect(post.status == 403 && post.headers["access-control-allow-origin"] == Self.foreign)
        let stream = try gateway.request("GET", "/v1/sse/deadvertise", headers: [("Origin", Self.foreign)])
        #expect(stream.status == 403 && stream.headers["access-control-allow-origin"] == Self.foreign)
        let sandboxed = try gateway.request("GET", "/v1/status", headers: [("Origin", "null")])
        #expect((sandboxed.json?["detail"] as? String)?.contains("without an http or https origin") ?? false)
        #expect(sandboxed.headers.keys.allSatisfy { !$0.hasPrefix("access-control") })
        let host = try gateway.request("GET", "/v1/status", headers: [("Host", "evil.example")])
        let reason = try #require(host.json?["detail"] as? String)
        #expect(reason.contains("evil.example") && reason.contains("allowed-hosts"))
    }

    /// The value has no port and is in lower case, as the setting needs it.
    @Test func refusedHostsAreNamedWithTheSettingAndItsValue() throws {
        let gateway = try Self.gateway()
        let hint = """
            add pi.fritz.box to the setting allowed-hosts (--allowed-hosts pi.fritz.box, \
            COATY_GATEWAY_ALLOWED_HOSTS=pi.fritz.box, or allowed-hosts: pi.fritz.box in the configuration file)
            """
        let host = ("Host", "Pi.fritz.box:\(gateway.port)")
        let answer = try gateway.request("GET", "/v1/status", headers: [host])
        let detail = try #require(answer.json?["detail"] as? String)
        #expect(answer.status == 421 && detail.contains(hint), "\(detail)")
        #expect(!detail.contains("gateway.example.com"), "the allowed names are not for everyone")
        let lan = [("Host", "pi.lan")]
        let socket = try WebSocketClient(port: gateway.port).shakeHands(path: Self.wsPath, headers: lan)
        #expect(socket.status == 421)
        let line = "a request under a public host name was refused; allowed-hosts lists the names that are allowed "
        try waitUntil("the log has the setting and the value") {
            gateway.log.split(separator: "\n").contains { $0.contains(line) && $0.contains(hint) }
                && gateway.log.split(separator: "\n").contains {
                    $0.contains(line) && $0.contains("--allowed-hosts pi.lan,")
                }
        }
        // With the value, the name is allowed.
        let allowing = try GatewayProcess([
            "--embedded-broker-listen", "127.0.0.1:0", "--allowed-hosts", "pi.fritz.box",
        ])
        #expect(try allowing.request("GET", "/v1/status", headers: [host]).status == 200)
        // Where access needs a token, every name is allowed.
        let token = "coaty_m8yVbT0Wc1x9Qe5rJ2kLzUa7dPfGhN3sXoYtRiBvCwE"
        let closed = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0"],
            environment: ["COATY_GATEWAY_TOKEN": token]
        )
        let fields = [host, ("Authorization", "Bearer \(token)")]
        #expect(try closed.request("GET", "/v1/status", headers: fields).status == 200)
        #expect(try closed.request("GET", "/v1/status", headers: [host]).status == 401)
    }

    @Test func answersToAllowedOriginsNameThem() throws {
        let gateway = try Self.gateway()
        let connection = try RawConnection(port: gateway.port)
        for (method, path) in [
            ("GET", "/v1/status"), ("GET", "/v1/nothing"), ("POST", "/v1/advertise"), ("PUT", "/v1/advertise"),
            ("GET", "/"),
            ("GET", "/openapi.yaml"),
        ] {
            let answer = try connection.request(method, path, headers: [("Origin", Self.allowed)])
            #expect(answer.headers["access-control-allow-origin"] == Self.allowed, "\(path)")
            #expect(answer.headers["access-control-allow-credentials"] == nil)
            let isFile = path == "/" || path == "/openapi.yaml"
            #expect(answer.headers["vary"] == (isFile ? "Origin, Accept-Encoding" : "Origin"))
            #expect(answer.headers["access-control-expose-headers"]?.contains("ETag") ?? false)
            for headers in [
                [], [("Origin", "http://localhost:\(gateway.port)"), ("Host", "localhost:\(gateway.port)")],
            ] {
                let own = try connection.request(method, path, headers: headers)
                #expect(Self.corsFields.allSatisfy { own.headers[$0] == nil } && own.status == answer.status, "\(path)")
                // The response varies by origin, and caches must know it.
                #expect(own.headers["vary"] == (isFile ? "Origin, Accept-Encoding" : nil))
            }
        }
        let stream = try RawConnection(port: gateway.port)
        try stream.send("GET /v1/sse/deadvertise HTTP/1.1\r\nHost: localhost\r\nOrigin: \(Self.allowed)\r\n\r\n")
        #expect(try stream.readHead().headers["access-control-allow-origin"] == Self.allowed)
        // Pages can also read refusals of the HTTP server itself.
        let tooLarge = try RawConnection(port: gateway.port)
        try tooLarge.send(
            "POST /v1/advertise HTTP/1.1\r\nHost: localhost\r\nOrigin: \(Self.allowed)\r\nContent-Length: 9999999\r\n\r\n"
        )
        let refusal = try tooLarge.readResponse()
        #expect(refusal.status == 413 && refusal.headers["access-control-allow-origin"] == Self.allowed)
        // Pages of every origin may import the module.
        let module = try connection.request("GET", "/client.js", headers: [("Origin", Self.foreign)])
        #expect(module.status == 200 && module.headers["access-control-allow-origin"] == "*")
    }

    @Test func preflightsAreAnsweredForEveryOrigin() throws {
        let gateway = try Self.gateway()
        func preflight(_ path: String, _ origin: String, _ method: String) throws -> RawConnection.Response {
            try gateway.request(
                "OPTIONS",
                path,
                headers: [
                    ("Host", "gateway.unknown.example"), ("Origin", origin), ("Access-Control-Request-Method", method),
                    ("Access-Control-Request-Headers", "content-type"),
                ]
            )
        }
        let id = UUID().uuidString.lowercased()
        for (path, methods) in [
            ("/v1/advertise", "POST, OPTIONS"), ("/v1/io/nodes/\(id)", "GET, HEAD, DELETE, OPTIONS"),
            ("/v1/routing/contexts/\(id)/rules", "GET, HEAD, PUT, OPTIONS"),
        ] {
            let answer = try preflight(path, Self.allowed, "POST")
            #expect(answer.status == 204 && answer.headers["access-control-allow-origin"] == Self.allowed)
            #expect(answer.headers["access-control-allow-methods"] == methods)
            #expect(answer.headers["access-control-allow-headers"]?.contains("Content-Type") ?? false)
            #expect(
                answer.headers["access-control-max-age"] == "600"
                    && answer.headers["vary"]?.hasPrefix("Origin") ?? false
            )
            #expect(answer.headers["access-control-allow-credentials"] == nil)
            // Only then does the browser send the request, whose refusal the page can read.
            let other = try preflight(path, Self.foreign, "POST")
            #expect(other.status == 204 && other.headers["access-control-allow-origin"] == Self.foreign)
            for name in ["methods", "headers", "credentials"].map({ "access-control-allow-\($0)" }) + ["vary"] {
                #expect(other.headers[name] == answer.headers[name], "\(name)")
            }
            for origin in ["null", "*", "\(Self.allowed), \(Self.foreign)"] {
                let none = try preflight(path, origin, "POST")
                #expect(none.status == 403 && none.problem == "origin-not-allowed", "\(origin)")
                #expect(none.headers.keys.allSatisfy { !$0.hasPrefix("access-control") })
            }
        }
        let foreign = try gateway.request("OPTIONS", "/v1/advertise", headers: [("Origin", Self.foreign)])
        #expect(foreign.status == 403 && foreign.problem == "origin-not-allowed", "it is not a preflight")
        // Without the fields of a preflight, it is an ordinary OPTIONS request.
        let plain = try gateway.request("OPTIONS", "/v1/advertise", headers: [("Origin", Self.allowed)])
        #expect(plain.status == 204 && plain.headers["allow"] == "POST, OPTIONS")
    }

    /// Requests for images and frames have no `Origin`.
    @Test func embeddingIsRefused() throws {
        let gateway = try Self.gateway()
        for (site, destination, status) in [
            ("cross-site", "iframe", 403), ("cross-site", "image", 403), ("same-site", "empty", 403),
            ("cross-site", "document", 200),
            ("same-origin", "empty", 200), ("none", "document", 200),
        ] {
            let headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Dest", destination)]
            for path in ["/v1/status", "/"] {
                #expect(try gateway.request("GET", path, headers: headers).status == status, "\(site) \(destination)")
            }
            #expect(try gateway.request("GET", "/client.js", headers: headers).status == 200)
        }
    }

    @Test func requestsAreCheckedOneByOne() throws {
        let gateway = try Self.gateway()
        let connection = try RawConnection(port: gateway.port)
        for (method, target) in [
            ("HEAD", "/v1/status"), ("OPTIONS", "*"), ("GET", "/%68ealthz/"), ("GET", "/v1/nothing"),
        ] {
            #expect(try connection.request("GET", "/v1/status").status == 200)
            let refused = try connection.request(method, target, headers: [("Host", "evil.example")])
            #expect(refused.status == 421, "\(method) \(target)")
        }
        let preflight = [("Origin", Self.allowed), ("Access-Control-Request-Method", "PUT")]
        let unknown = try connection.request("OPTIONS", "/v1/nothing", headers: preflight)
        #expect(unknown.status == 204 && unknown.headers["access-control-allow-methods"]?.contains("PUT") ?? false)
    }

    /// Requests that browsers send to other origins without a preflight: GET, HEAD and POST with these media types or
    /// none. They must not change anything, even if a browser does not send `Origin`.
    @Test func crossSiteSimpleRequestsChangeNothing() throws {
        let scene = try Scene()
        let id = UUID().uuidString.lowercased()
        let json = #"{"objectIds":["x"]}"#
        for path in [
            "/v1/advertise", "/v1/deadvertise", "/v1/channel/c", "/v1/raw/t?retain=true", "/v1/batch", "/v1/discover",
            "/v1/query",
            "/v1/update", "/v1/call/o", "/v1/io/nodes", "/v1/io/nodes/\(id)/lease",
            "/v1/routing/contexts/\(id)/evaluate",
        ] {
            for type in [
                nil, "text/plain", "text/plain;charset=UTF-8", "TEXT/PLAIN; a=application/json",
                "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
            ] {
                let headers = type.map { [("Content-Type", $0)] } ?? []
                for body in [json, nil] {
                    let answer = try scene.gateway.request("POST", path, headers: headers, body: body)
                    #expect(
                        answer.status == 415 && answer.problem == "unsupported-media-type",
                        "\(path) \(type ?? "-")"
                    )
                }
            }
        }
    }

    @Test func unusableSettingsAreNamed() throws {
        for (flag, value) in [
            ("allowed-origins", "*"), ("allowed-origins", "https://a.example/path"), ("allowed-origins", "a.example"),
            ("allowed-origins", "http://a,,http://b"), ("allowed-origins", "null"),
            ("allowed-hosts", "a.example:80"), ("allowed-hosts", "*.example"), ("allowed-hosts", "http://a"),
        ] {
            let gateway = try GatewayProcess(unready: ["--\(flag)", value])
            #expect(try gateway.waitForEnd() != 0)
            #expect(gateway.log.contains("--\(flag): each entry must be"), "\(value): \(gateway.log)")
            #expect(gateway.log.contains("this one is not: \(value.contains(",,") ? "" : value)"), "\(gateway.log)")
        }
    }
}
