import Coordination
import Logging
import Synchronization

/// The broker that the gateway brings along: mosquitto as a child process with a private configuration.
///
/// It is started on the wanted port or the next free one, restarted on the same port if it dies, given up if that does not help, and
/// gone after `stop()`, and also when the gateway ends in any other way, SIGKILL included. (A gateway that is killed in the
/// millisecond between starting `setpriv` and its asking for the parent-death signal does leave it behind.)
///
/// It accepts anybody, which is safe as long as it listens on a loopback address, as it does by default.
final class EmbeddedBroker: Component {
    /// A TCP endpoint.
    struct Address: Sendable, Hashable, CustomStringConvertible {
        /// A name or a numeric address, IPv6 without brackets.
        var host: String
        /// 1 to 65535; where a port is wished for, 0 stands for any free one.
        var port: UInt16

        var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    /// What to run and where to listen.
    struct Configuration: Sendable {
        /// The wanted endpoint.
        var listen = Address(host: "127.0.0.1", port: 1883)
        /// How many ports, from the wanted one upward, are tried before `start()` throws.
        var maxPortAttempts = 32
        /// The path of mosquitto; nil looks in PATH and in /usr/sbin, where Debian keeps it.
        var executable: String?
        /// How often a broker that dies is restarted before it is given up, unless it ran for ``BrokerSupervisor/soundAfter`` in
        /// between. The pauses before seven restarts add up to 12.7 s.
        var maxRestarts = 7
    }

    private let configuration: Configuration
    private let logger: Logger
    private let supervisor = Mutex<BrokerSupervisor?>(nil)
    private let onGivenUp = Mutex<(@Sendable () -> Void)?>(nil)

    init(configuration: Configuration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Where clients on this machine reach the broker; nil while it is not started. Stays the same over its restarts.
    var address: Address? { supervisor.withLock { $0 }?.address }

    /// The process id of the broker; nil while none runs.
    var processID: Int32? { supervisor.withLock { $0 }?.processID }

    /// Sets what is called, on the broker's thread, when the broker is given up.
    func whenGivenUp(_ body: @escaping @Sendable () -> Void) { onGivenUp.withLock { $0 = body } }

    /// Starts the broker, and returns when it has answered an MQTT CONNECT.
    ///
    /// - Throws: ``EmbeddedBrokerError``; `CancellationError` if the task is cancelled or `stop()` called meanwhile.
    func start() async throws {
        let supervisor = try BrokerSupervisor(configuration: configuration, logger: logger) { [weak self] in
            self?.onGivenUp.withLock(\.self)?()
        }
        self.supervisor.withLock { $0 = supervisor }
        do {
            try await supervisor.start()
        } catch {
            self.supervisor.withLock { $0 = nil }
            throw error
        }
    }

    /// Ends the broker, by force after ``BrokerSupervisor/stopLimit``, and returns when nothing of it is left.
    func stop() async {
        await supervisor.withLock { $0 }?.stop()
        supervisor.withLock { $0 = nil }
    }
}

/// Why the embedded broker could not be started.
enum EmbeddedBrokerError: Error, CustomStringConvertible {
    /// No such program, or not one that may be executed.
    case executableNotFound(String)
    /// All ports that were tried are taken.
    case noFreePort(first: EmbeddedBroker.Address, attempts: Int)
    /// The address is not one of this machine, or not permitted.
    case cannotListen(EmbeddedBroker.Address, reason: String)
    /// The broker ended, or did not answer in time; with the last lines that it wrote.
    case notServing(EmbeddedBroker.Address, reason: String, log: [String])
    /// A system call failed.
    case system(call: String, code: Int32)

    /// For the operator.
    var description: String {
        switch self {
        case .executableNotFound(let program):
            "embedded broker: cannot execute \(program); install mosquitto, or configure a broker of your own"
        case .noFreePort(let address, attempts: 1):
            "embedded-broker-listen: \(address) is in use by another program; end that one, or choose another port, 0 for a free one"
        case .noFreePort(let first, let attempts):
            "embedded broker: no free port among \(attempts) from \(first) upward"
        case .cannotListen(let address, let reason):
            "embedded broker: cannot listen on \(address): \(reason)"
        case .notServing(let address, let reason, let log):
            "embedded broker: mosquitto on \(address) \(reason); its last words: \(log.joined(separator: " | "))"
        case .system(let call, let code):
            "embedded broker: \(call) failed: \(errorText(code))"
        }
    }
}
