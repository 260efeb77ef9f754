import Dispatch
import Glibc
import HTTPServer
import Logging
import Synchronization
import TestSupport

/// A server with a listening socket on a free loopback port. It takes over the accepted connections.
final class TestServer: Sendable {
    let http: HTTPServer
    let port: UInt16
    private let listener: Int32
    private let accepting = DispatchGroup()

    init(
        _ configuration: HTTPServer.Configuration = .init(),
        peer: String = "127.0.0.1",
        context: (any Sendable & AnyObject)? = nil,
        routes: (inout Router) -> Void
    ) throws {
        var router = Router()
        routes(&router)
        http = HTTPServer(configuration: configuration, router: router, logger: Logger(label: "test"))
        try http.start()
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 512) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard isBound else { throw RawConnection.Failure.system(call: "bind", errno: errno) }
        port = UInt16(bigEndian: address.sin_port)
        let http = http
        runBeside(accepting) {
            while case let descriptor = accept(listener, nil, nil), descriptor >= 0 {
                http.adopt(descriptor, peer: peer, context: context)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        accepting.wait()
        close(listener)
        http.stop()
    }

    func connect(receiveBuffer: Int32? = nil) throws -> RawConnection {
        try RawConnection(port: port, receiveBuffer: receiveBuffer)
    }

    /// Sends one request on a new connection, and reads the response.
    func request(_ text: String, toHead: Bool = false) throws -> RawConnection.Response {
        let connection = try connect()
        try connection.send(text)
        return try connection.readResponse(toHead: toHead)
    }

    func get(_ target: String) throws -> RawConnection.Response {
        try request("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n")
    }
}

/// Runs `body`, which may block, on a separate dispatch queue, so that it does not block a thread of the task pool.
func runBeside(_ group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "test").async(group: group, execute: body)
}

/// Waits until `condition` holds; returns `false` if it does not hold before the deadline.
func eventually(within seconds: Double = 10, _ condition: () -> Bool) -> Bool {
    let deadline = DispatchTime.now() + seconds
    while !condition() {
        if DispatchTime.now() > deadline { return false }
        usleep(1000)
    }
    return true
}

/// A value that handlers on any thread write and a test reads.
final class Box<Value: Sendable>: Sendable {
    private let content: Mutex<Value>
    init(_ value: Value) { content = Mutex(value) }
    var value: Value { content.withLock { $0 } }
    func update(_ change: @Sendable (inout Value) -> Void) {
        content.withLock { value in
            var copy = value
            change(&copy)
            value = copy
        }
    }
}

func post(_ path: String, _ body: String, headers: String = "") -> String {
    "POST \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)"
}
