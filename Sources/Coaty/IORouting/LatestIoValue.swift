/// A value of an IO actor, and when it came.
public struct ReceivedIoValue: Sendable {
    /// The value.
    public let event: IoValueEvent
    /// When it came.
    public let receptionTime: CoatyTimestamp
}

/// The latest value that came for an IO actor of the agent.
///
/// It observes values from its creation on, as long as it is referenced. What came last stays the latest over new
/// associations and over restarts of the communication manager. Any thread may ask.
public final class LatestIoValue: Sendable {
    private let state = ObservableState<ReceivedIoValue?>(nil)
    private let subscription: Subscription

    /// Starts to observe.
    ///
    /// - Parameters:
    ///   - ioActor: an actor of one of the agent's IO nodes.
    ///   - communicationManager: the agent's.
    public init(ioActor: IoActor, communicationManager: CommunicationManager) {
        let state = state
        subscription = communicationManager.subscribe(permanentlyToIoValuesOf: ioActor.objectId) { event in
            state.send(ReceivedIoValue(event: event, receptionTime: .nowMillis()))
        }
    }

    /// The latest value; nil where none has come yet.
    public var received: ReceivedIoValue? { state.value }

    /// The latest value, or nil where none has come yet, then each value that comes.
    ///
    /// The stream keeps ``CommunicationManager/streamBuffer`` values for a reader that is behind; then the oldest are
    /// dropped. It ends when this is released.
    public func stream() -> AsyncStream<ReceivedIoValue?> {
        state.stream(buffering: CommunicationManager.streamBuffer)
    }
}
