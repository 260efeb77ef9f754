/// A value of an IO actor with its reception time.
public struct ReceivedIoValue: Sendable {
    /// The value.
    public let event: IoValueEvent
    /// When the value was received.
    public let receptionTime: CoatyTimestamp
}

/// The latest value that was received for an IO actor of the agent.
///
/// It observes values from its creation on, as long as it is referenced. The latest value is kept across new
/// associations and restarts of the communication manager. Any thread may read it.
public final class LatestIoValue: Sendable {
    private let state = ObservableState<ReceivedIoValue?>(nil)
    private let subscription: Subscription

    /// Starts to observe values.
    ///
    /// - Parameters:
    ///   - ioActor: an actor of one of the agent's IO nodes.
    ///   - communicationManager: the agent's communication manager.
    public init(ioActor: IoActor, communicationManager: CommunicationManager) {
        let state = state
        subscription = communicationManager.subscribe(permanentlyToIoValuesOf: ioActor.objectId) { event in
            state.send(ReceivedIoValue(event: event, receptionTime: .nowMillis()))
        }
    }

    /// The latest value; nil if none was received yet.
    public var received: ReceivedIoValue? { state.value }

    /// Returns the latest value, or nil if none was received yet, then each new value.
    ///
    /// The stream ends when this object is released.
    public func stream() -> EventStream<ReceivedIoValue?> {
        state.events { $0?.event.footprint ?? 0 }
    }
}
