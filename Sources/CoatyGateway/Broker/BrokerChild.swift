import Base
import Glibc
import Logging

/// A mosquitto process, from spawning to reaping.
///
/// Not `Sendable`: it belongs to the thread that spawned it.
final class BrokerChild {
    /// Maximum length of a line; the rest is cut off.
    static let maxLineLength = 1024
    /// Number of the last lines that are kept for error messages.
    static let keptLines = 12
    private static let reapInterval = Duration.milliseconds(10)

    let pid: pid_t
    /// The exit status as text; nil while the process has not been reaped.
    private(set) var exitStatus: String?
    private(set) var lastLines: [String] = []
    /// Whether a line has contained the text that was passed to the initializer.
    private(set) var hasLoggedAwaitedText = false

    private let awaitedText: String
    private let logger: Logger
    private var output: Int32?
    private var line: [UInt8] = []

    /// Takes over `pid` and the read end of the pipe that the process writes to.
    init(pid: pid_t, output: Int32, awaitedText: String, logger: Logger) {
        self.pid = pid
        self.output = output
        self.awaitedText = awaitedText
        self.logger = logger
    }

    deinit {
        if let output { close(output) }
    }

    /// Logs the process's output until the process ends, `limit` is over (nil: no limit) or `signal` is raised.
    func watch(for limit: Duration?, orUntil signal: PollSignal?) {
        let deadline = limit.map { ContinuousClock.now + $0 }
        while exitStatus == nil {
            let rest = deadline.map { $0 - ContinuousClock.now }
            if let rest, rest <= .zero { return }
            // Without output, the end of the process is detected only by polling.
            let wait = output == nil ? min(rest ?? Self.reapInterval, Self.reapInterval) : rest
            let ready = poll(output, signal, for: wait)
            if ready.output, let output { drain(output) }
            reap()
            if ready.signal { return }
        }
    }

    /// Ends the process, by SIGKILL if it has not exited within `limit` after SIGTERM, and reaps it.
    func end(within limit: Duration) {
        guard exitStatus == nil else { return }
        kill(pid, SIGTERM)
        watch(for: limit, orUntil: nil)
        if exitStatus == nil {
            logger.warning("embedded broker ignores SIGTERM and is killed")
            kill(pid, SIGKILL)
            watch(for: nil, orUntil: nil)
        }
    }

    private func reap() {
        var status: Int32 = 0
        switch waitpid(pid, &status, WNOHANG) {
        case 0: return
        case pid: exitStatus = status & 0x7F == 0 ? "exit code \(status >> 8 & 0xFF)" : "signal \(status & 0x7F)"
        default:
            if errno == EINTR { return }
            // Other code ignores SIGCHLD or waits for all children: the process is gone, but its exit status is
            // unknown.
            exitStatus = "status unknown"
        }
        // Its last output may still be in the pipe.
        while let output, poll(output, nil, for: .zero).output { drain(output) }
    }

    private func poll(_ output: Int32?, _ signal: PollSignal?, for limit: Duration?) -> (output: Bool, signal: Bool) {
        // poll(2) ignores negative descriptors.
        var entries = [
            pollfd(fd: output ?? -1, events: Int16(POLLIN), revents: 0),
            pollfd(fd: signal?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        guard Glibc.poll(&entries, 2, limit?.pollTimeout ?? -1) > 0 else { return (false, false) }
        return (entries[0].revents != 0, entries[1].revents != 0)
    }

    /// Reads the available output once. At the end of the stream, closes the descriptor.
    private func drain(_ descriptor: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &buffer, buffer.count)
        if count > 0 {
            for byte in buffer.prefix(count) { take(byte) }
        } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
            close(descriptor)
            output = nil
        }
    }

    private func take(_ byte: UInt8) {
        guard byte == UInt8(ascii: "\n") else {
            if line.count < Self.maxLineLength { line.append(byte) }
            return
        }
        let text = String(decoding: line, as: UTF8.self)
        line.removeAll(keepingCapacity: true)
        if !hasLoggedAwaitedText { hasLoggedAwaitedText = text.contains(awaitedText) }
        lastLines.append(text)
        if lastLines.count > Self.keptLines { lastLines.removeFirst() }
        let level: Logger.Level =
            if text.hasPrefix("Error") { .error } else if text.hasPrefix("Warning") { .warning } else { .debug }
        logger.log(level: level, "mosquitto: \(text)")
    }
}
