import Coaty
import HTTPServer

/// `POST /v1/io/sources/{objectId}/values` and `GET /v1/io/actors/{objectId}/value`: publishes a value of a registered
/// IO source, and returns the latest value of a registered IO actor.
///
/// Both run to completion on the thread that read the request. The bytes of values are passed on unchanged.
struct IoValuesResource: Sendable {
    let registry: IoNodeRegistry

    private static let json = "application/json"
    private static let octets = "application/octet-stream"
    private static let none = HTTPResponse(status: 204, headers: [("Cache-Control", "no-store")])

    func register(in router: inout Router) {
        router.on(.post, "/v1/io/sources/{objectId}/values") { request in
            guard let source = request.objectId.flatMap(registry.source) else {
                return .response(Problems.notRegistered("IO source").response())
            }
            let mediaType = source.isRaw ? Self.octets : Self.json
            guard request.hasContentType(mediaType) else {
                return .response(Problems.unsupportedMediaType(mediaType))
            }
            do {
                try source.publish(request.body)
            } catch {
                return .response(Problems.response(error))
            }
            return .response(
                HTTPResponse(status: 202, headers: [("Content-Type", Self.json)], body: "{\(source.state.members)}")
            )
        }
        router.on(.get, "/v1/io/actors/{objectId}/value") { request in
            guard let actor = request.objectId.flatMap(registry.actor) else {
                return .response(Problems.notRegistered("IO actor").response())
            }
            guard let latest = actor.latest else { return .response(Self.none) }
            var headers = [
                (name: "Content-Type", value: latest.event.isRaw ? Self.octets : Self.json),
                ("Cache-Control", "no-store"), ("Io-Value-Timestamp", String(Int(latest.receptionTime))),
            ]
            // A router may name any source: an id that is too long for a header field is omitted.
            if let id = latest.event.ioSourceId?.string, id.utf8.count <= WireName.maximumLength {
                headers.append(("Io-Source-Id", id))
            }
            return .response(HTTPResponse(status: 200, headers: headers, body: latest.event.bytes))
        }
    }
}
