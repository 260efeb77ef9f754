extension CommunicationManager: SessionDelegate {
    func received(_ message: InboundMessage) {
        receivedMessages.add(1, ordering: .relaxed)
        switch message.origin {
        case .event(let address): session.deliver(message, to: EventSelector(address), dropLog)
        case .raw(_, let selectors, _):
            for selector in selectors { session.deliver(message, to: selector, dropLog) }
        }
    }

    func dropped(_ reason: String, label: String) {
        receivedMessages.add(1, ordering: .relaxed)
        dropLog.note(reason, label: label)
    }

    func sessionEnded() { ioAssociations.endAll() }
}
