import Foundation
import Logging
import TestSupport
import Testing
import WebSocketServer

@Suite(.exclusive) struct CloseTests {
    @Test func closeOfTheServerFollowsQueuedFrames() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.offerQueueFrames = 100
        let fixture = try Fixture(
            configuration,
            handler: RecordingHandler(onMessage: { _, connection in
                for number in 0..<100 {
                    #expect(connection.offer(WebSocketFrame(text: "\(number)")) == .queued)
                }
                connection.close(code: 4001, reason: "grüße" + String(repeating: "ü", count: 100))
                connection.close(code: 4002)
                #expect(connection.offer(WebSocketFrame(text: "too late")) == .closed)
            })
        )
        let client = try fixture.open()
        try client.sendText("go")
        for number in 0..<100 {
            #expect(try client.receive() == .text("\(number)"))
        }
        // The limit of 123 bytes has room for "grüße" with 7 bytes, and 58 letters of 2 bytes each.
        #expect(try client.receive() == .close(code: 4001, reason: "grüße" + String(repeating: "ü", count: 58)))
        try client.sendClose(code: 4001)
        #expect(client.isEnded())
        #expect(fixture.handler.waits { $0.closes.values.first == 4001 })
    }

    @Test(arguments: [0, 999, 1004, 1005, 1006, 1015, 2999, 5000])
    func codesThatMustNotBeSentBecome1011(_ code: UInt16) throws {
        let fixture = try Fixture(
            handler: RecordingHandler(onMessage: { _, connection in
                connection.close(code: code, reason: "")
            })
        )
        let client = try fixture.open()
        try client.sendText("go")
        #expect(try client.receive() == .close(code: 1011, reason: ""))
    }

    @Test func closeOfTheClientIsEchoed() throws {
        let fixture = try Fixture()
        let client = try fixture.open()
        let connection = try #require(
            fixture.handler.waits { $0.open.count == 1 } ? fixture.handler.current.open[0] : nil
        )
        try client.sendClose(code: 3000, reason: "bye")
        #expect(try client.receive() == .close(code: 3000, reason: "bye"))
        #expect(client.isEnded())
        #expect(fixture.handler.waits { $0.closes[connection.id] == 3000 })
        #expect(!connection.isOpen)
        #expect(connection.offer(WebSocketFrame(text: "late")) == .closed)
        #expect(fixture.server.statistics.open == 0)
    }

    @Test func closeWithoutCodeIs1005() throws {
        let fixture = try Fixture()
        let client = try fixture.open()
        try client.sendFrame(opcode: 8, payload: [])
        #expect(try client.receive() == .close(code: 1005, reason: ""))
        #expect(fixture.handler.waits { $0.closes.values.first == 1005 })
    }

    @Test func connectionThatIsLostIs1006() throws {
        let fixture = try Fixture()
        do {
            let client = try fixture.open()
            #expect(fixture.handler.waits { $0.open.count == 1 })
            try client.sendRaw([0x81])
        }
        #expect(fixture.handler.waits { $0.closes.values.first == 1006 })
    }

    @Test func closeThatIsNotAnsweredIsCut() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.closeTimeout = .milliseconds(200)
        let fixture = try Fixture(
            configuration,
            handler: RecordingHandler(onMessage: { _, connection in
                connection.close(code: 1000)
            })
        )
        let client = try fixture.open()
        try client.sendText("go")
        #expect(try client.receive() == .close(code: 1000, reason: ""))
        #expect(client.isEnded())
        #expect(fixture.handler.waits { $0.closes.values.first == 1000 })
    }

    /// The close must occur while the service thread is sending, before it has noticed the close. Therefore, each round
    /// closes a little later.
    @Test func closeOfAnotherThreadAmidSendingKeepsItsCode() throws {
        let fixture = try Fixture()
        let frame = WebSocketFrame(binary: [UInt8](repeating: 0, count: 16 * 1024))
        for round in 0..<300 {
            let client = try fixture.open()
            try #require(fixture.handler.waits { $0.open.count == 1 })
            let connection = fixture.handler.current.open[0]
            for _ in 0..<3 {
                try #require(connection.offer(frame) == .queued)
            }
            let start = DispatchTime.now().uptimeNanoseconds
            while DispatchTime.now().uptimeNanoseconds < start + UInt64(round % 100) * 2000 {}
            connection.close(code: 4001)
            for _ in 0..<3 {
                guard case .binary = try client.receive() else {
                    Issue.record("expected a frame")
                    return
                }
            }
            try #require(try client.receive() == .close(code: 4001, reason: ""))
            try client.sendClose(code: 4001)
            try #require(fixture.handler.waits { $0.closes[connection.id] != nil })
            try #require(fixture.handler.current.closes[connection.id] == 4001, "in round \(round)")
        }
    }

    @Test func stopClosesAllWith1001() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.closeTimeout = .seconds(20)
        let fixture = try Fixture(configuration)
        let clients = try (0..<20).map { _ in try fixture.open() }
        let halfway = try WebSocketClient(port: fixture.port)
        try halfway.sendRaw(Array("GET / HTTP/1.1\r\n".utf8))
        #expect(fixture.handler.waits { $0.open.count == 20 })
        let stopping = DispatchGroup()
        stopping.enter()
        let thread = Thread { [server = fixture.server] in
            server.stop()
            stopping.leave()
        }
        thread.start()
        for client in clients {
            #expect(try client.receive() == .close(code: 1001, reason: "going away"))
        }
        // The stop waits for the answers; meanwhile, new clients are refused.
        let late = try WebSocketClient(port: fixture.port)
        let response = try late.shakeHands()
        #expect(response.status == 503)
        #expect(response.text.contains("shutting-down"))
        for client in clients {
            try client.sendClose(code: 1001)
            #expect(client.isEnded())
        }
        #expect(stopping.wait(timeout: .now() + 10) == .success)
        #expect(halfway.isEnded())
        #expect(fixture.handler.current.closes.count == 20)
        #expect(fixture.handler.current.closes.values.allSatisfy { $0 == 1001 })
        #expect(fixture.server.statistics.open == 0)
        fixture.server.stop()
        #expect(throws: WebSocketServer.StartError.self) { try fixture.server.start() }
        let afterwards = try WebSocketClient(port: fixture.port)
        #expect(afterwards.isEnded())
    }

    @Test func stopClosesWithTheConfiguredCode() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.closeTimeout = .milliseconds(200)
        configuration.stopCode = 4000
        let fixture = try Fixture(configuration)
        let client = try fixture.open()
        fixture.server.stop()
        #expect(try client.receive() == .close(code: 4000, reason: "going away"))
        #expect(fixture.handler.current.closes.values.first == 4000)
    }

    @Test func stopClosesUnresponsiveConnections() throws {
        var configuration = WebSocketServer.Configuration()
        configuration.closeTimeout = .milliseconds(200)
        let fixture = try Fixture(configuration)
        let client = try fixture.open()
        fixture.server.stop()
        #expect(try client.receive() == .close(code: 1001, reason: "going away"))
        #expect(client.isEnded())
        #expect(fixture.handler.current.closes.values.first == 1001)
    }

    @Test func adoptionWithoutAServiceThreadCloses() throws {
        let server = WebSocketServer(
            configuration: .init(),
            handler: RecordingHandler(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        server.adopt(pair[0], peer: "")
        var byte: UInt8 = 0
        #expect(recv(pair[1], &byte, 1, 0) == 0)
        close(pair[1])
        server.stop()
        #expect(throws: WebSocketServer.StartError.self) { try server.start() }
    }

    @Test(arguments: ["", "a b", "a/b", String(repeating: "a", count: 64)])
    func unusableSubprotocolDoesNotStart(_ name: String) throws {
        var configuration = WebSocketServer.Configuration()
        configuration.subprotocols = [name]
        let server = WebSocketServer(
            configuration: configuration,
            handler: RecordingHandler(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        #expect(throws: WebSocketServer.StartError.self) { try server.start() }
    }
}
