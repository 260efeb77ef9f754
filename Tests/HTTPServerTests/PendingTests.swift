import Dispatch
import HTTPServer
import TestSupport
import Testing

@Suite(.exclusive) struct PendingTests {
    let waiting = Box<[PendingResponse]>([])
    let cut = Box<[HTTPStream]>([])

    private func makeServer(_ configuration: HTTPServer.Configuration = .init()) throws -> TestServer {
        let (waiting, cut) = (waiting, cut)
        return try TestServer(configuration) { router in
            router.on(.get, "/later") { _ in .later { pending in waiting.update { $0.append(pending) } } }
            router.on(.get, "/soon") { _ in
                .later { pending in pending.complete(HTTPResponse(status: 200, body: "soon")) }
            }
            router.on(.get, "/parts") { _ in
                .later { pending in
                    pending.complete(status: 201, headers: [("Content-Type", "text/plain")]) { stream in
                        stream.write(Array("one,".utf8))
                        stream.write(Array("two".utf8))
                        stream.finish()
                    }
                }
            }
            router.on(.get, "/cut") { _ in
                .later { pending in
                    pending.complete(status: 200) { stream in
                        stream.write(Array("one,".utf8))
                        cut.update { $0.append(stream) }
                    }
                }
            }
            router.on(.get, "/") { _ in .response(HTTPResponse(status: 200, body: "ok")) }
        }
    }

    @Test func completesFromAnotherThread() throws {
        let server = try makeServer()
        let connection = try server.connect()
        for round in 1...50 {
            try connection.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(eventually { waiting.value.count == round })
            let pending = try #require(waiting.value.last)
            #expect(pending.isWaiting)
            #expect(pending.complete(HTTPResponse(status: 200, body: "round \(round)")))
            #expect(!pending.complete(HTTPResponse(status: 500)))
            #expect(!pending.isWaiting)
            #expect(try connection.readResponse().text == "round \(round)")
        }
        #expect(eventually { server.http.statistics.pending == 0 })
    }

    @Test func completesWithinTheClosure() throws {
        let server = try makeServer()
        let connection = try server.connect()
        for _ in 0..<50 {
            try connection.send("GET /soon HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try connection.readResponse().text == "soon")
        }
    }

    @Test func completesTogetherFromManyThreads() throws {
        let server = try makeServer()
        let connections = try (0..<20).map { _ in try server.connect() }
        for connection in connections { try connection.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n") }
        #expect(eventually { waiting.value.count == 20 })
        let all = waiting.value
        let wins = Box(0)
        DispatchQueue.concurrentPerform(iterations: 80) { index in
            if all[index % 20].complete(HTTPResponse(status: 200, body: "done")) { wins.update { $0 += 1 } }
        }
        #expect(wins.value == 20)
        for connection in connections { #expect(try connection.readResponse().text == "done") }
    }

    @Test func refusesMoreThanItsBound() throws {
        var configuration = HTTPServer.Configuration()
        configuration.maximumPending = 1
        let server = try makeServer(configuration)
        let first = try server.connect()
        try first.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(eventually { waiting.value.count == 1 })
        let response = try server.get("/later")
        #expect(response.status == 503)
        #expect(response.headers["retry-after"] == "1")
        #expect(response.json?["type"] as? String == "urn:problem:too-many-pending-requests")
        #expect(waiting.value.count == 1)
        waiting.value[0].complete(HTTPResponse(status: 200))
        #expect(try first.readResponse().status == 200)
    }

    @Test func stopAnswersSuspendedRequests() throws {
        let server = try makeServer()
        let connections = try (0..<20).map { _ in try server.connect() }
        for connection in connections { try connection.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n") }
        #expect(eventually { server.http.statistics.pending == 20 })
        server.http.stop()
        for connection in connections {
            let response = try connection.readResponse()
            #expect(response.status == 503)
            #expect(response.json?["type"] as? String == "urn:problem:shutting-down")
            #expect(try connection.isClosedByPeer())
        }
        for pending in waiting.value { #expect(!pending.complete(HTTPResponse(status: 200))) }
        #expect(server.http.statistics.pending == 0)
        #expect(server.http.statistics.connections == 0)
    }

    @Test func stopWhileRequestsAreSuspendedAndCompleted() throws {
        let server = try makeServer()
        let connections = try (0..<20).map { _ in try server.connect() }
        let completing = DispatchGroup()
        let waiting = waiting
        let isDone = Box(false)
        runBeside(completing) {
            while !isDone.value {
                for pending in waiting.value { pending.complete(HTTPResponse(status: 200)) }
                waiting.update { $0.removeAll { !$0.isWaiting } }
            }
        }
        for connection in connections {
            try connection.send(String(repeating: "GET /later HTTP/1.1\r\nHost: h\r\n\r\n", count: 50))
        }
        for connection in connections { #expect(try [200, 503].contains(connection.readResponse().status)) }
        server.http.stop()
        isDone.update { $0 = true }
        #expect(completing.wait(timeout: .now() + 10) == .success)
        #expect(server.http.statistics.pending == 0)
    }

    @Test func drainRefusesNewAndEndsOld() throws {
        let server = try makeServer()
        let old = try server.connect()
        try old.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
        let idle = try server.connect()
        try idle.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try idle.readResponse().status == 200)
        #expect(eventually { waiting.value.count == 1 })
        server.http.drain()
        try idle.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        let refused = try idle.readResponse()
        #expect(refused.status == 503)
        #expect(refused.headers["connection"]?.lowercased() == "close")
        #expect(refused.headers["retry-after"] == "1")
        #expect(try idle.isClosedByPeer())
        waiting.value[0].complete(HTTPResponse(status: 200, body: "old"))
        #expect(try old.readResponse().text == "old")
    }

    @Test func completesWithAStream() throws {
        let server = try makeServer()
        let connection = try server.connect()
        for _ in 0..<20 {
            try connection.send("GET /parts HTTP/1.1\r\nHost: h\r\n\r\n")
            let response = try connection.readResponse()
            #expect(response.status == 201)
            #expect(response.headers["content-type"] == "text/plain")
            #expect(response.text == "one,two")
        }
        let response = try server.request("HEAD /parts HTTP/1.1\r\nHost: h\r\n\r\n", toHead: true)
        #expect(response.status == 201)
        #expect(response.headers["connection"]?.lowercased() == "close")
        #expect(eventually { server.http.statistics.streams == 0 && server.http.statistics.pending == 0 })
    }

    @Test(arguments: [true, false]) func cutStreamDoesNotLookComplete(byStop: Bool) throws {
        let server = try makeServer()
        let connection = try server.connect()
        try connection.send("GET /cut HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try connection.readHead().status == 200)
        #expect(try connection.readChunk() == Array("one,".utf8))
        if byStop { server.http.stop() } else { cut.value[0].abort() }
        #expect(try connection.isClosedByPeer())
        #expect(cut.value[0].write([1]) == .closed)
    }

    @Test(arguments: [true, false]) func clientDisconnectEndsItsRequest(onlySending: Bool) throws {
        var configuration = HTTPServer.Configuration()
        configuration.maximumPending = 100
        let server = try makeServer(configuration)
        let departed = Box(0)
        var connections = try (0..<100).map { _ in try server.connect() }
        for connection in connections { try connection.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n") }
        #expect(eventually { server.http.statistics.pending == 100 && waiting.value.count == 100 })
        for pending in waiting.value { pending.onDeparture { departed.update { $0 += 1 } } }
        if onlySending { for connection in connections { connection.shutdownSending() } } else { connections = [] }
        #expect(eventually { departed.value == 100 && server.http.statistics.pending == 0 })
        #expect(eventually { server.http.statistics.connections == 0 })
        for pending in waiting.value {
            #expect(!pending.isWaiting && !pending.complete(HTTPResponse(status: 200)))
            pending.onDeparture { departed.update { $0 += 1 } }
        }
        #expect(departed.value == 200)
        try server.connect().send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    @Test func answersAndDeparturesRace() throws {
        let server = try makeServer()
        for _ in 0..<20 {
            waiting.update { $0 = [] }
            let connections = try (0..<20).map { _ in try server.connect() }
            for connection in connections { try connection.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n") }
            #expect(eventually { waiting.value.count == 20 })
            let all = waiting.value
            let completing = DispatchGroup()
            runBeside(completing) { for pending in all { pending.complete(HTTPResponse(status: 200)) } }
            for connection in connections { connection.shutdownSending() }
            completing.wait()
            #expect(eventually { server.http.statistics.pending == 0 })
        }
    }
}
