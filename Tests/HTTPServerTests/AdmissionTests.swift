import HTTPServer
import ProblemDetails
import TestSupport
import Testing

@Suite(.exclusive) struct AdmissionTests {
    /// The caller of a request, as determined by an admission.
    private final class Caller: Sendable {
        let name: String

        init(_ name: String) { self.name = name }
    }

    @Test func handlerGetsTheContextOfItsRequest() throws {
        let server = try TestServer { router in
            router.on(.get, "/") { request in
                .response(HTTPResponse(status: 200, body: (request.context as? Caller)?.name ?? "none"))
            }
            router.admission = { head in .admit(headers: [], context: head.header("Name").map(Caller.init)) }
        }
        let connection = try server.connect()
        for (field, name) in [("Name: first\r\n", "first"), ("", "none"), ("Name: second\r\n", "second")] {
            try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\(field)\r\n")
            #expect(try connection.readResponse().text == name)
        }
    }

    @Test func contextIsAvailableAfterTheBody() throws {
        let server = try TestServer { router in
            router.on(.post, "/") { request in
                .response(HTTPResponse(status: 200, body: (request.context as? Caller)?.name ?? "none"))
            }
            router.admission = { _ in .admit(headers: [], context: Caller("first")) }
        }
        let connection = try server.connect()
        try connection.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na")
        try connection.send("b")
        #expect(try connection.readResponse().text == "first")
    }

    @Test func contextIsReleasedWithItsRequest() throws {
        let contexts = Box<[Weak]>([])
        let server = try TestServer { router in
            router.on(.get, "/") { _ in .response(HTTPResponse(status: 200)) }
            router.admission = { _ in
                let caller = Caller("first")
                let reference = Weak(caller)
                contexts.update { $0.append(reference) }
                return .admit(headers: [], context: caller)
            }
        }
        #expect(try server.get("/").status == 200)
        #expect(eventually { contexts.value.map(\.isGone) == [true] })
    }

    @Test func contextIsMissingWithoutAdmission() throws {
        let server = try TestServer { router in
            router.on(.get, "/") { .response(HTTPResponse(status: 200, body: $0.context == nil ? "none" : "some")) }
        }
        #expect(try server.get("/").text == "none")
    }

    @Test func problemHasItsHeaderFields() throws {
        let problem = Problem(
            type: "urn:x",
            title: "x",
            status: 429,
            headers: [("Retry-After", "7"), ("WWW-Authenticate", "Bearer")]
        )
        let server = try TestServer { router in router.admission = { _ in .answer(problem.response()) } }
        let response = try server.get("/")
        #expect(response.status == 429)
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(response.headers["retry-after"] == "7")
        #expect(response.headers["www-authenticate"] == "Bearer")
    }

    /// A budget of 64 KiB.
    private final class Budget: HTTPServer.ByteBudget {
        let taken = Box(0)
        let steps = Box<[Int]>([])

        func take(_ bytes: Int) -> Bool {
            steps.update { $0.append(bytes) }
            guard taken.value + bytes <= 64 * 1024 else { return false }
            taken.update { $0 += bytes }
            return true
        }

        func give(_ bytes: Int) { taken.update { $0 -= bytes } }
    }

    @Test(arguments: [true, false]) func bodiesTakeTheirMemoryFromABudget(chunked: Bool) throws {
        let budget = Budget()
        let seen = Box(0)
        let server = try TestServer { router in
            router.admission = { _ in .admit(headers: [], budget: budget) }
            router.on(.post, "/") { request in
                let count = request.body.count
                seen.update { $0 = budget.taken.value }
                return .response(HTTPResponse(status: 200, body: "\(count)"))
            }
        }
        #expect(try server.request(post("/", "small")).text == "5")
        #expect(budget.steps.value.isEmpty)
        let connection = try server.connect()
        let head = "POST / HTTP/1.1\r\nHost: h\r\n"
        func body(_ count: Int) -> String { String(repeating: "x", count: count) }
        if chunked {
            try connection.send(head + "Transfer-Encoding: chunked\r\n\r\n5000\r\n\(body(0x5000))\r\n")
            #expect(eventually { budget.taken.value >= 0x5000 })
            try connection.send("1000\r\n\(body(0x1000))\r\n0\r\n\r\n")
        } else {
            try connection.send(head + "Content-Length: 24576\r\n\r\n\(body(0x5000))")
            #expect(eventually { budget.taken.value == 32 * 1024 })
            try connection.send(body(0x1000))
        }
        #expect(try connection.readResponse().text == "24576")
        #expect(seen.value >= 24576)
        #expect(eventually { budget.taken.value == 0 })
        #expect(budget.steps.value.allSatisfy { $0 > 0 && $0 % (16 * 1024) == 0 })
        do {
            let half = try server.connect()
            try half.send(head + "Content-Length: 40000\r\n\r\n\(body(0x5000))")
            #expect(eventually { budget.taken.value > 0 })
            let refused = try server.connect()
            try refused.send(head + "Content-Length: 60000\r\n\r\n\(body(0x8000))")
            let response = try refused.readResponse()
            #expect(response.status == 503)
            #expect(response.headers["retry-after"] == "1")
            #expect(response.json?["type"] as? String == "urn:problem:too-much-memory")
            #expect(try refused.isClosedByPeer())
        }
        #expect(eventually { budget.taken.value == 0 })
    }
}

private final class Weak: Sendable {
    private weak let object: (any Sendable & AnyObject)?

    init(_ object: any Sendable & AnyObject) { self.object = object }

    var isGone: Bool { object == nil }
}
