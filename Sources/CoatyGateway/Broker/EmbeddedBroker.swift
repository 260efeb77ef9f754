import Base
import Coordination
import Logging
import Synchronization

/// The embedded broker of the gateway: mosquitto as a child process with a private configuration.
///
/// It is started on the requested port or the next free one. If it exits, it is restarted on the same port, and given
/// up after several restarts. It ends with `stop()`, and also when the gateway ends in any other way, including
/// SIGKILL. (If the gateway is killed in the millisecond between starting `setpriv` and setting the parent-death
/// signal, the broker keeps running.)
///
/// It accepts all clients without authentication, which is safe as long as it listens on a loopback address, the
/// default.
final class EmbeddedBroker: Component {
    /// A TCP endpoint.
    struct Address: Sendable, Hashable, CustomStringConvertible {
        /// A name or a numeric address, IPv6 without brackets.
        var host: String
        /// 1 to 65535; in a request, 0 selects any free port.
        var port: UInt16

        var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    /// The program to run and the address to listen on.
    struct Configuration: Sendable {
        /// The requested endpoint.
        var listen = Address(host: "127.0.0.1", port: 1883)
        /// Maximum number of ports, from the requested one upward, that are tried before `start()` throws.
        var maxPortAttempts = 32
        /// The path of mosquitto; nil looks in PATH and in /usr/sbin, where Debian keeps it.
        var executable: String?
        /// Maximum number of restarts before the broker is given up; reset when it has run for
        /// ``BrokerSupervisor/soundAfter``. The pauses before seven restarts add up to 12.7 s.
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

    /// The broker's address for clients on this machine; nil while it is not started. Constant across its restarts.
    var address: Address? { supervisor.withLock { $0 }?.address }

    /// The process id of the broker; nil while none runs.
    var processID: Int32? { supervisor.withLock { $0 }?.processID }

    /// Sets a handler that is called on the broker's thread when the broker is given up.
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

    /// Ends the broker, by force after ``BrokerSupervisor/stopLimit``, and returns when its process and files are gone.
    func stop() async {
        await supervisor.withLock { $0 }?.stop()
        supervisor.withLock { $0 = nil }
    }
}

/// The reason why the embedded broker could not be started.
enum EmbeddedBrokerError: Error, CustomStringConvertible {
    /// The program does not exist or is not executable.
    case executableNotFound(String)
    /// All ports that were tried are taken.
    case noFreePort(first: EmbeddedBroker.Address, attempts: Int)
    /// The address is not one of this machine, or not permitted.
    case cannotListen(EmbeddedBroker.Address, reason: String)
    /// The broker exited, or did not answer in time; with its last log lines.
    case notServing(EmbeddedBroker.Address, reason: String, log: [String])
    /// A system call failed.
    case system(call: String, code: Int32)

    /// The error as text, for operators.
    var description: String {
        switch self {
        case .executableNotFound(let program):
            "embedded broker: cannot execute \(program); install mosquitto, or configure your own broker"
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
