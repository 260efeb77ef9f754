extension CommunicationManager: SessionDelegate {
    func received(_ message: InboundMessage) {
        countReceived()
        switch message.origin {
        case .event(let address): session.deliver(message, to: EventSelector(address), dropLog)
        case .raw(_, let selectors, _):
            for selector in selectors { session.deliver(message, to: selector, dropLog) }
        }
    }

    func dropped(_ reason: String, label: String, origin: InboundMessage.Origin?) {
        countReceived()
        dropLog.note(reason, label: label)
        session.noteGap(origin)
    }

    private func countReceived() {
        receivedMessages.add(1, ordering: .relaxed)
        session.configuration.messageCounts.countReceived()
    }

    func mayHaveMissed() {
        dropLog.noteCongestion()
        session.noteGap()
    }

    func sessionEnded() { ioAssociations.endAll() }
}
