import HTTPServer
import TestSupport
import Testing

@Suite struct AdmissionTests {
    /// Who a request comes from, as an admission finds out.
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

    @Test func contextIsThereWhenTheBodyHasCome() throws {
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

    @Test func contextLivesNoLongerThanItsRequest() throws {
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

    @Test func withoutAdmissionThereIsNoContext() throws {
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
}

private final class Weak: Sendable {
    private weak let object: (any Sendable & AnyObject)?

    init(_ object: any Sendable & AnyObject) { self.object = object }

    var isGone: Bool { object == nil }
}
