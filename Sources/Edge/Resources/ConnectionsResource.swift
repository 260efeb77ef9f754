import Base
import Feeds
import Gate
import HTTPServer

/// `/v1/admin/connections`: lists the open connections of clients, and ends one.
struct ConnectionsResource: Sendable {
    static let defaultLimit = 100
    static let maximumLimit = 1000

    let gate: Gate

    private static let path = "/v1/admin/connections"
    private static let disconnected = HTTPResponse(status: 204)

    func register(in router: inout GatewayRouter) {
        router.on(.get, Self.path, query: ["limit"]) { [gate] request, principal in
            let parameters = QueryParameters(request, limits: gate.limits)
            // Not on the thread of the request, because the lock of each connection is taken.
            return .awaiting {
                let limit = try parameters.integer("limit", in: 1...Self.maximumLimit) ?? Self.defaultLimit
                return .json(Self.json(try gate.perform(ReadConnections(limit: limit), by: principal)))
            }
        }
        router.on(.delete, Self.path + "/{id}") { [gate] request, principal in
            let number = request.parameters["id"].flatMap(Int.init)
            return .performing {
                try gate.perform(Disconnect(number: number), by: principal)
                return Self.disconnected
            }
        }
    }

    private static func json(_ listing: ClientConnections.Listing) -> [UInt8] {
        var json = Array(#"{"connections":"#.utf8)
        JSONText.appendArray(listing.connections, to: &json) { append($0.connection, $0.statistics, to: &$1) }
        return json + #","total":\#(listing.total)}"#.utf8
    }

    private static func append(
        _ connection: ClientConnection,
        _ statistics: OutboundQueue.Statistics,
        to json: inout [UInt8]
    ) {
        json += #"{"id":\#(connection.number),"client":"#.utf8
        JSONText.append("\(connection.client)", to: &json)
        json += #","address":"#.utf8
        JSONText.append(connection.address, to: &json)
        if let identity = connection.identity() {
            json += #","identity":"#.utf8
            json += identity.identity
        }
        let queued = statistics.subscriptions.reduce(0) { $0 + $1.queued }
        json +=
            """
            ,"transport":"\(connection.transport.rawValue)","opened":\(Int(connection.opened)),\
            "subscriptions":\(statistics.subscriptions.count),"requests":\(statistics.requests),\
            "delivered":\(statistics.delivered),"dropped":\(statistics.dropped),\
            "queued":\(queued),"queuedBytes":\(statistics.queuedBytes)}
            """.utf8
    }
}
