import Glibc
import HTTPServer
import Synchronization
import TestSupport
import Testing

/// Request ids and request reports.
@Suite(.exclusive) struct RequestIdentityTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test(arguments: [
        ("00-\(trace)-00f067aa0ba902b7-01", true), ("00-\(trace)-00f067aa0ba902b7-01-x", false),
        ("cc-\(trace)-00f067aa0ba902b7-01", true), ("cc-\(trace)-00f067aa0ba902b7-01-x", true),
        ("cc-\(trace)-00f067aa0ba902b7-01x", false), ("ff-\(trace)-00f067aa0ba902b7-01", false),
        ("00-\(String(repeating: "0", count: 32))-00f067aa0ba902b7-01", false),
        ("00-\(trace)-0000000000000000-01", false), ("00-\(trace.uppercased())-00f067aa0ba902b7-01", false),
        ("00-\(trace)-00f067aa0ba902b7", false), ("00-\(trace)_00f067aa0ba902b7-01", false), ("", false),
        ("00-\(trace)é00f067aa0ba902b7-01", false),
    ])
    func traceOfTraceparent(_ text: String, _ isValid: Bool) {
        let identity = RequestIdentity(requestId: nil, traceparent: text, isRequired: false)
        #expect(identity?.trace == (isValid ? Self.trace : nil), "\(text)")
        #expect(identity?.id == nil)
    }

    @Test(arguments: [
        ("a", true), (String(repeating: "~", count: 128), true), (String(repeating: "a", count: 129), false),
        ("a b", false), ("", false), ("ä", false), ("a\u{1B}", false),
    ])
    func idOfClient(_ text: String, _ isValid: Bool) throws {
        let identity = try #require(RequestIdentity(requestId: text, traceparent: nil, isRequired: false))
        let id = try #require(identity.id)
        #expect((id == text) == isValid)
        if !isValid { #expect(id.wholeMatch(of: /[0-9a-f]{16}/) != nil, "\(id)") }
    }

    private struct Report: Equatable {
        let text: String
        let id: String?
        let bytes: Int
        let isSlow: Bool
        let isStream: Bool
    }

    /// Starts a server that records its reports.
    ///
    /// - Parameter slowTime: in milliseconds.
    private func server(
        _ selection: RequestReports.Selection,
        slowTime: Int = 60_000
    ) throws -> (TestServer, Box<[Report]>, Box<[RequestIdentity?]>) {
        let (ended, seen) = (Box<[Report]>([]), Box<[RequestIdentity?]>([]))
        var configuration = HTTPServer.Configuration()
        configuration.maximumBodySize = 10
        let reports = RequestReports { request in
            let report = Report(
                text: "\(request.method?.rawValue ?? "?") \(request.pathTemplate ?? "-") \(request.status)",
                id: request.identity?.id,
                bytes: request.responseBytes,
                isSlow: request.isSlow,
                isStream: request.isStream
            )
            ended.update { $0.append(report) }
        }
        reports.select(selection, slowTime: slowTime)
        configuration.reports = reports
        let server = try TestServer(configuration) { router in
            router.on(.post, "/things/{id}") { _ in
                seen.update { $0.append(RequestIdentity.current) }
                return .response(HTTPResponse(status: 200, body: "done"))
            }
            router.on(.get, "/later") { _ in
                .later { pending in
                    Task {
                        seen.update { $0.append(RequestIdentity.current) }
                        pending.complete(HTTPResponse(status: 202))
                    }
                }
            }
            router.on(.get, "/stream") { _ in
                .stream(status: 200, headers: []) { stream in
                    stream.write(Array("12345678".utf8))
                    stream.finish()
                }
            }
        }
        return (server, ended, seen)
    }

    private func post(_ headers: String = "", body: String = "x") -> String {
        "POST /things/7 HTTP/1.1\r\nHost: h\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test func requestIdsAreEchoedOrGeneratedForErrors() throws {
        let (server, _, seen) = try server(.status(500))
        #expect(try server.request(post()).headers["x-request-id"] == nil)
        #expect(try server.request(post("X-Request-Id: abc \r\n")).headers["x-request-id"] == "abc")
        let made = try server.request(post("x-request-id: a b\r\n")).headers["x-request-id"]
        #expect(made?.wholeMatch(of: /[0-9a-f]{16}/) != nil)
        #expect(seen.value.map { $0?.id } == [nil, "abc", made])
        // Errors have a generated id.
        let missing = try server.get("/nothing").headers["x-request-id"]
        #expect(missing?.count == 16)
        #expect(try server.get("/nothing").headers["x-request-id"] != missing)
        #expect(try server.request(post(body: "more than ten")).headers["x-request-id"]?.count == 16)
        let chunked = "POST /things/7 HTTP/1.1\r\nHost: h\r\nX-Request-Id: c\r\nTransfer-Encoding: chunked\r\n\r\n"
        let tooLong = try server.request(chunked + "10\r\n0123456789abcdef\r\n0\r\n\r\n")
        #expect(tooLong.status == 413 && tooLong.headers["x-request-id"] == "c")
    }

    @Test func idsAreAvailableInHandlerTasks() throws {
        let (server, _, seen) = try server(.status(500))
        let text =
            "GET /later HTTP/1.1\r\nHost: h\r\nX-Request-Id: abc\r\ntraceparent: 00-\(Self.trace)-00f067aa0ba902b7-01\r\n\r\n"
        #expect(try server.request(text).headers["x-request-id"] == "abc")
        #expect(seen.value.first??.id == "abc" && seen.value.first??.trace == Self.trace)
    }

    @Test func reportsSelectedRequests() throws {
        let (server, ended, _) = try server(.status(404))
        #expect(try server.request(post()).status == 200)
        #expect(try server.request(post("Content-Type: x\r\n").replacing("POST", with: "PUT")).status == 405)
        let missing = try server.get("/nothing")
        #expect(eventually { ended.value.count == 2 })
        #expect(ended.value.map(\.text) == ["PUT /things/{id} 405", "GET - 404"])
        #expect(ended.value[1].id == missing.headers["x-request-id"])
        #expect(ended.value[1].bytes == missing.body.count)
    }

    @Test func reportsAllWithIds() throws {
        let (server, ended, _) = try server(.all)
        let id = try server.request(post()).headers["x-request-id"]
        #expect(id?.count == 16)
        #expect(try server.get("/stream").text == "12345678")
        #expect(eventually { ended.value.count == 2 })
        #expect(
            ended.value[0] == Report(text: "POST /things/{id} 200", id: id, bytes: 4, isSlow: false, isStream: false)
        )
        #expect(ended.value[1].isStream && ended.value[1].bytes == 8)
        // The response to HEAD has no body.
        #expect(try server.request("HEAD /nothing HTTP/1.1\r\nHost: h\r\n\r\n", toHead: true).status == 404)
        #expect(eventually { ended.value.count == 3 })
        #expect(ended.value.last?.bytes == 0)
    }

    @Test func reportsSlowRequestsAndNoOthers() throws {
        let (server, ended, _) = try server(.status(500), slowTime: 50)
        #expect(try server.request(post()).status == 200)
        let connection = try server.connect()
        try connection.send("POST /things/7 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na")
        usleep(100_000)
        try connection.send("b")
        let slow = try connection.readResponse()
        #expect(slow.status == 200)
        #expect(eventually { ended.value.count == 1 })
        #expect(ended.value.first?.isSlow == true)
        // The client gets the id of the line in the log.
        #expect(slow.headers["x-request-id"] != nil && slow.headers["x-request-id"] == ended.value.first?.id)
        let (silent, none, _) = try self.server(.none, slowTime: 0)
        #expect(try silent.request(post()).headers["x-request-id"] == nil)
        #expect(try silent.get("/nothing").status == 404)
        silent.http.stop()
        #expect(none.value.isEmpty)
    }
}
