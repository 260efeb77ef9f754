import Coaty
import HTTPServer

/// `GET /v1/status`: the current state of the gateway, and its counters since it was started.
struct StatusResource: Sendable {
    let gate: Gate
    /// The broker's address, without credentials.
    let brokerAddress: String
    let isBrokerEmbedded: Bool
    /// When the gateway was started.
    let started: CoatyTimestamp

    func register(in router: inout GatewayRouter) {
        router.on(.get, "/v1/status") { _, principal in
            .performing { .json(json(try gate.perform(ReadStatus(), by: principal))) }
        }
    }

    private func json(_ status: ReadStatus.Outcome) -> [UInt8] {
        let (session, streams, memory) = (status.session, status.streams, status.memory)
        var json = Array(#"{"version":"\#(Gateway.version)","started":\#(Int(started)),"broker":{"address":"#.utf8)
        JSONText.append(brokerAddress, to: &json)
        json +=
            """
            ,"embedded":\(isBrokerEmbedded),"state":"\(session.state.rawValue)","since":\(Int(session.since)),\
            "reconnects":\(session.reconnects),"refusedSubscriptions":\(session.refusedSubscriptions)
            """.utf8
        if let error = session.connectionError {
            json += #","error":{"reason":"\#(error.reason.rawValue)","message":"#.utf8
            JSONText.append(error.message, to: &json)
            json.append(UInt8(ascii: "}"))
        }
        json +=
            """
            },"events":{"received":\(session.received),"published":\(session.published),"deferred":\(session.deferred),\
            "queued":\(session.queued),"queuedBytes":\(session.queuedBytes),"invalid":\(session.invalid)},\
            "streams":{"connections":\(streams.connections),"subscriptions":\(streams.subscriptions),\
            "delivered":\(streams.delivered),"dropped":\(streams.dropped),"leftOut":\(streams.leftOut),\
            "queued":\(streams.queued),\
            "queuedBytes":\(streams.queuedBytes),"maximumQueuedBytes":\(memory.maximumCharged)},\
            "feeds":{"queuedBytes":\(memory.feeds),"maximumQueuedBytes":\(memory.maximumFeeds),\
            "overflows":\(status.feedOverflows)},\
            "memory":{"resident":\(memory.resident),"maximumResident":\(memory.maximumResident),\
            "charged":\(memory.charged),"maximumCharged":\(memory.maximumCharged),"closedConnections":\(memory.closed)},\
            "refused":{"ownShare":\(memory.refusedOwn),"all":\(memory.refusedAll)},\
            "requests":{"pending":\(status.pendingRequests),"total":\(status.totalRequests)}
            """.utf8
        guard status.maySeeClients else { return json + "}".utf8 }
        json += #","slowConsumers":["#.utf8
        for (index, consumer) in streams.slowConsumers.enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            append(consumer, to: &json)
        }
        json += "]}".utf8
        return json
    }

    private func append(_ consumer: ClientConnections.SlowConsumer, to json: inout [UInt8]) {
        let subscription = consumer.subscription
        json += #"{"connection":\#(consumer.connection),"transport":"\#(consumer.transport.rawValue)""#.utf8
        if let id = subscription.id {
            json += #","id":"#.utf8
            JSONText.append(id, to: &json)
        }
        json +=
            """
            ,"event":"\(subscription.event.rawValue)","queued":\(subscription.queued),\
            "queuedBytes":\(subscription.queuedBytes),"dropped":\(subscription.dropped),\
            "overflow":"\(subscription.overflow.rawValue)"}
            """.utf8
    }
}
