import Foundation
import TestSupport

/// A `fault-proxy` process in front of a broker on 127.0.0.1, which runs until the object is released.
final class FaultProxy: Sendable {
    /// A control packet that the proxy has received from a client.
    struct Packet {
        /// The number of the connection, from 1.
        let connection: Int
        /// The name of the packet type in the MQTT specification.
        let type: String
        /// The number of topic filters.
        let filters: Int
    }

    /// The port of the proxy.
    let port: UInt16
    private let pid: pid_t
    private let process: ChildProcess
    private let logFile: String

    /// Starts a proxy, and returns when it listens.
    ///
    /// - Parameters:
    ///   - upstream: the port of the broker.
    ///   - arguments: the arguments for the faults.
    init(before upstream: UInt16, _ arguments: [String] = []) async throws {
        logFile = FileManager.default.temporaryDirectory.appending(path: "fault-proxy-\(UUID().uuidString)").path
        let process = try ChildProcess(
            Bench.program("fault-proxy"),
            ["--upstream", "127.0.0.1:\(upstream)", "--log", logFile] + arguments
        )
        self.process = process
        try await eventually("the proxy is ready") { process.output.hasSuffix("\n") }
        let words = process.output.split { $0 == " " || $0 == "\n" }
        guard words.count == 3, let port = UInt16(words[1]), let pid = pid_t(words[2]) else {
            throw Failed("the proxy wrote \(process.output)")
        }
        self.port = port
        self.pid = pid
    }

    deinit { try? FileManager.default.removeItem(atPath: logFile) }

    /// Makes the proxy stop forwarding. Connections stay open, and new ones are accepted.
    func freeze() { kill(pid, SIGUSR1) }

    /// Ends ``freeze()``.
    func thaw() { kill(pid, SIGUSR2) }

    /// Closes all connections.
    func cut() { kill(pid, SIGHUP) }

    /// The lines of the log.
    var log: [Substring] {
        ((try? String(contentsOfFile: logFile, encoding: .utf8)) ?? "").split(separator: "\n")
    }

    /// The packets of clients so far.
    var packets: [Packet] {
        log.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 4, words[1] == ">", let connection = Int(words[0]), let filters = Int(words[3]) else {
                return nil
            }
            return Packet(connection: connection, type: String(words[2]), filters: filters)
        }
    }

    /// The number of MQTT connections so far.
    var connections: Int { packets.count { $0.type == "CONNECT" } }
}
