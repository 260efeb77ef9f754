import Access
import Base
import Cluster
import Coaty
import Edge
import Feeds
import Gate
import HTTPServer
import Logs
import Measurement
import Network
import WebSocketServer

/// The sources of the gateway's metrics. docs/metrics.md describes each.
extension Metrics {
    func add(_ server: HTTPServer) {
        add { text in
            let routes = server.routeStatistics
            func labels(_ route: HTTPServer.RouteStatistics) -> MetricsText.Labels {
                [("route", route.pathTemplate), ("method", route.method?.rawValue ?? "other")]
            }
            text.counter(
                "http_requests_total",
                "HTTP requests by route, method and status. Status 0: the client disconnected before the response.",
                routes.flatMap { route in
                    route.responses.map { response in
                        let status = response.status.map(String.init) ?? "other"
                        return (labels(route) + [("status", status)], Double(response.count))
                    }
                }
            )
            text.histogram(
                "http_request_duration_seconds",
                "Time from the head of a request to the end of its response, or to the head of a stream.",
                routes.map { (labels($0), $0.durations) }
            )
            let statistics = server.statistics
            text.gauge("http_connections", "Open HTTP connections.", statistics.connections)
            text.gauge("http_streams", "Open event streams and NDJSON responses.", statistics.streams)
            text.gauge("http_pending_requests", "Requests that wait for their response.", statistics.pending)
            text.counter(
                "http_rejected_connections_total",
                "HTTP connections that were refused because too many were open.",
                statistics.rejectedConnections
            )
        }
    }

    func add(_ log: LogControl) {
        add { text in
            text.counter(
                "log_messages_total",
                "Log messages by level, including repeated ones that are only counted.",
                log.messages.map { ([("level", $0.level.rawValue)], Double($0.count)) }
            )
            text.counter(
                "log_lines_dropped_total",
                "Log lines that were dropped, because the log was not read fast enough.",
                log.droppedLines
            )
        }
    }

    func add(_ server: WebSocketServer) {
        add { text in
            let statistics = server.statistics
            text.gauge("websocket_connections", "Open WebSockets.", statistics.open)
            text.counter(
                "websocket_handshakes_total",
                "WebSocket handshakes by result.",
                [
                    ([("result", "accepted")], Double(statistics.accepted)),
                    ([("result", "refused")], Double(statistics.refused)),
                    ([("result", "timeout")], Double(statistics.handshakeTimeouts)),
                ]
            )
            text.counter(
                "websocket_messages_total",
                "WebSocket messages by direction.",
                [
                    ([("direction", "in")], Double(statistics.messagesReceived)),
                    ([("direction", "out")], Double(statistics.messagesSent)),
                ]
            )
            text.counter(
                "websocket_bytes_total",
                "Bytes of WebSocket messages by direction, as they are sent.",
                [
                    ([("direction", "in")], Double(statistics.bytesReceived)),
                    ([("direction", "out")], Double(statistics.bytesSent)),
                ]
            )
        }
    }

    func add(_ relay: TLSRelay, _ certificates: CertificateStore) {
        add { text in
            let failures = relay.failures
            text.counter(
                "tls_handshakes_total",
                "TLS connections by result: served, or failed before a request, for a reason.",
                [([("result", "served"), ("reason", "")], Double(relay.served))]
                    + HandshakeFailure.allCases.map { failure in
                        ([("result", "failed"), ("reason", failure.rawValue)], Double(failures[failure] ?? 0))
                    }
            )
            text.gauge(
                "tls_certificate_expiry_timestamp_seconds",
                "When the certificate in use expires, in seconds since 1970.",
                Int(certificates.context.expiry)
            )
        }
    }

    func add(_ counts: OperationCounts) {
        add { text in
            text.counter(
                "operations_total",
                "Operations of clients by verb, pattern and outcome, counted before the client gets their end: done, denied"
                    + " (401, 403, 404), limited (429, 503, or the end `overflow`), failed (other errors, or the end `offline`),"
                    + " or abandoned (the connection closed before the end of a request, or before a subscription began).",
                counts.all.map { kind, outcome, count in
                    let labels: MetricsText.Labels = [
                        ("verb", kind.verb.rawValue), ("pattern", kind.pattern.rawValue), ("outcome", "\(outcome)"),
                    ]
                    return (labels, Double(count))
                }
            )
        }
    }

    func add(_ idempotency: IdempotencyTable) {
        add { text in
            text.counter(
                "idempotency_replays_total",
                "Requests that got the response to an earlier request with the same Idempotency-Key.",
                idempotency.replays
            )
        }
    }

    /// Adds the counters of the parts of the gateway that act in the network.
    func add(_ network: NetworkParts) {
        add { [control = network.control] text in
            text.gauge("paused", "1 if the gateway is paused, and accepts no new work.", control.isPaused ? 1 : 0)
        }
        add(network.feeds)
        add { text in
            let sessions = network.sessions.map { (label: [("session", $0.kind.rawValue)], messages: $0) }
            text.counter(
                "broker_messages_received_total",
                "Messages from the broker, by the kind of session.",
                sessions.map { ($0.label, Double($0.messages.received)) }
            )
            text.counter(
                "broker_messages_published_total",
                "Publications sent to the broker, by the kind of session.",
                sessions.map { ($0.label, Double($0.messages.published)) }
            )
        }
        add(network.manager)
        add(network.routing)
        if let peers = network.peers { add(peers) }
        add(network.requestCount)
        if let memory = network.residentMemory { add(network.accounts, memory, network.feeds.counts) }
    }

    func add(_ peers: Peers) {
        add { text in
            let cluster = ClusterStatus(peers)
            text.gauge(
                "cluster_gateways",
                "Other gateways of the cluster by state: live, stopping, missing (they send no messages), or left.",
                ClusterStatus.states.map { state in
                    ([("state", state.rawValue)], Double(cluster.gateways.count { $0.state == state }))
                }
            )
            text.counter(
                "cluster_loops_total",
                "Messages of this gateway that the broker has delivered again: a loop of bridges.",
                cluster.loops
            )
            text.counter(
                "cluster_unreadable_messages_total",
                "Messages for gateways that this one could not read: another secret, or not from a gateway.",
                peers.unreadableMessages
            )
        }
    }

    func add(_ feeds: FeedHub) {
        add { text in
            let streams = feeds.streams.statistics
            text.gauge("feeds", "Feeds. Equal subscriptions share a feed.", feeds.count)
            text.gauge(
                "mirrored_feeds",
                "Feeds that are kept only for clients of other gateways of the cluster, in addition to `feeds`.",
                feeds.mirrorCount
            )
            text.gauge("subscriptions", "Subscriptions of clients.", streams.subscriptions)
            text.gauge("stream_connections", "Connections that have subscriptions.", streams.connections)
            text.counter("events_delivered_total", "Events handed to the connections of clients.", streams.delivered)
            text.counter(
                "events_dropped_total",
                "Events that were dropped for a client, by reason. The client gets a gap instead.",
                [
                    ([("reason", "slow_client")], Double(streams.dropped)),
                    ([("reason", "expensive_filter")], Double(streams.leftOut)),
                ]
            )
            text.counter(
                "feed_gaps_total",
                "Gaps for all subscriptions of a feed, by reason: offline (the session with the broker was lost), missed (the broker may have dropped events, or an event was too large), or invalid (events could not be read).",
                FeedCounts.Gap.allCases.map { ([("reason", "\($0)")], Double(feeds.counts.gaps($0))) }
            )
            text.counter(
                "feed_overflows_total",
                "How often a gap replaced the oldest events of a feed, because the workers did not keep up.",
                feeds.counts.droppedBacklogs
            )
            text.gauge(
                "slow_lanes",
                "Feeds from which a client gets events after other clients, because its subscriptions take much work. Counted for each such client.",
                feeds.counts.currentSlowLanes
            )
            text.counter(
                "slow_lane_overflows_total",
                "How often a gap replaced the oldest events of a feed for one client, because its subscriptions took more work than its share.",
                feeds.counts.droppedForClients
            )
            text.counter(
                "replays_total",
                "Resumed subscriptions by outcome: complete, peer (complete after the cursor of another gateway), gap (the oldest events were no longer stored), or unknown (the cursor was not valid).",
                FeedCounts.Replay.allCases.map { ([("outcome", "\($0)")], Double(feeds.counts.replays($0))) }
            )
            text.gauge("queued_events", "Events queued for slow clients.", streams.queued)
            text.gauge("queued_bytes", "Bytes of events queued for slow clients.", streams.queuedBytes)
            text.histogram(
                "event_wait_seconds",
                "Time that events wait in a feed until a worker delivers them.",
                [([], feeds.counts.waits.snapshot)]
            )
        }
    }

    func add(_ manager: CommunicationManager) {
        add { text in
            let session = manager.statistics
            text.gauge("broker_connected", "1 if the gateway is online.", session.state == .online ? 1 : 0)
            text.counter("broker_reconnects_total", "Broker connections after the first.", session.reconnects)
            text.counter(
                "broker_messages_invalid_total",
                "Messages that were dropped because they were too large or not valid events.",
                session.invalid
            )
            text.counter(
                "broker_messages_deferred_total",
                "Publications that were accepted while the gateway was offline.",
                session.deferred
            )
            text.gauge("broker_queued_messages", "Publications queued for the broker.", session.queued)
            text.gauge("broker_queued_bytes", "Bytes of publications queued for the broker.", session.queuedBytes)
            text.gauge(
                "broker_publish_lag_seconds",
                "How long the oldest publication has been queued for the broker.",
                [([], session.publishLag.map { $0 / .seconds(1) } ?? 0)]
            )
            text.gauge(
                "broker_refused_subscriptions",
                "Subscriptions that the broker refuses.",
                session.refusedSubscriptions
            )
        }
    }

    func add(_ routing: RoutingAdmin) {
        add { text in
            text.histogram(
                "routing_evaluation_seconds",
                "Time to apply a change of an IO context that the gateway routes, and to decide on its associations.",
                [([], routing.evaluations.snapshot)]
            )
        }
    }

    func add(_ authenticator: Authenticator) {
        add { text in
            text.counter(
                "jwt_tokens_total",
                "Tokens of the identity provider that were presented, by outcome.",
                authenticator.tokens.all.map { ([("outcome", $0.outcome.rawValue)], Double($0.count)) }
            )
            let store = authenticator.access.policy.verifier?.keys
            text.gauge("jwt_keys", "Keys to verify tokens with.", store?.keys?.keys.count ?? 0)
            text.gauge(
                "jwks_age_seconds",
                "Time since the keys were last fetched from their URL.",
                (store?.fetched).map { [([], (ContinuousClock.now - $0) / .seconds(1))] } ?? []
            )
        }
    }

    func add(_ requests: RequestCount) {
        add { text in
            text.counter("requests_total", "Coaty requests of clients: discover, query, update, call.", requests.total)
            text.gauge("pending_requests", "Coaty requests that wait for responses.", requests.pending)
        }
    }

    func add(_ accounts: Accounts, _ resident: ResidentMemory, _ feeds: FeedCounts) {
        add { text in
            let memory = MemoryStatus(accounts, resident, feeds)
            text.gauge(
                "memory_bytes",
                "Memory by part: growth of the resident memory since the start (resident), memory for clients (clients), events that wait for workers (feeds).",
                [
                    ([("part", "resident")], Double(memory.resident)), ([("part", "clients")], Double(memory.charged)),
                    ([("part", "feeds")], Double(memory.feeds)),
                ]
            )
            text.gauge(
                "memory_limit_bytes",
                "Maximum memory by part.",
                [
                    ([("part", "resident")], Double(memory.maximumResident)),
                    ([("part", "clients")], Double(memory.maximumCharged)),
                    ([("part", "feeds")], Double(memory.maximumFeeds)),
                ]
            )
            text.counter(
                "memory_closed_connections_total",
                "Connections that were closed because the memory was used up.",
                memory.closed
            )
            let resources = Resource.allCases.filter { $0 != .unauthenticated }
            text.gauge(
                "resource_used",
                "Amount of a resource that all clients together use.",
                resources.map { ([("resource", $0.label)], Double(accounts.used($0))) }
            )
            text.gauge(
                "resource_limit",
                "Maximum amount of a resource for all clients together.",
                resources.map { ([("resource", $0.label)], Double(accounts.limits[$0].total)) }
            )
            text.counter(
                "limits_reached_total",
                "Refusals and delays of clients, by limit and scope: the client's share (own) or the whole resource (all) was used up.",
                accounts.refusals.all.sorted { "\($0.key)" < "\($1.key)" }.map { reason, count in
                    ([("limit", reason.kind.label), ("scope", reason.exhaustion.label)], Double(count))
                }
            )
        }
    }
}

extension Resource {
    /// The name in metrics.
    fileprivate var label: String { name.lowercased().replacing(" ", with: "_") }
}
