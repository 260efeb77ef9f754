public import Foundation
import Glibc
import Synchronization

/// A mosquitto broker for one test, on a free port of 127.0.0.1, in its default configuration plus the given lines.
///
///     let broker = try BrokerProcess()
///     defer { broker.stop() }
///     let client = try MQTTTestClient(port: broker.port)
///
/// All methods block for a bounded time and may be called from any thread, one after the other. The process ends with
/// `stop()` or with the object, at the latest with the test process, however that ends.
public final class BrokerProcess: Sendable {
    /// Maximum time in seconds until a started broker answers, and until a signaled broker has ended.
    public static let limit: TimeInterval = 10
    private static let tick: useconds_t = 10_000

    /// The port that the broker listens on; `restart()` keeps it.
    public let port: UInt16
    /// The private directory with its configuration and its log; removed by `stop()`.
    public let directory: String
    private let probesTCPOnly: Bool
    private let running = Mutex<pid_t?>(nil)

    /// Starts a broker and returns when it answers.
    ///
    /// - Parameters:
    ///   - files: Files to write to the private directory first, content by name: certificates, or a password file in
    ///     mosquitto_passwd's format.
    ///   - extraConfiguration: Lines after `listener`; `%d` stands for the private directory, `%p` for the port. With `password_file`,
    ///     also pass `allow_anonymous false`, because `allow_anonymous true` is the default here.
    /// - Throws: ``TestSupportError`` with the broker's log if it does not answer within ``limit``.
    public init(files: [String: String] = [:], extraConfiguration: [String] = []) throws {
        port = try FreePort.tcp()
        var template = Array((NSTemporaryDirectory() + "coaty-test-broker-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw TestSupportError("mkdtemp: errno \(errno)") }
        let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        self.directory = directory
        let extra = extraConfiguration.map { [port] line in
            line.replacingOccurrences(of: "%d", with: directory).replacingOccurrences(of: "%p", with: "\(port)")
        }
        // TLS listeners refuse a plain CONNECT.
        probesTCPOnly = extra.contains { $0.hasPrefix("cafile") || $0.hasPrefix("certfile") }

        var lines = ["listener \(port) 127.0.0.1", "persistence false", "log_dest stderr"]
        // The files belong to the test's user; a broker that drops to another user could not read them.
        if geteuid() == 0 { lines.append("user root") }
        if !extra.contains(where: { $0.hasPrefix("allow_anonymous") }) { lines.append("allow_anonymous true") }
        for (name, content) in files {
            try Self.write(content, to: "\(directory)/\(name)")
        }
        try Self.write((lines + extra).joined(separator: "\n") + "\n", to: "\(directory)/mosquitto.conf")
        try restart()
    }

    /// Starts a broker with a TLS listener.
    ///
    /// - Parameter certificate: the name of the broker's certificate.
    /// - Throws: The same errors as the other initializer.
    public convenience init(
        _ certificates: Certificates,
        _ certificate: String = "server",
        extraConfiguration: [String] = []
    ) throws {
        let path = certificates.path(certificate)
        try self.init(
            extraConfiguration: [
                "cafile \(certificates.path("ca.pem"))", "certfile \(path).pem", "keyfile \(path).key",
            ] + extraConfiguration
        )
    }

    /// Starts a broker that refuses subscriptions to a topic filter.
    ///
    /// - Throws: The same errors as the other initializer.
    public convenience init(refusing topicFilter: String) throws {
        // mosquitto's ACL file cannot refuse a SUBSCRIBE; its plugin can.
        let security = """
            {"defaultACLAccess":{"publishClientSend":true,"publishClientReceive":true,"subscribe":true,"unsubscribe":true},
            "anonymousGroup":"all","groups":[{"groupname":"all","roles":[{"rolename":"all"}]}],
            "roles":[{"rolename":"all","acls":[{"acltype":"subscribeLiteral","topic":"\(topicFilter)","allow":false}]}]}
            """
        try self.init(securedBy: security)
    }

    /// Starts a broker with mosquitto's dynamic security.
    ///
    /// - Parameter security: its configuration.
    /// - Throws: The same errors as the other initializer.
    public convenience init(securedBy security: String, extraConfiguration: [String] = []) throws {
        try self.init(
            files: ["security.json": security],
            extraConfiguration: [
                "plugin \(Self.libraries)/mosquitto_dynamic_security.so",
                "plugin_opt_config_file %d/security.json",
            ] + extraConfiguration
        )
    }

    #if arch(arm64)
        private static let libraries = "/usr/lib/aarch64-linux-gnu"
    #else
        private static let libraries = "/usr/lib/x86_64-linux-gnu"
    #endif

    deinit {
        stop()
    }

    /// The process id; nil while the broker is not running.
    public var pid: pid_t? { running.withLock { $0 } }

    /// The broker's log so far.
    public var log: String {
        (try? String(contentsOfFile: "\(directory)/log", encoding: .utf8)) ?? ""
    }

    /// Kills the broker with SIGKILL, like a crash, and returns when it has ended.
    public func kill() {
        end(with: SIGKILL)
    }

    /// Kills the broker if it runs, starts it on the same port, and returns when it answers.
    ///
    /// - Throws: The same errors as the initializer.
    public func restart() throws {
        kill()
        let arguments = [
            "setpriv", "--pdeathsig", "KILL", "--", try TestProgram.mosquitto.path(), "-c",
            "\(directory)/mosquitto.conf",
        ]
        let pid = try SpawningThread.spawn(
            TestProgram.setpriv.path(),
            arguments,
            output: "\(directory)/log",
            errors: "\(directory)/log"
        )
        running.withLock { $0 = pid }
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        while !answers() {
            let exited = waitpid(pid, nil, WNOHANG) == pid
            if exited { running.withLock { $0 = nil } }
            if exited || Date() > deadline {
                let log = log
                stop()
                throw TestSupportError("mosquitto on port \(port) \(exited ? "exited" : "does not answer"):\n\(log)")
            }
            usleep(Self.tick)
        }
    }

    /// Stops the broker with SIGTERM and removes its directory. A second call has no effect.
    public func stop() {
        end(with: SIGTERM)
        try? FileManager.default.removeItem(atPath: directory)
    }

    private func end(with signal: Int32) {
        guard let pid = running.withLock({ $0.take() }) else { return }
        _ = Glibc.kill(pid, signal)
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        while waitpid(pid, nil, WNOHANG) == 0 {
            if Date() > deadline { _ = Glibc.kill(pid, SIGKILL) }
            usleep(Self.tick)
        }
    }

    private static func write(_ content: String, to path: String) throws {
        do {
            try content.write(toFile: path, atomically: false, encoding: .utf8)
        } catch {
            throw TestSupportError("cannot write \(path): \(error)")
        }
    }

    /// Returns whether the broker answers an MQTT CONNECT with a CONNACK, whatever its return code.
    private func answers() -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = FreePort.loopback(port: port)
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard connected, !probesTCPOnly else { return connected }
        // CONNECT, 12 bytes; "MQTT" level 4, clean session, keepalive 10 s, empty client identifier.
        let request: [UInt8] = [0x10, 12, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 10, 0, 0]
        var reply: [UInt8] = [0, 0, 0, 0]
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count,
            recv(descriptor, &reply, reply.count, Int32(MSG_WAITALL)) == reply.count
        else { return false }
        return reply[0] == 0x20
    }
}
