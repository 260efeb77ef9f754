import Foundation
import TestSupport
import Testing

/// Compressed responses, read by the clients of Python.
@Suite(.exclusive) struct CompressionTests {
    private let scene: Scene

    init() throws { scene = try Scene() }

    private func advertise(_ count: Int) throws {
        let name = String(repeating: "name ", count: 20)
        for _ in 0..<count {
            #expect(try scene.gateway.post("/v1/advertise", #"{"object":\#(Scene.job(name))}"#).status == 202)
        }
        try waitUntil("all objects are listed") {
            let list = try scene.gateway.request("GET", "/v1/objects?coreType=Task&limit=1")
            return list.json?["total"] as? Int == count
        }
    }

    private func get(
        _ path: String,
        _ codings: String?,
        method: String = "GET",
        tag: String? = nil
    ) throws -> RawConnection.Response {
        var headers: [(String, String)] = []
        if let codings { headers.append(("Accept-Encoding", codings)) }
        if let tag { headers.append(("If-None-Match", tag)) }
        return try scene.gateway.request(method, path, headers: headers)
    }

    @Test(arguments: ["/", "/client.js", "/client.d.ts", "/console/app.js", "/openapi.yaml"])
    func filesAreCompressedOnRequest(path: String) throws {
        let plain = try get(path, nil)
        let plainTag = try #require(plain.headers["etag"])
        let compressed = try get(path, "gzip, deflate, br")
        let tag = try #require(compressed.headers["etag"])
        #expect(tag != plainTag)
        #expect(compressed.headers["content-encoding"] == "gzip" && plain.headers["content-encoding"] == nil)
        #expect(compressed.body.count < plain.body.count / 2 && compressed.body.starts(with: [0x1F, 0x8B]))
        for response in [plain, compressed] {
            #expect(response.headers["vary"]?.contains("Accept-Encoding") == true)
            #expect(response.headers["content-length"] == "\(response.body.count)")
        }
        for (codings, expected) in [(nil, plain), ("gzip", compressed)] as [(String?, RawConnection.Response)] {
            let head = try get(path, codings, method: "HEAD")
            for name in ["content-length", "content-encoding", "etag", "vary", "content-type"] {
                #expect(head.headers[name] == expected.headers[name])
            }
            let same = try get(path, codings, tag: codings == nil ? plainTag : tag)
            #expect(same.status == 304 && same.headers["etag"] == expected.headers["etag"])
            #expect(same.headers["vary"] == expected.headers["vary"])
            #expect(try get(path, codings, tag: codings == nil ? tag : plainTag).status == 200)
        }
    }

    @Test(arguments: [
        ("gzip", true), ("GZIP;q=0.5", true), ("x-gzip", true), ("*", true), ("br, *;q=0.1", true), ("gzip;q=0", false),
        ("gzip;q=0, *", false), ("identity, gzip;q=0.5", false), ("identity;q=0.5, gzip", true), ("br, zstd", false),
        ("", false), ("gzip;q=0.000", false), ("*;q=0", false),
    ])
    func weightsAreRespected(codings: String, isCompressed: Bool) throws {
        #expect(try (get("/client.js", codings).headers["content-encoding"] == "gzip") == isCompressed)
    }

    @Test func longListsAreCompressedOnRequest() throws {
        try advertise(800)
        let path = "/v1/objects?coreType=Task&limit=1000"
        let plain = try get(path, nil)
        let compressed = try get(path, "gzip")
        #expect(compressed.headers["content-encoding"] == "gzip" && plain.headers["content-encoding"] == nil)
        #expect(compressed.body.count < plain.body.count / 4)
        #expect(plain.headers["vary"] == "Accept-Encoding" && compressed.headers["vary"] == "Accept-Encoding")
        #expect(try get(path, "gzip;q=0").body == plain.body)
        // Short ones gain nothing.
        let short = try get("/v1/objects?coreType=Task&limit=1", "gzip")
        #expect(short.headers["content-encoding"] == nil && short.headers["vary"] == "Accept-Encoding")
        #expect(try get("/v1/objects?coreType=Task&limit=50", "gzip").headers["content-encoding"] == "gzip")
        #expect(try get("/v1/agents", "gzip").status == 200)
        try clientsReadTheSame(path)
        try clientsReadTheSame("/openapi.yaml")
    }

    /// Compares what clients read with and without compression.
    private func clientsReadTheSame(_ path: String) throws {
        let script = """
            import gzip, sys, urllib.request
            import httpx, requests

            url = sys.argv[1]
            plain = urllib.request.urlopen(url).read()
            response = urllib.request.urlopen(urllib.request.Request(url, headers={"Accept-Encoding": "gzip"}))
            assert response.headers["Content-Encoding"] == "gzip"
            assert gzip.decompress(response.read()) == plain
            for response in (requests.get(url), httpx.get(url)):
                assert response.headers["Content-Encoding"] == "gzip" and response.content == plain
            print("same")
            """
        let url = "http://127.0.0.1:\(scene.gateway.port)\(path)"
        let clients = try ChildProcess(TestProgram.pythonWithHTTPClients.path(), ["-c", script, url])
        #expect(try clients.waitForEnd() == 0 && clients.output == "same\n", "\(path) \(clients.output)")
    }

    @Test(arguments: ["text/event-stream", "application/x-ndjson"])
    func eventStreamsAreNeverCompressed(mediaType: String) throws {
        let stream = try RawConnection(port: scene.gateway.port)
        try stream.send(
            "GET /v1/sse/advertise?coreType=Task HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n"
                + "Accept: \(mediaType)\r\n\r\n"
        )
        let head = try stream.readHead()
        #expect(head.status == 200 && head.headers["content-encoding"] == nil)
    }
}
