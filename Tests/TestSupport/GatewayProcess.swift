public import Foundation
import Synchronization

/// A gateway process, started from the build under test.
///
/// All methods block for a bounded time. The process ends with the object, at the latest with the test process.
public final class GatewayProcess: Sendable {
    /// Maximum time in seconds until a started gateway is ready, and until a signaled gateway has ended.
    public static let limit: TimeInterval = 30
    private static let tick: useconds_t = 5_000

    /// The process id.
    public let pid: pid_t
    private let directory: String
    private let exitStatus = Mutex<Int32?>(nil)
    private let firstLine = Mutex("")

    /// The path of the binary: `COATY_GATEWAY_BINARY`, or the binary in the same folder as the test bundle.
    public static var binary: String {
        if let path = ProcessInfo.processInfo.environment["COATY_GATEWAY_BINARY"] { return path }
        var folder = URL(fileURLWithPath: CommandLine.arguments[0])
        for line in (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8))?.split(separator: "\n") ?? []
        where line.hasSuffix(".xctest") {
            folder = URL(fileURLWithPath: String(line[(line.firstIndex(of: "/") ?? line.startIndex)...]))
        }
        return folder.deletingLastPathComponent().appending(path: "coaty-gateway").path
    }

    /// Starts a gateway, and returns when it serves requests: with its broker, or for now without one.
    ///
    /// - Parameters:
    ///   - arguments: flags besides `--port`.
    ///   - port: the port to listen on; 0 for a free one.
    ///   - environment: variables added to those of this process, from which the gateway's own are removed.
    /// - Throws: ``TestSupportError`` with the gateway's log if it ends, or does not serve requests within ``limit``.
    public convenience init(
        _ arguments: [String] = [],
        port: UInt16 = 0,
        environment: [String: String] = [:]
    ) throws {
        // For the gateway's own broker, or the broker of the test.
        _ = try TestProgram.mosquitto.path()
        try self.init(unready: ["--port", "\(port)"] + arguments, environment: environment)
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        while !output.contains("\n") {
            if hasEnded || Date() > deadline {
                throw TestSupportError("the gateway \(hasEnded ? "ended" : "does not serve"):\n\(output)\(log)")
            }
            usleep(Self.tick)
        }
        let line = String(output.prefix { $0 != "\n" })
        firstLine.withLock { $0 = line }
    }

    /// Starts a gateway without waiting for it.
    ///
    /// - Parameter output: the path of the file for standard output; nil for the file that ``output`` reads.
    public init(unready arguments: [String], environment: [String: String] = [:], output: String? = nil) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "gateway-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        directory = folder.path
        var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("COATY_") }
        variables.merge(environment) { $1 }
        pid = try SpawningThread.spawn(
            TestProgram.setpriv.path(),
            ["setpriv", "--pdeathsig", "KILL", "--", Self.binary] + arguments,
            environment: variables,
            output: output ?? directory + "/out",
            errors: directory + "/err"
        )
    }

    deinit {
        end(with: SIGKILL)
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The gateway's standard output so far.
    public var output: String { (try? String(contentsOfFile: directory + "/out", encoding: .utf8)) ?? "" }
    /// The gateway's standard error so far.
    public var log: String { (try? String(contentsOfFile: directory + "/err", encoding: .utf8)) ?? "" }

    /// Waits until the log contains a text. A line may be written after the response to the request that caused it.
    public func untilLogged(_ text: String) throws {
        try waitUntil("the log contains \(text)") { log.contains(text) }
    }

    /// Waits until the log contains a match of a pattern.
    public func untilLogged(_ pattern: some RegexComponent, _ what: String) throws {
        try waitUntil("the log contains \(what)") { log.contains(pattern) }
    }

    /// The port in the first line.
    public var port: UInt16 { port(after: " on http", "://") }
    /// The broker's port in the first line.
    public var brokerPort: UInt16 { port(after: "mqtt", "://") }

    private func port(after start: String, _ end: String) -> UInt16 {
        let line = firstLine.withLock(\.self)
        guard let scheme = line.range(of: start), let range = line[scheme.upperBound...].range(of: end) else {
            return 0
        }
        let authority = line[range.upperBound...].prefix { !" ,)".contains($0) }
        return authority.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
    }

    /// Whether the process has ended.
    public var hasEnded: Bool {
        exitStatus.withLock { exitStatus in
            if exitStatus != nil { return true }
            var status: Int32 = 0
            guard waitpid(pid, &status, WNOHANG) == pid else { return false }
            exitStatus = status & 0x7F == 0 ? (status >> 8) & 0xFF : -(status & 0x7F)
            return true
        }
    }

    /// Returns a memory size from `/proc/<pid>/status`, in bytes: `VmRSS` is the current size, `VmHWM` the maximum so
    /// far.
    public func memory(_ name: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        guard let number = line?.split(whereSeparator: \.isWhitespace).dropFirst().first, let kilobytes = Int(number)
        else {
            throw TestSupportError("no \(name) in \(status)")
        }
        return kilobytes << 10
    }

    /// Returns the number of open descriptors of the process.
    public func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count
    }

    /// Sends a signal. After SIGSTOP, returns when all threads have stopped.
    public func signal(_ number: Int32) {
        guard !hasEnded else { return }
        kill(pid, number)
        guard number == SIGSTOP else { return }
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        while !hasStopped, !hasEnded, Date() < deadline { usleep(Self.tick) }
    }

    private var hasStopped: Bool {
        let tasks = "/proc/\(pid)/task"
        return (try? FileManager.default.contentsOfDirectory(atPath: tasks))?.allSatisfy { task in
            // The state follows the name, which is in parentheses.
            let text = (try? String(contentsOfFile: "\(tasks)/\(task)/stat", encoding: .utf8)) ?? ") T"
            return text.split(separator: ")").last?.hasPrefix(" T") ?? true
        } ?? true
    }

    /// Waits until the process has ended, and returns its exit code, or minus the signal that ended it.
    ///
    /// - Throws: ``TestSupportError`` if it does not end within ``limit``.
    public func waitForEnd() throws -> Int32 {
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        while !hasEnded {
            guard Date() < deadline else { throw TestSupportError("the gateway does not end:\n\(log)") }
            usleep(Self.tick)
        }
        return exitStatus.withLock { $0 ?? 0 }
    }

    /// Stops the gateway with a signal, and returns its exit code, or minus the signal that ended it.
    @discardableResult
    public func stop(_ number: Int32 = SIGTERM) throws -> Int32 {
        signal(number)
        return try waitForEnd()
    }

    private func end(with number: Int32) {
        signal(number)
        while !hasEnded { usleep(Self.tick) }
    }

    /// Waits until the gateway is connected to the broker.
    ///
    /// - Throws: ``TestSupportError`` with the gateway's log if it is not in time.
    public func untilReady() throws {
        try waitUntil("the gateway is ready, whose log is:\n\(log)") { try request("GET", "/readyz").status == 200 }
    }

    /// Sends one request on a new connection.
    public func request(
        _ method: String,
        _ target: String,
        headers: [(String, String)] = [],
        body: String? = nil,
        within seconds: Double = 30
    ) throws -> RawConnection.Response {
        try RawConnection(port: port).request(method, target, headers: headers, body: body, within: seconds)
    }

    /// Posts JSON on a new connection.
    public func post(
        _ target: String,
        _ json: String,
        headers: [(String, String)] = []
    ) throws -> RawConnection.Response {
        try request("POST", target, headers: headers + [("Content-Type", "application/json")], body: json)
    }
}

extension RawConnection {
    /// Sends a request and reads the response. The default of the `Host` header is `localhost`.
    public func request(
        _ method: String,
        _ target: String,
        headers: [(String, String)] = [],
        body: String? = nil,
        within seconds: Double = 30
    ) throws -> Response {
        var text = "\(method) \(target) HTTP/1.1\r\n"
        if !headers.contains(where: { $0.0 == "Host" }) { text += "Host: localhost\r\n" }
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
        try send(text + "\r\n" + (body ?? ""))
        return try readResponse(toHead: method == "HEAD", within: seconds)
    }
}

/// Waits until a condition holds.
///
/// - Throws: ``TestSupportError`` if it does not hold within `seconds`.
public func waitUntil(
    _ what: @autoclosure () -> String,
    within seconds: TimeInterval = 30,
    _ condition: () throws -> Bool
) throws {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while try !condition() {
        guard Date() < deadline else { throw TestSupportError("in vain: \(what())") }
        usleep(5_000)
    }
}
