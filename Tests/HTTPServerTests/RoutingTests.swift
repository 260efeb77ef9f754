import HTTPServer
import Testing
import TestSupport

@Suite(.exclusive) struct RoutingTests {
    let server: TestServer

    init() throws {
        server = try TestServer { router in
            router.on(.get, "/") { _ in .response(HTTPResponse(status: 200, body: "root")) }
            router.on(.get, "/v1/info") { _ in
                .response(HTTPResponse(status: 200, headers: [("X-A", "b")], body: "info"))
            }
            router.on(.post, "/v1/info") { _ in .response(HTTPResponse(status: 202)) }
            router.on(.get, "/v1/{kind}/{id}") { request in
                let kind = request.parameters["kind"] ?? "none"
                let id = request.parameters["id"] ?? "none"
                return .response(HTTPResponse(status: 200, body: "\(kind)|\(id)|\(request.parameters["x"] ?? "-")"))
            }
            router.on(.get, "/v1/task/special/deep") { _ in .response(HTTPResponse(status: 200, body: "deep")) }
            router.on(.get, "/query") { request in
                let items = request.queryItems.map { "\($0.name)=\($0.value)" }.joined(separator: "|")
                return .response(HTTPResponse(status: 200, body: items))
            }
            router.on(.get, "/header") { request in
                let type = request.hasContentType("application/json")
                return .response(HTTPResponse(status: 200, body: "\(request.header("x-one") ?? "-") \(type)"))
            }
        }
    }

    @Test(arguments: [
        ("/", "root"), ("/v1/info", "info"), ("/v1/%69nfo", "info"), ("/v1/task/7", "task|7|-"),
        ("/v1/task/special", "task|special|-"), ("/v1/task/special/deep", "deep"),
        ("/v1/a%2Fb/%C3%A9%20x", "a/b|é x|-"), ("http://h:80/v1/info", "info"), ("/v1/a/..", "a|..|-"),
        ("http://h", "root"), ("HTTPS://h:80", "root"), ("http://h?a=b", "root"), ("http://h/", "root"),
    ])
    func findsRoute(target: String, body: String) throws {
        let response = try server.get(target)
        #expect(response.status == 200)
        #expect(response.text == body)
    }

    @Test(arguments: ["/nothing", "/v1", "/v1/", "/v1/info/", "//v1/info", "/v1//x", "/v1/a/b/c", "/V1/info"])
    func answers404(target: String) throws {
        let response = try server.get(target)
        #expect(response.status == 404)
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(response.json?["type"] as? String == "urn:problem:not-found")
        #expect(response.json?["title"] as? String == "Not found")
        #expect(response.json?["status"] as? Int == 404)
    }

    @Test func theRouterAnswersUnknownPaths() throws {
        let server = try TestServer { router in
            router.on(.get, "/known") { _ in .response(HTTPResponse(status: 200)) }
            router.notFound = { path in HTTPResponse(status: 404, body: "no \(path)") }
        }
        #expect(try server.get("/%C3%A9/b%2Fc?query").text == "no /%C3%A9/b%2Fc")
        #expect(try server.get("/known").status == 200)
        // A WebSocket handshake with an unknown path is not reported as misdirected.
        let handshake = try server.request("GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n")
        #expect(handshake.status == 404 && handshake.text == "no /ws")
    }

    @Test(arguments: [
        "/v1/a/%00", "/v1/a/%0a", "/v1/a/%zz", "/v1/a/%4", "/v1/a/%", "/v1/a/%FF", "/v1/a/%C3", "/v1/%00info", "*", "x",
        "/query?a=%", "/query?%00=1", "/query?a=%C3%28",
    ])
    func refusesMalformedTarget(target: String) throws {
        let response = try server.get(target)
        #expect(response.status == 400)
        #expect(response.json?["type"] as? String == "urn:problem:bad-request")
    }

    @Test(arguments: ["DELETE", "QUERY", "get"])
    func answers405(method: String) throws {
        let response = try server.request("\(method) /v1/info HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(response.status == 405)
        #expect(response.headers["allow"] == "GET, HEAD, POST, OPTIONS")
        #expect(response.json?["type"] as? String == "urn:problem:method-not-allowed")
    }

    @Test func answersHEADWithoutBody() throws {
        let connection = try server.connect()
        try connection.send("HEAD /v1/info HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n")
        let head = try connection.readResponse(toHead: true)
        #expect(head.status == 200)
        #expect(head.headers["content-length"] == "4")
        #expect(head.headers["x-a"] == "b")
        #expect(try connection.readResponse().text == "root")
    }

    @Test func answersOPTIONS() throws {
        let response = try server.request("OPTIONS /v1/info HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(response.status == 204)
        #expect(response.headers["allow"] == "GET, HEAD, POST, OPTIONS")
    }

    @Test func answersOPTIONSOfTheServer() throws {
        let response = try server.request("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(response.status == 204)
        #expect(response.headers["allow"] == "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
    }

    @Test(arguments: [
        ("a=1&a=2&b", "a=1|a=2|b="), ("x=a%26b%3Dc+d%2B", "x=a&b=c d+"), ("%C3%A9=%E2%82%AC", "é=€"), ("", ""),
        ("a=&=b", "a=|=b"), ("a=b=c", "a=b=c"),
    ])
    func decodesQuery(query: String, items: String) throws {
        #expect(try server.get("/query?\(query)").text == items)
    }

    @Test(arguments: [
        ("X-One: v", "v false"), ("x-ONE:  v  \r\nContent-Type: application/json", "v true"),
        ("Content-Type: Application/JSON; charset=utf-8", "- true"), ("Content-Type: application/jsonx", "- false"),
        ("Content-Type: text/plain", "- false"),
    ])
    func readsHeaders(fields: String, body: String) throws {
        #expect(try server.request("GET /header HTTP/1.1\r\nHost: h\r\n\(fields)\r\n\r\n").text == body)
    }

    @Test func listsRoutes() {
        var router = Router()
        let handler: HTTPHandler = { _ in .response(HTTPResponse(status: 200)) }
        router.on(.post, "/v1/channel/{channelId}", handler)
        router.on(.get, "/healthz", handler)
        router.on(.get, "/healthz", handler)
        #expect(
            router.routes.map { "\($0.method.rawValue) \($0.pathTemplate)" } == [
                "POST /v1/channel/{channelId}", "GET /healthz",
            ]
        )
    }
}
