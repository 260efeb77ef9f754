/// The association state and update rate of an IO point of the agent, across restarts of the communication manager.
final class IoPointState: Sendable {
    let isAssociated = ObservableState(false)
    let updateRate = ObservableState<Int?>(nil)
    private let subscription: Subscription

    init(of ioPoint: IoPoint, _ communicationManager: CommunicationManager) {
        subscription = communicationManager.subscribe(permanentlyToIoStateOf: ioPoint.objectId) {
            [isAssociated, updateRate] event in
            isAssociated.set(event.hasAssociations)
            updateRate.set(event.updateRate)
        }
    }
}
