public import Coaty
import Foundation
public import Logging
import Synchronization

/// Binds an agent to an MQTT 3.1.1 broker by libmosquitto.
///
/// QoS 0 and a clean session, as Coaty has it. The binding has a network thread of its own from ``join(_:)`` to
/// ``leave()``; it is the only one that touches libmosquitto.
public final class MQTTBinding: Binding {
    /// How long an orderly leave may take before the link is cut.
    static let leaveTimeout = Duration.seconds(2)

    private let options: MQTTClientOptions
    private let logger: Logger
    private let wakePipe: WakePipe
    private let membership = Mutex<Membership?>(nil)

    /// Creates a binding; nothing happens before the communication manager starts.
    ///
    /// - Throws: where the system has no descriptors for it.
    public init(options: MQTTClientOptions, logger: Logger = Logger(label: "coaty.mqtt")) throws {
        self.options = options
        self.logger = logger
        wakePipe = try WakePipe()
    }

    /// Starts to connect.
    public func join(_ link: Link) {
        let joined = Membership(wakePipe: wakePipe)
        membership.withLock { $0 = joined }
        let thread = Thread { [options, logger] in
            var loop = NetworkLoop(link: link, options: options, membership: joined, logger: logger)
            loop.run()
            joined.end()
        }
        thread.name = "coaty-mqtt"
        thread.start()
    }

    /// Wakes the network thread.
    public func wake() {
        wakePipe.wake()
    }

    /// Lets the network thread carry out what is left, and ends it.
    public func leave() async {
        guard let left = membership.withLock({ $0.take() }) else { return }
        let timer = Task {
            // A thread that the resolver or connect(2) holds back can't be hurried; it ends later by itself.
            try await Task.sleep(for: Self.leaveTimeout * 2)
            left.end()
        }
        await left.leave()
        timer.cancel()
    }
}

/// One life of the network thread, from join to leave.
final class Membership: Sendable {
    private enum State {
        case joined
        case leaving(CheckedContinuation<Void, Never>)
        case ended
    }

    let wakePipe: WakePipe
    private let state = Mutex(State.joined)

    init(wakePipe: WakePipe) {
        self.wakePipe = wakePipe
    }

    var isLeaving: Bool {
        state.withLock { state in
            if case .joined = state { false } else { true }
        }
    }

    /// Asks the thread to end, and returns when it has, or when ``end()`` says so.
    func leave() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                guard case .joined = state else { return true }
                state = .leaving(continuation)
                return false
            }
            if hasEnded { continuation.resume() } else { wakePipe.wake() }
        }
    }

    func end() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .ended }
            if case .leaving(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume()
    }
}
