import CMalloc
import Coordination
import Dispatch
import Glibc
package import Logging
import Synchronization

/// Limits the resident memory of the process to `maximum-memory` above its size at start.
///
/// Normally, the clients' accounts ensure this. This component handles memory that they do not count: fragmentation,
/// and the memory of C libraries. Above 85 %, free memory is returned to the system; above 95 %, the connection that
/// uses the most memory is closed, one at a time.
package final class ResidentMemory: Component {
    static let interval = Duration.milliseconds(250)

    private struct State {
        var timer: RepeatingTimer?
        var baseline = 0
        var watch: MemoryWatch
        var closed = 0
    }

    private let accounts: Accounts
    /// Closes the largest connection of a client; returns false if it has none.
    private let close: @Sendable (ClientKey) -> Bool
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter close: closes the connection of a client that uses the most memory; returns false if the client has
    ///   none.
    package init(_ accounts: Accounts, logger: Logger, close: @escaping @Sendable (ClientKey) -> Bool) {
        self.accounts = accounts
        self.logger = logger
        self.close = close
        state = Mutex(State(watch: MemoryWatch(accounts.limits)))
    }

    /// Limits the memory that the allocator retains. Call it before the first thread is started.
    package static func prepareAllocator() {
        // Each arena retains free memory separately.
        mallopt(M_ARENA_MAX, 2)
        // Fixed: otherwise the threshold grows with the size of freed blocks, and large payloads stay resident.
        mallopt(M_MMAP_THRESHOLD, 256 << 10)
    }

    package func start() async {
        let timer = RepeatingTimer(every: Self.interval, on: "resident memory") { [weak self] in self?.check(at: .now) }
        state.withLock { state in
            state.baseline = Self.resident() ?? 0
            state.timer = timer
        }
    }

    package func stop() async { state.withLock { $0.timer = nil } }

    /// The resident memory above its size at start, in bytes.
    package var used: Int { max(0, (Self.resident() ?? 0) - state.withLock(\.baseline)) }

    /// Number of connections that were closed because the memory was used up.
    package var closed: Int { state.withLock(\.closed) }

    private func check(at now: ContinuousClock.Instant) {
        let (used, charged) = (used, accounts.memory.used)
        switch state.withLock({ $0.watch.action(resident: used, charged: charged, at: now) }) {
        case .nothing: break
        case .trim: malloc_trim(0)
        case .close: closeGreediest(used)
        case .report:
            logger.warning(
                "the resident memory is near its limit, although clients hold little of it",
                metadata: ["bytes": "\(used)", "held for clients": "\(charged)"]
            )
        }
    }

    /// Closes one connection of the client that uses the most memory, or else of the next one. Clients within their
    /// guaranteed share are not closed.
    private func closeGreediest(_ used: Int) {
        let clients = accounts.clients.map { (client: $0.client, bytes: $0.memory.used) }
            .filter { $0.bytes > accounts.limits.minimumMemory }.sorted { $0.bytes > $1.bytes }
        guard let greedy = clients.first(where: { close($0.client) }) else { return }
        let count = state.withLock { state in
            state.closed += 1
            return state.closed
        }
        logger.warning(
            "closed a connection because the memory is used up",
            metadata: [
                "client": "\(greedy.client)", "held for it": "\(greedy.bytes)", "resident": "\(used)",
                "closed so far": "\(count)",
            ]
        )
    }

    /// Reads the resident memory from /proc.
    static func resident() -> Int? {
        let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = Glibc.close(descriptor) }
        let text = withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { buffer in
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        }
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map {
            $0 * sysconf(Int32(_SC_PAGESIZE))
        }
    }
}

/// Decides on actions for the resident memory: closes at most one connection per second, and only after free memory was
/// returned.
struct MemoryWatch: Sendable {
    enum Action: Sendable {
        case nothing
        /// Return free memory to the system.
        case trim
        case close
        /// The memory is nearly used up, and closing connections would not help.
        case report
    }

    private static let pause = Duration.seconds(1)

    private let trimLevel: Int
    private let closeLevel: Int
    private let clientMemory: Int
    private var trimmed: ContinuousClock.Instant?
    private var acted: ContinuousClock.Instant?

    init(_ limits: Limits) {
        trimLevel = limits.memory / 100 * 85
        closeLevel = limits.memory / 100 * 95
        clientMemory = limits.clientMemory
    }

    /// - Parameters:
    ///   - resident: the resident memory above its size at start, in bytes.
    ///   - charged: the bytes that are charged to clients.
    mutating func action(resident: Int, charged: Int, at now: ContinuousClock.Instant) -> Action {
        guard resident > trimLevel else { return .nothing }
        guard let trimmed, now - trimmed < Self.pause else {
            trimmed = now
            return .trim
        }
        guard resident > closeLevel, acted.map({ now - $0 >= Self.pause }) ?? true else { return .nothing }
        acted = now
        return charged < clientMemory / 2 ? .report : .close
    }
}

/// Calls a function repeatedly on a separate queue, until this object is released.
private final class RepeatingTimer: Sendable {
    private let timer: Mutex<any DispatchSourceTimer>

    init(every interval: Duration, on label: String, _ handler: @escaping @Sendable () -> Void) {
        let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: label))
        let milliseconds = Int(interval / .milliseconds(1))
        timer.schedule(deadline: .now() + .milliseconds(milliseconds), repeating: .milliseconds(milliseconds))
        timer.setEventHandler(handler: handler)
        timer.resume()
        self.timer = Mutex(timer)
    }

    deinit { timer.withLock { $0.cancel() } }
}
