import Synchronization

extension CommunicationManager: LinkDelegate {
    func linkOpened() {
        // Under the table's lock, so that a subscription that comes now is either among these or queued behind them.
        subscriptions.open { filters, ticket in
            outbox.open(
                subscriptions: filters,
                ticket: ticket,
                joinEvents: ([identityEvent] + ioNodeEvents).flatMap { publications(of: $0, isDeferrable: false) }
            )
        }
        // First the subscriptions, so that who acts when it is online acts behind them.
        binding.wake()
        communicationState.set(.online)
        logger.info("online")
    }

    func linkClosed() {
        var givenUp: [Publication] = []
        // Under the table's lock, so that whoever subscribes sees the same state as the outbox has.
        let cut = subscriptions.close {
            let remains = outbox.close()
            givenUp = remains.publications
            communicationState.set(.offline)
            return remains.wasLeaving ? nil : remains.tickets
        }
        if let cut {
            logger.error(
                "a subscription is left out: the broker cuts the link upon it",
                metadata: ["topic filter": "\(DropLog.short(cut))"]
            )
        }
        // Whoever published one that is not deferrable knows by the state of the link.
        for publication in givenUp where publication.isDeferrable {
            logger.error(
                "not published: the link was lost each time it was sent",
                metadata: ["topic": "\(DropLog.short(publication.topic))", "bytes": "\(publication.payload.count)"]
            )
            if let topic = CommunicationTopic(publication.topic), let correlationId = topic.correlationId,
                let responseType = topic.eventType.responseType
            {
                // Nobody was asked, so nobody will answer.
                subscriptions.end(.response(responseType, correlationId: TopicLevel(correlationId.string)))
            }
        }
    }

    func subscribed(_ ticket: UInt64, refused: [String]) {
        var wake = false
        subscriptions.acknowledge(ticket, refused: refused) { topicFilter, ticket in
            // The next one waits for its answer.
            wake = outbox.subscribe(topicFilter, ticket: ticket, mayBeUndone: false)
        }
        if wake { binding.wake() }
    }

    func received(topic: String, payload: [UInt8]) {
        receivedMessages.add(1, ordering: .relaxed)
        let message = InboundMessage(topic: topic, payload: payload)
        guard let coatyTopic = message.coatyTopic else {
            if RawTopic.isCoaty(topic) {
                dropLog.note("a message on a topic of no Coaty event", topic: topic)
            } else {
                for dispatcher in subscriptions.dispatchers(forRawTopic: topic) { deliver(message, to: dispatcher) }
            }
            return
        }
        // A raw observation by a wildcard may bring in what other namespaces say.
        if coatyTopic.eventType != .ioValue, let observedNamespace,
            TopicLevel(coatyTopic.namespace) != TopicLevel(observedNamespace)
        {
            return
        }
        // The topic of IO values is one route, to be observed as it is.
        let key = coatyTopic.eventType == .ioValue ? .topic(TopicLevel(topic)) : SubscriptionTable.Key(coatyTopic)
        if let dispatcher = subscriptions.dispatcher(for: key) { deliver(message, to: dispatcher) }
    }

    func receivedTooLong() {
        receivedMessages.add(1, ordering: .relaxed)
        dropLog.count()
    }

    private func deliver(_ message: InboundMessage, to dispatcher: any Dispatching) {
        do throws(PayloadError) {
            try dispatcher.deliver(message)
        } catch {
            dropLog.note("an event that is not valid", topic: message.topic, error: error)
        }
    }
}
