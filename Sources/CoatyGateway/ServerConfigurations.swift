import Base
import Edge
import HTTPServer
import WebSocketServer

/// The configurations of the gateway's servers.
struct ServerConfigurations {
    let settings: GatewaySettings
    let descriptors: DescriptorLimit
    let refusals: ConnectionRefusals
    let requestLog: RequestLog
    let spread: ReconnectSpread
    let drain: Drain

    /// Half of the connections, because each of the two protocols gets the same number.
    private var maximumConnections: Int {
        min(descriptors.connections, settings.limits[.connections].total / 2)
    }

    /// Returns the configuration of the server of the API and the console.
    func rest(_ services: ClientServices) -> HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration()
        configuration.refuse = refusals.refuse
        configuration.reports = requestLog.reports
        configuration.ended = services.charge
        configuration.maximumBodySize = settings.limits.bodySize
        configuration.maximumDiscardedBodySize = settings.limits.discardedBodySize
        configuration.discardTimeout = settings.limits.discardTimeout
        configuration.maximumHeaderSize = settings.limits.headerSize
        configuration.sizeNames = ("maximum-body-size", "maximum-header-size")
        configuration.connectionLimit = maximumConnections
        configuration.connectionTimeout = settings.limits.connectionTimeout
        configuration.keepAliveTimeout = settings.limits.keepAliveTimeout
        configuration.requestTimeout = settings.limits.requestTimeout
        configuration.maximumPending = settings.limits[.requests].total
        configuration.maximumStreams = settings.limits.streams
        configuration.threads = settings.limits.httpThreads
        configuration.stopTimeout = RESTService.sendTimeout
        configuration.keepsConnections = { [drain] in !drain.isDraining }
        configuration.drainRetryAfter = 0...spread.seconds
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }

    /// The configuration of the servers of health checks: one thread that no other work delays. Their connections serve
    /// one request each, because the next request could be of another kind.
    var probes: HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration()
        configuration.threads = 1
        configuration.connectionLimit = 32
        configuration.connectionTimeout = 5
        configuration.requestTimeout = 5
        configuration.discardTimeout = 5
        configuration.keepsConnections = { false }
        configuration.reports = requestLog.reports
        configuration.stopTimeout = .milliseconds(100)
        configuration.refuse = refusals.refuse
        configuration.problemTypePrefix = Problems.typePrefix
        return configuration
    }

    /// The configuration of the WebSocket server.
    var streams: WebSocketServer.Configuration {
        var configuration = WebSocketServer.Configuration()
        configuration.refuse = refusals.refuse
        configuration.maximumConnections = maximumConnections
        configuration.maximumPendingHandshakes = descriptors.undecided
        configuration.maximumMessageSize = settings.limits.bodySize
        configuration.handshakeTimeout = .seconds(settings.limits.handshakeTimeout)
        configuration.subprotocols = [WebSocketEndpoint.subprotocol]
        configuration.allowsCompression = settings.isWebSocketCompressed
        configuration.stopCode = CloseCode.shuttingDown.rawValue
        configuration.unresponsiveCode = CloseCode.unresponsive.rawValue
        configuration.stopReason = { [spread] in spread.closeReason() }
        configuration.problemTypePrefix = Problems.typePrefix
        configuration.upgradeRequired = { path in WebSocketEndpoint.upgradeRequired(at: path).body }
        return configuration
    }
}
