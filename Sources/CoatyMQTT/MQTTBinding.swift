public import Coaty
import Foundation
public import Logging
import Synchronization

/// Binds an agent to an MQTT 3.1.1 broker by libmosquitto.
///
/// QoS 0 and a clean session, as Coaty has it. The binding has a network thread of its own from ``join(_:)`` to
/// ``leave()``; it is the only one that uses libmosquitto.
public final class MQTTBinding: Binding {
    /// Maximum time of an orderly leave; then the connection is closed.
    static let leaveTimeout = Duration.milliseconds(800)
    /// Maximum time that ``leave()`` waits for the network thread.
    static let threadTimeout = Duration.seconds(1)

    private let options: MQTTClientOptions
    private let logger: Logger
    private let wakePipe: WakePipe
    private let thread = Mutex<NetworkThread?>(nil)

    /// Creates a binding; nothing happens before the communication manager starts.
    ///
    /// - Throws: ``ConnectionError`` if the system has no descriptors for it.
    public init(options: MQTTClientOptions, logger: Logger = Logger(label: "coaty.mqtt")) throws {
        self.options = options
        self.logger = logger
        wakePipe = try WakePipe()
    }

    /// Starts to connect.
    public func join(_ session: BindingSession) {
        let joined = NetworkThread()
        thread.withLock { $0 = joined }
        let thread = Thread { [options, wakePipe, logger] in
            NetworkLoop(session: session, options: options, wakePipe: wakePipe, logger: logger).run()
            joined.end()
        }
        thread.name = "coaty-mqtt"
        thread.start()
    }

    /// Wakes the network thread.
    public func wake() { wakePipe.wake() }

    /// Lets the network thread carry out what is left, and returns when it has ended.
    public func leave() async {
        guard let left = thread.withLock({ $0.take() }) else { return }
        let timer = Task {
            // A thread that is held back by name resolution can't be hurried; it ends later by itself.
            try await Task.sleep(for: Self.threadTimeout)
            left.end()
        }
        wakePipe.wake()
        await left.untilEnd()
        timer.cancel()
    }

    /// The IoValue topic of the source.
    public func ioRoute(ofSource sourceId: CoatyUUID, namespace: String) -> String {
        MQTTTopic.topic(of: EventAddress(.ioValue, namespace: namespace, sourceId: sourceId))
    }

    /// An external topic, or the IoValue topic of a source.
    public func isIoRoute(_ route: String) -> Bool { MQTTTopic.isIoRoute(route) }

    /// A topic without wildcards that is not one of Coaty's.
    public func isPublishable(rawTopic: String) -> Bool { MQTTTopic.isPublishable(rawTopic) }

    /// A topic filter that does not select Coaty's topics only.
    public func isObservable(rawTopicFilter: String) -> Bool { MQTTTopic.isObservable(rawTopicFilter) }
}

/// The end of a network thread.
private final class NetworkThread: Sendable {
    private enum State {
        case running
        case awaited(CheckedContinuation<Void, Never>)
        case ended
    }

    private let state = Mutex(State.running)

    /// Returns when the thread has ended, or when it is no longer waited for.
    func untilEnd() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                guard case .running = state else { return true }
                state = .awaited(continuation)
                return false
            }
            if hasEnded { continuation.resume() }
        }
    }

    func end() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .ended }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume()
    }
}
