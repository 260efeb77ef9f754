extension CommunicationManager: SessionDelegate {
    func received(_ message: InboundMessage) {
        receivedMessages.add(1, ordering: .relaxed)
        switch message.origin {
        case .event(let address): deliver(message, to: EventSelector(address))
        case .raw(_, let selectors, _):
            for selector in selectors { deliver(message, to: selector) }
        }
    }

    func dropped(_ reason: String, label: String) {
        receivedMessages.add(1, ordering: .relaxed)
        dropLog.note(reason, label: label)
    }

    func sessionEnded() { ioAssociations.endAll() }

    private func deliver(_ message: InboundMessage, to selector: EventSelector) {
        guard let dispatcher = session.dispatcher(for: selector) else { return }
        do throws(PayloadError) {
            try dispatcher.deliver(message)
        } catch {
            dropLog.note("an event that is not valid", label: message.label, error: error)
        }
    }
}
