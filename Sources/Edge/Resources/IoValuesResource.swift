import Coaty
import Gate
import HTTPServer

/// `POST /v1/io/sources/{objectId}/values` and `GET /v1/io/actors/{objectId}/value`: publishes a value of a registered
/// IO source, and returns the latest value of a registered IO actor.
///
/// Both run to completion on the thread that read the request. The bytes of values are passed on unchanged.
struct IoValuesResource: Sendable {
    let gate: Gate

    private static let json = "application/json"
    private static let octets = "application/octet-stream"
    private static let none = HTTPResponse(status: 204, headers: [("Cache-Control", "no-store")])

    func register(in router: inout GatewayRouter) {
        router.onPost("/v1/io/sources/{objectId}/values", publishingBy: gate) { [gate] request, principal, _ in
            let isRaw = request.hasContentType(Self.octets)
            let operation = PublishIoValue(
                id: request.objectId,
                value: request.body,
                isRaw: isRaw || request.hasContentType(Self.json) ? isRaw : nil
            )
            return .performing {
                let state = try gate.perform(operation, by: principal)
                return HTTPResponse(status: 202, headers: [("Content-Type", Self.json)], body: "{\(state.members)}")
            }
        }
        router.on(.get, "/v1/io/actors/{objectId}/value") { [gate] request, principal in
            let operation = ReadIoValue(id: request.objectId)
            return .performing {
                guard let latest = try gate.perform(operation, by: principal) else { return Self.none }
                return Self.response(latest)
            }
        }
    }

    private static func response(_ latest: ReceivedIoValue) -> HTTPResponse {
        var headers = [
            (name: "Content-Type", value: latest.event.isRaw ? octets : json),
            ("Cache-Control", "no-store"), ("Io-Value-Timestamp", String(Int(latest.receptionTime))),
        ]
        // A router may use any source id; an id that is too long for a header field is omitted.
        if let id = latest.event.ioSourceId?.string, id.utf8.count <= WireName.maximumLength {
            headers.append(("Io-Source-Id", id))
        }
        return HTTPResponse(status: 200, headers: headers, body: latest.event.bytes)
    }
}
