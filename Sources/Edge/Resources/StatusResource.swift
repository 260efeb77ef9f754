import Base
import Coaty
import Feeds
import Gate
import HTTPServer
import Measurement
import Network

/// `GET /v1/status`: the current state of the gateway, and its counters since it was started.
struct StatusResource: Sendable {
    /// Maximum number of listed senders of events that could not be read.
    private static let maximumInvalidSenders = 20

    let gate: Gate
    /// The broker's address, without credentials.
    let brokerAddress: String
    let isBrokerEmbedded: Bool
    /// When the gateway was started.
    let started: CoatyTimestamp
    let use: HTTPUse

    func register(in router: inout GatewayRouter) {
        router.on(.get, "/v1/status") { _, principal in
            // Not on the thread of the request, because many locks are taken.
            .awaiting { .json(json(try gate.perform(ReadStatus(), by: principal))) }
        }
    }

    private func json(_ status: ReadStatus.Outcome) -> [UInt8] {
        let (session, streams, memory) = (status.session, status.streams, status.memory)
        var json = Array(#"{"version":"\#(GatewayVersion.text)","started":\#(Int(started)),"#.utf8)
        json += #""paused":\#(status.isPaused),"broker":{"address":"#.utf8
        JSONText.append(brokerAddress, to: &json)
        json +=
            """
            ,"embedded":\(isBrokerEmbedded),"state":"\(session.state.rawValue)","since":\(Int(session.since)),\
            "reconnects":\(session.reconnects),"refusedSubscriptions":\(session.refusedSubscriptions),\
            "refusedPublications":\(session.provenPublications)
            """.utf8
        let suspects = session.suspects
        json +=
            """
            ,"suspects":{"clients":\(suspects.clients),"kinds":\(suspects.kinds),"size":\(suspects.size.map(String.init) ?? "null"),\
            "refused":\(suspects.refusals),"queued":\(suspects.queued)}
            """.utf8
        let properties = session.properties
        if let version = properties.protocolVersion { json += #","mqttVersion":"\#(version)""#.utf8 }
        if let size = properties.maximumPacketSize { json += #","maximumPacketSize":\#(size)"#.utf8 }
        if let seconds = properties.keepAlive { json += #","keepAlive":\#(seconds)"#.utf8 }
        if properties.protocolVersion != nil {
            json += #","retainAvailable":\#(properties.isRetainAvailable)"#.utf8
            json += #","wildcardsAvailable":\#(properties.areWildcardsAvailable)"#.utf8
        }
        if let error = session.connectionError {
            json += #","error":{"reason":"\#(error.reason.rawValue)","message":"#.utf8
            JSONText.append(error.message, to: &json)
            json.append(UInt8(ascii: "}"))
        }
        json +=
            """
            },"events":{"received":\(status.sessions.reduce(0) { $0 + $1.received }),\
            "published":\(status.sessions.reduce(0) { $0 + $1.published }),"deferred":\(session.deferred),\
            "queued":\(session.queued),"queuedBytes":\(session.queuedBytes),"invalid":\(session.invalid),\
            "lag":\(session.publishLag.map { Int($0 / .milliseconds(1)) } ?? 0),\
            "sessions":{\(status.sessions.map(text).joined(separator: ","))}},\
            "streams":{"connections":\(streams.connections),"subscriptions":\(streams.subscriptions),\
            "delivered":\(streams.delivered),"dropped":\(streams.dropped),"leftOut":\(streams.leftOut),\
            "queued":\(streams.queued),\
            "queuedBytes":\(streams.queuedBytes),"maximumQueuedBytes":\(memory.maximumCharged)},\
            "feeds":{"queuedBytes":\(memory.feeds),"maximumQueuedBytes":\(memory.maximumFeeds),\
            "overflows":\(status.feedOverflows),"waits":\(text(status.waits))},\
            "memory":{"resident":\(memory.resident),"maximumResident":\(memory.maximumResident),\
            "charged":\(memory.charged),"maximumCharged":\(memory.maximumCharged),"closedConnections":\(memory.closed)},\
            "refused":{"ownShare":\(memory.refusedOwn),"all":\(memory.refusedAll),"limits":
            """.utf8
        let limits = status.refusals.sorted { ($0.value, $1.key.kind.label) > ($1.value, $0.key.kind.label) }
        JSONText.appendArray(limits, to: &json) { limit, json in
            let (reason, count) = limit
            json +=
                #"{"limit":"\#(reason.kind.label)","scope":"\#(reason.exhaustion.label)","count":\#(count)}"#.utf8
        }
        json += #"},"otherNamespaces":"#.utf8
        JSONText.appendArray(status.otherNamespaces, to: &json) { namespace, json in
            json += #"{"namespace":"#.utf8
            JSONText.append(namespace.name, to: &json)
            json += #","agents":\#(namespace.agents)}"#.utf8
        }
        if let cluster = status.cluster { append(cluster, to: &json) }
        let http = use.figures
        json +=
            """
            ,"requests":{"pending":\(status.pendingRequests),"total":\(status.totalRequests)},\
            "http":{"connections":\(http.connections),"streams":\(http.streams),"pending":\(http.pending),\
            "answered":\(http.answered),"failed":\(http.failed),"durations":\(text(http.durations))}
            """.utf8
        if let clients = status.topClients {
            json += #","topClients":"#.utf8
            JSONText.appendArray(clients, to: &json, append)
            json += #","slowConsumers":"#.utf8
            JSONText.appendArray(streams.slowConsumers, to: &json, append)
            json += #","invalidSenders":"#.utf8
            let senders = session.invalidBySender.sorted { ($0.value, $1.key.string) > ($1.value, $0.key.string) }
            JSONText.appendArray(Array(senders.prefix(Self.maximumInvalidSenders)), to: &json) { sender, json in
                json += #"{"sourceId":"#.utf8
                JSONText.append(sender.key.string, to: &json)
                json += #","events":\#(sender.value)}"#.utf8
            }
        }
        json.append(UInt8(ascii: "}"))
        return json
    }

    private func append(_ cluster: ClusterStatus, to json: inout [UInt8]) {
        json += #","cluster":{"identity":"\#(cluster.identity)","loops":\#(cluster.loops),"gateways":"#.utf8
        JSONText.appendArray(cluster.gateways, to: &json) { gateway, json in
            json +=
                """
                {"identity":"\(gateway.identity)","state":"\(gateway.state.rawValue)",\
                "silent":\(Int(gateway.silence / .milliseconds(1)))}
                """.utf8
        }
        json += #","contexts":"#.utf8
        JSONText.appendArray(cluster.contexts, to: &json) { context, json in
            let speaker = context.speaker.map { #","speaker":"\#($0)""# } ?? ""
            json +=
                """
                {"contextId":"\(context.contextId)"\(speaker),"term":\(context.version.term),\
                "version":\(context.version.counter),"ready":\(context.isReady)}
                """.utf8
        }
        json.append(UInt8(ascii: "}"))
    }

    private func text(_ sessions: SessionMessages) -> String {
        #""\#(sessions.kind.rawValue)":{"received":\#(sessions.received),"published":\#(sessions.published)}"#
    }

    /// Returns the JSON text of a histogram, with bounds in milliseconds.
    private func text(_ durations: DurationHistogram.Snapshot) -> String {
        let bounds = DurationHistogram.bounds.map { bound in
            bound % 1000 == 0 ? "\(bound / 1000)" : "\(Double(bound) / 1000)"
        }
        return #"{"bounds":[\#(bounds.joined(separator: ","))],"counts":\#(durations.counts)}"#
    }

    private func append(_ client: ClientCost, to json: inout [UInt8]) {
        json += #"{"client":"#.utf8
        JSONText.append("\(client.client)", to: &json)
        json +=
            """
            ,"work":\(client.work),"delayed":\(client.isDelayed),"publications":\(client.publications),\
            "publishedBytes":\(client.publishedBytes),"memory":\(client.memory),"connections":\(client.connections),\
            "subscriptions":\(client.subscriptions),"pendingRequests":\(client.pendingRequests)}
            """.utf8
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
