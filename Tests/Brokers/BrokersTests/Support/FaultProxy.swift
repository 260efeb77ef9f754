import Foundation
import TestSupport

/// The program `fault-proxy` before a broker of 127.0.0.1, until the object is released.
final class FaultProxy: Sendable {
    /// A control packet that has passed the proxy, or reached it.
    struct Packet {
        /// Which connection, from 1.
        let connection: Int
        /// The name as in the MQTT specification.
        let type: String
        /// The number of topic filters.
        let filters: Int
    }

    /// Where it listens.
    let port: UInt16
    private let pid: pid_t
    private let process: ChildProcess
    private let logFile: String

    /// Starts a proxy, and returns when it listens.
    ///
    /// - Parameters:
    ///   - upstream: the port of the broker.
    ///   - arguments: the faults.
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

    /// Lets the proxy stop forwarding; connections stay open, and new ones are accepted.
    func freeze() { kill(pid, SIGUSR1) }

    /// Ends ``freeze()``.
    func thaw() { kill(pid, SIGUSR2) }

    /// Closes all connections.
    func cut() { kill(pid, SIGHUP) }

    /// The log, in lines.
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
